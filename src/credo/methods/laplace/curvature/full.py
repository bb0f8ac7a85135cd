"""The whole matrix, for small networks and for any network's chosen weights."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.parts import lower_factor
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.ggn import Roots, hessian_product, over_rows, row_chunk, row_jacobian
from credo.methods.laplace.curvature.paths import Arrays, flat, function, unflat
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import Spectrum, covariance_root, root_log_prob


@struct
class FullSums:
    """H = Σ_n J_n' H_n J_n (or minus the Hessian of the log likelihood) as a matrix [P, P]."""

    matrix: jax.Array = leaf()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    exact: bool = False  # the Hessian itself

    @staticmethod
    def zeros(values: Arrays, dtype: Any, exact: bool = False) -> "FullSums":
        """Nothing added yet."""
        shapes = tuple((path, tuple(x.shape)) for path, x in values.items())
        size = sum(math.prod(shape) for _, shape in shapes)
        return FullSums(jnp.zeros((size, size), dtype), shapes, exact)

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> "FullSums":
        """Σ_c g_c g_c' of every row, with g_c = J' s_c; products with unit vectors for the Hessian."""
        values = _chosen(variables, self.shapes)
        if self.exact:
            return FullSums(self.matrix + self._hessian(model, variables, batch, values), self.shapes, True)
        columns = roots(function(model, variables, batch.inputs)(values))

        def row(x: PyTree, s: jax.Array) -> jax.Array:
            return s @ row_jacobian(model, variables, x, values)

        def chunk(total: jax.Array, rows: tuple[PyTree, jax.Array]) -> jax.Array:
            g = jax.vmap(row)(*rows).reshape(-1, total.shape[0]).astype(total.dtype)
            return total + g.T @ g

        width = self.matrix.shape[0] * (columns.shape[0] + columns.shape[2])
        matrix = over_rows(chunk, self.matrix, batch.inputs, jnp.moveaxis(columns, 1, 0), width)
        return FullSums(matrix, self.shapes, False)

    def _hessian(self, model: Model, variables: Variables, batch: Batch, values: Arrays) -> jax.Array:
        def hessian_column(unit: jax.Array) -> jax.Array:
            vector = unflat(unit.astype(flat(values).dtype), values)
            return flat(hessian_product(model, variables, batch, values, vector))

        size = self.matrix.shape[0]
        matrix = jax.lax.map(hessian_column, jnp.eye(size, dtype=self.matrix.dtype), batch_size=min(size, 32))
        return (0.5 * (matrix + matrix.T)).astype(self.matrix.dtype)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Cholesky factors of H + P. The Hessian's negative eigenvalues, which the GGN never has, are taken as 0."""
        shapes = self.shapes
        matrix = self.matrix
        if self.exact:
            values, vectors = jnp.linalg.eigh(matrix)
            matrix = (vectors * jnp.maximum(values, 0.0)) @ vectors.T

        def factor(scales: Arrays) -> jax.Array:
            if prior.matrix is not None:
                return jnp.linalg.cholesky(matrix + prior.matrix)
            diagonal = flat({path: scales[path] * prior.precision[path] for path, _ in shapes})
            return jnp.linalg.cholesky(matrix + jnp.diag(diagonal.astype(matrix.dtype)))

        def at(scales: Arrays, temperature: Any) -> Full:
            return Full(covariance_root(factor(scales), temperature), shapes)

        return Spectrum(lambda scales: 2 * jnp.log(jnp.diagonal(factor(scales))).sum(), at)


@struct
class Full:
    """δ = S z with z ~ N(0, I): Σ = S S', S upper triangular [P, P]."""

    scale: jax.Array = leaf()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread."""
        return tuple(path for path, _ in self.shapes)

    def draw(self, key: jax.Array) -> Arrays:
        """One draw of δ."""
        z = jax.random.normal(key, (self.scale.shape[0],), self.scale.dtype)
        return unflat(self.scale @ z, dict(self.shapes))

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """log N(δ; 0, Σ)."""
        return root_log_prob(self.scale, flat({path: deviation[path] for path in self.paths}))

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        vector = flat({path: gradient[path] for path in self.paths}).astype(self.scale.dtype)
        return ((vector @ self.scale) ** 2).sum()

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """|S'∇f_c|² [n, out], a few rows at a time."""
        values = _chosen(variables, self.shapes)

        def row(x: PyTree) -> jax.Array:
            return ((row_jacobian(model, variables, x, values) @ self.scale) ** 2).sum(-1)

        return jax.lax.map(row, inputs, batch_size=row_chunk(4 * self.scale.shape[0]))

    def covariance(self) -> Any:
        """Σ [P, P]."""
        return self.scale @ self.scale.T

    def marginal(self, paths: tuple[str, ...]) -> "Full":
        """The same of some of the weights: their block of Σ."""
        rows = jnp.asarray(self.scale)[jnp.asarray(self._index(paths))]
        return Full(lower_factor(rows[::-1])[::-1, ::-1], tuple(s for s in self.shapes if s[0] in paths))

    def renewed(self, std: Arrays) -> "Full":
        """The same with the weights at these paths independent, with these standard deviations."""
        others = tuple(path for path in self.paths if path not in std)
        keep, new = self._index(others), self._index(tuple(std))
        values = [
            jnp.broadcast_to(jnp.asarray(std[p], self.scale.dtype), s).ravel() for p, s in self.shapes if p in std
        ]
        scale = jnp.zeros(self.scale.shape, self.scale.dtype).at[new, new].set(jnp.concatenate(values))
        return Full(scale.at[keep[:, None], keep].set(self.marginal(others).scale) if others else scale, self.shapes)

    def _index(self, paths: tuple[str, ...]) -> np.ndarray:
        """Indices of these weights in the vector."""
        marks = [np.full(math.prod(shape), path in paths) for path, shape in self.shapes]
        return np.flatnonzero(np.concatenate(marks))


def _chosen(variables: Variables, shapes: tuple[tuple[str, tuple[int, ...]], ...]) -> Arrays:
    values = by_paths(variables.params["network"])
    return {path: values[path] for path, _ in shapes}
