"""Stored draws: chains of a sampler, members of an ensemble, or one point."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.network import Variables
from credo.core.pieces import mapping, read, release
from credo.core.posterior import WeightPosterior
from credo.core.tree import leaf, num_bytes, struct, take
from credo.core.typing import PyTree
from credo.errors import NoDensity


@struct
class Samples(WeightPosterior):
    """Draws θ_{c,k} with leading axes chain c and draw k, with optional log weights.

    params: leaves [chain, draw, ...]; state: leaves [chain, ...] (frozen batch statistics). Leaves of params may be
    memory maps: then draws are read when they are needed, and only those.
    """

    params: PyTree = leaf()
    state: PyTree = leaf()
    weights: Any = leaf(default=None)

    @property
    def available(self) -> int:
        return jax.tree.leaves(self.params)[0].shape[1]

    @property
    def log_weights(self) -> jax.Array | None:
        return self.weights

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        return Variables(take(take(self.params, member), index), take(self.state, member))

    @property
    def on_disk(self) -> bool:
        return any(mapping(x) is not None for x in jax.tree.leaves(self.params))

    @property
    def draw_bytes(self) -> int:
        """Bytes of one draw of one chain."""
        return num_bytes(self.params) // (self.members * self.available)

    def part(self, members: np.ndarray, draws: np.ndarray) -> "Samples":
        """These chains and draws alone, read into memory; without weights, which only make sense among all draws."""
        return Samples(read(self.params, members, draws), read(self.state, members))

    def draws(self, keys: jax.Array, members: jax.Array, index: jax.Array) -> Variables:
        if not self.on_disk:
            return super().draws(keys, members, index)
        where = (np.asarray(members), np.asarray(index))
        params = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[where]), self.params)
        release(self.params)
        return Variables(params, take(self.state, members))

    def log_prob(self, params: PyTree) -> jax.Array:
        raise NoDensity("A set of draws has no density; fit a variational or Laplace posterior to get one.")
