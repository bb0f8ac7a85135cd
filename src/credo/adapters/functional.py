"""Networks as plain functions."""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from credo.adapters.plain import OTHER, Fact, accepted, as_rows, check_outputs, each_row, hashable, info_tree
from credo.core.network import Variables
from credo.core.tree import by_paths, matches, struct
from credo.core.typing import PyTree
from credo.errors import InputError

KINDS = ("kernel", "bias", "scale", "embedding", "other")


@struct
class FunctionalNetwork:
    """f(x) = apply(params, x) for a user's pair of functions; `facts` is a function or (glob, fact) pairs."""

    init_function: Callable[..., PyTree]
    apply_function: Callable[..., jax.Array]
    facts: Any = ()

    pretrained = False

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """Fresh parameters from the user's function."""
        options = {"num_outputs": num_outputs} if "num_outputs" in accepted(self.init_function) else {}
        variables = Variables(self.init_function(key, inputs, **options), {})
        check_outputs(self, variables, inputs, num_outputs)
        return variables

    def apply(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs]; `key` and `train` are handed on where the user's function takes them."""
        mode = {"key": key if train else None, "train": train}
        options = {name: mode[name] for name in accepted(self.apply_function) & set(mode)}
        return as_rows(self.apply_function(variables.params, inputs, **options)), variables.state

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs under one draw of what the user's function does with its key, the same for every row."""
        return each_row(lambda x: self.apply(variables, x, key=key, train=True)[0], inputs)

    def info(self, params: PyTree) -> PyTree:
        """The user's facts about each parameter, else kind "other" without fan-in."""
        return info_tree(params, {path: self._fact(path, x) for path, x in by_paths(params).items()})

    def _fact(self, path: str, array: jax.Array) -> Fact:
        if callable(self.facts):
            return _checked(self.facts(path, tuple(array.shape)), path)
        return next((fact for glob, fact in self.facts if matches(path, glob)), OTHER)


def from_functions(
    init: Callable[..., PyTree],
    apply: Callable[..., jax.Array],
    info: Mapping[str, Fact] | Callable[[str, tuple[int, ...]], Fact] | None = None,
) -> FunctionalNetwork:
    """A network from two pure functions.

    Args:
        init: `init(key, inputs) -> params`, a tree of arrays; it may also take `num_outputs`.
        apply: `apply(params, inputs) -> outputs` of shape [n, out]; it may also take `key` (None in
            prediction) and `train`.
        info: (kind, fan_in, fan_out) by glob on paths, the first match decides, or a function of
            (path, shape); priors that scale with the fan-in need it. A kernel's fourth entry is the axis of its
            inputs, which dropout on weight rows needs: ("kernel", 3, 1, 0).

    Example:
        >>> import jax, credo
        >>> network = credo.from_functions(
        ...     init=lambda key, inputs: {"w": jax.random.normal(key, (inputs.shape[-1], 1))},
        ...     apply=lambda params, inputs: inputs @ params["w"],
        ...     info={"w": ("kernel", 3, 1)},
        ... )
        >>> network.pretrained
        False
    """
    for name, function in (("init", init), ("apply", apply)):
        if not callable(function):
            raise InputError(f"from_functions expects a function for {name}, got {function!r}.")
        hashable(function, name)
    if info is None or callable(info):
        hashable(info, "info")
        return FunctionalNetwork(init, apply, info or ())
    return FunctionalNetwork(init, apply, tuple((g, _checked(fact, g)) for g, fact in info.items()))


def _checked(fact: Any, path: str) -> Fact:
    if not isinstance(fact, tuple) or len(fact) not in (3, 4) or fact[0] not in KINDS:
        raise InputError(
            f"info for '{path}' must be (kind, fan_in, fan_out) or (kind, fan_in, fan_out, input_axis) with a kind out "
            f"of {', '.join(KINDS)}, got {fact!r}."
        )
    return fact
