"""Coefficients integrated out: regression on the columns that the nodes make, in closed form.

Given the nodes, targets are t ~ N(Zc, W⁻¹) with a diagonal W, and the coefficients c ~ N(m, D⁻¹) with a diagonal D:

    log p(t | γ) = ½ log|D| − ½ log|A| + ½ h'A⁻¹h − ½ m'Dm + const,   A = D + Z'WZ,   h = Dm + Z'Wt,

and c | t, γ ~ N(A⁻¹h, A⁻¹). The constant does not depend on the nodes, nor on how many there are: the (2π)^{K/2} of the
prior and of the integral over K coefficients cancel.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Moments(NamedTuple):
    """Sums over rows, for each output: Z'WZ [outputs, K, K] and Z'Wt [outputs, K]."""

    square: jax.Array
    cross: jax.Array


class Coefficients(NamedTuple):
    """Prior of the coefficients, for each output: mean and precision [outputs, K]."""

    mean: jax.Array
    precision: jax.Array


class Solved(NamedTuple):
    """log p(t | γ) summed over outputs, the Cholesky factor of A and L⁻¹h."""

    log_marginal: jax.Array
    root: jax.Array
    half: jax.Array


def moments(design: jax.Array, targets: jax.Array, precision: jax.Array) -> Moments:
    """Sums over rows of a design [K, n], targets and precisions [n, outputs]."""
    weighted = design[None] * precision.T[:, None]  # [outputs, K, n]
    return Moments(weighted @ design.T, jnp.einsum("okn,no->ok", weighted, targets))


def solve(sums: Moments, prior: Coefficients, active: jax.Array | None = None) -> Solved:
    """The marginal likelihood of the active columns; rows and columns of others become those of the identity."""
    precision, mean = prior.precision, prior.mean
    shift = precision * mean
    h, square = shift + sums.cross, sums.square
    logs, pull = jnp.log(precision), shift * mean
    if active is not None:
        h, logs, pull = h * active, logs * active, pull * active
        square = square * (active[:, None] * active)
        precision = jnp.where(active > 0, precision, 1.0)
    matrix = square + precision[..., None] * jnp.eye(precision.shape[-1])
    root = jax.lax.linalg.cholesky(matrix, symmetrize_input=False)  # symmetric as it is
    half = jax.scipy.linalg.solve_triangular(root, h[..., None], lower=True)[..., 0]
    log_det = jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum()
    return Solved(0.5 * logs.sum() - log_det + 0.5 * (half**2).sum() - 0.5 * pull.sum(), root, half)


def draw(solved: Solved, normals: jax.Array, active: jax.Array | None = None) -> jax.Array:
    """Coefficients [outputs, K] from their exact conditional A⁻¹h + L⁻ᵀε; 0 for inactive columns."""
    right = (solved.half + normals)[..., None]
    coefs = jax.scipy.linalg.solve_triangular(jnp.swapaxes(solved.root, -1, -2), right, lower=False)[..., 0]
    return coefs if active is None else coefs * active
