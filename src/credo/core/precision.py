"""Programs run in the precision that they ask for, whatever the global flag says.

Under `jax_enable_x64` a constant without a type, a sum over booleans or a fresh normal is a double, and one of them in
a loop's state changes its type. So every public entry says its precision: results are the same bits with the flag and
without it, and programs are shared.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax

F = TypeVar("F", bound=Callable[..., Any])


def single() -> Any:
    """A context in which JAX computes in single precision."""
    return jax.enable_x64(False)


def double() -> Any:
    """A context in which JAX computes in double precision."""
    return jax.enable_x64(True)


def in_single(function: F) -> F:
    """The function, in single precision whoever calls it."""

    @wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with single():
            return function(*args, **kwargs)

    return inside  # type: ignore[return-value]
