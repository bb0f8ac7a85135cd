"""The whole matrix of the last dense layer, in which outputs are linear: Σ_n H_n ⊗ a_n a_n'."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.ggn import Roots
from credo.methods.laplace.curvature.paths import Arrays
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import Spectrum, covariance_root, root_log_prob
from credo.methods.laplace.curvature.taps import Layer, tapped


@struct
class DenseBlockSums:
    """Blocks Σ_n H_n[c, d] a_n a_n' for c ≤ d [C (C + 1)/2, in + 1, in + 1]."""

    blocks: jax.Array = leaf()
    layer: Layer | None = None
    outputs: int = 1

    @staticmethod
    def zeros(values: Arrays, dtype: Any, layer: Layer) -> "DenseBlockSums":
        """Nothing added yet."""
        outputs, width = layer.join(values).shape
        return DenseBlockSums(jnp.zeros((outputs * (outputs + 1) // 2, width, width), dtype), layer, outputs)

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> "DenseBlockSums":
        """With the rows of one batch: one product of features for each pair of outputs."""
        layer = self.layer
        assert layer is not None
        run = tapped(model, variables, batch.inputs, (layer,))
        rows = layer.augment(run.inputs[layer.kernel])
        columns = roots(run.outputs)
        middle = jnp.einsum("cni,cnj->ijn", columns, columns)
        pairs = middle[np.triu_indices(self.outputs)]
        added = jax.lax.map(lambda h: (rows * h[:, None]).T @ rows, pairs)
        return DenseBlockSums(self.blocks + added.astype(self.blocks.dtype), layer, self.outputs)

    def matrix(self) -> jax.Array:
        """H [C (in + 1), C (in + 1)], outputs first."""
        index = np.zeros((self.outputs, self.outputs), np.int32)
        index[np.triu_indices(self.outputs)] = np.arange(len(self.blocks))
        index = np.maximum(index, index.T)
        size = self.outputs * self.blocks.shape[-1]
        return self.blocks[index].transpose(0, 2, 1, 3).reshape(size, size)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Cholesky factors of H + P."""
        layer, outputs = self.layer, self.outputs
        assert layer is not None
        matrix = self.matrix()

        def factor(scales: Arrays) -> jax.Array:
            scaled = {path: scales[path] * prior.precision[path] for path in layer.paths}
            return jnp.linalg.cholesky(matrix + jnp.diag(layer.join(scaled).ravel().astype(matrix.dtype)))

        def at(scales: Arrays, temperature: Any) -> DenseBlock:
            return DenseBlock(covariance_root(factor(scales), temperature), layer, outputs)

        return Spectrum(lambda scales: 2 * jnp.log(jnp.diagonal(factor(scales))).sum(), at)


@struct
class DenseBlock:
    """δ = S z for the last layer as one vector of [out, in + 1] numbers: Σ = S S', S upper triangular."""

    scale: jax.Array = leaf()
    layer: Layer | None = None
    outputs: int = 1

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread."""
        return () if self.layer is None else self.layer.paths

    def draw(self, key: jax.Array) -> Arrays:
        """One draw of δ."""
        assert self.layer is not None
        z = jax.random.normal(key, (self.scale.shape[0],), self.scale.dtype)
        return self.layer.split((self.scale @ z).reshape(self.outputs, -1))

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """log N(δ; 0, Σ)."""
        assert self.layer is not None
        return root_log_prob(self.scale, self.layer.join(deviation).ravel())

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        assert self.layer is not None
        return ((self.layer.join(gradient).ravel().astype(self.scale.dtype) @ self.scale) ** 2).sum()

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """a'Σ_cc a [n, out], with Σ_cc the block of output c."""
        layer = self.layer
        assert layer is not None
        run = tapped(model, variables, inputs, (layer,))
        rows = layer.augment(run.inputs[layer.kernel])
        pieces = self.scale.reshape(self.outputs, rows.shape[1], -1)
        return jax.lax.map(lambda s: ((rows @ (s @ s.T)) * rows).sum(-1), pieces).T

    def covariance(self) -> Any:
        """Σ, for the layer's (W, b) as [out, in + 1] in one vector."""
        return self.scale @ self.scale.T
