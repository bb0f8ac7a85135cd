"""The gradient of a log density, estimated from draws."""

import jax
import jax.numpy as jnp

from credo.methods.function_space.kernels import square_distances


def spectral_score(draws: jax.Array, at: jax.Array, share: float = 0.99) -> jax.Array:
    """∇ log q at some points, from draws of q, by the spectral Stein gradient estimator.

    The score is expanded in eigenfunctions ψ_j of a squared-exponential kernel under q, which Nyström's method gives
    from the draws; its coefficients are −E[∇ψ_j] by Stein's identity. Shi, Sun and Zhu (2018), A spectral approach to
    gradient estimation for implicit distributions.

    Args:
        draws: [S, M].
        at: [K, M].
        share: of the sum of eigenvalues, which decides how many eigenfunctions count.

    Example:
        >>> import jax
        >>> from credo.methods.function_space import spectral_score
        >>> x = jax.random.normal(jax.random.key(0), (200, 1))
        >>> spectral_score(x, x).shape
        (200, 1)
    """
    count = draws.shape[0]
    square = square_distances(draws, draws)
    # The median distance sets the width, as is usual with kernels on draws of unknown size.
    width = jnp.median(jnp.sqrt(jnp.maximum(square, 1e-12))) + 1e-6
    gram = jnp.exp(-0.5 * square / width**2)
    values, vectors = jnp.linalg.eigh(gram + 1e-3 * jnp.eye(count))
    values, vectors = values[::-1], vectors[:, ::-1]
    mask = jnp.cumsum(values) - values < share * values.sum()
    weights = jnp.where(mask, jnp.sqrt(count) / values, 0.0)
    cross = jnp.exp(-0.5 * square_distances(at, draws) / width**2)
    psi = cross @ vectors * weights  # [K, J]
    # Mean over draws of ∇ψ_j, by the gradient of the kernel in its first argument.
    slope = -(draws[:, None] - draws[None]) / width**2 * gram[..., None]  # [S, S, M]
    mean_slope = jnp.einsum("sd,dj->js", slope.mean(0).T, vectors * weights).T  # [M, J]
    return -psi @ mean_slope.T
