"""Priors under which all weights are independent: one density for every parameter array."""

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.network import ParamInfo, is_info
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree


class ElementDensity(ABC):
    """A density of one number; arrays broadcast. `gaussian` is (mean, std) where it is normal, else None."""

    @abstractmethod
    def log_prob(self, x: jax.Array) -> jax.Array:
        """Log density, elementwise."""

    @abstractmethod
    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Independent draws."""

    @property
    def gaussian(self) -> tuple[Any, Any] | None:
        """Mean and standard deviation where the density is normal."""
        return None


class ElementwisePrior:
    """Base of priors that give each array its own elementwise density; a subclass says which in `density`."""

    def density(self, info: ParamInfo) -> ElementDensity:
        """The density of every entry of the array that `info` describes; none under a `bind` of its own."""
        raise NotImplementedError(f"{type(self).__name__} has neither a `density` nor a `bind`.")

    def init(self, info: PyTree = None) -> PyTree:
        """No hyper-parameters of its own."""
        return {}

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """None to draw."""
        return {}

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """Nothing to say without hyper-parameters."""
        return jnp.zeros(())

    def bind(self, info: PyTree, params: PyTree) -> "Elementwise":
        """The product of the densities over all entries of all arrays."""
        return self.bind_part(info, params)

    def bind_part(self, info: PyTree, params: PyTree) -> "Elementwise":
        """The same where `info` is only a part of the network (under `by_path`)."""
        shapes = tuple(i.shape for i in jax.tree.leaves(info, is_leaf=is_info))
        return Elementwise(jax.tree.map(self.density, info, is_leaf=is_info), shapes)


@struct
class Elementwise:
    """p(θ) = Π_i p_i(θ_i) over a tree of parameters; `densities` is that tree of ElementDensity."""

    densities: PyTree = leaf()
    shapes: tuple[tuple[int, ...], ...] = ()

    def _parts(self) -> tuple[list[ElementDensity], Any]:
        return jax.tree.flatten(self.densities, is_leaf=lambda x: isinstance(x, ElementDensity))

    def log_prob(self, params: PyTree) -> jax.Array:
        """Σ_i log p_i(θ_i)."""
        parts, _ = self._parts()
        return sum((d.log_prob(x).sum() for d, x in zip(parts, jax.tree.leaves(params))), jnp.zeros(()))

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """`num` independent draws of the whole tree."""
        parts, treedef = self._parts()
        keys = jax.random.split(key, len(parts))
        draws = [d.sample(k, (num, *s)) for d, k, s in zip(parts, keys, self.shapes)]
        return jax.tree.unflatten(treedef, draws)

    def gaussian(self) -> tuple[PyTree, PyTree] | None:
        """Trees of means and standard deviations when every part is normal, else None."""
        parts, treedef = self._parts()
        pairs = [d.gaussian for d in parts if d.gaussian is not None]
        if len(pairs) < len(parts):
            return None
        full = [[jnp.broadcast_to(jnp.asarray(v, jnp.float32), s) for v in p] for p, s in zip(pairs, self.shapes)]
        mean, std = (jax.tree.unflatten(treedef, [pair[i] for pair in full]) for i in (0, 1))
        return mean, std
