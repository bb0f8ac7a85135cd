"""Check the shapes that `credo.core.typing` names, by jaxtyping and beartype, at every call of the parts of a model."""

import inspect
import types
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import jax
import numpy as np
from beartype import beartype
from jaxtyping import Shaped, jaxtyped

ARRAY = jax.Array | np.ndarray


def as_checked(hint: Any) -> Any:
    """A named shape as jaxtyping writes it, also inside a tuple or a union; anything for all other types."""
    if get_origin(hint) is Annotated:
        array, dims = get_args(hint)[:2]
        return Shaped[ARRAY, dims] if array is jax.Array and isinstance(dims, str) else Any
    if get_origin(hint) is tuple:
        return tuple[tuple(as_checked(part) for part in get_args(hint))]
    return Any


def hints_of(function: Any) -> dict[str, Any]:
    """The shapes that a function names, by parameter; "return" for its result."""
    hints = {name: as_checked(hint) for name, hint in get_type_hints(function, include_extras=True).items()}
    return {name: hint for name, hint in hints.items() if hint is not Any}


def checking(function: Any, hints: dict[str, Any]) -> Any:
    """The function, which now raises where an array has another shape."""
    taken = {name: hint for name, hint in hints.items() if name in (*inspect.signature(function).parameters, "return")}
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__, copy.__qualname__ = function.__kwdefaults__, taken, function.__qualname__
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    return jaxtyped(typechecker=beartype)(copy) if taken else function


def check(part: type, contract: type) -> int:
    """Check every method of the contract that the class, or a class of credo that it derives from, defines."""
    count = 0
    for cls in part.__mro__:
        for name, method in list(vars(cls).items()):
            wanted = getattr(contract, name, None)
            if not isinstance(method, types.FunctionType) or wanted is None or hasattr(method, "__wrapped__"):
                continue
            if cls.__module__.startswith("credo.") and (hints := hints_of(wanted)):
                setattr(cls, name, checking(method, hints))
                count += 1
    return count


def install() -> int:
    """Check the model, all built-in networks and likelihoods and what they may also offer; returns how many methods."""
    from credo.core import capabilities
    from credo.core.likelihood import Likelihood
    from credo.core.model import Model
    from credo.core.network import Network
    from credo.registry import LIKELIHOODS, NETWORKS

    also = [kind for kind in vars(capabilities).values() if inspect.isclass(kind) and kind.__name__.endswith("Network")]
    count = check(Model, Model)
    for row in NETWORKS.values():
        cls = vars(inspect.getmodule(row.load()))[row.makes]
        count += sum(check(cls, contract) for contract in (Network, *also))
    for row in LIKELIHOODS.values():
        cls = vars(inspect.getmodule(row.load()))[row.makes]
        count += sum(check(cls, contract) for contract in (Likelihood, capabilities.CurvedLikelihood))
    return count
