"""A few directions that the data determine, and the prior in all others."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.ggn import Roots, ggn_product, hessian_product, row_chunk, row_jacobian
from credo.methods.laplace.curvature.paths import Arrays, flat, unflat
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import LOG_2PI, Spectrum

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
MORE = 8  # directions beyond the rank: they speed up convergence


@struct
class LowRankSums:
    """Subspace iteration for the largest eigenvalues of P^{-½} H P^{-½}, one pass over the data for each iteration.

    basis: Q [P, k] with orthonormal columns; images: the sum of P^{-½} H P^{-½} Q so far; root: P^{½}, the prior's.
    Halko, Martinsson and Tropp (2011), Finding structure with randomness.
    """

    basis: jax.Array = leaf()
    images: jax.Array = leaf()
    root: jax.Array = leaf()
    shapes: Shapes = ()
    rank: int = 20
    exact: bool = False  # the Hessian in place of the GGN

    @staticmethod
    def start(key: jax.Array, values: Arrays, dtype: Any, rank: int, exact: bool = False) -> "LowRankSums":
        """Random images: their span is the first subspace."""
        size = sum(x.size for x in values.values())
        width = min(size, rank + MORE)
        images = jax.random.normal(key, (size, width), dtype)
        shapes = tuple((path, tuple(x.shape)) for path, x in values.items())
        return LowRankSums(jnp.zeros_like(images), images, jnp.ones(size, dtype), shapes, min(rank, size), exact)

    def turned(self, prior: LocalPrior) -> "LowRankSums":
        """The next subspace: the span of the images, with no images yet."""
        precision = flat({path: prior.precision[path] for path, _ in self.shapes})
        basis = jnp.linalg.qr(self.images)[0]
        root = jnp.sqrt(precision).astype(self.root.dtype)
        return LowRankSums(basis, jnp.zeros_like(basis), root, self.shapes, self.rank, self.exact)

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> "LowRankSums":
        """With one batch's part of the images."""
        values = by_paths(variables.params["network"])
        values = {path: values[path] for path, _ in self.shapes}
        product = hessian_product if self.exact else ggn_product

        def image(column: jax.Array) -> jax.Array:
            vector = unflat((column / self.root).astype(flat(values).dtype), values)
            return flat(product(model, variables, batch, values, vector)).astype(self.root.dtype) / self.root

        images = jax.lax.map(image, self.basis.T, batch_size=min(8, self.basis.shape[1])).T
        return LowRankSums(self.basis, self.images + images, self.root, self.shapes, self.rank, self.exact)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Ritz values in the subspace, negative ones (the Hessian's) as 0; all other directions keep the prior."""
        small = self.basis.T @ self.images
        values, vectors = jnp.linalg.eigh(0.5 * (small + small.T))
        values = jnp.maximum(values[-self.rank :], 0.0)
        basis = self.basis @ vectors[:, -self.rank :]
        size = len(self.root)

        def log_det(scales: Arrays) -> jax.Array:
            scale = next(iter(scales.values()))
            rest = (size - self.rank) * jnp.log(scale) + 2 * jnp.log(self.root).sum()
            return jnp.log(values + scale).sum() + rest

        def at(scales: Arrays, temperature: Any) -> LowRankSpread:
            scale = next(iter(scales.values()))
            return LowRankSpread(basis, values / scale, self.root * jnp.sqrt(scale / temperature), self.shapes)

        return Spectrum(log_det, at)


@struct
class LowRankSpread:
    """Σ = D^{-½} (I + U diag(s) U')⁻¹ D^{-½} with orthonormal U [P, k]; root is D^{½}, s are the eigenvalues."""

    basis: jax.Array = leaf()
    values: jax.Array = leaf()
    root: jax.Array = leaf()
    shapes: Shapes = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread."""
        return tuple(path for path, _ in self.shapes)

    def draw(self, key: jax.Array) -> Arrays:
        """(I + U s U')^{-½} z / D^{½}."""
        z = jax.random.normal(key, self.root.shape, self.root.dtype)
        shrink = 1 - 1 / jnp.sqrt(1 + self.values)
        return unflat((z - self.basis @ (shrink * (self.basis.T @ z))) / self.root, dict(self.shapes))

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """log N(δ; 0, Σ)."""
        z = flat({path: deviation[path] for path in self.paths}) * self.root
        square = z @ z + (self.values * (self.basis.T @ z) ** 2).sum()
        return -0.5 * (square + len(z) * LOG_2PI) + 0.5 * jnp.log1p(self.values).sum() + jnp.log(self.root).sum()

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        g = flat({path: gradient[path] for path in self.paths}) / self.root
        return g @ g - ((g @ self.basis) ** 2 * (self.values / (1 + self.values))).sum()

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """|D^{-½}∇f_c|² − Σ_k s_k/(1 + s_k) (u_k'D^{-½}∇f_c)² [n, out], a few rows at a time."""
        free = by_paths(variables.params["network"])
        values = {path: free[path] for path in self.paths}

        def row(x: PyTree) -> jax.Array:
            g = row_jacobian(model, variables, x, values) / self.root
            removed = ((g @ self.basis) ** 2 * (self.values / (1 + self.values))).sum(-1)
            return jnp.maximum((g * g).sum(-1) - removed, 0.0)

        return jax.lax.map(row, inputs, batch_size=row_chunk(8 * len(self.root)))

    def marginal(self, paths: tuple[str, ...]) -> "LowRankSpread":
        """The same of some of the weights: rows of U, made orthonormal again."""
        keep = jnp.asarray(self._marks(paths).nonzero()[0])
        basis, root = jnp.asarray(self.basis)[keep], jnp.asarray(self.root)[keep]
        return _orthonormal(basis, self.values, root, tuple(s for s in self.shapes if s[0] in paths))

    def renewed(self, std: Arrays) -> "LowRankSpread":
        """The same with the weights at these paths independent, with these standard deviations."""
        new = self._marks(tuple(std))
        flat_std = flat({p: jnp.broadcast_to(jnp.asarray(std.get(p, 1.0)), s) for p, s in self.shapes})
        basis = jnp.where(new[:, None], 0.0, self.basis)
        root = jnp.where(new, 1 / flat_std, self.root).astype(self.root.dtype)
        return _orthonormal(basis, self.values, root, self.shapes)

    def _marks(self, paths: tuple[str, ...]) -> np.ndarray:
        return np.concatenate([np.full(math.prod(shape), path in paths) for path, shape in self.shapes])


def _orthonormal(basis: jax.Array, values: jax.Array, root: jax.Array, shapes: Shapes) -> LowRankSpread:
    """Σ = D^{-½} (I − U diag(s/(1+s)) U') D^{-½} for any U, as one with orthonormal columns."""
    columns = min(basis.shape)
    q, r = jnp.linalg.qr(basis)
    small = (r * (values / (1 + values))) @ r.T
    removed, turn = jnp.linalg.eigh(0.5 * (small + small.T))
    removed = jnp.clip(removed, 0.0, 1 - jnp.finfo(removed.dtype).eps)
    return LowRankSpread(q[:, :columns] @ turn, removed / (1 - removed), root, shapes)
