"""Networks written in Equinox."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapters import plain
from credo.core.network import Variables
from credo.core.tree import leaf, path_string, struct
from credo.core.typing import PyTree
from credo.errors import InputError


class EquinoxSlot(NamedTuple):
    """One leaf of (module, state). role: "params", "state" or "static"; `path` leads to it there."""

    path: tuple[str, ...]
    role: str


class EquinoxStructure(NamedTuple):
    """A module and its state without their arrays."""

    treedef: plain.Held
    static: plain.Held  # leaves that are no arrays: activations, rates, flags
    slots: tuple[EquinoxSlot, ...]
    facts: tuple[tuple[str, plain.Fact], ...]
    stateful: bool
    rates: tuple[float, ...] = ()  # of its dropout layers


@struct
class EquinoxNetwork(plain.SplitModule):
    """An Equinox module, split into structure and arrays.

    Equinox networks see one example; the batch is a `vmap`, whose axis is the one that batch norm sums over.
    """

    structure: EquinoxStructure
    factory: Callable[..., Any] | None = None
    start: Any = leaf(default=None)

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """Fresh variables from the factory, or those of the instance."""
        variables = self.start
        if self.factory is not None:
            variables = _variables(self.structure.slots, _with_state(plain.make(self.factory, "key", key)))
        plain.check_outputs(self, variables, inputs, num_outputs)
        return variables

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the dropout masks, the same for every row; batch statistics stay as they are."""
        return plain.each_row(lambda x: self._call(variables, x, key, False, stochastic=True)[0], inputs)

    def _call(
        self, variables: Variables, inputs: PyTree, key: jax.Array | None, train: bool, stochastic: bool
    ) -> tuple[jax.Array, PyTree]:
        module, state = self._merge(variables)
        module = _set_mode(module, train=train, stochastic=stochastic)
        takes_key = "key" in plain.accepted(type(module).__call__)
        keys = None
        if stochastic and key is not None:
            keys = jax.random.split(key, jax.tree.leaves(inputs)[0].shape[0])

        def one(x: PyTree, key: jax.Array | None) -> tuple[Any, Any]:
            options = {"key": key} if takes_key else {}
            return module(x, state, **options) if self.structure.stateful else (module(x, **options), None)

        axes = (0, None if keys is None else 0)
        outputs, state = jax.vmap(one, axes, (0, None), axis_name=_batch_axis(module))(inputs, keys)
        if not (train and self.structure.stateful):
            return plain.as_rows(outputs), variables.state
        return plain.as_rows(outputs), _variables(self.structure.slots, (module, state)).state

    def _merge(self, variables: Variables) -> tuple[Any, Any]:
        static = iter(self.structure.static.value)
        leaves = [
            next(static) if role == "static" else plain.pick(getattr(variables, role), path)
            for path, role in self.structure.slots
        ]
        return jax.tree.unflatten(self.structure.treedef.value, leaves)


def from_equinox(network: Any) -> EquinoxNetwork:
    """A network written in Equinox, for one example: credo maps it over the batch.

    Args:
        network: a factory, `lambda key: Net(key=key)`, called with a fresh key for every chain or ensemble
            member; or an instance (or a pair `(module, state)`), whose weights are where every method starts.

    Example:
        >>> import credo, equinox
        >>> credo.from_equinox(lambda key: equinox.nn.Linear(3, 1, key=key)).pretrained
        False
    """
    eqx = plain.require("equinox", "equinox")
    if isinstance(network, (eqx.Module, tuple)):
        module_and_state = _with_state(network)
        structure = _structure(module_and_state)
        return EquinoxNetwork(structure, None, _variables(structure.slots, module_and_state))
    if not callable(network):
        raise InputError(f"from_equinox expects a factory such as lambda key: Net(key=key), got {network!r}.")
    plain.hashable(network, "The factory")
    return EquinoxNetwork(_of_factory(network), network)


@functools.lru_cache(maxsize=256)
def _of_factory(factory: Callable[..., Any]) -> EquinoxStructure:
    """The structure of a factory's module: one per factory, so that equal adapters share programs."""
    eqx = plain.require("equinox", "equinox")
    return _structure(
        eqx.filter_eval_shape(lambda key: _with_state(plain.make(factory, "key", key)), jax.random.key(0))
    )


def _with_state(module: Any) -> tuple[Any, Any]:
    """Module and state, from a module or from such a pair."""
    eqx = plain.require("equinox", "equinox")
    if isinstance(module, tuple) and len(module) == 2 and isinstance(module[1], eqx.nn.State):
        return module
    if not isinstance(module, eqx.Module):
        raise InputError(f"from_equinox expects an equinox.Module, got {type(module).__name__}.")
    try:
        return eqx.nn.make_with_state(lambda: module)()
    except ValueError as error:
        raise InputError("This Equinox network has lost its state; give the pair (module, state).") from error


