"""A posterior over some parameters beside others that are held fixed."""

from typing import Any

import jax

from credo.core.network import Variables
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

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        free = self.inner.draw(key, member, index)
        held = take(self.held, member)
        params = jax.tree.map(lambda h, x: x if h is None else h, held, free.params, is_leaf=lambda x: x is None)
        return Variables(params, free.state)

    def log_prob(self, params: PyTree) -> jax.Array:
        """Density of the free parameters."""
        held = take(self.held, 0)
        free = jax.tree.map(lambda h, x: x if h is None else None, held, params, is_leaf=lambda x: x is None)
        return self.inner.log_prob(free)
