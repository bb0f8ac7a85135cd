"""One trunk, several heads: some arrays of a network exist once for each task."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import (
    MaskedNetwork,
    NetworkWrapper,
    require,
)
from credo.core.network import Variables, is_info
from credo.core.tree import Select, leaf, matches, path_string, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.networks.mlp import MLP

Arrays = dict[str, Any]


@struct
class MultiHead(NetworkWrapper):
    """f(x, t) = network(x; trunk, head_t): see `multi_head`.

    Parameters are {"trunk": the network's own tree with None where a head's array belongs, "head_0": {name: array}, …}.
    """

    network: Any = leaf()
    num_heads: int = 2
    select: tuple[str, ...] = ("output/*",)

    def init(self, key: jax.Array, inputs: PyTree, num_outputs: int) -> Variables:
        """The trunk of one start of the network, and the head of as many starts as there are heads."""
        starts = [
            self.network.init(k, inputs["inputs"], num_outputs) for k in jax.random.split(key, self.num_heads)
        ]  # fmt: skip
        trunk, _ = self._split(starts[0].params)
        heads = {head_name(t): self._split(start.params)[1] for t, start in enumerate(starts)}
        return Variables({"trunk": trunk, **heads}, starts[0].state)

    def apply(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs] of every row's own head."""

        def one(head: Arrays) -> tuple[jax.Array, PyTree]:
            params = self._join(variables.params, head)
            return self.network.apply(Variables(params, variables.state), inputs["inputs"], key=key, train=train)

        outputs, state = self._each_head(one, variables.params)
        return _of_rows(outputs, inputs), jax.tree.map(lambda x: x[0], state)

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the network's masks."""
        masked = require(self.network, MaskedNetwork)

        def one(head: Arrays) -> jax.Array:
            params = self._join(variables.params, head)
            return masked.apply_masked(Variables(params, variables.state), inputs["inputs"], key)

        return _of_rows(self._each_head(one, variables.params), inputs)

    def info(self, params: PyTree) -> PyTree:
        """The network's facts about its arrays, under the paths that they have here."""

        def add_prefix(prefix: str) -> Callable[[Any], Any]:
            return lambda i: i._replace(path=prefix + i.path)

        infos: Arrays = {}
        for t in range(self.num_heads):
            trunk, head = self._split(self.network.info(self._join(params, params[head_name(t)])))
            infos["trunk"] = jax.tree.map(add_prefix("trunk/"), trunk, is_leaf=is_info)
            infos[head_name(t)] = {name: i._replace(path=f"{head_name(t)}/{name}") for name, i in head.items()}
        return infos

    # ------------------------------------------------------------------ to the network's tree and back
    def _each_head(self, function: Callable[..., Any], *params: PyTree) -> Any:
        """The function of every head's arrays; what does not depend on the head is computed once."""
        stacks = [
            jax.tree.map(lambda *x: jnp.stack(x), *(p[head_name(t)] for t in range(self.num_heads))) for p in params
        ]  # fmt: skip
        return jax.vmap(function)(*stacks)

    def _split(self, params: PyTree) -> tuple[PyTree, Arrays]:
        """The network's tree without the arrays of a head, and these by name."""
        flat = jax.tree_util.tree_flatten_with_path(params, is_leaf=is_info)[0]
        paths = [path_string(path) for path, _ in flat if matches(path_string(path), self.select)]
        if not paths or len(paths) == len(flat):
            listed = ", ".join(path_string(path) for path, _ in flat)
            raise InputError(
                f"select={self.select} must match some arrays of the network and not all of them; they are {listed}."
            )
        names = dict(zip(paths, _short(paths)))
        head = {names[path_string(path)]: x for path, x in flat if path_string(path) in names}
        trunk = jax.tree_util.tree_map_with_path(
            lambda path, x: None if path_string(path) in names else x, params, is_leaf=is_info
        )
        return trunk, head

    def _join(self, params: PyTree, head: Arrays) -> PyTree:
        """The network's tree with the arrays of one head."""
        flat, treedef = jax.tree_util.tree_flatten_with_path(params["trunk"], is_leaf=lambda x: x is None)
        gaps = [path_string(path) for path, x in flat if x is None and matches(path_string(path), self.select)]
        names = dict(zip(gaps, _short(gaps)))
        # A network may have a None of its own: a layer without bias.
        leaves = [head.get(names[path_string(p)]) if x is None and path_string(p) in names else x for p, x in flat]
        return jax.tree.unflatten(treedef, leaves)


