"""The Gaussian over weights with a full covariance."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from credo.core.network import Variables
from credo.core.parts import Arrays, lower_factor, replace_arrays, select_arrays
from credo.core.posterior import WeightPosterior
from credo.core.tree import Layout, Select, by_paths, leaf, struct, take
from credo.core.typing import PyTree


@struct
class Multivariate(WeightPosterior):
    """q(θ) = N(m, LL'), or an equal mixture of several of them (leading axis: member).

    mean: a tree over the random parameters; factor: lower triangular L [member, P, P] over the numbers of that tree in
    flattening order; points: the parameters learned as points; state: frozen statistics.
    """

    mean: PyTree = leaf()
    factor: jax.Array = leaf()
    points: PyTree = leaf()
    state: PyTree = leaf()

    @property
    def covariance(self) -> jax.Array:
        """LL' of every member [member, P, P]."""
        factor = jnp.asarray(self.factor)
        return factor @ jnp.swapaxes(factor, 1, 2)

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        mean = take(self.mean, member)
        layout = Layout.of(mean, limit=2**31)
        factor = jnp.asarray(self.factor)[member]
        theta = layout.ravel(mean) + factor @ jax.random.normal(key, factor.shape[:1], factor.dtype)
        return Variables(layout.unravel(theta) | take(self.points, member), take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        """log (1/S) Σ_s N(θ; m_s, L_s L_s'); of the marginal, where only some kinds of parameters are there."""
        theta = {name: params[name] for name in self.mean if name in params}
        mean = {name: self.mean[name] for name in theta}
        layout = Layout.of(take(mean, 0), limit=2**31)
        log_probs = jax.vmap(lambda m, f: cholesky_log_prob(layout.ravel(m), f, layout.ravel(theta)))(
            mean, self._marginal(set(theta))
        )
        return jax.scipy.special.logsumexp(log_probs) - jnp.log(self.members)

    def _marginal(self, kinds: set[str]) -> jax.Array:
        """The factor of the covariance of these kinds of parameters alone [member, P', P']."""
        masks = {
            name: jax.tree.map(lambda x, k=name in kinds: np.full(x.shape[1:], k), m) for name, m in self.mean.items()
        }
        keep = np.concatenate([np.ravel(x) for x in jax.tree.leaves(masks)])
        if keep.all():
            return jnp.asarray(self.factor)
        return lower_factor(jnp.asarray(self.factor)[:, keep])

    def marginal(self, select: Select) -> "Multivariate":
        """The distribution of the weights that the globs match, by path: their block of the covariance."""
        mean = select_arrays(self.mean, select)
        indices = self._indices(mean["network"])
        # Dicts are flattened in the order of their keys, which need not be that of the tree.
        order = np.concatenate([indices[path] for path in sorted(mean["network"])])
        return Multivariate(mean, lower_factor(jnp.asarray(self.factor)[:, order]), {}, {})

    def renewed(self, mean: Arrays, std: Arrays) -> "Multivariate":
        """The same with the weights at these paths N(mean, std²) instead, independent of all others."""
        indices = self._indices(mean)
        replaced = np.concatenate(list(indices.values()))
        keep = np.setdiff1d(np.arange(self.factor.shape[1]), replaced)
        dtype = self.factor.dtype
        scales = [jnp.broadcast_to(jnp.asarray(std[path], dtype), np.shape(mean[path])).ravel() for path in indices]
        # The others stay in order, so their lower triangular factor is one inside the full matrix, too.
        block = lower_factor(jnp.asarray(self.factor)[:, keep])
        factor = jnp.zeros(self.factor.shape, dtype).at[:, keep[:, None], keep].set(block)
        factor = factor.at[:, replaced, replaced].set(jnp.concatenate(scales))
        return Multivariate(replace_arrays(self.mean, mean), factor, self.points, self.state)

    def _indices(self, weights: Arrays) -> dict[str, np.ndarray]:
        """Indices of the numbers of these weights in the flat vector."""
        indices, start = {}, 0
        for key, x in by_paths(self.mean).items():
            path, length = key.removeprefix("network/"), int(np.prod(x.shape[1:]))
            if path in weights:
                indices[path] = np.arange(start, start + length)
            start += length
        return indices


def cholesky_log_prob(mean: jax.Array, factor: jax.Array, theta: jax.Array) -> jax.Array:
    """log N(θ; m, LL')."""
    z = solve_triangular(factor, theta - mean, lower=True)
    return -0.5 * (z**2).sum() - jnp.log(jnp.diag(factor)).sum() - 0.5 * len(mean) * jnp.log(2 * jnp.pi)
