"""A posterior over some parameters beside others that are held fixed."""

from typing import Any

import jax
import numpy as np

from credo.core.network import Variables
from credo.core.pieces import read
from credo.core.posterior import WeightPosterior
from credo.core.tree import leaf, struct, take

PyTree = Any


@struct
class SubsetPosterior(WeightPosterior):
    """`inner` is the posterior of the free parameters; `held` (leading axis: member) has the others, None if free."""

    inner: Any = leaf()
    held: PyTree = leaf()

    @property
    def members(self) -> int:
        return self.inner.members

    @property
    def available(self) -> int | None:
        return self.inner.available

    @property
    def log_weights(self) -> jax.Array | None:
        return self.inner.log_weights

    @property
    def on_disk(self) -> bool:
        return self.inner.on_disk

    @property
    def draw_bytes(self) -> int:
        """Bytes of what one draw of one member stores: held parameters are stored once."""
        return self.inner.draw_bytes

    def part(self, members: np.ndarray, draws: np.ndarray) -> "SubsetPosterior":
        """These members and draws alone, read into memory (see `Samples.part`)."""
        return SubsetPosterior(self.inner.part(members, draws), read(self.held, members))

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        return self._beside_held(self.inner.draw(key, member, index), member)

    def draws(self, keys: jax.Array, members: jax.Array, index: jax.Array) -> Variables:
        return self._beside_held(self.inner.draws(keys, members, index), members)

    def _beside_held(self, free: Variables, member: jax.Array) -> Variables:
        held = take(self.held, member)
        params = jax.tree.map(lambda h, x: x if h is None else h, held, free.params, is_leaf=lambda x: x is None)
        return Variables(params, free.state)

    def log_prob(self, params: PyTree) -> jax.Array:
        """Density of the free parameters."""
        held = take(self.held, 0)
        free = jax.tree.map(lambda h, x: x if h is None else None, held, params, is_leaf=lambda x: x is None)
        return self.inner.log_prob(free)
