"""The decisions of many rows: what to do, what it is worth, and what knowing more would be worth."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from credo.applications.decisions.risk import Mean, Risk
from credo.applications.decisions.utilities import Amount, Utility
from credo.core.short import fields_in_short
from credo.core.tree import field_values
from credo.errors import InputError

if TYPE_CHECKING:
    import jax
    import pandas as pd

    from credo.applications.decisions.realised import Realised


@dataclasses.dataclass(frozen=True)
class Decisions:
    """The best action of n rows among A; see `credo.decide`.

    Attributes:
        actions: names of the actions; the last is "abstain" where that was allowed.
        best: index of the best action [n]; of equal ones, the first.
        values: the criterion of every action [n, A]; expected utility unless a risk was given.
        expected: expected utility E[u|a] [n, A].
        std: Std_θ[E[u|a, θ]], the epistemic standard deviation of `expected` [n, A].
        chance_best: the posterior probability that the action has the largest E[u|a, θ] [n, A].
        value_of_parameters: E_θ[max_a E[u|a, θ]] − max_a E[u|a] ≥ 0 [n]: what to know θ would add. 0 for a point.
        value_of_outcome: E_y[max_a u(a, y)] − max_a E[u|a] [n]: what to know the outcome would add.
        error: estimated error of the quadrature in `expected` [n, A]; 0 where sums are exact.
        plug_in: what one would do if the point prediction were sure: index [n].
        risk, over: the criterion.
        draws: number of draws of θ, or what weighted ones are worth.
        utility: that was decided by.
        amounts: the best amount [n], where the action is a number.
        plug_in_amounts: the best amount if the point prediction were sure [n].
        abstain: its cost, where amounts may be left open.
    """

    actions: tuple[str, ...]
    best: np.ndarray
    values: np.ndarray
    expected: np.ndarray
    std: np.ndarray
    chance_best: np.ndarray
    value_of_parameters: np.ndarray
    value_of_outcome: np.ndarray
    error: np.ndarray
    plug_in: np.ndarray
    risk: Risk
    over: str
    draws: float
    utility: Utility = dataclasses.field(repr=False)
    amounts: np.ndarray | None = None
    plug_in_amounts: np.ndarray | None = None
    abstain: float | None = None

    __repr__ = fields_in_short

    def __len__(self) -> int:
        return len(self.best)

    @property
    def action(self) -> np.ndarray:
        """The name of the best action [n]."""
        return np.array(self.actions, object)[self.best]

    @property
    def utilities(self) -> np.ndarray:
        """The criterion of every action [n, A]: another name for `values`."""
        return self.values

    @property
    def expected_utility(self) -> np.ndarray:
        """Expected utility of the chosen action [n]."""
        return self._of_best(self.expected)

    @property
    def value(self) -> np.ndarray:
        """The criterion of the chosen action [n]."""
        return self._of_best(self.values)

    @property
    def regret(self) -> np.ndarray:
        """What every action loses against the best, by the criterion [n, A]."""
        return np.asarray(self.values.max(1, keepdims=True) - self.values)

    @property
    def mc_error(self) -> np.ndarray:
        """Standard error of `expected` from the number of draws, were they independent [n, A]."""
        return np.asarray(self.std / np.sqrt(self.draws))

    @property
    def second(self) -> np.ndarray:
        """Index of the second-best action [n]; −1 where there is but one."""
        if len(self.actions) == 1:
            return np.full(len(self), -1)
        others = self.values.copy()
        others[np.arange(len(self)), self.best] = -np.inf
        return np.asarray(others.argmax(1))

    def _of_best(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(np.take_along_axis(array, self.best[:, None], 1)[:, 0])

    def rows(self, places: Any) -> Decisions:
        """The decisions of some rows alone.

        Args:
            places: their indices, or a mask.
        """
        fields = field_values(self)
        selected = {name: x[places] for name, x in fields.items() if isinstance(x, np.ndarray)}
        return dataclasses.replace(self, **selected)

    def realised(self, outcomes: Any, plug_in: bool = False) -> np.ndarray:
        """The utility that the decisions had [n], now that the outcomes are known.

        Args:
            outcomes: what came true: class indices, or numbers [n].
            plug_in: that of acting on the point prediction instead.
        """
        array = np.asarray(outcomes)
        if array.shape not in ((len(self),), (len(self), 1)):
            raise InputError(f"Expected {len(self)} outcomes, one for each decision, got shape {list(array.shape)}.")
        if array.dtype.kind not in "fiub" or not np.isfinite(array.astype(np.float64)).all():
            raise InputError("Outcomes must be finite numbers, or class indices; leave rows without one out.")
        y = array.reshape(-1).astype(np.float64)
        index = self.plug_in if plug_in else self.best
        if isinstance(self.utility, Amount):
            amounts = self.plug_in_amounts if plug_in else self.amounts
            utility = self.utility.of(amounts, y)
            return utility if self.abstain is None else np.where(index == 0, utility, -self.abstain)
        count = self.utility.num_classes
        if count is not None and not np.isin(y, np.arange(count)).all():
            raise InputError(f"Outcomes must be class indices from 0 to {count - 1}; encode the labels.")
        each = np.stack([self.utility.of(i, y) for i in range(len(self.actions))], 1)
        return np.asarray(np.take_along_axis(each, index[:, None], 1)[:, 0])

    def score(self, outcomes: Any, *, against: Decisions | None = None, key: jax.Array | None = None) -> Realised:
        """Realised utility, and how much better than acting on the point prediction; see `score_decisions`."""
        from credo.applications.decisions.realised import score_decisions

        return score_decisions(self, outcomes, against=against, key=key)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each decision, and a column `utility ACTION` with the criterion of each action."""
        import pandas as pd

        columns: dict[str, Any] = {"action": self.action}
        if self.amounts is not None:
            columns["amount"] = np.where(self.best == 0, self.amounts, np.nan)
        columns["expected_utility"] = self.expected_utility
        if not isinstance(self.risk, Mean):
            columns["value"] = self.value
        if len(self.actions) > 1:
            columns["second_best"] = np.array(self.actions, object)[self.second]
            columns["loss_of_second"] = np.take_along_axis(self.regret, self.second[:, None], 1)[:, 0]
        columns["chance_best"] = self._of_best(self.chance_best)
        columns["value_of_parameters"] = self.value_of_parameters
        columns["value_of_outcome"] = self.value_of_outcome
        for i, name in enumerate(self.actions):
            columns[f"utility {name}"] = self.values[:, i]
        return pd.DataFrame(columns)

    def summary(self) -> str:
        """What was decided, in a few lines."""
        what = str(self.risk)
        if not isinstance(self.risk, Mean):
            what += ", over outcomes" if self.over == "outcomes" else ", over parameters (noise averaged out)"
        lines = [f"{len(self):,} decisions by {what}:"]
        wide = max(len(name) for name in self.actions)
        for i, name in enumerate(self.actions):
            share = float((self.best == i).mean())
            lines.append(
                f"  {name:<{wide}}  taken in {share:6.1%}   if always taken {self.values[:, i].mean():.4g} a row"
            )
        if self.amounts is not None and (self.best == 0).any():
            amounts = self.amounts[self.best == 0]
            lines.append(f"  amounts from {amounts.min():.4g} to {amounts.max():.4g}, on average {amounts.mean():.4g}")
        theta, outcome = self.value_of_parameters.mean(), self.value_of_outcome.mean()
        lines.append(
            f"Expected utility {self.expected_utility.mean():.4g} a row; to know the parameters would add {theta:.4g} "
            f"(the most that more data could bring), to know the outcomes {outcome:.4g}."
        )
        sure = float((self._of_best(self.chance_best) > 0.95).mean())
        if len(self.actions) > 1:
            lines.append(f"The choice has more than 95 % posterior probability of being best in {sure:.1%} of rows.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self) -> Any:
        """A figure: utilities of the actions along the rows, and the value of knowing more (`credo.report`)."""
        from credo.report.decisions import plot

        return plot(self)
