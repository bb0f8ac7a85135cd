"""The curvature of −log p(y|f) in the network's outputs: what the likelihood says, else by autodiff."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import CurvedLikelihood, capability
from credo.core.typing import PyTree


def output_curvature(likelihood: Any, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """The GGN's middle factor H_n [n, out, out], positive semi-definite.

    - What the likelihood's own `curvature` says: the expected Fisher information in closed form.
    - For classes the same expectation, E_y[∇ log p ∇ log p'] as the sum over all classes.
    - Else −∂² log p(y_n|f_n)/∂f∂f' at the row's own target (Schraudolph, 2002), which is no expectation. It is the
      curvature of the log joint itself, and need not be positive: log p is convex in f far out in heavy tails, or
      between two modes. Its negative eigenvalues count as 0, so such a row tells nothing rather than less than nothing,
      and a posterior is a little wider there than that of the expectation would be.

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

    def one(f: jax.Array, y: jax.Array) -> jax.Array:
        return likelihood.log_prob(params, f[None], y[None])[0]

    return jax.vmap(jax.hessian(one))(outputs, targets)


@jax.custom_jvp
def without_negative(matrices: jax.Array) -> jax.Array:
    """The nearest positive semi-definite matrices [n, k, k]: negative eigenvalues become 0 (Higham, 1988)."""
    return _project(matrices)[0]


def _project(matrices: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eigh(0.5 * (matrices + jnp.swapaxes(matrices, -1, -2)))
    kept = jnp.maximum(values, 0.0)
    return jnp.einsum("nik,nk,njk->nij", vectors, kept, vectors), values, vectors


@without_negative.defjvp
def _without_negative_jvp(primals: tuple[Any], tangents: tuple[Any]) -> tuple[jax.Array, jax.Array]:
    """V (F ∘ V' dH V) V' with F_ij = (λ_i⁺ − λ_j⁺)/(λ_i − λ_j) (Daleckii and Krein), equal eigenvalues too."""
    found, values, vectors = _project(primals[0])
    one, other = values[:, :, None], values[:, None, :]
    gap = one - other
    far = jnp.abs(gap) > 1e-6 * (jnp.abs(one) + jnp.abs(other))
    share = jnp.where(
        far, (jnp.maximum(one, 0.0) - jnp.maximum(other, 0.0)) / jnp.where(far, gap, 1.0), (one > 0).astype(gap.dtype)
    )
    moved = jnp.einsum("nki,nkl,nlj->nij", vectors, tangents[0], vectors)
    return found, jnp.einsum("nik,nkl,njl->nij", vectors, share * moved, vectors)
