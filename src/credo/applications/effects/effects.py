"""What each input does: whether it matters, how strongly, and along which curve."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from credo.applications.effects.bands import mean_over, quantile_over
from credo.applications.effects.dependence import (
    MOST_ROWS,
    PartialDependence,
    check_level,
    curves,
    table_inputs,
    thin_rows,
)
from credo.applications.effects.grid import MOST_POINTS, as_grid, grid_of
from credo.applications.effects.selection import HOW, chances
from credo.core.checks import checked_fit, checked_key, list_of, names_of, whole_number
from credo.core.short import fields_in_short
from credo.errors import InputError
from credo.evaluation.diagnostics.probe import training_inputs
from credo.posteriors import Stacked

if TYPE_CHECKING:
    import pandas as pd


@dataclasses.dataclass(frozen=True)
class Effects:
    """The effect of every input; see `effects`. Arrays have one entry for each input, in the order of `names`.

    Attributes:
        curves: name → partial dependence.
        matters: the posterior probability that the input is used; None where no draw leaves an input out.
        linear: the posterior probability that there is no hidden node; None where their number is fixed.
        outputs: names of the outputs or classes; empty for one number.
        note: a sentence where `matters` is None.
    """

    curves: Mapping[str, PartialDependence]
    matters: np.ndarray | None = None
    linear: float | None = None
    outputs: tuple[str, ...] = ()
    note: str = ""

    __repr__ = fields_in_short

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs."""
        return tuple(self.curves)

    @property
    def strength(self) -> np.ndarray:
        """How far the mean prediction moves with the input: the standard deviation of the partial dependence over its
        grid, averaged over draws [inputs], or [inputs, outputs]."""
        return self._strength(lambda draws, weights, level: mean_over(draws, weights))

    @property
    def strength_lower(self) -> np.ndarray:
        """Lower end of the central interval of the strength."""
        return self._strength(lambda draws, weights, level: quantile_over(draws, weights, 0.5 - level / 2))

    @property
    def strength_upper(self) -> np.ndarray:
        """Upper end of the central interval of the strength."""
        return self._strength(lambda draws, weights, level: quantile_over(draws, weights, 0.5 + level / 2))

    def _strength(self, over: Any) -> np.ndarray:
        return np.stack([over(c.strengths, c.log_weights, c.level) for c in self.curves.values()])

    @property
    def order(self) -> list[str]:
        """The inputs, the strongest first."""
        total = np.sqrt((self.strength.reshape(len(self.names), -1) ** 2).sum(1))
        return [self.names[i] for i in np.argsort(-total, kind="stable")]

    def rescaled(self, shift: Any, scale: Any) -> Effects:
        """The effects on shift + scale · y: undoes a standardisation of the targets.

        Args:
            shift, scale: numbers, or one for each output.
        """
        return dataclasses.replace(self, curves={n: c.rescaled(shift, scale) for n, c in self.curves.items()})

    def table(self) -> pd.DataFrame:
        """One row for each input: matters, strength and the ends of its interval (of each output)."""
        import pandas as pd

        columns: dict[str, Any] = {} if self.matters is None else {"matters": self.matters}
        middle, low, high = (x.reshape(len(self.names), -1) for x in self._all())
        for i in range(middle.shape[1]):
            if self.outputs and len(self.outputs) == 2 and i == 0 and self._classes():
                continue  # of two probabilities that sum to 1 the second says all
            end = f" {self.outputs[i]}" if self.outputs else f" {i + 1}" if middle.shape[1] > 1 else ""
            columns |= {f"strength{end}": middle[:, i], f"lower{end}": low[:, i], f"upper{end}": high[:, i]}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="input"))

    def _all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.strength, self.strength_lower, self.strength_upper

    def _classes(self) -> bool:
        """Do the outputs sum to 1?"""
        first = next(iter(self.curves.values())).draws
        return first.ndim == 3 and bool(np.allclose(first.sum(-1), 1.0, atol=1e-3))

    def sentences(self) -> list[str]:
        """What the table does not say."""
        lines = [self.note] if self.note else []
        if self.linear is not None:
            lines.append(
                f"That there is no hidden node, so that all effects are linear, has probability {self.linear:.2g}."
            )
        return lines

    def __str__(self) -> str:
        table = self.table().loc[self.order].to_string(float_format=lambda x: f"{x:.3g}")
        return "\n".join([table, *self.sentences()])


