"""Networks written in Flax NNX."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.adapters import flax_layers, plain
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError


class NNXSlot(NamedTuple):
    """One array of a module. role: "params", "state", or "key" and "count" of a random stream."""

    path: tuple[Any, ...]
    role: str
    shape: tuple[int, ...]


class NNXStructure(NamedTuple):
    """A module without its arrays."""

    graphdef: plain.Held
    slots: tuple[NNXSlot, ...]
    facts: tuple[tuple[str, plain.Fact], ...]
    rates: tuple[float, ...] = ()  # of its dropout layers


@struct
class NNXNetwork(plain.SplitModule):
    """An NNX module, split into structure and arrays.

    start: the variables of an instance. constants: arrays that a factory sets as plain attributes.
    """

    structure: NNXStructure
    factory: Callable[..., Any] | None = None
    start: Any = leaf(default=None)
    constants: dict[str, jax.Array] = leaf(default_factory=dict)

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """Fresh variables from the factory, or those of the instance."""
        variables = self.start if self.factory is None else self._fresh(self.factory, key)
        plain.check_outputs(self, variables, inputs, num_outputs)
        return variables

    def _fresh(self, factory: Callable[..., Any], key: jax.Array) -> Variables:
        nnx = plain.require("flax.nnx", "flax")
        arrays = self.constants | _arrays(plain.make(factory, "rngs", nnx.Rngs(key)))
        return _variables(self.structure.slots, arrays)

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the dropout masks, the same for every row; batch statistics stay as they are."""
        # Where there are no statistics `train` can do no harm, and a network's own switch may need it.
        train = not jax.tree.leaves(variables.state)
        return plain.each_row(lambda x: self._call(variables, x, key, train, stochastic=True)[0], inputs)

    def _call(
        self, variables: Variables, inputs: PyTree, key: jax.Array | None, train: bool, stochastic: bool
    ) -> tuple[jax.Array, PyTree]:
        nnx = plain.require("flax.nnx", "flax")
        key = key if key is not None else jax.random.key(0)
        module = self._merge(variables, key)
        module.set_attributes(deterministic=not stochastic, use_running_average=not train, raise_if_not_found=False)
        call = type(module).__call__
        options: dict[str, Any] = dict(plain.mode_options(call, train=train, stochastic=stochastic))
        if "rngs" in plain.accepted(call):
            options["rngs"] = nnx.Rngs(jax.random.fold_in(key, len(self.structure.slots)))
        outputs = plain.as_rows(module(inputs, **options))
        state = _variables(self.structure.slots, _arrays(module)).state if train else variables.state
        return outputs, state

    def _merge(self, variables: Variables, key: jax.Array) -> Any:
        nnx = plain.require("flax.nnx", "flax")
        flat = []
        for i, (path, role, shape) in enumerate(self.structure.slots):
            if role == "key":
                fresh = jax.random.fold_in(key, i)
                value = jax.random.split(fresh, shape) if shape else fresh
            elif role == "count":
                value = jnp.zeros(shape, jnp.uint32)
            else:
                value = plain.pick(getattr(variables, role), path)
            flat.append((path, value))
        return nnx.merge(self.structure.graphdef.value, nnx.from_flat_state(flat))


def from_flax(network: Any) -> NNXNetwork:
    """A network written in Flax NNX.

    Args:
        network: a factory, `lambda rngs: Net(rngs=rngs)`, called with a fresh `nnx.Rngs` for every chain or
            ensemble member; or an instance, whose weights are where every method starts.

    Example:
        >>> import credo
        >>> from flax import nnx
        >>> credo.from_flax(lambda rngs: nnx.Linear(3, 1, rngs=rngs)).pretrained
        False
    """
    nnx, linen = plain.require("flax.nnx", "flax"), plain.require("flax.linen", "flax")
    if isinstance(network, linen.Module):
        raise InputError("from_flax takes NNX networks and this is a Linen module; take from_linen.")
    if isinstance(network, nnx.Module):
        structure = _structure(network)
        return NNXNetwork(structure, None, _variables(structure.slots, _arrays(network)))
    if not callable(network):
        raise InputError(f"from_flax expects a factory such as lambda rngs: Net(rngs=rngs), got {network!r}.")
    plain.hashable(network, "The factory")
    structure, constants = _of_factory(network)
    return NNXNetwork(structure, network, None, dict(constants))


@functools.lru_cache(maxsize=256)
def _of_factory(factory: Callable[..., Any]) -> tuple[NNXStructure, dict[str, jax.Array]]:
    """The structure of a factory's module: one per factory, so that equal adapters share programs."""
    nnx = plain.require("flax.nnx", "flax")
    structures: list[NNXStructure] = []

    def build(key: jax.Array) -> None:
        module = plain.make(factory, "rngs", nnx.Rngs(key))
        if not isinstance(module, nnx.Module):
            raise InputError(f"The factory must return an nnx.Module, got {type(module).__name__}.")
        structures.append(_structure(module))

    jax.eval_shape(build, jax.random.key(0))
    try:
        hash(structures[0].graphdef.value)
        return structures[0], {}
    except TypeError:
        # Arrays set as plain attributes are leaves of a real module, but static attributes of a traced one:
        # build it for real, once, and keep them as constants.
        module = plain.make(factory, "rngs", nnx.Rngs(0))
        structure = _structure(module)
        arrays = _arrays(module)
        paths = {str(slot.path) for slot in structures[0].slots}
        return structure, {path: x for path, x in arrays.items() if path not in paths}


def _structure(module: Any) -> NNXStructure:
    nnx = plain.require("flax.nnx", "flax")
    graphdef, state = nnx.split(module)
    slots, facts = [], []
    for path, variable in nnx.to_flat_state(state):
        role = _role(nnx, variable)
        slots.append(NNXSlot(tuple(path), role, tuple(jnp.shape(_value(nnx, variable)))))
        if role == "params":
            layer = functools.reduce(_child, path[:-1], module)
            facts.append(("/".join(map(str, path)), _fact(nnx, layer, str(path[-1]))))
    rates = tuple(float(layer.rate) for _, layer in nnx.iter_modules(module) if isinstance(layer, nnx.Dropout))
    return NNXStructure(plain.Held(graphdef), tuple(slots), tuple(facts), rates)


def _fact(nnx: Any, layer: Any, name: str) -> plain.Fact:
    rule = flax_layers.rule_of(nnx, layer)
    main = None if rule is None else getattr(layer, "embedding" if name == "embedding" else "kernel", None)
    return flax_layers.fact(rule, name, None if main is None else tuple(main.shape))


def _role(nnx: Any, variable: Any) -> str:
    if isinstance(variable, nnx.RngKey):
        return "key"
    if isinstance(variable, nnx.RngState):
        return "count"
    return "params" if isinstance(variable, nnx.Param) else "state"


def _child(node: Any, name: Any) -> Any:
    return getattr(node, name) if isinstance(name, str) and hasattr(node, name) else node[name]


def _value(nnx: Any, variable: Any) -> Any:
    return variable[...] if isinstance(variable, nnx.Variable) else variable


def _arrays(module: Any) -> dict[str, Any]:
    nnx = plain.require("flax.nnx", "flax")
    flat = nnx.to_flat_state(nnx.split(module)[1])
    return {str(tuple(path)): _value(nnx, variable) for path, variable in flat}


def _variables(slots: tuple[NNXSlot, ...], arrays: dict[str, Any]) -> Variables:
    trees = (plain.nest((s.path, arrays[str(s.path)]) for s in slots if s.role == role) for role in ("params", "state"))
    return Variables(*trees)
