"""The energy score: the CRPS of several outputs at once."""

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays


@of_arrays(draws="m n k", targets="n k", weights="m")
def energy_draws(
    draws: jax.Array, targets: jax.Array, weights: jax.Array | None = None, fair: bool = False
) -> jax.Array:
    """Σ_i w_i ‖x_i − y‖ − ½ Σ_ij w_i w_j ‖x_i − x_j‖ [n] of draws [M, n, k], in memory M.

    For one output it is the CRPS. Gneiting and Raftery (2007), equation 22.

    Args:
        draws: joint draws of the outputs.
        targets: what came true [n, k].
        weights: of the draws, summing to 1 [M]; equal where None.
        fair: estimate the score of what independent draws are drawn from, see `crps_draws`.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import energy_draws
        >>> energy_draws(jnp.zeros((2, 1, 2)), jnp.array([[3.0, 4.0]])).tolist()
        [5.0]
    """
    draws = jnp.asarray(draws)
    mass = jnp.full(len(draws), 1 / len(draws), draws.dtype) if weights is None else jnp.asarray(weights, draws.dtype)

    def pair(total: jax.Array, one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        draw, weight = one
        return total + weight * jnp.tensordot(mass, jnp.linalg.norm(draws - draw, axis=-1), 1), None

    near = jnp.tensordot(mass, jnp.linalg.norm(draws - targets, axis=-1), 1)
    apart, _ = jax.lax.scan(pair, jnp.zeros_like(near), (draws, mass))
    return near - 0.5 * apart / ((1 - (mass**2).sum()) if fair else 1)


@of_arrays(first="m n k", second="l n k", targets="n k")
def energy_two_samples(first: jax.Array, second: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean ‖x − y‖ over both samples − ½ (1/MN) Σ_ij ‖x_i − x'_j‖ [n], without bias: see `crps_two_samples`.

    Args:
        first, second: joint draws of the outputs [M, n, k] and [N, n, k], made with different keys.
        targets: what came true [n, k].

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import energy_two_samples
        >>> energy_two_samples(jnp.zeros((1, 1, 2)), jnp.zeros((1, 1, 2)), jnp.array([[3.0, 4.0]])).tolist()
        [5.0]
    """

    def add(total: jax.Array, draw: jax.Array) -> tuple[jax.Array, None]:
        return total + jnp.linalg.norm(first - draw, axis=-1).mean(0), None

    near = jnp.linalg.norm(jnp.concatenate([first, second]) - targets, axis=-1).mean(0)
    apart, _ = jax.lax.scan(add, jnp.zeros_like(near), second)
    return near - 0.5 * apart / len(second)
