"""SWAG: a Gaussian from the iterates of an optimiser at a constant learning rate."""

import dataclasses

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.ensembles.sized import Sized
from credo.methods.points.optimise import descend, fade, optimiser
from credo.posteriors import LowRank

FLOOR = 1e-8  # of a standard deviation: constant iterates have a density, too


@struct
class SwagState:
    """The point, the optimiser's memory, and the moments of the snapshots.

    mean, square: running mean and sum of squared deviations (Welford's stable update); last: the deviations of
    the last K snapshots from the running mean [K, …]; count: snapshots; tick: steps of the averaging phase.
    """

    step: jax.Array = leaf()
    values: PyTree = leaf()
    memory: PyTree = leaf()
    network: PyTree = leaf()
    mean: PyTree = leaf()
    square: PyTree = leaf()
    last: PyTree = leaf()
    count: jax.Array = leaf()
    tick: jax.Array = leaf()
    layout: Layout | None = None


@struct
class SWAG(Method):
    """MAP, then snapshots θ_t of iterates at a constant learning rate, read as a Gaussian (C5).

    θ = m + σ ⊙ z₁/√2 + D z₂/√(2(K − 1)) with m and σ² the mean and variance of all snapshots, D the deviations of the
    last K from the mean, z₁ and z₂ standard normal. Maddox et al. (2019), A simple baseline for Bayesian uncertainty.

    The spread is that of the optimiser's iterates. It grows with the learning rate and shrinks as gradients use more
    rows, whatever N is: it equals the posterior's on no problem by construction. Only the mean is exact where the
    posterior is Gaussian. Noise that is "learned" is a point; batch statistics are those of the last step.

    Args:
        learning_rate: of the first phase, whose steps are the user's; decays to 0 by a cosine over its second half.
        averaging_rate: constant, of the second phase.
        averaging_steps: steps of the second phase.
        averaging_rows: rows of a gradient in the second phase, at most: larger batches are subsampled.
        every: steps between snapshots.
        rank: K, stored deviations.
        optimiser: "adam", "rmsprop", "momentum" or "sgd", of the first phase.
        averaging_optimiser: of the second phase; plain "sgd" is the paper's, and needs a rate that fits the problem.

    Example:
        >>> import credo
        >>> [phase.name for phase in credo.methods.SWAG(rank=10).phases(100, 500)]
        ['optimise', 'average']
    """

    learning_rate: float = leaf(default=0.005)
    averaging_rate: float = leaf(default=0.01)
    averaging_steps: int = 5000
    averaging_rows: int = 32
    every: int = 10
    rank: int = 20
    optimiser: str = "adam"
    averaging_optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 5000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        snapshots = self.averaging_steps // max(1, self.every)
        if self.every < 1 or self.rank < 2 or snapshots < 2 or self.averaging_rows < 1:
            raise InputError(
                "SWAG needs at least 2 snapshots, a rank of at least 2 and a row for each gradient, got "
                f"averaging_steps={self.averaging_steps}, every={self.every}, rank={self.rank}, "
                f"averaging_rows={self.averaging_rows}."
            )
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return Phase("optimise", steps, "random", main=True), Phase("average", self.averaging_steps, "random")

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> SwagState:
        layout = Layout.of(variables.params)
        values = layout.ravel(variables.params)
        zeros = jax.tree.map(jnp.zeros_like, values)
        last = jax.tree.map(lambda x: jnp.zeros((self.rank, *x.shape), x.dtype), values)
        zero = jnp.zeros((), jnp.int32)
        # Both optimisers' memories are kept, because a state has one shape for all phases.
        memory = tuple(optimiser(name).init(values) for name in (self.optimiser, self.averaging_optimiser))
        return SwagState(zero, values, memory, variables.state, zeros, zeros, last, zero, zero, layout)

    def step(
        self, noise: jax.Array, model: Model, phase: Phase, state: SwagState, batch: Batch
    ) -> tuple[SwagState, Info]:
        averaging = phase.name == "average"
        key, key_rows = jax.random.split(noise)
        if averaging:
            batch = self._subsample(key_rows, batch)

        def loss(values: PyTree) -> tuple[jax.Array, PyTree]:
            variables = Variables(state.layout.unravel(values), state.network)  # type: ignore[union-attr]
            total, network = model.log_joint(variables, batch, key=key, train=True)
            return -total / batch.num_data, network

        (value, network), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        name = self.averaging_optimiser if averaging else self.optimiser
        rate = self.averaging_rate if averaging else self.learning_rate * fade(self.schedule, state.step, phase.steps)
        values, memory = descend(name, rate, gradient, state.memory[averaging], state.values)
        memories = (state.memory[0], memory) if averaging else (memory, state.memory[1])
        state = dataclasses.replace(state, step=state.step + 1, values=values, memory=memories, network=network)
        return self._snapshot(state) if averaging else state, Info({"loss": value})

    def _subsample(self, key: jax.Array, batch: Batch) -> Batch:
        """At most `averaging_rows` of the rows: on the full batch the iterates would converge to a point."""
        rows = batch.weight.shape[0]
        if rows <= self.averaging_rows:
            return batch
        # Padded rows come last in this order, so that none is taken before a real one.
        order = jnp.argsort(jax.random.uniform(key, (rows,)) + (batch.weight == 0))[: self.averaging_rows]
        inputs, targets, weight = take((batch.inputs, batch.targets, batch.weight), order)
        return Batch(inputs, targets, weight, batch.num_data)

    def _snapshot(self, state: SwagState) -> SwagState:
        """Every `every` steps, add this iterate to the moments and the last deviations."""
        due = (state.tick + 1) % self.every == 0
        count = state.count + due
        share = jnp.where(due, 1.0 / jnp.maximum(count, 1), 0.0)
        mean = jax.tree.map(lambda m, v: m + share * (v - m), state.mean, state.values)
        square = jax.tree.map(
            lambda s, m, new, v: s + due * (v - m) * (v - new), state.square, state.mean, mean, state.values
        )
        slot = jnp.where(due, (count - 1) % self.rank, self.rank)  # beyond the end nothing is written
        last = jax.tree.map(lambda d, v, m: d.at[slot].set(v - m, mode="drop"), state.last, state.values, mean)
        return dataclasses.replace(state, mean=mean, square=square, last=last, count=count, tick=state.tick + 1)

    def point(self, model: Model, state: SwagState) -> Variables:
        return Variables(state.layout.unravel(state.mean), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: SwagState, draws: PyTree) -> LowRank:
        def moments(state: SwagState) -> tuple[PyTree, PyTree, PyTree]:
            spread = jax.tree.map(lambda s: jnp.sqrt(0.5 * s / jnp.maximum(state.count, 1)), state.square)
            std = jax.tree.map(lambda s: jnp.maximum(s, FLOOR), spread)
            stored = jnp.minimum(state.count, self.rank)
            size = 1 / jnp.sqrt(2.0 * jnp.maximum(stored - 1, 1))
            columns = jax.tree.map(lambda d, s: size * d / s, state.last, std)
            unravel = state.layout.unravel  # type: ignore[union-attr]
            factor = jax.tree.map(lambda w: jnp.moveaxis(w, 0, -1), jax.vmap(unravel)(columns))
            return unravel(state.mean), unravel(std), factor

        parts = jax.vmap(moments)(state)
        point = "likelihood" if model.likelihood.point else ""
        mean, std, factor = ({k: v for k, v in tree.items() if k != point} for tree in parts)
        points = {k: v for k, v in parts[0].items() if k == point}
        return LowRank(mean, std, factor, points, state.network)

    def smaller_step(self, factor: float = 0.1) -> "SWAG":
        """Lower both learning rates: either may have been too large."""
        rates = factor * self.learning_rate, factor * self.averaging_rate
        return dataclasses.replace(self, learning_rate=rates[0], averaging_rate=rates[1])


@struct
class MultiSWAG(Sized, SWAG):
    """`replicate(SWAG(), size)`: an equal mixture of Gaussians around different optima (C5).

    Wilson and Izmailov (2020), Bayesian deep learning and a probabilistic perspective of generalization.

    Args:
        size: number of members.
        learning_rate, averaging_rate, averaging_steps, every, rank: as in `SWAG`.

    Example:
        >>> import credo
        >>> credo.methods.MultiSWAG(size=3).members
        3
    """

    size: int = 5