def _structure(module_and_state: tuple[Any, Any]) -> EquinoxStructure:
    flat, treedef = jax.tree_util.tree_flatten_with_path(module_and_state)
    slots, static = [], []
    for path, value in flat:
        slots.append(_slot(path, value))
        if slots[-1].role == "static":
            static.append(value)
    stateful = len(jax.tree.leaves(module_and_state[1])) > 0
    dropout = plain.require("equinox", "equinox").nn.Dropout
    layers = jax.tree.leaves(module_and_state[0], is_leaf=lambda x: isinstance(x, dropout))
    rates = tuple(float(layer.p) for layer in layers if isinstance(layer, dropout))
    facts = tuple(_facts(module_and_state[0]))
    return EquinoxStructure(plain.Held(treedef), plain.Held(tuple(static)), tuple(slots), facts, stateful, rates)


def _slot(path: tuple[Any, ...], value: Any) -> EquinoxSlot:
    names = tuple(path_string(path[1:]).split("/"))
    if not isinstance(value, (jax.Array, np.ndarray, jax.ShapeDtypeStruct)):
        return EquinoxSlot(names, "static")
    if path[0].idx == 1:
        return EquinoxSlot(("state", *names), "state")
    learned = not isinstance(value, np.ndarray) and jnp.issubdtype(value.dtype, jnp.inexact)
    return EquinoxSlot(names, "params") if learned else EquinoxSlot(("buffers", *names), "state")


def _variables(slots: tuple[EquinoxSlot, ...], module_and_state: tuple[Any, Any]) -> Variables:
    pairs = list(zip(slots, jax.tree.leaves(module_and_state)))
    trees = (
        plain.nest((slot.path, jnp.asarray(x)) for slot, x in pairs if slot.role == role)
        for role in ("params", "state")
    )
    return Variables(*trees)


def _set_mode(module: Any, *, train: bool, stochastic: bool) -> Any:
    """Dropout acts when stochastic; layers with statistics update them when training."""
    eqx = plain.require("equinox", "equinox")
    norms = (eqx.nn.BatchNorm, eqx.nn.SpectralNorm)

    def one(layer: Any) -> Any:
        return eqx.nn.inference_mode(layer, not train) if isinstance(layer, norms) else layer

    module = eqx.nn.inference_mode(module, not stochastic)
    return jax.tree.map(one, module, is_leaf=lambda x: isinstance(x, norms))


def _batch_axis(module: Any) -> Any:
    """The name that the network's batch norm gives to the batch axis."""
    eqx = plain.require("equinox", "equinox")
    layers = jax.tree.leaves(module, is_leaf=lambda x: isinstance(x, eqx.nn.BatchNorm))
    return next((x.axis_name for x in layers if isinstance(x, eqx.nn.BatchNorm)), "batch")


def _facts(module: Any) -> list[tuple[str, plain.Fact]]:
    nn = plain.require("equinox", "equinox").nn
    norms = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm)
    cells = (nn.GRUCell, nn.LSTMCell)
    layer_types = (nn.Linear, nn.Conv, nn.ConvTranspose, nn.Embedding, *norms, *cells)

    def fans(layer: Any) -> dict[str, plain.Fact]:
        if isinstance(layer, norms):
            return {"weight": ("scale", None, None), "bias": ("bias", None, None)}
        if isinstance(layer, nn.Embedding):
            return {"weight": ("embedding", 1, layer.embedding_size)}  # one row is looked up: no sum
        if isinstance(layer, cells):
            sizes = {"weight_ih": layer.input_size, "weight_hh": layer.hidden_size}
            facts: dict[str, plain.Fact] = {k: ("kernel", n, layer.hidden_size, -1) for k, n in sizes.items()}
            bias: plain.Fact = ("bias", sum(sizes.values()), layer.hidden_size)
            return facts | {"bias": bias, "bias_n": bias}
        if isinstance(layer, nn.Linear):
            ins, outs = (1 if n == "scalar" else n for n in (layer.in_features, layer.out_features))
            axis: int | None = -1
        else:
            # A group sees only its own channels, so no one axis has them all.
            axis = -1 - len(layer.kernel_size) if layer.groups == 1 else None
            window = math.prod(layer.kernel_size)
            ins, outs = (window * n // layer.groups for n in (layer.in_channels, layer.out_channels))
        return {"weight": ("kernel", ins, outs, axis), "bias": ("bias", ins, outs)}

    flat = jax.tree_util.tree_flatten_with_path(module, is_leaf=lambda x: isinstance(x, layer_types))[0]
    return [
        ("/".join(filter(None, (path_string(path), name))), fact)
        for path, layer in flat
        if isinstance(layer, layer_types)
        for name, fact in fans(layer).items()
    ]