def effects(
    key: jax.Array,
    fit: Any,
    inputs: Any = None,
    names: Sequence[str] | None = None,
    *,
    groups: Mapping[str, Sequence[int]] | None = None,
    grids: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = (),
    num_samples: int = 200,
    level: float = 0.9,
    most_rows: int = MOST_ROWS,
    most_points: int = MOST_POINTS,
) -> Effects:
    """What each input does, from the draws of a posterior (E3).

    `matters` is P(input k is used | data): the share of draws, by their weights, in which a linear weight of the input
    or its weight in an active node is not zero (George and McCulloch, 1993, Variable selection via Gibbs sampling). It
    needs draws with exact zeros. `strength` is the standard deviation over the rows' values of the partial dependence
    f̄_k, with its interval over draws: |w_k| times the standard deviation of x_k for a line.

    Args:
        key: a JAX key for drawing from the posterior.
        fit: the result of `credo.fit` or `credo.load`, with inputs of shape [n, p].
        inputs: the rows to average over; None takes training rows, which a loaded fit no longer has.
        names: of the columns; None names them input 1, input 2, ….
        groups: name → columns that stand for one input together, such as those of a category; other columns stand
            alone.
        grids: name → values to look at (see `partial_dependence`), for inputs whose grid is not to come from the rows.
        outputs: names of the outputs, or of the classes.
        num_samples: draws for the curves.
        level: probability of bands and intervals.
        most_rows: so many rows are averaged over, from all over the table, where there are more.
        most_points: so many points of a grid.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.applications.effects import effects
        >>> x = np.random.default_rng(0).normal(size=(60, 2))
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, 2 * x[:, 0]), "map", steps=500)
        >>> result = effects(jax.random.key(1), fit, names=["dose", "age"])
        >>> result.order
        ['dose', 'age']
        >>> result.matters is None
        True
    """
    checked_key(key), checked_fit(fit, "effects")
    check_level(level)
    num_samples, most_rows = whole_number(num_samples, "num_samples"), whole_number(most_rows, "most_rows")
    most_points, labels = whole_number(most_points, "most_points"), tuple(names_of(outputs, "outputs"))
    if not isinstance(grids, Mapping | None):
        raise InputError(f"grids maps names of inputs to values, got a {type(grids).__name__}.")
    if inputs is None:
        inputs = training_inputs(fit, most_rows)
    if inputs is None:
        raise InputError("A loaded fit has no rows: give the inputs to average over, such as the training inputs.")
    rows = table_inputs(fit, inputs)
    features = _groups(names, groups or {}, rows.shape[1])
    unknown = set(grids or {}) - set(features)
    if unknown:
        raise InputError(f"grids names the input {min(unknown)!r}, which is not there.")
    requests = []
    for name, columns in features.items():
        grid = (grids or {}).get(name)
        grid = grid_of(rows[:, list(columns)], most_points) if grid is None else as_grid(grid, len(columns))
        requests.append((columns, grid))
    dependences = dict(zip(features, curves(key, fit, thin_rows(rows, most_rows), requests, num_samples, level)))
    matters = chances(fit, list(features.values()))
    if labels and np.atleast_3d(next(iter(dependences.values())).draws).shape[2] != len(labels):
        raise InputError(f"There are {len(labels)} names of outputs, which are not as many as the outputs.")
    return Effects(dependences, matters, linear_chance(fit), labels, "" if matters is not None else HOW)


def linear_chance(fit: Any) -> float | None:
    """The share of draws without a hidden node; None where their number is fixed, and for a stack of fits.

    Args:
        fit: the result of `credo.fit` or `credo.load`.
    """
    nodes = None if isinstance(fit.posterior, Stacked) else fit.trace.get("nodes")
    return None if nodes is None else float((np.asarray(nodes).round() == 0).mean())


def _groups(names: Sequence[str] | None, groups: Mapping[str, Sequence[int]], width: int) -> dict[str, tuple[int, ...]]:
    """Name → columns of every input, in the order of their first columns."""
    labels = [f"input {i + 1}" for i in range(width)] if names is None else names_of(names, "names")
    if len(labels) != width:
        raise InputError(f"There are {width} columns but {len(labels)} names; name each column.")
    if not isinstance(groups, Mapping):
        raise InputError(f"groups maps names of inputs to lists of columns, got a {type(groups).__name__}.")
    last = width - 1
    grouped = {
        str(name): tuple(whole_number(i, f"groups[{name!r}]", 0, last) for i in list_of(columns, f"groups[{name!r}]"))
        for name, columns in groups.items()
    }
    used = [i for columns in grouped.values() for i in columns]
    if len(set(used)) < len(used) or not all(grouped.values()):
        raise InputError(f"groups must name columns between 0 and {width - 1}, each in one group alone.")
    single = [(labels[i], (i,)) for i in range(width) if i not in used]
    ordered = sorted([*grouped.items(), *single], key=lambda pair: min(pair[1]))
    if len(dict(ordered)) < len(ordered):
        raise InputError("Two inputs have the same name; give each its own.")
    return dict(ordered)
