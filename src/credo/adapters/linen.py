"""Networks written in Flax Linen."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax

from credo.adapters import flax_layers, plain
from credo.core.checks import check_shapes
from credo.core.network import Variables
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError

PASSING = ("intermediates", "perturbations")  # collections that are no part of a network's state


@struct
class LinenNetwork:
    """A Linen module: equal modules are one program. start: variables to start from, or None for fresh ones."""

    module: plain.Held
    start: Any = leaf(default=None)

    @property
    def pretrained(self) -> bool:
        """True where the start weights are the user's."""
        return self.start is not None

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """Fresh variables by the module's initialisers, or those to start from."""
        try:
            shapes = jax.eval_shape(self._fresh, key, inputs)
        except Exception as error:
            listed = ", ".join(str(tuple(x.shape)) for x in jax.tree.leaves(inputs))
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"The network cannot take inputs of shape {listed}: {reason}") from error
        if self.start is not None:
            trees = (by_paths(v.params) | by_paths(v.state) for v in (self.start, shapes))
            shapes_by_path, expected = ({path: tuple(x.shape) for path, x in tree.items()} for tree in trees)
            check_shapes(shapes_by_path, expected, "The given variables")
        variables = self.start if self.start is not None else self._fresh(key, inputs)
        plain.check_outputs(self, variables, inputs, num_outputs)
        return variables

    def _fresh(self, key: jax.Array, inputs: PyTree) -> Variables:
        module = self.module.value
        params, dropout = jax.random.split(key)
        row = jax.tree.map(lambda x: x[:1], inputs)
        with self._intercepted(stochastic=False):
            options = plain.mode_options(type(module).__call__, train=False, stochastic=False)
            return _variables(module.init({"params": params, "dropout": dropout}, row, **options))

    def apply(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs] and the new batch statistics; dropout acts when training with a key."""
        return self._call(variables, inputs, key, train)

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the dropout masks, the same for every row; batch statistics stay as they are."""
        return plain.each_row(lambda x: self._call(variables, x, key, True, frozen=True)[0], inputs)

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers; known once it has seen inputs."""
        return tuple(float(rule[1]) for rule in _rules(self.module).values() if rule and rule[0] == "dropout")

    def _call(
        self, variables: Variables, inputs: PyTree, key: jax.Array | None, train: bool, frozen: bool = False
    ) -> tuple[jax.Array, PyTree]:
        module, stochastic = self.module.value, train and key is not None
        options: dict[str, Any] = dict(plain.mode_options(type(module).__call__, train=train, stochastic=stochastic))
        if stochastic and key is not None:
            dropout, other = jax.random.split(key)
            options["rngs"] = {"dropout": dropout, "params": other}
        mutable = list(variables.state) if train and not frozen else []
        with self._intercepted(stochastic=stochastic, frozen=frozen):
            outputs, state = module.apply(
                {"params": variables.params, **variables.state}, inputs, mutable=mutable, **options
            )
        return plain.as_rows(outputs), _plain(state) if mutable else variables.state

    def info(self, params: PyTree) -> PyTree:
        """Each layer's facts about its arrays."""
        rules = _rules(self.module)
        if not rules:
            raise InputError(
                "A Linen network knows its layers once it has seen inputs: call init or apply before info."
            )
        return plain.info_tree(params, dict(_facts(rules, params)))

    def _intercepted(self, *, stochastic: bool, frozen: bool = False) -> Any:
        """Record the rule of every layer that is called; switch dropout off where it is not stochastic, and batch
        statistics to their running averages where they are frozen."""
        nn, rules = plain.require("flax.linen", "flax"), _rules(self.module)

        def watch(call: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
            layer = context.module
            if layer.scope is not None:
                rules.setdefault(layer.path, flax_layers.rule_of(nn, layer))
            if isinstance(layer, nn.Dropout) and context.method_name == "__call__" and not stochastic:
                return args[0]
            if frozen and isinstance(layer, nn.BatchNorm) and context.method_name == "__call__":
                # A layer may have the switch as a field, which refuses it in the call; this copy lives for one call.
                object.__setattr__(layer, "use_running_average", None)
                args, kwargs = args[:1], kwargs | {"use_running_average": True}
            return call(*args, **kwargs)

        return nn.intercept_methods(watch)


@functools.lru_cache(maxsize=256)
def _rules(module: plain.Held) -> dict[tuple[str, ...], flax_layers.Rule | None]:
    """Rules by layer path, shared by equal modules. A Linen module shows its layers only while it runs."""
    return {}


def _facts(
    rules: Mapping[tuple[str, ...], Any], params: PyTree, path: tuple[str, ...] = ()
) -> list[tuple[str, plain.Fact]]:
    facts = []
    for name, value in params.items():
        if isinstance(value, Mapping):
            facts += _facts(rules, value, (*path, name))
        else:
            main = params.get("embedding" if name == "embedding" else "kernel")
            shape = None if main is None else tuple(main.shape)
            facts.append(("/".join((*path, name)), flax_layers.fact(rules.get(path), name, shape)))
    return facts


def _plain(tree: PyTree) -> PyTree:
    """Nested plain dicts of arrays, without frozen dicts and boxes of metadata."""
    nn = plain.require("flax.linen", "flax")
    if isinstance(tree, Mapping):
        return {str(name): _plain(value) for name, value in tree.items()}
    return nn.meta.unbox(tree)


def _variables(collections: Mapping[str, Any]) -> Variables:
    state = {name: tree for name, tree in collections.items() if name not in ("params", *PASSING)}
    return Variables(_plain(collections.get("params", {})), _plain(state))


def from_linen(module: Any, variables: Mapping[str, Any] | None = None) -> LinenNetwork:
    """A network written in Flax Linen.

    Args:
        module: the module; `train=` or `deterministic=` is passed where its `__call__` takes it.
        variables: pre-trained `{"params": …, "batch_stats": …}` (or the params alone) to start from; None:
            every chain or ensemble member starts from its own draw of the module's initialisers.

    Example:
        >>> import credo
        >>> from flax import linen
        >>> credo.from_linen(linen.Dense(1)).pretrained
        False
    """
    nn = plain.require("flax.linen", "flax")
    if not isinstance(module, nn.Module):
        nnx = plain.require("flax.nnx", "flax")
        advice = "; take from_flax" if isinstance(module, nnx.Module) else ""
        raise InputError(f"from_linen expects a Linen module, got {type(module).__name__}{advice}.")
    if variables is None:
        return LinenNetwork(plain.Held(module))
    collections = variables if "params" in variables else {"params": variables}
    return LinenNetwork(plain.Held(module), _variables(collections))
