"""Dense layers of any network: their inputs, and the gradients of the network's outputs in theirs.

For z = W a + b the gradient of any output is ∂f/∂W = g a' with g = ∂f/∂z, so that inputs a [n, in] and one
vector-Jacobian product for z are all that curvature needs: no Jacobian of outputs × parameters × rows is formed.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.core.capabilities import DenseNetwork, TappedNetwork, capability
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Select, by_paths, matches, struct, with_paths
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.laplace.curvature.interpret import read_program
from credo.methods.laplace.curvature.paths import Arrays


@struct
class Layer:
    """A dense layer z = W a + b: paths of W and b (None where it has none); rows_out: W is stored as [out, in]."""

    kernel: str
    bias: str | None = None
    rows_out: bool = True

    @property
    def paths(self) -> tuple[str, ...]:
        """Its parameters."""
        return (self.kernel,) if self.bias is None else (self.kernel, self.bias)

    def join(self, values: Arrays) -> jax.Array:
        """(W, b) as one matrix [out, in + 1]; [out, in] without a bias."""
        kernel = values[self.kernel] if self.rows_out else values[self.kernel].T
        return kernel if self.bias is None else jnp.concatenate([kernel, values[self.bias][:, None]], 1)

    def split(self, matrix: jax.Array) -> Arrays:
        """The inverse of `join`."""
        kernel = matrix if self.bias is None else matrix[:, :-1]
        stored = {self.kernel: kernel if self.rows_out else kernel.T}
        return stored if self.bias is None else stored | {self.bias: matrix[:, -1]}

    def augment(self, inputs: jax.Array) -> jax.Array:
        """Inputs [n, in] with the 1 that the bias multiplies [n, in + 1]."""
        return inputs if self.bias is None else jnp.concatenate([inputs, jnp.ones_like(inputs[:, :1])], 1)


class Taps(NamedTuple):
    """Dense layers whose parameters are free, why other free parameters have no rule, and the layer that makes f."""

    layers: tuple[Layer, ...]
    problems: dict[str, str]
    last: Layer | None


class Tapped(NamedTuple):
    """f [n, out]; inputs of each layer [n, in]; `pull`: u [n, out] ↦ u'∂f/∂z [n, width]; both by the kernel's path."""

    outputs: jax.Array
    inputs: Arrays
    pull: Callable[[jax.Array], Arrays]


def find_taps(model: Model, variables: Variables, inputs: PyTree) -> Taps:
    """The dense layers of a model's network.

    Args:
        model: any network: the built-in perceptron names its layers, others are read from their program.
        variables: parameters (held ones are not layers of interest) and state.
        inputs: rows of the shape of later ones.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> from credo.core.network import Variables
        >>> from credo.methods.laplace.curvature import find_taps
        >>> model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(1.0))
        >>> network = model.network.init(jax.random.key(0), jnp.ones((2, 3)), 1)
        >>> start = Variables({"network": network.params, "likelihood": {}, "prior": {}}, network.state)
        >>> [layer.kernel for layer in find_taps(model, start, jnp.ones((2, 3))).layers]
        ['hidden_0/kernel', 'output/kernel']
    """
    free = by_paths(variables.params["network"])
    dense = capability(model.network, DenseNetwork)
    if dense is not None:
        layers = [Layer(*facts) for facts in dense.dense_layers()]
        problems: dict[str, str] = {}
        last: str | None = layers[-1].kernel
    else:
        layers, problems, last = _read_layers(model, variables, inputs)
    usable = tuple(_freed(layer, free) for layer in layers if layer.kernel in free and layer.kernel not in problems)
    covered = {path for layer in usable for path in layer.paths}
    missing = {
        path: problems.get(path, "it is no kernel or bias of a dense layer") for path in free if path not in covered
    }
    return Taps(usable, missing, next((layer for layer in usable if layer.kernel == last), None))


def _freed(layer: Layer, free: Arrays) -> Layer:
    """The layer without its bias where that is held."""
    return layer if layer.bias in free else Layer(layer.kernel, None, layer.rows_out)


def _program(model: Model, variables: Variables, inputs: PyTree) -> tuple[Any, Arrays, list[Any]]:
    """The network's program, its parameters by path, and its other arguments."""
    network = model.complete(variables.params)["network"]

    def run(values: Arrays, state: PyTree, inputs: PyTree) -> jax.Array:
        return model.network.apply(Variables(with_paths(network, values), state), inputs)[0]

    values = by_paths(network)
    ordered = {path: values[path] for path in sorted(values)}  # dicts are flattened in this order
    rest = jax.tree.leaves((variables.state, inputs))
    return jax.make_jaxpr(run)(ordered, variables.state, inputs), ordered, rest


