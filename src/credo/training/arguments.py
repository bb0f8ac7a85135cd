"""How a method, its model and its phases become arguments of a compiled program."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.method import Method, Phase
from credo.core.precision import double, single


def precision(method: Method) -> Any:
    """The context in which a method computes: double precision where it says so, never by the global flag."""
    return double() if method.precision == "float64" else single()


def shared_program(phase: Phase, phases: tuple[Phase, ...]) -> Phase:
    """The phase as its program sees it: phases that share a program look alike, so that it is compiled once."""
    if phase.program is None:
        return phase
    keeps = any(p.keeps_draws for p in phases if p.program == phase.program)
    return dataclasses.replace(phase, name=phase.program, keeps_draws=keeps)


def numbers(tree: Any) -> Any:
    """Python numbers inside an object as arrays of a fixed type, so that their values never cause a new program."""

    def typed(x: Any) -> Any:
        if isinstance(x, bool | np.bool_):
            return np.bool_(x)
        if isinstance(x, int | np.integer):
            return np.int32(x)
        return np.float32(x) if isinstance(x, float | np.floating) else x

    return jax.tree.map(typed, tree)


@partial(jax.jit, static_argnums=(1, 2))
def member_keys(key: jax.Array, stages: int, members: int) -> jax.Array:
    """Raw threefry keys [stage, member], whatever kind of key came. Padding members does not change the others."""
    base = jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")

    def member_key(stage: jax.Array, member: jax.Array) -> jax.Array:
        return jax.random.key_data(jax.random.fold_in(jax.random.fold_in(base, stage), member))

    return jax.vmap(lambda s: jax.vmap(partial(member_key, s))(jnp.arange(members)))(jnp.arange(stages))


def phase_keys(raw: jax.Array, number: Any) -> tuple[jax.Array, jax.Array]:
    """(key of the noise, key of the batches) of one member in the phase with this number.

    Each phase counts its steps from 0: without its number, every phase would see the noise and the rows of the first.
    """
    key = jax.random.wrap_key_data(raw)
    return jax.random.fold_in(key, 2 * number), jax.random.fold_in(key, 2 * number + 1)
