"""The Gaussian over weights whose covariance is a diagonal plus a matrix of low rank."""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from credo.core.network import Variables
from credo.core.parts import Arrays, replace_arrays, select_arrays
from credo.core.posterior import WeightPosterior
from credo.core.tree import Select, leaf, struct, take
from credo.core.typing import PyTree


@struct
class LowRank(WeightPosterior):
    """q(θ) = N(m, S(I + WW')S) with S = diag(s) and W of r columns, or an equal mixture of several of them.

    θ = m + s (ε + Wη) with ε ~ N(0, I) and η ~ N(0, I_r). By the determinant lemma and Woodbury's identity the density
    costs O(Pr²). Ong, Nott and Smith (2018), Gaussian variational approximation with a factor covariance structure.

    mean, std: trees over the random parameters (leading axis: member); factor: the same tree with one more axis of
    length r; points: the parameters learned as points; state: frozen statistics.
    """

    mean: PyTree = leaf()
    std: PyTree = leaf()
    factor: PyTree = leaf()
    points: PyTree = leaf()
    state: PyTree = leaf()

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        mean, std, factor = (take(tree, member) for tree in (self.mean, self.std, self.factor))
        leaves, treedef = jax.tree.flatten(mean)
        *keys, key_common = jax.random.split(key, len(leaves) + 1)
        eps = [jax.random.normal(k, m.shape, m.dtype) for k, m in zip(keys, leaves)]
        common = jax.random.normal(key_common, jax.tree.leaves(factor)[0].shape[-1:], leaves[0].dtype)
        theta = low_rank_draw(mean, std, factor, jax.tree.unflatten(treedef, eps), common)
        return Variables(theta | take(self.points, member), take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        """log (1/S) Σ_s N(θ; m_s, Σ_s); of the marginal, where only some kinds of parameters are there."""
        kinds = [name for name in self.mean if name in params]
        parts = [{name: tree[name] for name in kinds} for tree in (self.mean, self.std, self.factor, params)]
        log_probs = jax.vmap(low_rank_log_prob, (0, 0, 0, None))(*parts)
        return jax.scipy.special.logsumexp(log_probs) - jnp.log(self.members)

    def marginal(self, select: Select) -> "LowRank":
        """The distribution of the weights that the globs match, by path: their rows of W."""
        mean, std, factor = (select_arrays(tree, select) for tree in (self.mean, self.std, self.factor))
        return LowRank(mean, std, factor, {}, {})

    def renewed(self, mean: Arrays, std: Arrays) -> "LowRank":
        """The same with the weights at these paths N(mean, std²) instead, independent of all others."""
        zeros = dict.fromkeys(mean, 0.0)
        parts = (replace_arrays(self.mean, mean), replace_arrays(self.std, std), replace_arrays(self.factor, zeros))
        return LowRank(*parts, self.points, self.state)


def low_rank_draw(mean: PyTree, std: PyTree, factor: PyTree, eps: PyTree, common: jax.Array) -> PyTree:
    """m + s (ε + Wη)."""
    return jax.tree.map(lambda m, s, w, e: m + s * (e + w @ common), mean, std, factor, eps)


def low_rank_log_prob(mean: PyTree, std: PyTree, factor: PyTree, theta: PyTree) -> jax.Array:
    """log N(θ; m, S(I + WW')S): |I + WW'| = |I + W'W| and (I + WW')⁻¹ = I − W(I + W'W)⁻¹W'."""
    z = jax.tree.map(lambda x, m, s: (x - m) / s, theta, mean, std)
    along = sum(jnp.tensordot(x, w, x.ndim) for x, w in zip(jax.tree.leaves(z), jax.tree.leaves(factor)))
    chol = jnp.linalg.cholesky(gram(factor))
    square = sum((x**2).sum() for x in jax.tree.leaves(z)) - along @ cho_solve((chol, True), along)
    log_std = sum(jnp.log(s).sum() for s in jax.tree.leaves(std))
    count = sum(x.size for x in jax.tree.leaves(z))
    return -0.5 * square - log_std - jnp.log(jnp.diag(chol)).sum() - 0.5 * count * jnp.log(2 * jnp.pi)


def gram(factor: PyTree) -> jax.Array:
    """I + W'W [r, r]."""
    leaves = [w.reshape(-1, w.shape[-1]) for w in jax.tree.leaves(factor)]
    return sum(w.T @ w for w in leaves) + jnp.eye(leaves[0].shape[1], dtype=leaves[0].dtype)
