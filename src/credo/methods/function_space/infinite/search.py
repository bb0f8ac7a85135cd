"""The search for the maximum of the log evidence: BFGS with halved steps, for the few numbers that it chooses."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.tree import leaf, struct
from credo.core.typing import PyTree

BOUND = 12.0  # of every number, all of them logarithms: data cannot tell e¹² from ∞
LONGEST = 2.0  # step: the logarithms of scales change by no more at once
HALVINGS = 20
RISE = 1e-4  # share of the rise that the gradient promises which a step must keep (Armijo)
STILL = 1e-8  # rise, relative, below which the maximum is reached


@struct
class Search:
    """The state of the search. Nocedal and Wright (2006), Numerical optimization, chapter 6."""

    at: jax.Array = leaf()  # [p]
    value: jax.Array = leaf()
    gradient: jax.Array = leaf()  # [p]
    inverse: jax.Array = leaf()  # of minus the second derivatives, estimated [p, p]
    count: jax.Array = leaf()  # steps taken
    done: jax.Array = leaf()  # at the maximum: further steps cost nothing

    @staticmethod
    def start(at: jax.Array) -> "Search":
        """Before the first value is known."""
        lowest = jnp.full((), jnp.finfo(at.dtype).min, at.dtype)
        eye, zero = jnp.eye(len(at), dtype=at.dtype), jnp.zeros((), jnp.int32)
        return Search(at, lowest, jnp.zeros_like(at), eye, zero, zero > 0)


def climb(
    function: Callable[[jax.Array], tuple[jax.Array, PyTree]], state: Search, last_aux: PyTree, still: float = STILL
) -> tuple[Search, PyTree]:
    """One step up: the new state, and what the function also returned there.

    The first step evaluates the start. The function is written into the program once: its gradient is slow to compile.

    Args:
        function: of a vector; gives a value and anything else.
        state: of the search.
        last_aux: what the function also returned there.
        still: rise, relative, below which the maximum is reached.
    """
    # Numbers that the gradient pushes against their bound stay constant (Bertsekas, 1982).
    free = (jnp.abs(state.at) < BOUND) | (state.at * state.gradient <= 0)
    inward = jnp.where(free, state.gradient, 0.0)
    move = jnp.where(free, state.inverse @ inward, 0.0)
    move = jnp.where(move @ inward > 0, move, inward)
    move = move * jnp.minimum(1.0, LONGEST / jnp.maximum(jnp.abs(move).max(), 1e-30))

    def evaluate(share: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:
        at = jnp.clip(state.at + share * move, -BOUND, BOUND)
        (value, aux), gradient = jax.value_and_grad(function, has_aux=True)(at)
        return at, value, gradient, aux

    def rises(at: jax.Array, value: jax.Array) -> jax.Array:
        return (value >= state.value + RISE * inward @ (at - state.at)) & jnp.isfinite(value)

    def searching(trial: Any) -> jax.Array:
        return (trial[0] < HALVINGS) & ~trial[1] & ~state.done

    def attempt(trial: Any) -> Any:
        count, _, share, *_ = trial
        point = evaluate(share)
        return count + 1, rises(point[0], point[1]), 0.5 * share, point

    start = (jnp.zeros((), jnp.int32), jnp.zeros((), bool), jnp.ones((), state.at.dtype),
             (state.at, state.value, state.gradient, last_aux))  # fmt: skip
    _, risen, _, (at, value, gradient, aux) = jax.lax.while_loop(searching, attempt, start)
    at, value, gradient, aux = jax.tree.map(
        lambda new, old: jnp.where(risen, new, old), (at, value, gradient, aux),
        (state.at, state.value, state.gradient, last_aux),
    )  # fmt: skip
    first = state.count == 0
    done = ~risen | (~first & (value - state.value <= still * (1 + jnp.abs(state.value))))
    inverse = _updated(state.inverse, at - state.at, state.gradient - gradient, state.count)
    inverse = jnp.where(first, state.inverse, inverse)
    return Search(at, value, gradient, inverse, state.count + 1, done), aux


def _updated(inverse: jax.Array, step: jax.Array, fall: jax.Array, count: jax.Array) -> jax.Array:
    """The inverse of minus the second derivatives after a step along which the gradient fell by `fall`."""
    curvature = step @ fall
    usable = curvature > 1e-10 * jnp.sqrt((step @ step) * (fall @ fall) + 1e-300)
    curvature = jnp.where(usable, curvature, 1.0)
    eye = jnp.eye(len(step), dtype=step.dtype)
    inverse = jnp.where(count == 1, curvature / jnp.maximum(fall @ fall, 1e-300) * eye, inverse)
    side = eye - jnp.outer(step, fall) / curvature
    return jnp.where(usable, side @ inverse @ side.T + jnp.outer(step, step) / curvature, inverse)
