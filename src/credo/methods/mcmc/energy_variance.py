"""The step size at which energy errors have a given size: how unadjusted microcanonical paths are tuned."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

ORDER = 6.0  # (ΔE)² grows with this power of the step size
TRUST = 1.5  # width of the weights around the aim, in log step size
MEMORY = 50  # updates
SMALLER = 0.8  # factor on a step size at which a path was not finite


class EnergyVariance(NamedTuple):
    """The step size, running sums of its estimate, and the largest step size that seems safe."""

    log_step_size: jax.Array
    total: jax.Array
    weight: jax.Array
    largest: jax.Array


def energy_variance_tuner(aim: Any) -> tuple[Any, Any, Any]:
    """(init, update, final): find ε with mean (ΔE)²/P = aim from (ΔE)² ∝ ε⁶, by a weighted average of (ΔE)²/ε⁶.

    Errors far from the aim weigh little, because the power holds only near it. A signal that is not
    finite lowers the largest step size. Robnik et al. (2023), section 4; BlackJAX's rule, one update at a time.

    Args:
        aim: of (ΔE)²/P.
    """

    def init(step_size: Any) -> EnergyVariance:
        zero = jnp.zeros((), jnp.float32)
        return EnergyVariance(jnp.log(jnp.asarray(step_size, jnp.float32)), zero, zero, zero + 1e10)

    def update(state: EnergyVariance, signal: jax.Array) -> EnergyVariance:
        finite = jnp.isfinite(signal)
        step_size = jnp.exp(state.log_step_size)
        share = jnp.where(finite, signal / aim, 1.0) + 1e-8
        weight = finite * jnp.exp(-0.5 * jnp.square(jnp.log(share) / (ORDER * TRUST)))
        keep = (MEMORY - 1.0) / (MEMORY + 1.0)
        total = keep * state.total + weight * share / step_size**ORDER
        count = keep * state.weight + weight
        largest = jnp.where(finite, state.largest, jnp.minimum(state.largest, SMALLER * step_size))
        estimate = jnp.where(count > 0, (total / jnp.maximum(count, 1e-30)) ** (-1 / ORDER), step_size)
        return EnergyVariance(jnp.log(jnp.minimum(estimate, largest)), total, count, largest)

    def final(state: EnergyVariance) -> jax.Array:
        return jnp.exp(state.log_step_size)

    return init, update, final
