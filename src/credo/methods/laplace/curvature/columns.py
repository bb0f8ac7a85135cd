"""Square roots of the outputs' curvature: vectors s with Σ_c s_c s_c' = −∂² log p / ∂f ∂f', for every row."""

import jax
import jax.numpy as jnp

from credo.core.capabilities import CurvedLikelihood, FactoredLikelihood, capability
from credo.core.likelihood import Likelihood
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.output import class_columns, output_curvature


def square_root(matrices: jax.Array) -> jax.Array:
    """Columns [k, n, k] with Σ_c s_c s_c' = H for positive semi-definite H [n, k, k].

    A Cholesky factor whose pivots may be zero, as one is for classes (probabilities sum to 1): such columns are 0.
    """
    size = matrices.shape[-1]
    tolerance = 8 * size * jnp.finfo(matrices.dtype).eps
    largest = jnp.max(jnp.diagonal(matrices, axis1=1, axis2=2), axis=-1)

    def column(rest: jax.Array, j: jax.Array) -> tuple[jax.Array, jax.Array]:
        entries = jax.lax.dynamic_index_in_dim(rest, j, 2, keepdims=False)
        pivot = jax.lax.dynamic_index_in_dim(entries, j, 1, keepdims=False)
        usable = pivot > tolerance * largest
        root = jnp.sqrt(jnp.where(usable, pivot, 1.0))
        scaled = jnp.where(usable[:, None], entries / root[:, None], 0.0)
        return rest - scaled[:, :, None] * scaled[:, None, :], scaled

    return jax.lax.scan(column, matrices, jnp.arange(size))[1]


def output_columns(
    kind: str, key: jax.Array, likelihood: Likelihood, params: PyTree, outputs: jax.Array, targets: jax.Array,
    weight: jax.Array,
) -> jax.Array:  # fmt: skip
    """√w_n s_{n,c} [columns, n, out] of the rows' curvature.

    Args:
        kind: "ggn": what `output_curvature` gives, as many columns as outputs (or classes). "fisher": one column, the
            gradient of log p(y|f) at one y drawn from the model for each row, whose square is unbiased for the expected
            matrix.
        key: for "fisher".
        likelihood, params: p(y | f, ν).
        outputs: f [n, out].
        targets: y, for likelihoods without a `curvature` of their own.
        weight: weights of the rows [n].
    """
    if kind == "fisher":
        drawn = jax.lax.stop_gradient(likelihood.sample(key, params, outputs))
        columns = jax.grad(lambda f: likelihood.log_prob(params, f, drawn).sum())(outputs)[None]
    elif (factored := capability(likelihood, FactoredLikelihood)) is not None:
        columns = factored.curvature_columns(params, outputs)
    elif likelihood.kind == "classes" and capability(likelihood, CurvedLikelihood) is None:
        columns = class_columns(likelihood, params, outputs)
    else:
        columns = square_root(output_curvature(likelihood, params, outputs, targets).astype(outputs.dtype))
    return columns * jnp.sqrt(jnp.maximum(weight, 0.0)).astype(outputs.dtype)[:, None]
