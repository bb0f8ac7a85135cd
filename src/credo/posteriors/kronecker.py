"""The matrix normal over weights: one covariance for the rows of a kernel and one for its columns."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from credo.core.network import Variables
from credo.core.parts import Arrays, one_scale, replace_arrays, select_arrays
from credo.core.posterior import WeightPosterior
from credo.core.tree import Select, leaf, path_string, struct, take
from credo.core.typing import PyTree


@struct
class MatrixNormal(WeightPosterior):
    """q(θ): every kernel Θ = M + A E B' with E of independent normals, every other number N(m_i, s_i²), independently.

    Cov[vec Θ] = AA' ⊗ BB' for kernels read row by row. An equal mixture of several has them along the leading axis
    (member). Louizos and Welling (2016), Structured and efficient variational deep learning with matrix Gaussian
    posteriors.

    mean: a tree over the random parameters; rows, columns: lower triangular A [member, m, m] and B [member, n, n] of
    each kernel by its path, the kernel read as m × n; std: of all other arrays, by path; points: the parameters learned
    as points; state: frozen statistics.
    """

    mean: PyTree = leaf()
    rows: Arrays = leaf()
    columns: Arrays = leaf()
    std: Arrays = leaf()
    points: PyTree = leaf()
    state: PyTree = leaf()

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        mean, rows, columns, std = (take(x, member) for x in (self.mean, self.rows, self.columns, self.std))
        leaves, treedef = jax.tree.flatten(mean)
        keys = jax.random.split(key, len(leaves))
        eps = jax.tree.unflatten(treedef, [jax.random.normal(k, m.shape, m.dtype) for k, m in zip(keys, leaves)])
        theta = matrix_draw(mean, rows, columns, std, eps)
        return Variables(theta | take(self.points, member), take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        """log (1/S) Σ_s q_s(θ); of the marginal, where only some kinds of parameters are there."""
        random = {name: params[name] for name in self.mean if name in params}
        parts = ({name: self.mean[name] for name in random}, self.rows, self.columns, self.std)
        log_probs = jax.vmap(lambda m, a, b, s: matrix_log_prob(m, a, b, s, random))(*parts)
        return jax.scipy.special.logsumexp(log_probs) - jnp.log(self.members)

    def marginal(self, select: Select) -> "MatrixNormal":
        """The distribution of the weights that the globs match, by path: arrays are independent of each other."""
        mean = select_arrays(self.mean, select)
        rows, columns, std = (
            {path: x for path, x in part.items() if path.removeprefix("network/") in mean["network"]}
            for part in (self.rows, self.columns, self.std)
        )
        return MatrixNormal(mean, rows, columns, std, {}, {})

    def renewed(self, mean: Arrays, std: Arrays) -> "MatrixNormal":
        """The same with the weights at these paths N(mean, std²) instead, independent of all others."""
        rows, columns, rest = (dict(part) for part in (self.rows, self.columns, self.std))
        for path, scale in std.items():
            name = f"network/{path}"
            if name in rest:
                rest[name] = np.broadcast_to(np.asarray(scale, rest[name].dtype), rest[name].shape)
                continue
            half = one_scale(scale, path) ** 0.5  # each of the two factors brings √s
            for side in (rows, columns):
                size, dtype = side[name].shape, side[name].dtype
                side[name] = np.broadcast_to(half * np.eye(size[-1], dtype=dtype), size)
        return MatrixNormal(replace_arrays(self.mean, mean), rows, columns, rest, self.points, self.state)


def matrix_draw(mean: PyTree, rows: Arrays, columns: Arrays, std: Arrays, eps: PyTree) -> PyTree:
    """M + A E B' for kernels, m + s ε for the rest."""

    def one(path: Any, m: jax.Array, e: jax.Array) -> jax.Array:
        name = path_string(path)
        if name not in rows:
            return m + std[name] * e
        a, b = rows[name], columns[name]
        return m + (a @ e.reshape(len(a), len(b)) @ b.T).reshape(m.shape)

    return jax.tree_util.tree_map_with_path(one, mean, eps)


def matrix_log_prob(mean: PyTree, rows: Arrays, columns: Arrays, std: Arrays, theta: PyTree) -> jax.Array:
    """Σ over arrays of log N: for a kernel E = A⁻¹(Θ − M)B⁻ᵀ and log|Σ| = 2n log|A| + 2m log|B|."""

    def one(path: Any, m: jax.Array, x: jax.Array) -> jax.Array:
        name = path_string(path)
        if name not in rows:
            return jax.scipy.stats.norm.logpdf(x, m, std[name]).sum()
        a, b = rows[name], columns[name]
        half = solve_triangular(a, (x - m).reshape(len(a), len(b)), lower=True)
        e = solve_triangular(b, half.T, lower=True)
        return jax.scipy.stats.norm.logpdf(e).sum() - matrix_log_det(a, b)

    return sum(jax.tree.leaves(jax.tree_util.tree_map_with_path(one, mean, theta)), jnp.zeros(()))


def matrix_log_det(a: jax.Array, b: jax.Array) -> jax.Array:
    """log |A ⊗ B| = n log|A| + m log|B| of lower triangular factors."""
    return len(b) * jnp.log(jnp.diag(a)).sum() + len(a) * jnp.log(jnp.diag(b)).sum()
