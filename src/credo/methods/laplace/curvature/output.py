"""The curvature of −log p(y|f) in the network's outputs: by the likelihood, else by autodiff."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import CurvedLikelihood, capability
from credo.core.typing import PyTree


def output_curvature(likelihood: Any, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """The GGN's middle factor H_n [n, out, out], positive semi-definite.

    - The likelihood's `curvature`: the expected Fisher information in closed form.
    - For classes the same expectation, E_y[∇ log p ∇ log p'] as the sum over all classes.
    - Else −∂² log p(y_n|f_n)/∂f∂f' at the row's own target (Schraudolph, 2002), which is no expectation. It is the
      curvature of the log joint itself, and need not be positive: log p is convex in f far out in heavy tails, or
      between two modes. Its negative eigenvalues count as 0: such a row adds no precision, and the posterior is a
      little wider than under the expectation.

    Args:
        likelihood, params: p(y | f, ν).
        outputs: f [n, out].
        targets: y, in the likelihood's own form.
    """
    curved = capability(likelihood, CurvedLikelihood)
    if curved is not None:
        return curved.curvature(params, outputs)
    if likelihood.kind == "classes":
        columns = class_columns(likelihood, params, outputs)
        return jnp.einsum("cni,cnj->nij", columns, columns)
    return without_negative(-row_hessians(likelihood, params, outputs, targets))


def class_columns(likelihood: Any, params: PyTree, outputs: jax.Array) -> jax.Array:
    """√p_c ∇_f log p(c|f) [classes, n, out], whose squares sum to the expected curvature."""
    probs = likelihood.mean(params, outputs)

    def slope(label: jax.Array) -> jax.Array:
        targets = jnp.full(len(outputs), label)
        return jax.grad(lambda f: likelihood.log_prob(params, f, targets).sum())(outputs)

    slopes = jax.vmap(slope)(jnp.arange(probs.shape[-1]))
    weights = probs.T[:, :, None]
    return jnp.where(weights > 0, jnp.sqrt(jnp.where(weights > 0, weights, 1.0)) * slopes, 0.0)


def row_hessians(likelihood: Any, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """∂² log p(y_n|f_n)/∂f∂f' [n, out, out]."""

    def log_prob(f: jax.Array, y: jax.Array) -> jax.Array:
        return likelihood.log_prob(params, f[None], y[None])[0]

    return jax.vmap(jax.hessian(log_prob))(outputs, targets)


@jax.custom_jvp
def without_negative(matrices: jax.Array) -> jax.Array:
    """The nearest positive semi-definite matrices [n, k, k]: negative eigenvalues become 0 (Higham, 1988)."""
    return _project(matrices)[0]


def _project(matrices: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(0.5 * (matrices + jnp.swapaxes(matrices, -1, -2)))
    positive = jnp.maximum(values, 0.0)
    return jnp.einsum("nik,nk,njk->nij", vectors, positive, vectors), values, vectors


@without_negative.defjvp
def _without_negative_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[jax.Array, jax.Array]:
    """V (F ∘ V' dH V) V' with F_ij = (λ_i⁺ − λ_j⁺)/(λ_i − λ_j) (Daleckii and Krein), equal eigenvalues too."""
    projected, values, vectors = _project(primals[0])
    left, right = values[:, :, None], values[:, None, :]
    gap = left - right
    far = jnp.abs(gap) > 1e-6 * (jnp.abs(left) + jnp.abs(right))
    share = jnp.where(
        far, (jnp.maximum(left, 0.0) - jnp.maximum(right, 0.0)) / jnp.where(far, gap, 1.0), (left > 0).astype(gap.dtype)
    )
    moved = jnp.einsum("nki,nkl,nlj->nij", vectors, tangents[0], vectors)
    return projected, jnp.einsum("nik,nkl,njl->nij", vectors, share * moved, vectors)
