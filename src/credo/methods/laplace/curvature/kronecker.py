"""Kronecker factors: for each dense layer the curvature is taken as E[g g'] ⊗ Σ a a'."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.parts import one_scale
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.methods.laplace.curvature.ggn import Roots
from credo.methods.laplace.curvature.paths import Arrays
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import LOG_2PI, Spectrum
from credo.methods.laplace.curvature.taps import Layer, tapped

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
        products = jax.lax.scan(column, start, roots(run.outputs))[0]
        rows = {layer.kernel: root * layer.augment(run.inputs[layer.kernel]) for layer in self.layers}
        inputs = {p: t + gram(rows[p]).astype(t.dtype) for p, t in self.inputs.items()}
        outputs = {p: t + products[p].astype(t.dtype) for p, t in self.outputs.items()}
        return KroneckerSums(inputs, outputs, self.weight + batch.weight.sum().astype(self.weight.dtype), self.layers)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Eigenvectors of both factors. With D the prior's precision along the inputs (kernel, bias), those of
        D^{-½} A D^{-½} ⊗ G + scale · I are the same for every scale."""
        if prior.factors is not None:
            return self._after(prior.factors)
        factors = {}
        for layer in self.layers:
            path = layer.kernel
            root = jnp.sqrt(_along_inputs(layer, prior))
            values_in, basis_in = jnp.linalg.eigh(self.inputs[path] / (root[:, None] * root))
            values_out, basis_out = jnp.linalg.eigh(self.outputs[path] / jnp.maximum(self.weight, 1e-30))
            product = jnp.maximum(values_out, 0.0)[:, None] * jnp.maximum(values_in, 0.0)
            factors[path] = (basis_in, basis_out, root, product)

        def log_det(scales: Arrays) -> jax.Array:
            terms = [
                jnp.log(e + scales[p]).sum() + 2 * e.shape[0] * jnp.log(r).sum() for p, (_, _, r, e) in factors.items()
            ]
            return sum(terms, jnp.zeros(()))

        def at(scales: Arrays, temperature: Any) -> Kronecker:
            std = {p: jnp.sqrt(temperature / (f[3] + scales[p])) for p, f in factors.items()}
            bases = [{p: f[i] for p, f in factors.items()} for i in range(3)]
            return Kronecker(bases[0], bases[1], bases[2], std, self.layers)

        return Spectrum(log_det, at)

    def _after(self, prior: "Kronecker") -> Spectrum:
        """The sum of this curvature and the precision of a prior that has Kronecker factors, too.

        The sum has no such factors. It is taken in the eigenvectors of its two partial traces, where its diagonal is
        exact (George et al., 2018) and its off-diagonal entries are left out: none of them with one output, or where
        both terms have the same eigenvectors. Ritter et al. (2018), Online structured Laplace approximations.
        """
        factors = {}
        for layer in self.layers:
            p = layer.kernel
            u, w, c = prior.precision(p)
            inside, outside = self.inputs[p], self.outputs[p] / jnp.maximum(self.weight, 1e-30)
            partial_in = jnp.trace(outside) * inside + (w * c.sum(0)) @ w.T
            partial_out = jnp.trace(inside) * outside + (u * (c @ (w * w).sum(0))) @ u.T
            basis_in, basis_out = jnp.linalg.eigh(partial_in)[1], jnp.linalg.eigh(partial_out)[1]
            along_in = jnp.maximum(((inside @ basis_in) * basis_in).sum(0), 0.0)
            along_out = jnp.maximum(((outside @ basis_out) * basis_out).sum(0), 0.0)
            product = along_out[:, None] * along_in + (basis_out.T @ u) ** 2 @ c @ ((basis_in.T @ w) ** 2).T
            factors[p] = (basis_in, basis_out, jnp.ones(len(basis_in), product.dtype), product)

        def log_det(scales: Arrays) -> jax.Array:
            return sum((jnp.log(f[3]).sum() for f in factors.values()), jnp.zeros(()))

        def at(scales: Arrays, temperature: Any) -> Kronecker:
            bases = [{p: f[i] for p, f in factors.items()} for i in range(3)]
            std = {p: jnp.sqrt(temperature / f[3]) for p, f in factors.items()}
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
        draws: Arrays = {}
        for k, layer in zip(jax.random.split(key, len(self.layers)), self.layers):
            p = layer.kernel
            z = self.std[p] * jax.random.normal(k, self.std[p].shape, self.std[p].dtype)
            draws |= layer.split(self.basis_out[p] @ z @ self.basis_in[p].T / self.root[p])
        return draws

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """Σ over layers of log N(U'δ D^{½} V; 0, S²), entry by entry, with the Jacobian of D."""
        total = jnp.zeros(())
        for layer in self.layers:
            p = layer.kernel
            z = self.basis_out[p].T @ (layer.join(deviation) * self.root[p]) @ self.basis_in[p] / self.std[p]
            total += (-0.5 * (z * z + LOG_2PI) - jnp.log(self.std[p]) + jnp.log(self.root[p])).sum()
        return total

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        total = jnp.zeros(())
        for layer in self.layers:
            p = layer.kernel
            z = self.basis_out[p].T @ (layer.join(gradient) / self.root[p]) @ self.basis_in[p]
            total += ((z * self.std[p]) ** 2).sum()
        return total

    def marginal(self, paths: tuple[str, ...]) -> "Kronecker":
        """The same of some of the layers, which are independent of each other."""
        layers = self._complete_layers(paths)
        parts = [{layer.kernel: x[layer.kernel] for layer in layers} for x in self._parts]
        return Kronecker(parts[0], parts[1], parts[2], parts[3], layers)

    def renewed(self, std: Arrays) -> "Kronecker":
        """The same with the weights of these layers independent, with one standard deviation for each array."""
        basis_in, basis_out, root, scale = (dict(x) for x in self._parts)
        for layer in self._complete_layers(tuple(std)):
            p = layer.kernel
            outputs, inputs = scale[p].shape[-2:]
            dtype = scale[p].dtype
            basis_in[p], basis_out[p] = jnp.eye(inputs, dtype=dtype), jnp.eye(outputs, dtype=dtype)
            scale[p] = jnp.ones((outputs, inputs), dtype)
            root[p] = jnp.full(inputs, 1 / one_scale(std[p], p), dtype)
            if layer.bias is not None:
                root[p] = root[p].at[-1].set(1 / one_scale(std[layer.bias], layer.bias))
        return Kronecker(basis_in, basis_out, root, scale, self.layers)

    def precision(self, kernel: str) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Λ = Σ_kl c_kl u_k u_k' ⊗ w_l w_l' of a layer: u_k as columns [out, out], w_l [in + 1, in + 1], and c."""
        return self.basis_out[kernel], self.root[kernel][:, None] * self.basis_in[kernel], self.std[kernel] ** -2.0

    @property
    def _parts(self) -> tuple[Arrays, Arrays, Arrays, Arrays]:
        return self.basis_in, self.basis_out, self.root, self.std

    def _complete_layers(self, paths: tuple[str, ...]) -> tuple[Layer, ...]:
        """The layers of these weights; refused where weights of one are missing."""
        layers = tuple(layer for layer in self.layers if any(path in paths for path in layer.paths))
        for layer in layers:
            if not all(path in paths for path in layer.paths):
                raise Refusal(
                    f"Under Kronecker factors kernel and bias of a layer depend on each other, and only one of "
                    f"{layer.paths} was asked for: take both."
                )
        return layers

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
            terms = [((g[p] @ self.basis_out[p]) ** 2 * s).sum(-1) for p, s in spread.items()]
            return sum(terms, jnp.zeros(()))

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
