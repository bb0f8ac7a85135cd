"""Products with the curvature of the log likelihood, and gradients row by row, without forming large Jacobians."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.output import output_curvature
from credo.methods.laplace.curvature.paths import Arrays, flat, function

Roots = Callable[[jax.Array], jax.Array]  # outputs [n, out] ↦ columns [c, n, out], weights of rows included
CHUNK = 2**22  # numbers of one chunk of per-row gradients


def ggn_product(model: Model, variables: Variables, batch: Batch, values: Arrays, vector: Arrays) -> Arrays:
    """Σ_n w_n J_n' H_n J_n v: a Jacobian-vector product, the outputs' curvature, a vector-Jacobian product.

    Schraudolph (2002), Fast curvature matrix-vector products for second-order gradient descent.
    """
    outputs, pull = jax.vjp(function(model, variables, batch.inputs), values)
    moved = jax.jvp(function(model, variables, batch.inputs), (values,), (vector,))[1]
    params = model.complete(variables.params)["likelihood"]
    middle = output_curvature(model.likelihood, params, outputs, batch.targets).astype(outputs.dtype)
    return pull(batch.weight[:, None].astype(outputs.dtype) * jnp.einsum("nij,nj->ni", middle, moved))[0]


def hessian_product(model: Model, variables: Variables, batch: Batch, values: Arrays, vector: Arrays) -> Arrays:
    """−∇²_θ Σ_n w_n log p(y_n | x_n, θ) v, forward over reverse."""
    params = model.complete(variables.params)["likelihood"]
    run = function(model, variables, batch.inputs)

    def loss(values: Arrays) -> jax.Array:
        per_row = model.likelihood.log_prob(params, run(values), batch.targets)
        return -jnp.where(batch.weight > 0, batch.weight * per_row, 0.0).sum()

    return jax.jvp(jax.grad(loss), (values,), (vector,))[1]


def row_jacobian(model: Model, variables: Variables, row: PyTree, values: Arrays) -> jax.Array:
    """∂f/∂θ [out, P] of one row, by one backward pass for each output."""
    run = function(model, variables, jax.tree.map(lambda x: x[None], row))
    return flat(jax.jacrev(lambda v: run(v)[0])(values), lead=1)


def over_rows(step: Callable[[Any, PyTree], Any], start: Any, inputs: PyTree, columns: jax.Array, width: int) -> Any:
    """Fold `step` over chunks of (inputs, columns) small enough that `width` numbers for each row stay below `CHUNK`;
    the last chunk is padded with copies of its last input and columns of zeros."""
    count = columns.shape[0]
    size = max(1, min(count, CHUNK // max(1, width)))
    pieces = -(-count // size)

    def cut(x: jax.Array, mode: str) -> jax.Array:
        filled = jnp.pad(x, [(0, pieces * size - count)] + [(0, 0)] * (x.ndim - 1), mode)
        return filled.reshape(pieces, size, *x.shape[1:])

    rows = (jax.tree.map(lambda x: cut(x, "edge"), inputs), cut(columns, "constant"))
    return jax.lax.scan(lambda carry, chunk: (step(carry, chunk), None), start, rows)[0]


def row_chunk(width: int) -> int:
    """How many rows to take at once where each needs `width` numbers."""
    return max(1, min(256, CHUNK // max(1, width)))
