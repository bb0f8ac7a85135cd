"""Deep ensembles: several MAP fits as one vectorised computation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch, mix
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import field_values, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.ensembles.early_stopping import EarlyStopping
from credo.methods.ensembles.sized import Sized
from credo.methods.points.map import MAP, PointState

# P(Poisson(1) ≤ k): a weight is the number of these at or below a uniform number.
POISSON = np.cumsum(np.exp(-1.0) / np.cumprod([1, *range(1, 11)])).astype(np.float32)


@struct
class MemberState(PointState):
    """Also the seed of the member's bootstrap and the range of every input; None where not used."""

    seed: Any = leaf(default=None)
    span: PyTree = leaf(default=None)


@struct
class DeepEnsemble(Sized, MAP):
    """`replicate(MAP(), size)`: members differ in their start and in their batches (C3).

    With `adversarial` = ε every batch is joined by x' = x + ε r sign(∇_x ℓ), ℓ = −log p(y|x, θ) and r the range of each
    input in the data, and the rows count half each: the smoothed loss is ½(ℓ(x) + ℓ(x')). With `bootstrap` row n of a
    member weighs w_n ~ Poisson(1), drawn once: θ* = argmax log p(θ) + Σ_n w_n log p(y_n | x_n, θ), and N stays N.
    With `held_out` every member keeps rows of its own from training and stops where it predicts them best
    (`EarlyStopping`): a member that memorises its rows is overconfident everywhere.
    Lakshminarayanan, Pritzel and Blundell (2017), Simple and scalable predictive uncertainty estimation.

    Args:
        size: number of members.
        adversarial: ε, the size of the step as a share of each input's range (0.01 in the paper); None: no such step.
        bootstrap: each member sees its own resampled rows.
        held_out: share of the rows that each member does not learn from; None: it does not stop early.
        aside: part of that share which stays unseen, to judge the member later; the rest decides when to stop.
        units: as in `EarlyStopping`, a number for each row; rows of one number are held out together.
        learning_rate, optimiser, schedule: as in `MAP`.

    Example:
        >>> import credo
        >>> credo.methods.DeepEnsemble(size=10, adversarial=0.01).members
        10
    """

    size: int = 5
    adversarial: Any = leaf(default=None)
    bootstrap: bool = False
    held_out: float | None = leaf(default=None)
    aside: float = leaf(default=0.5)
    units: Any = leaf(default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.held_out is not None and (self.adversarial is not None or self.bootstrap):
            raise InputError("held_out does not go with adversarial or bootstrap; leave it or them out.")

    @property
    def parts(self) -> tuple[Method, ...]:
        if self.held_out is None:
            return ()
        return (
            EarlyStopping(
                self.learning_rate, self.optimiser, self.schedule, held_out=(1 - self.aside) * self.held_out,
                size=self.size, longest=self.default_steps, units=self.units, by="density",
                aside=self.aside * self.held_out,
            ),
        )  # fmt: skip

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.adversarial is not None and not self.adversarial > 0:
            raise InputError(f"adversarial is a positive share of each input's range, or None, got {self.adversarial}.")
        return model, []

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> MemberState:
        start = super().init(key, model, variables, data)
        fields = field_values(start)
        seed = jax.random.bits(key, (2,), jnp.uint32) if self.bootstrap else None
        return MemberState(**fields, seed=seed, span=None if self.adversarial is None else spans(data))

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: PointState, batch: Batch
    ) -> tuple[PointState, Info]:
        assert isinstance(state, MemberState)
        if self.bootstrap:
            batch = resampled(state.seed, batch)
        if self.adversarial is not None:
            variables = self.point(model, state)
            batch = with_adversaries(self.adversarial, state.span, noise, model, variables, batch)
        moved, info = super().step(noise, model, phase, state, batch)
        fields = field_values(moved)
        return dataclasses.replace(state, **fields), info


def spans(data: Batch) -> PyTree:
    """max − min of every entry of the inputs, over rows that count (the first rows, where data is streamed)."""

    def span(x: jax.Array) -> jax.Array:
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            raise Refusal(
                f"Adversarial steps need real-valued inputs to move along, got {x.dtype}: use adversarial=None."
            )
        counts = (data.weight > 0).reshape(-1, *[1] * (x.ndim - 1))
        return jnp.where(counts, x, -jnp.inf).max(0) - jnp.where(counts, x, jnp.inf).min(0)

    return jax.tree.map(span, data.inputs)


def with_adversaries(
    share: Any, span: PyTree, key: jax.Array, model: Model, variables: Variables, batch: Batch
) -> Batch:
    """The batch, and after it the same rows moved by ε r sign(∇_x ℓ): twice the rows, so each counts half."""

    def log_likelihood(inputs: PyTree) -> jax.Array:
        per_row, _ = model.log_likelihood(variables, batch._replace(inputs=inputs), key=key, train=True)
        return jnp.where(batch.weight > 0, per_row, 0.0).sum()

    uphill = jax.grad(log_likelihood)(batch.inputs)
    moved = jax.tree.map(lambda x, g, r: x - share * r * jnp.sign(g), batch.inputs, uphill, span)
    inputs = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), batch.inputs, moved)
    targets, weight = (jnp.concatenate([x, x]) for x in (batch.targets, batch.weight))
    return Batch(inputs, targets, weight, batch.num_data)


def resampled(seed: jax.Array, batch: Batch) -> Batch:
    """The batch with every row's weight times its Poisson(1) number."""
    weight = batch.weight * bootstrap_weights(seed, batch.row_numbers)
    # `Batch.total` divides by the rows of positive weight; M counts those that were drawn zero times, too.
    share = (weight > 0).sum() / jnp.maximum(batch.num_rows, 1)
    return batch._replace(weight=weight * share)


def bootstrap_weights(seed: jax.Array, rows: jax.Array) -> jax.Array:
    """w_n ~ Poisson(1) [n], a pure function of the seed [2] and of the row numbers."""
    hashed = mix(mix(rows.astype(jnp.uint32) + seed[0]) ^ seed[1])
    uniform = (hashed >> 8).astype(jnp.float32) / 2**24
    return (uniform[:, None] >= POISSON).sum(1).astype(jnp.float32)
