"""The mean-field Gaussian over weights, with parameters that are points beside it."""

import jax
import jax.numpy as jnp

from credo.core.network import Variables
from credo.core.parts import Arrays, replace_arrays, select_arrays
from credo.core.posterior import WeightPosterior
from credo.core.tree import Select, leaf, struct, take
from credo.core.typing import PyTree


@struct
class MeanField(WeightPosterior):
    """q(θ) = Π_i N(θ_i; m_i, s_i²), or an equal mixture of several of them (leading axis: member).

    mean, std: trees over the random parameters; points: the parameters learned as points; state: frozen statistics.
    """

    mean: PyTree = leaf()
    std: PyTree = leaf()
    points: PyTree = leaf()
    state: PyTree = leaf()

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        mean, treedef = jax.tree.flatten(take(self.mean, member))
        std = jax.tree.leaves(take(self.std, member))
        keys = jax.random.split(key, len(mean))
        values = [m + s * jax.random.normal(k, m.shape, m.dtype) for k, m, s in zip(keys, mean, std)]
        params = jax.tree.unflatten(treedef, values) | take(self.points, member)
        return Variables(params, take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        """log (1/S) Σ_s Π_i N(θ_i; m_si, s_si²); of the marginal, where only some kinds of parameters are there."""
        kinds = [name for name in self.mean if name in params]
        log_probs = jax.tree.map(
            lambda x, m, s: jax.scipy.stats.norm.logpdf(x, m, s).sum(axis=tuple(range(1, m.ndim))),
            *({name: tree[name] for name in kinds} for tree in (params, self.mean, self.std)),
        )
        total = sum(jax.tree.leaves(log_probs))
        return jax.scipy.special.logsumexp(total) - jnp.log(self.members)

    def marginal(self, select: Select) -> "MeanField":
        """The distribution of the weights that the globs match, by path."""
        return MeanField(select_arrays(self.mean, select), select_arrays(self.std, select), {}, {})

    def renewed(self, mean: Arrays, std: Arrays) -> "MeanField":
        """The same with the weights at these paths N(mean, std²) instead, independent of all others."""
        return MeanField(replace_arrays(self.mean, mean), replace_arrays(self.std, std), self.points, self.state)
