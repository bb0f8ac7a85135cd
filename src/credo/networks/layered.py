"""What built-in networks share: parameters, masks and estimators from one description of the layers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.checks import one_of
from credo.core.network import ParamInfo, Variables
from credo.core.short import is_array
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.networks import layers
from credo.networks.mlp import ACTIVATIONS
from credo.networks.passes import OUTPUTS, Flipout, Local, Plain, Recorder

GROUPS = 8  # of group normalisation; fewer where they do not divide the channels
NORMS = (None, "group", "frn")


class Layered(ABC):
    """A network defined once, for all passes: `_hidden` turns inputs into an array with the data axis last, and
    `_layers(run, hidden)` turns that into outputs [out, data]."""

    activation: str
    dropout: float
    dtype: str
    pretrained = False

    @abstractmethod
    def _hidden(self, inputs: Any) -> jax.Array: ...

    @abstractmethod
    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array: ...

    def _run(self, run: Plain, inputs: Any) -> jax.Array:
        hidden = self._hidden(inputs)
        if not jnp.issubdtype(hidden.dtype, jnp.inexact):
            hidden = hidden.astype(self.dtype)
        return self._layers(run, hidden).T

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """Kernels N(0, g/fan_in) with g = 2 for relu and silu and 1 otherwise; biases 0, gains 1."""
        recorder = Recorder(num_outputs)
        jax.eval_shape(partial(self._run, recorder), inputs)
        params: dict[str, dict[str, jax.Array]] = {}
        keys = jax.random.split(key, len(recorder.kernels))
        for key_layer, (name, (shape, bias)) in zip(keys, recorder.kernels.items()):
            gain = 2.0 if self.activation in ("relu", "silu") and name != "output" else 1.0
            scale = (gain / fans(shape)[0]) ** 0.5
            params[name] = {"kernel": scale * jax.random.normal(key_layer, shape, self.dtype)}
            if bias is not None:
                params[name]["bias"] = jnp.zeros(bias, self.dtype)
        for name, (starts, width) in recorder.starts.items():
            params[name] = {field: jnp.full(width, value, self.dtype) for field, value in starts.items()}
        return Variables(params, {})

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs]; in training with a key, units are masked row by row at the dropout rate."""
        run = Plain(variables.params, key if train else None, self.dropout)
        return self._run(run, inputs), variables.state

    def apply_masked(self, variables: Variables, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the masks, the same for every row."""
        return self._run(Plain(variables.params, key, self.dropout, rows=False), inputs)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with other signs of the one perturbation for every row (flipout); exact, see `passes.Flipout`."""
        return self._run(Flipout(mean, moved, key), inputs)

    def info(self, params: PyTree) -> PyTree:
        """Dense kernels are [out, in], those of convolutions [height, width, in, out]; a bias has its layer's fans."""

        def one(name: str, field: str, layer: dict[str, jax.Array]) -> ParamInfo:
            path, shape = f"{name}/{field}", tuple(layer[field].shape)
            if "kernel" not in layer:
                return ParamInfo(path, field if field in ("scale", "bias") else "other", None, None, shape)
            kernel = layer["kernel"].shape
            axis = 1 if len(kernel) == 2 else 2
            return ParamInfo(path, field, *fans(kernel), shape, axis if field == "kernel" else None)

        return {name: {field: one(name, field, layer) for field in layer} for name, layer in params.items()}

    def _dense(self, run: Plain, name: str, hidden: jax.Array, width: int = OUTPUTS) -> jax.Array:
        return run.linear(name, hidden, (width, hidden.shape[0]), layers.dense)


class Images(Layered):
    """A network of images [n, height, width, channels], which it keeps as [channels, height, width, data]."""

    def _hidden(self, inputs: Any) -> jax.Array:
        return as_images(inputs).transpose(3, 1, 2, 0)

    def apply_local(self, mean: PyTree, std: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with every pre-activation drawn from its own Gaussian (the local reparameterisation).

        Exact for dense layers. Positions of a convolution's map share its weights but are drawn independently: each has
        its exact distribution, jointly they are an approximation, and so is the bound; see `passes.Local`.
        """
        return self._run(Local(mean, std, key), inputs)

    def _conv(
        self, run: Plain, name: str, hidden: jax.Array, width: int, window: int, stride: int = 1,
        padding: str = "SAME", bias: bool = True,
    ) -> jax.Array:  # fmt: skip
        if padding == "VALID" and min(hidden.shape[1:3]) < window:
            raise InputError(
                f"A map of {hidden.shape[1]} × {hidden.shape[2]} is smaller than a window of {window} × {window}: "
                "give larger images or a smaller window."
            )
        product = partial(layers.conv, stride=stride, padding=padding)
        return run.linear(name, hidden, (window, window, hidden.shape[0], width), product, bias)

    def _active(self, hidden: jax.Array) -> jax.Array:
        return ACTIVATIONS[self.activation](hidden)

    def _norm(self, run: Plain, name: str, hidden: jax.Array, kind: str | None, plus: Any = 0.0) -> jax.Array:
        """ψ(norm(h) + plus). With "frn" and relu, ψ has a threshold of its own for each channel in place of 0."""
        if kind is None:
            return self._active(hidden + plus)
        width = len(hidden)
        if kind == "group":
            vectors = run.vectors(name, {"scale": 1.0, "bias": 0.0}, width)
            normalised = layers.group_norm(vectors["scale"], vectors["bias"], hidden, math.gcd(GROUPS, width))
            return self._active(normalised + plus)
        ends = {"threshold": 0.0} if self.activation == "relu" else {}
        vectors = run.vectors(name, {"scale": 1.0, "bias": 0.0, **ends}, width)
        normalised = layers.filter_response_norm(vectors["scale"], vectors["bias"], hidden) + plus
        return layers.thresholded(vectors["threshold"], normalised) if ends else self._active(normalised)


def as_images(inputs: Any) -> jax.Array:
    """Inputs as [n, height, width, channels]; a channel is added to [n, height, width].

    Example:
        >>> import jax.numpy as jnp
        >>> as_images(jnp.ones((5, 8, 8))).shape
        (5, 8, 8, 1)
    """
    shape = inputs.shape if is_array(inputs) else None
    if shape is None or len(shape) not in (3, 4):
        raise InputError(
            f"Networks of images take inputs [n, height, width, channels] or [n, height, width], got "
            f"{type(inputs).__name__ if shape is None else tuple(shape)}: reshape them."
        )
    return inputs[..., None] if len(shape) == 3 else inputs


def fans(kernel: Sequence[int]) -> tuple[int, int]:
    """Fan-in and fan-out of a kernel [out, in] or [height, width, in, out].

    Example:
        >>> fans((5, 5, 6, 16)), fans((10, 84))
        ((150, 400), (84, 10))
    """
    if len(kernel) == 2:
        return kernel[1], kernel[0]
    window = kernel[0] * kernel[1]
    return window * kernel[2], window * kernel[3]


def check_options(activation: str, dropout: float, sizes: dict[str, Sequence[int]]) -> None:
    """Raise where options of a network make no sense.

    Example:
        >>> check_options("relu", 0.1, {"widths": (8, 4)})
    """
    one_of(activation, ACTIVATIONS, "activation")
    if not 0 <= dropout < 1:
        raise InputError(f"The dropout rate lies in [0, 1), got {dropout}.")
    for name, values in sizes.items():
        if any(int(v) != v or v < 1 for v in values):
            raise InputError(f"{name} must be whole numbers of at least 1, got {list(values)}.")
