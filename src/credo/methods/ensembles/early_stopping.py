"""MAP that stops where held-out rows are best: starting points for chains."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import field_values, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.ensembles.sized import Sized
from credo.methods.points.map import MAP, MEMORY, PointState
from credo.methods.points.optimise import descend, fade

LARGEST = 4096  # rows that are held out, at most
SHARE = 0.3  # of a budget, where something follows


@struct
class StoppedState(PointState):
    """Also the held-out rows, their score, and the point where it was best."""

    held: jax.Array = leaf(default=None)  # [rows on the device] bool: those that decide when to stop
    aside: jax.Array = leaf(default=None)  # likewise: those that stay unseen
    score: jax.Array = leaf(default=None)  # held-out log likelihood (or −squared error) of a row, over about one epoch
    seen: jax.Array = leaf(default=None)  # weight of the scores in that average
    best: PyTree = leaf(default=None)
    best_network: PyTree = leaf(default=None)
    best_score: jax.Array = leaf(default=None)
    since: jax.Array = leaf(default=None)  # steps since the best score


@struct
class EarlyStopping(Sized, MAP):
    """MAP on most rows, ended where the held-out log likelihood stops rising; the best point is kept.

    Real targets are scored under the best noise: max_σ Σ log N(y; m, σ²) depends on the squared error alone. While a
    point is optimised its noise becomes too small long before its mean is at its best, and a chain corrects the noise
    much sooner than the mean. Where no chain follows, `by="density"` scores the noise, too.

    Each member holds out other rows. Their scores come from the training batches, averaged over about one epoch, at no
    extra cost. A member that has not improved for `patience` of the longest run stops; the phase ends when all have.
    Prechelt (1998), Early stopping — but when?

    Args:
        held_out: share of the rows that decide when to stop.
        aside: share of the rows that neither train a member nor decide when it stops: its scores on them are unbiased.
        by: "mean" or "density", what is scored of real targets.
        units: a number for each row, where rows of one number are held out together: copies of one row, groups. None:
            every row by itself.
        patience: share of the longest run without improvement after which a member stops.
        size: members.
        longest: steps, at most, where the user gives none.
        learning_rate, optimiser, schedule: as in `MAP`.
    """

    held_out: float = leaf(default=0.1)
    patience: float = leaf(default=0.5)
    size: int = 1
    longest: int = 10_000
    units: Any = leaf(default=None)
    by: str = "mean"
    aside: float = leaf(default=0.0)

    @property
    def default_steps(self) -> Any:  # type: ignore[override]
        return self.longest

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        for name in ("held_out", "patience"):
            if not 0 < vars(self)[name] < 1:
                raise InputError(f"{name} is a share between 0 and 1, got {vars(self)[name]}.")
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random", until="stopped", share=SHARE),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> StoppedState:
        start = super().init(key, model, variables, data)
        fields = field_values(start)
        held, aside = held_rows(key, self.held_out, self.aside, self.units, data)
        zero = jnp.zeros(())
        return StoppedState(
            **fields, held=held, aside=aside, score=zero, seen=zero, best=start.values, best_network=start.network,
            best_score=jnp.full((), -jnp.inf), since=jnp.zeros((), jnp.int32),
        )  # fmt: skip

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: PointState, batch: Batch
    ) -> tuple[PointState, Info]:
        assert isinstance(state, StoppedState)
        rows = batch.row_numbers
        num_rows = state.held.shape[0]  # rows beyond those that the start saw are never held out
        rows, valid = jnp.minimum(rows, num_rows - 1), (rows < num_rows) & (batch.weight > 0)
        held = valid & state.held[rows]
        training = batch._replace(weight=jnp.where(held | (valid & state.aside[rows]), 0.0, batch.weight))

        def loss(values: PyTree) -> tuple[jax.Array, tuple[PyTree, jax.Array]]:
            variables = Variables(state.layout.unravel(values), state.network)  # type: ignore[union-attr]
            outputs, network = model.outputs(variables, batch.inputs, key=noise, train=True)
            likelihood, params = model.likelihood, model.complete(variables.params)["likelihood"]
            per_row = likelihood.log_prob(params, outputs, batch.targets)
            total = (model.log_prior(variables.params) + training.total(per_row)) / model.temperature
            if likelihood.kind == "real" and self.by == "mean":
                per_row = -jnp.square(likelihood.mean(params, outputs) - batch.targets).sum(-1)
            return -total / batch.num_data, (network, per_row)

        (value, (network, scores)), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        score, seen = self._score(state, batch, held, scores)
        better = (seen > 0) & (score > state.best_score)
        best, best_network, best_score = jax.tree.map(
            lambda new, old: jnp.where(better, new, old),
            (state.values, state.network, score),
            (state.best, state.best_network, state.best_score),
        )
        since = jnp.where(better, 0, state.since + 1)
        stopped = state.since > self.patience * phase.steps
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps)
        values, memory = descend(self.optimiser, rate, gradient, state.memory, state.values, MEMORY)
        moved = StoppedState(
            state.step + 1, values, memory, network, state.layout, state.held, state.aside, score, seen, best,
            best_network, best_score, since,
        )  # fmt: skip
        new = jax.tree.map(lambda a, b: jnp.where(stopped, a, b), state, moved)
        return new, Info({"loss": value, "held_out": score, "stopped": stopped})

    def _score(
        self, state: StoppedState, batch: Batch, held: jax.Array, per_row: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """The running mean of held-out scores; all of them at once where the batch has all rows."""
        count = held.sum()
        fresh = jnp.where(held, per_row, 0.0).sum() / jnp.maximum(count, 1)
        share = jnp.minimum(1.0, 3 * batch.weight.shape[0] / batch.num_data)
        weight = jnp.where(count > 0, share, 0.0)
        seen = (1 - weight) * state.seen + weight
        score = state.score + jnp.where(seen > 0, weight / jnp.maximum(seen, 1e-30), 0.0) * (fresh - state.score)
        return score, seen

    def point(self, model: Model, state: PointState) -> Variables:
        assert isinstance(state, StoppedState)
        improved = jnp.isfinite(state.best_score)
        values, network = jax.tree.map(
            lambda a, b: jnp.where(improved, a, b), (state.best, state.best_network), (state.values, state.network)
        )
        return Variables(state.layout.unravel(values), network)  # type: ignore[union-attr]


def held_rows(key: jax.Array, share: Any, aside: Any, units: Any, data: Batch) -> tuple[jax.Array, jax.Array]:
    """Which rows are held out, and which are put aside: random shares, where rows of one unit go together.

    At least one row is left for training, even where that splits a unit.
    """
    rows = data.weight.shape[0]
    lots = jax.random.uniform(key, (rows,))
    if units is not None:
        count = min(rows, units.shape[0])
        lots = lots.at[:count].set(lots[jnp.clip(units[:count], 0, rows - 1)])
    lots = jnp.where(data.weight > 0, lots, 2.0)

    def lowest(target: jax.Array) -> jax.Array:
        count = jnp.clip(jnp.round(target), 1, LARGEST).astype(jnp.int32)
        by_unit, cut = lots <= jnp.sort(lots)[count - 1], lots.argsort().argsort() < count
        return jnp.where((by_unit & (data.weight > 0)).sum() < data.num_rows, by_unit, cut) & (data.num_rows > 1)

    held = lowest(share * data.num_rows)
    return held, jnp.where(aside > 0, lowest((share + aside) * data.num_rows) & ~held, False)
