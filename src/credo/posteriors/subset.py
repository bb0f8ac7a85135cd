"""A posterior over some parameters beside others that are held fixed."""

import dataclasses
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import ModalPosterior, ask
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.pieces import read
from credo.core.posterior import Draws, WeightPosterior
from credo.core.tree import leaf, struct, take
from credo.core.typing import PyTree


@struct
class SubsetPosterior(WeightPosterior):
    """`inner` is the posterior of the free parameters; `held` (leading axis: member) has the others, None if free.

    It predicts as `inner` does, by the network whose held parameters are fixed.
    """

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

    @property
    def whole(self) -> bool:
        """Does it predict with whole networks, one for each draw of the weights?"""
        inner = self.inner
        if isinstance(inner, SubsetPosterior):
            return inner.whole
        return type(inner).outputs is WeightPosterior.outputs or ask(inner, ModalPosterior).mode == "sampled"

    def view(self, mode: str) -> "SubsetPosterior":
        """The same posterior, predicting in another way that `inner` offers."""
        return dataclasses.replace(self, inner=self.inner.view(mode))

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """As many as `inner` gives."""
        return self.inner.num_draws(num)

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

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """Draws of f(x), made in the way of `inner`: linearised, in closed form, or by networks at draws."""
        if self.whole:
            return super().outputs(key, model, inputs, num)
        members, draws = self.num_draws(num)
        keys = key[None] if members == 1 else jax.random.split(key, members)

        def one(member: tuple[jax.Array, Any, PyTree]) -> Draws:
            member_key, inner, held = member
            # Every member holds other values, hence has another model.
            inner_model = dataclasses.replace(model, fixed=model.complete(held))
            return take(jax.tree.map(lambda x: x[None], inner).outputs(member_key, inner_model, inputs, draws), 0)

        draws_of_members = jax.lax.map(one, (keys, self.inner, self.held))
        return draws_of_members._replace(log_weights=self.chosen_weights(num))

    def log_prob(self, params: PyTree) -> jax.Array:
        """Density of the free parameters."""
        held = take(self.held, 0)
        free = jax.tree.map(lambda h, x: x if h is None else None, held, params, is_leaf=lambda x: x is None)
        return self.inner.log_prob(free)