def _read_layers(model: Model, variables: Variables, inputs: PyTree) -> tuple[list[Layer], dict[str, str], str | None]:
    results: list[Any] = []

    def run(variables: Variables, inputs: PyTree) -> None:
        closed, values, rest = _program(model, variables, inputs)
        _, reader, last = read_program(closed, values, rest, _rows(inputs), {})
        results.append((reader.layers.values(), reader.problems, last))

    jax.eval_shape(run, variables, inputs)
    layers, problems, last = results[0]
    return [Layer(layer.kernel, layer.bias, layer.rows_out) for layer in layers], problems, last


def tapped(model: Model, variables: Variables, inputs: PyTree, layers: Iterable[Layer]) -> Tapped:
    """Run the network with its layers tapped; one backward pass for each call of `pull`."""
    network = model.complete(variables.params)["network"]
    values, rows = by_paths(network), _rows(inputs)
    shifts = {}
    for layer in layers:
        kernel = values[layer.kernel]
        shifts[layer.kernel] = jnp.zeros((rows, kernel.shape[0 if layer.rows_out else 1]), kernel.dtype)

    def run(shifts: Arrays) -> tuple[jax.Array, Arrays]:
        able = capability(model.network, TappedNetwork)
        if able is not None:
            return able.apply_tapped(network, inputs, shifts)
        closed, ordered, rest = _program(model, variables, inputs)
        outputs, reader, _ = read_program(closed, ordered, rest, rows, shifts)
        return outputs, {path: reader.inputs[path] for path in shifts}

    outputs, pull, layer_inputs = jax.vjp(run, shifts, has_aux=True)
    return Tapped(outputs, layer_inputs, lambda u: pull(u)[0])


def _rows(inputs: PyTree) -> int:
    return jax.tree.leaves(inputs)[0].shape[0]


def require_all(taps: Taps, what: str) -> tuple[Layer, ...]:
    """The layers, where they hold every free parameter; else a refusal that names all that have no rule."""
    if taps.problems:
        reasons = {reason: [p for p, r in taps.problems.items() if r == reason] for reason in taps.problems.values()}
        sentences = (f"{', '.join(map(repr, paths))}, because {reason}" for reason, paths in reasons.items())
        raise Refusal(
            f'{what} has no rule for {"; nor for ".join(sentences)}: take structure="diagonal", "last_layer" or '
            '"low_rank", or a subset of the weights.'
        )
    return taps.layers


def output_layer(taps: Taps, select: Select | None = None) -> Layer:
    """The dense layer whose output is the network's; `select` (globs) must match it where given."""
    if taps.last is None:
        raise Refusal(
            "The network's outputs are not those of a dense layer, so no layer's weights enter them linearly: take "
            'subset("laplace", "path/*") or another structure.'
        )
    if select is not None and not matches(taps.last.kernel, select):
        if any(matches(path, select) for layer in taps.layers for path in layer.paths):
            raise Refusal(
                f"The layer must be the last one, '{taps.last.kernel}', in which the outputs are linear; for others "
                f'take subset("laplace", {select!r}).'
            )
        raise InputError(f"No dense layer's path matches {select!r}; the last one is '{taps.last.kernel}'.")
    return taps.last
