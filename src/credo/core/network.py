"""The network protocol: three pure functions, and facts about the parameters."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax

from credo.core.typing import Outputs, PyTree


class Variables(NamedTuple):
    """Everything a network holds. Only `params` are random; `state` (batch statistics) is learned while optimising
    and frozen while sampling."""

    params: PyTree
    state: PyTree


class ParamInfo(NamedTuple):
    """Facts about one parameter array, stated by its layer and never guessed from its shape.

    kind: "kernel", "bias", "scale", "embedding" or "other". fan_in/fan_out: None where the layer has none. input_axis:
    the axis of a kernel along which the layer's inputs (units, channels) lie; None where there is no single one.
    """

    path: str
    kind: str
    fan_in: int | None
    fan_out: int | None
    shape: tuple[int, ...]
    input_axis: int | None = None


@runtime_checkable
class Network(Protocol):
    """A network as pure functions. Built-ins are frozen dataclasses: equal settings are one compiled program."""

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """Fresh variables; input sizes come from `inputs`."""
        ...

    def apply(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[Outputs, PyTree]:
        """Outputs [n, num_outputs] and the new state."""
        ...

    def info(self, params: PyTree) -> PyTree:
        """The tree of `params` with a `ParamInfo` in place of every array."""
        ...


def is_info(x: Any) -> bool:
    """For `jax.tree.map(..., is_leaf=is_info)`: ParamInfo is a tuple, hence would be taken for a node."""
    return isinstance(x, ParamInfo)
