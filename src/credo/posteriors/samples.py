"""Stored draws: chains of a sampler, members of an ensemble, or one point."""

from typing import Any

import jax

from credo.core.network import Variables
from credo.core.posterior import WeightPosterior
from credo.core.tree import leaf, struct, take
from credo.errors import NoDensity

PyTree = Any


@struct
class Samples(WeightPosterior):
    """Draws θ_{c,k} with leading axes chain c and draw k, with optional log weights.

    params: leaves [chain, draw, ...]; state: leaves [chain, ...] (frozen batch statistics).
    """

    params: PyTree = leaf()
    state: PyTree = leaf()
    weights: Any = leaf(default=None)

    @property
    def members(self) -> int:
        return jax.tree.leaves(self.params)[0].shape[0]

    @property
    def available(self) -> int:
        return jax.tree.leaves(self.params)[0].shape[1]

    @property
    def log_weights(self) -> jax.Array | None:
        return self.weights

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        return Variables(take(take(self.params, member), index), take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        raise NoDensity("A set of draws has no density; fit a variational or Laplace posterior to get one.")
