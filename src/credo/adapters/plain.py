"""What all adapters share: plain trees instead of library objects, and checks."""

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax

from credo.core.network import Network, ParamInfo, Variables
from credo.core.tree import Held as Held
from credo.core.tree import path_string
from credo.core.typing import PyTree
from credo.errors import InputError

Fact = tuple[str, int | None, int | None] | tuple[str, int | None, int | None, int | None]
# kind, fan-in, fan-out and, for kernels that have one, the axis of their inputs

OTHER: Fact = ("other", None, None)


class SplitModule(ABC):
    """A library's module, split once: `structure` is static, arrays are plain dicts; a call merges them."""

    structure: Any
    factory: Callable[..., Any] | None

    @property
    def pretrained(self) -> bool:
        """True where the start weights are those of an instance."""
        return self.factory is None

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return self.structure.rates

    def apply(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs] and the new batch statistics; dropout acts when training with a key."""
        return self._call(variables, inputs, key, train, stochastic=train and key is not None)

    @abstractmethod
    def _call(
        self, variables: Variables, inputs: PyTree, key: jax.Array | None, train: bool, stochastic: bool
    ) -> tuple[jax.Array, PyTree]: ...

    def info(self, params: PyTree) -> PyTree:
        """Each layer's facts about its arrays."""
        return info_tree(params, dict(self.structure.facts))


def require(module: str, extra: str) -> Any:
    """Import a module of an optional library, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise InputError(
            f"This network needs {library}, which is not installed: pip install 'credo[{extra}]'."
        ) from error


def hashable(value: Any, name: str) -> None:
    """Raise where a function has no hash: compiled programs are looked up by it."""
    try:
        hash(value)
    except TypeError:
        raise InputError(f"{name} must be hashable: give a function or a lambda, got {value!r}.") from None


def accepted(function: Callable[..., Any]) -> set[str]:
    """Names of the arguments that a function (or the making of a class) takes."""
    try:
        # The metaclasses of network libraries hide the arguments of their classes.
        call = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
        return set(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        return set()


def make(factory: Callable[..., Any], name: str, value: Any) -> Any:
    """Call a factory with its one argument, by name where it has that name (so that a class works, too)."""
    return factory(**{name: value}) if name in accepted(factory) else factory(value)


def mode_options(call: Callable[..., Any], *, train: bool, stochastic: bool) -> dict[str, bool]:
    """The switches between training and prediction that a network's call takes, set right."""
    values = dict.fromkeys(("train", "training", "is_training"), train)
    values |= {"deterministic": not stochastic, "use_running_average": not train, "inference": not train}
    return {name: values[name] for name in accepted(call) & set(values)}


def nest(pairs: Iterable[tuple[Iterable[Any], Any]]) -> dict[str, Any]:
    """A nested dict with string keys from paths and values."""
    tree: dict[str, Any] = {}
    for path, value in pairs:
        *parents, name = map(str, path)
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return tree


def pick(tree: PyTree, path: Iterable[Any]) -> Any:
    """The value at a path of a nested dict."""
    for name in path:
        tree = tree[str(name)]
    return tree


def info_tree(params: PyTree, facts: Mapping[str, Fact]) -> PyTree:
    """The tree of ParamInfo, from the layers' facts by path."""

    def one(path: Any, x: jax.Array) -> ParamInfo:
        name = path_string(path)
        kind, fan_in, fan_out, *axis = facts.get(name, OTHER)
        return ParamInfo(name, kind, fan_in, fan_out, tuple(x.shape), *axis)

    return jax.tree_util.tree_map_with_path(one, params)


def as_rows(outputs: Any) -> jax.Array:
    """Outputs [n, out]; a network may return [n] for one output."""
    return outputs[:, None] if getattr(outputs, "ndim", None) == 1 else outputs


def each_row(function: Callable[[PyTree], jax.Array], inputs: PyTree) -> jax.Array:
    """Outputs [n, out] of a function that sees one row [1, …] at a time: what it draws from a key, all rows share."""
    return jax.vmap(lambda x: function(jax.tree.map(lambda a: a[None], x))[0])(inputs)


def check_outputs(network: Network, variables: Variables, inputs: PyTree, num_outputs: int) -> None:
    """Run the network on shapes alone, and raise where its outputs are not [n, num_outputs]."""
    shapes = [tuple(x.shape) for x in jax.tree.leaves(inputs)]
    listed = ", ".join(map(str, shapes))
    try:
        outputs = jax.eval_shape(lambda v, x: network.apply(v, x)[0], variables, inputs)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"The network cannot take inputs of shape {listed}: {reason}") from error
    expected = (shapes[0][0], num_outputs)
    got = getattr(outputs, "shape", None)
    if got != expected:
        raise InputError(
            f"The network must return outputs of shape {expected} for inputs of shape {listed}, "
            f"got {got if got is not None else type(outputs).__name__}; "
            f"give its last layer {num_outputs} output{'s' * (num_outputs != 1)}, one for each number "
            "that the likelihood needs, and return one row for each example."
        )
