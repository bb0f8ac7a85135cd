"""What all optimising methods share: optimisers named by data, and a learning rate that fades over the phase."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from credo.core.typing import PyTree
from credo.errors import InputError

OPTIMISERS: dict[str, Callable[[float], optax.GradientTransformation]] = {
    "adam": lambda memory: optax.scale_by_adam(b2=memory),
    "rmsprop": lambda memory: optax.scale_by_rms(),
    "momentum": lambda memory: optax.trace(0.9),
    "sgd": lambda memory: optax.identity(),
}
SCHEDULES = ("cosine", "constant")


def optimiser(name: str, memory: float = 0.999) -> optax.GradientTransformation:
    """The gradient transformation of this name; the learning rate is applied separately, so that it can be traced.

    memory: decay of Adam's second moment. Long memory suits noisy gradients (variational ones); with a short one a few
    huge gradients at the start do not slow the whole fit.
    """
    if name not in OPTIMISERS:
        raise InputError(f"Unknown optimiser {name!r}; choose one of {', '.join(OPTIMISERS)}.")
    return OPTIMISERS[name](memory)


def fade(schedule: str, step: jax.Array, steps: jax.Array, floor: float = 0.0) -> jax.Array:
    """The factor on the learning rate: cosine falls from 1 to `floor` over the second half of the phase."""
    if schedule == "constant":
        return jnp.ones(())
    if schedule != "cosine":
        raise InputError(f"Unknown schedule {schedule!r}; choose one of {', '.join(SCHEDULES)}.")
    late = jnp.clip(2.0 * step / jnp.maximum(steps, 1) - 1.0, 0.0, 1.0)
    return floor + (1.0 - floor) * 0.5 * (1.0 + jnp.cos(jnp.pi * late))


def descend(
    name: str, rate: Any, gradient: PyTree, opt_state: PyTree, params: PyTree, memory: float = 0.999
) -> tuple[PyTree, PyTree]:
    """One step of descent: the new parameters and the new optimiser state."""
    updates, opt_state = optimiser(name, memory).update(gradient, opt_state, params)
    return jax.tree.map(lambda p, u: p - rate * u, params, updates), opt_state


def tail_average(
    average: PyTree, count: jax.Array, values: PyTree, step: jax.Array, steps: jax.Array
) -> tuple[PyTree, jax.Array]:
    """The running mean of the iterates over the second half of the phase (the iterate itself before), and its length.

    Averaging noisy iterates reaches the variance of the best possible estimator (Polyak and Juditsky, 1992); the last
    iterate alone keeps the noise of its last few gradients.
    """
    count = jnp.where(2 * step >= steps, count + 1, 0)
    share = 1.0 / jnp.maximum(count, 1)
    return jax.tree.map(lambda a, v: a + share * (v - a), average, values), count


def averaged_step(method: Any, phase: Any, state: Any, gradient: PyTree, network: PyTree) -> Any:
    """The state after one step of descent whose rate fades to a tenth, with the mean of its late iterates."""
    rate = method.learning_rate * fade(method.schedule, state.step, phase.steps, floor=0.1)
    values, memory = descend(method.optimiser, rate, gradient, state.memory, state.values)
    average, count = tail_average(state.average, state.averaged, values, state.step, phase.steps)
    return dataclasses.replace(
        state, step=state.step + 1, values=values, average=average, averaged=count, memory=memory, network=network
    )
