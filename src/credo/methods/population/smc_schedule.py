"""The schedule of an adaptive run of sequential Monte Carlo, for a second run that adapts nothing."""

import dataclasses

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct
from credo.errors import InputError

MOST_STAGES = 500
MOST_BYTES = 2**30


@struct
class Schedule:
    """λ, step size and inverse mass of every stage of the first run.

    With all of them fixed beforehand E[Π (1/n) Σ w] = p(D) for any number of particles, because resampling keeps the
    expected number of copies and moves leave π_λ invariant. Chosen by the very particles that they move, they bias it.
    """

    exponents: jax.Array = leaf()  # [stages]
    step_sizes: jax.Array = leaf()  # [stages]
    inverse_masses: jax.Array = leaf()  # [stages, …]
    count: jax.Array = leaf()  # stages of the first run
    place: jax.Array = leaf()  # stages of the second run so far
    started: jax.Array = leaf()  # has the second run begun?

    @staticmethod
    def empty(step_size: jax.Array, inverse_mass: jax.Array) -> "Schedule":
        """Room for the stages of a run whose kernels have a step size and a mass like these."""
        if 4 * MOST_STAGES * inverse_mass.size > MOST_BYTES:
            raise InputError(
                f"repeat=True keeps the mass of up to {MOST_STAGES} stages, and a dense one of "
                f'{inverse_mass.shape[0]:,} parameters is too large for that: take mass="diagonal".'
            )
        zero = jnp.zeros((), jnp.int32)
        return Schedule(
            jnp.zeros(MOST_STAGES, step_size.dtype), jnp.zeros(MOST_STAGES, step_size.dtype),
            jnp.zeros((MOST_STAGES, *inverse_mass.shape), inverse_mass.dtype), zero, zero, jnp.zeros((), bool),
        )  # fmt: skip

    def append(self, exponent: jax.Array, step_size: jax.Array, inverse_mass: jax.Array) -> "Schedule":
        """With one more stage; those beyond MOST_STAGES are dropped, and the second run then ends before λ = 1."""
        at = self.count
        return dataclasses.replace(
            self, exponents=self.exponents.at[at].set(exponent), step_sizes=self.step_sizes.at[at].set(step_size),
            inverse_masses=self.inverse_masses.at[at].set(inverse_mass), count=at + 1,
        )  # fmt: skip

    def next_stage(self) -> tuple[jax.Array, jax.Array, jax.Array, "Schedule"]:
        """λ, step size and inverse mass of the second run's next stage; the last one again where there is none."""
        at = jnp.clip(self.place, 0, jnp.minimum(self.count, MOST_STAGES) - 1)
        later = dataclasses.replace(self, place=self.place + 1)
        return self.exponents[at], self.step_sizes[at], self.inverse_masses[at], later
