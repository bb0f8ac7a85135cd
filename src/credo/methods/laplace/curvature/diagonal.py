"""The diagonal, exactly: squares of gradients, one backward pass for each output."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.ggn import CHUNK, Roots, over_rows, row_chunk
from credo.methods.laplace.curvature.paths import Arrays, function
from credo.methods.laplace.curvature.prior import LocalPrior
from credo.methods.laplace.curvature.spectrum import LOG_2PI, Spectrum
from credo.methods.laplace.curvature.taps import Layer, tapped


@struct
class DiagonalSums:
    """diag(H) by path. With layers (all weights in dense layers) Σ_n g² a²; else squares of gradients row by row."""

    values: Arrays = leaf()
    layers: tuple[Layer, ...] | None = None

    @staticmethod
    def zeros(values: Arrays, dtype: Any, layers: tuple[Layer, ...] | None) -> "DiagonalSums":
        """Nothing added yet."""
        return DiagonalSums({path: jnp.zeros(x.shape, dtype) for path, x in values.items()}, layers)

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> "DiagonalSums":
        """With the squared gradients of one batch."""
        if self.layers is None:
            return DiagonalSums(self._by_rows(model, variables, batch, roots), None)
        run = tapped(model, variables, batch.inputs, self.layers)
        columns = roots(run.outputs)

        def square(total: Arrays, column: jax.Array) -> tuple[Arrays, None]:
            return jax.tree.map(lambda t, g: t + g * g, total, run.pull(column)), None

        start = jax.tree.map(jnp.zeros_like, jax.eval_shape(run.pull, columns[0]))
        squares = jax.lax.scan(square, start, columns)[0]
        added = dict(self.values)
        for layer in self.layers:
            inputs = layer.augment(run.inputs[layer.kernel])
            for path, x in layer.split(squares[layer.kernel].T @ (inputs * inputs)).items():
                added[path] = added[path] + x.astype(added[path].dtype)
        return DiagonalSums(added, self.layers)

    def _by_rows(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> Arrays:
        free = by_paths(variables.params["network"])
        values = {path: free[path] for path in self.values}
        columns = roots(function(model, variables, batch.inputs)(values))

        def row(x: PyTree, s: jax.Array) -> Arrays:
            run = function(model, variables, jax.tree.map(lambda a: a[None], x))
            return jax.vjp(run, values)[1](s[None])[0]

        def chunk(total: Arrays, rows: tuple[PyTree, jax.Array]) -> Arrays:
            def add_squares(total: Arrays, column: jax.Array) -> tuple[Arrays, None]:
                g = jax.vmap(row)(rows[0], column)
                return {p: t + (g[p] ** 2).sum(0).astype(t.dtype) for p, t in total.items()}, None

            return jax.lax.scan(add_squares, total, jnp.moveaxis(rows[1], 1, 0))[0]

        width = sum(x.size for x in values.values())
        return over_rows(chunk, self.values, batch.inputs, jnp.moveaxis(columns, 1, 0), width)

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """Entry by entry."""

        def total(scales: Arrays) -> Arrays:
            return {path: h + scales[path] * prior.precision[path] for path, h in self.values.items()}

        def log_det(scales: Arrays) -> jax.Array:
            return sum((jnp.log(x).sum() for x in total(scales).values()), jnp.zeros(()))

        def at(scales: Arrays, temperature: Any) -> Diagonal:
            return Diagonal({path: jnp.sqrt(temperature / x) for path, x in total(scales).items()}, self.layers)

        return Spectrum(log_det, at)


@struct
class Diagonal:
    """δ_i = s_i z_i."""

    std: Arrays = leaf()
    layers: tuple[Layer, ...] | None = None

    independent = True  # a product over single weights

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread."""
        return tuple(self.std)

    def draw(self, key: jax.Array) -> Arrays:
        """One draw of δ."""
        keys = jax.random.split(key, len(self.std))
        return {p: s * jax.random.normal(k, s.shape, s.dtype) for k, (p, s) in zip(keys, self.std.items())}

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """Σ_i log N(δ_i; 0, s_i²)."""
        terms = [-0.5 * ((deviation[p] / s) ** 2 + LOG_2PI) - jnp.log(s) for p, s in self.std.items()]
        return sum((x.sum() for x in terms), jnp.zeros(()))

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        return sum((((gradient[p] * s) ** 2).sum() for p, s in self.std.items()), jnp.zeros(()))

    def marginal(self, paths: tuple[str, ...]) -> "Diagonal":
        """The same of some of the weights."""
        return Diagonal({path: s for path, s in self.std.items() if path in paths})

    def renewed(self, std: Arrays) -> "Diagonal":
        """The same with other standard deviations at these paths."""
        new = {p: jnp.broadcast_to(jnp.asarray(s, self.std[p].dtype), self.std[p].shape) for p, s in std.items()}
        return Diagonal(self.std | new, self.layers)

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """Σ_i (∂f_c/∂θ_i)² s_i² [n, out]: per layer g² · (a² s²), without Jacobians."""
        if self.layers is None:
            return self._by_rows(model, variables, inputs)
        run = tapped(model, variables, inputs, self.layers)
        spread = {}
        for layer in self.layers:
            rows = layer.augment(run.inputs[layer.kernel])
            spread[layer.kernel] = (rows * rows) @ (layer.join(self.std) ** 2).T

        def output(unit: jax.Array) -> jax.Array:
            g = run.pull(jnp.broadcast_to(unit, run.outputs.shape))
            return sum(((g[p] ** 2 * s).sum(-1) for p, s in spread.items()), jnp.zeros(()))

        return jax.lax.map(output, jnp.eye(run.outputs.shape[1], dtype=run.outputs.dtype)).T

    def _by_rows(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        free = by_paths(variables.params["network"])
        values = {path: free[path] for path in self.std}

        def row(x: PyTree) -> jax.Array:
            run = function(model, variables, jax.tree.map(lambda a: a[None], x))
            outputs, pull = jax.vjp(run, values)

            def output(unit: jax.Array) -> jax.Array:
                g = pull(unit[None])[0]
                return sum((((g[p] * s) ** 2).sum() for p, s in self.std.items()), jnp.zeros(()))

            return jax.lax.map(output, jnp.eye(outputs.shape[1], dtype=outputs.dtype))

        width = sum(x.size for x in values.values())
        return jax.lax.map(row, inputs, batch_size=row_chunk(width if width < CHUNK else CHUNK))