@struct
class DenseMultiHead(MultiHead):
    """The same on a perceptron, which also draws pre-activations and returns the inputs of its layers."""

    def apply_local(self, mean: PyTree, std: PyTree, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs with every pre-activation drawn from its own Gaussian (the local reparameterisation)."""

        def one(m: Arrays, s: Arrays) -> jax.Array:
            return self.network.apply_local(self._join(mean, m), self._join(std, s), inputs["inputs"], key)

        return _of_rows(self._each_head(one, mean, std), inputs)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: PyTree, key: jax.Array) -> jax.Array:
        """Outputs with other signs of the perturbation for every row (flipout)."""

        def one(m: Arrays, d: Arrays) -> jax.Array:
            return self.network.apply_flipout(self._join(mean, m), self._join(moved, d), inputs["inputs"], key)

        return _of_rows(self._each_head(one, mean, moved), inputs)

    def dense_layers(self) -> list[tuple[str, str, bool]]:
        """Kernel, bias and whether the kernel is [out, in], of every layer of the trunk and then of every head."""
        *trunk, _ = self.network.dense_layers()
        heads = [(f"{head_name(t)}/kernel", f"{head_name(t)}/bias", True) for t in range(self.num_heads)]
        return [(f"trunk/{kernel}", f"trunk/{bias}", rows) for kernel, bias, rows in trunk] + heads

    def apply_tapped(self, params: PyTree, inputs: PyTree, shifts: PyTree) -> tuple[jax.Array, PyTree]:
        """Outputs with `shifts` added before each activation, and the inputs of every layer, by paths of kernels."""
        trunk = {path.removeprefix("trunk/"): x for path, x in shifts.items() if path.startswith("trunk/")}
        outputs: list[jax.Array] = []
        layer_inputs: Arrays = {}
        for t in range(self.num_heads):
            head_kernel = f"{head_name(t)}/kernel"
            head_shifts = trunk | ({"output/kernel": shifts[head_kernel]} if head_kernel in shifts else {})
            values, head_inputs = self.network.apply_tapped(
                self._join(params, params[head_name(t)]), inputs["inputs"], head_shifts
            )
            outputs.append(values)
            layer_inputs |= {
                head_kernel if path == "output/kernel" else f"trunk/{path}": x for path, x in head_inputs.items()
            }
        return _of_rows(jnp.stack(outputs), inputs), {path: layer_inputs[path] for path in shifts}


def head_name(number: Any) -> str:
    """The first part of the paths of a head's arrays."""
    return f"head_{number}"


def _short(paths: Sequence[str]) -> list[str]:
    """Paths without the folder that they share: output/kernel, output/bias ↦ kernel, bias."""
    folders = [path.split("/")[:-1] for path in paths]
    shared = 0
    while folders and all(len(f) > shared and f[shared] == folders[0][shared] for f in folders):
        shared += 1
    return ["/".join(path.split("/")[shared:]) for path in paths]


def _of_rows(outputs: jax.Array, inputs: PyTree) -> jax.Array:
    """Of outputs [head, n, out], those of each row's head [n, out]."""
    mask = inputs["head"][:, 0] == jnp.arange(len(outputs))[:, None]
    return jnp.where(mask[..., None], outputs, 0).sum(0)


def multi_head(network: Any, num_heads: int, select: Select = "output/*") -> MultiHead:
    """A network with one set of outputs for each task on a common trunk.

    Inputs become {"inputs": what the network takes, "head": whole numbers [n, 1], the head of every row}. Arrays that
    `select` matches exist once for each head, at paths such as `head_0/kernel`; all others are below `trunk/`.

    Args:
        network: any network of credo; its outputs are those of one head.
        num_heads: how many heads there are.
        select: globs on the network's own paths: the arrays of a head.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.multi_head(credo.networks.mlp([4]), num_heads=2)
        >>> rows = {"inputs": jnp.ones((3, 5)), "head": jnp.array([[0], [1], [1]])}
        >>> variables = network.init(jax.random.key(0), rows, 2)
        >>> credo.core.tree.paths(variables.params)[:3]
        ['head_0/bias', 'head_0/kernel', 'head_1/bias']
        >>> network.apply(variables, rows)[0].shape
        (3, 2)
    """
    if int(num_heads) != num_heads or num_heads < 1:
        raise InputError(f"num_heads is a whole number of at least 1, got {num_heads}.")
    globs = (select,) if isinstance(select, str) else tuple(select)
    dense = isinstance(network, MLP) and globs == ("output/*",)
    return (DenseMultiHead if dense else MultiHead)(network, int(num_heads), globs)
