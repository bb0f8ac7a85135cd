"""Kronecker factors: for each dense layer the curvature is taken as E[g g'] ⊗ Σ a a'."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.curvature.ggn import Roots
from credo.curvature.paths import Arrays
from credo.curvature.prior import LocalPrior
from credo.curvature.spectrum import LOG_2PI, Spectrum
from credo.curvature.taps import Layer, tapped

PyTree = Any
WIDE, PIECES = 384, 4  # inputs beyond which a Gram matrix is made in blocks, and in how many


@struct
class KroneckerSums:
    """A = Σ_n w a a' [in + 1, in + 1] and G = Σ_n Σ_c w g_c g_c' [out, out] of each layer, by kernel path, and Σ w.

    H_layer ≈ G ⊗ A / Σ w. Martens and Grosse (2015); exact for the last layer under normal noise and for every layer of
    a network without activations under squared loss.
    """

    inputs: Arrays = leaf()
    outputs: Arrays = leaf()
    weight: jax.Array = leaf()
    layers: tuple[Layer, ...] = ()

    @staticmethod
    def zeros(values: Arrays, dtype: Any, layers: tuple[Layer, ...]) -> "KroneckerSums":
        """Nothing added yet."""
        sizes = {layer.kernel: layer.join(values).shape for layer in layers}
        square = lambda n: jnp.zeros((n, n), dtype)  # noqa: E731
        inputs, outputs = ({path: square(s[i]) for path, s in sizes.items()} for i in (1, 0))
        return KroneckerSums(inputs, outputs, jnp.zeros((), dtype), layers)

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> "KroneckerSums":
        """With the factors of one batch; one backward pass for each column of the outputs' curvature."""
        run = tapped(model, variables, batch.inputs, self.layers)
        root = jnp.sqrt(jnp.maximum(batch.weight, 0.0))[:, None].astype(run.outputs.dtype)

        def column(total: Arrays, s: jax.Array) -> tuple[Arrays, None]:
            return {path: total[path] + g.T @ g for path, g in run.pull(s).items()}, None

        start = {path: jnp.zeros(x.shape, run.outputs.dtype) for path, x in self.outputs.items()}
        found = jax.lax.scan(column, start, roots(run.outputs))[0]
        rows = {layer.kernel: root * layer.augment(run.inputs[layer.kernel]) for layer in self.layers}
        inputs = {p: t + gram(rows[p]).astype(t.dtype) for p, t in self.inputs.items()}
        outputs = {p: t + found[p].astype(t.dtype) for p, t in self.outputs.items()}
        return KroneckerSums(inputs, outputs, self.weight + batch.weight.sum().astype(self.weight.dtype), self.layers)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Eigenvectors of both factors. With D the prior's precision along the inputs (kernel, bias), those of
        D^{-½} A D^{-½} ⊗ G + scale · I are the same for every scale."""
        found = {}
        for layer in self.layers:
            path = layer.kernel
            root = jnp.sqrt(_along_inputs(layer, prior))
            values_in, basis_in = jnp.linalg.eigh(self.inputs[path] / (root[:, None] * root))
            values_out, basis_out = jnp.linalg.eigh(self.outputs[path] / jnp.maximum(self.weight, 1e-30))
            product = jnp.maximum(values_out, 0.0)[:, None] * jnp.maximum(values_in, 0.0)
            found[path] = (basis_in, basis_out, root, product)

        def log_det(scales: Arrays) -> jax.Array:
            each = [
                jnp.log(e + scales[p]).sum() + 2 * e.shape[0] * jnp.log(r).sum() for p, (_, _, r, e) in found.items()
            ]
            return sum(each, jnp.zeros(()))

        def at(scales: Arrays, temperature: Any) -> Kronecker:
            std = {p: jnp.sqrt(temperature / (f[3] + scales[p])) for p, f in found.items()}
            bases = [{p: f[i] for p, f in found.items()} for i in range(3)]
            return Kronecker(bases[0], bases[1], bases[2], std, self.layers)

        return Spectrum(log_det, at)


@struct
class Kronecker:
    """δ = U (S ∘ Z) V' D^{-½} for each layer as a matrix [out, in + 1], with Z standard normal.

    basis_in: V; basis_out: U; root: D^{½} along the inputs; std: S [out, in + 1]; all by kernel path.
    """

    basis_in: Arrays = leaf()
    basis_out: Arrays = leaf()
    root: Arrays = leaf()
    std: Arrays = leaf()
    layers: tuple[Layer, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread."""
        return tuple(path for layer in self.layers for path in layer.paths)

    def draw(self, key: jax.Array) -> Arrays:
        """One draw of δ."""
        found: Arrays = {}
        for k, layer in zip(jax.random.split(key, len(self.layers)), self.layers):
            p = layer.kernel
            z = self.std[p] * jax.random.normal(k, self.std[p].shape, self.std[p].dtype)
            found |= layer.split(self.basis_out[p] @ z @ self.basis_in[p].T / self.root[p])
        return found

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """Σ over layers of log N(U'δ D^{½} V; 0, S²), entry by entry, with the Jacobian of D."""
        total = jnp.zeros(())
        for layer in self.layers:
            p = layer.kernel
            z = self.basis_out[p].T @ (layer.join(deviation) * self.root[p]) @ self.basis_in[p] / self.std[p]
            total += (-0.5 * (z * z + LOG_2PI) - jnp.log(self.std[p]) + jnp.log(self.root[p])).sum()
        return total

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """Σ over layers of Σ_ij (g_c'u_i)² (a'v_j)² S_ij² [n, out]: sums over inputs are done once for all outputs."""
        run = tapped(model, variables, inputs, self.layers)
        spread = {}
        for layer in self.layers:
            p = layer.kernel
            rows = layer.augment(run.inputs[p]) / self.root[p] @ self.basis_in[p]
            spread[p] = (rows * rows) @ (self.std[p] ** 2).T

        def output(unit: jax.Array) -> jax.Array:
            g = run.pull(jnp.broadcast_to(unit, run.outputs.shape))
            each = [((g[p] @ self.basis_out[p]) ** 2 * s).sum(-1) for p, s in spread.items()]
            return sum(each, jnp.zeros(()))

        return jax.lax.map(output, jnp.eye(run.outputs.shape[1], dtype=run.outputs.dtype)).T


def _along_inputs(layer: Layer, prior: LocalPrior) -> jax.Array:
    """The prior's precision for one row of (W, b): every row has the same."""
    return layer.join({path: prior.precision[path] for path in layer.paths})[0]


def gram(rows: jax.Array) -> jax.Array:
    """A'A for A [n, m]; where m is large only the blocks on and above the diagonal are multiplied out."""
    width = rows.shape[1]
    if width <= WIDE:
        return rows.T @ rows
    edges = [round(i * width / PIECES) for i in range(PIECES + 1)]
    upper = [rows[:, a:b].T @ rows[:, a:] for a, b in pairwise(edges)]
    below = [[upper[i][:, edges[j] - edges[i] : edges[j + 1] - edges[i]].T for i in range(j)] for j in range(PIECES)]
    return jnp.concatenate([jnp.concatenate([*below[j], upper[j]], 1) for j in range(PIECES)])
