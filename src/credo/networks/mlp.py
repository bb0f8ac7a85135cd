"""The multilayer perceptron, laid out hidden × data with the data axis minor."""

import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from credo.core.checks import list_of, one_of, whole_number
from credo.core.network import ParamInfo, Variables
from credo.core.nodes import Nodes
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.errors import InputError

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": lambda x: jnp.maximum(x, 0),  # jax.nn.relu is a jitted custom_jvp: same values, slower to trace
    "tanh": jnp.tanh,
    "erf": jax.lax.erf,
    "silu": lambda x: x * jax.nn.sigmoid(x),
    "logistic": jax.nn.sigmoid,
}


MOST_WIDTH, MOST_WEIGHTS = 10**6, 2**31


def check_widths(widths: Sequence[int]) -> None:
    """Raise `InputError` where layers are so wide that no machine computes with them: that would end the process."""
    pairs = itertools.pairwise(widths)
    if any(width > MOST_WIDTH for width in widths) or any(a * b >= MOST_WEIGHTS for a, b in pairs):
        raise InputError(
            f"Hidden layers have at most {MOST_WIDTH:,} units and fewer than {MOST_WEIGHTS:,} weights between two of "
            f"them, got {list(widths)}."
        )


def dense(kernel: jax.Array, bias: jax.Array, hidden: jax.Array) -> jax.Array:
    """W h + b for activations h [in, data], written so that the gradient of b is a matrix product.

    As a sum over the data axis that gradient alone took half the time of a full-batch step: XLA on a CPU adds along
    the minor axis one number at a time. Folding b into W is fastest while h is small enough to copy.
    """
    ones = jnp.ones((1, hidden.shape[1]), hidden.dtype)
    if hidden.shape[0] <= 32:
        return jnp.concatenate([kernel, bias[:, None]], axis=1) @ jnp.concatenate([hidden, ones])
    if hidden.shape[1] >= 256:
        return kernel @ hidden + bias[:, None] @ ones
    return kernel @ hidden + bias[:, None]


@struct
class MLP:
    """f(x) = W_L ψ(… ψ(W_1 x + b_1) …) + b_L with kernels stored [out, in].

    Activations are kept as [hidden, data]: for skinny nets the matrix product then runs over the long, contiguous
    data axis, which measured about twice the speed of the [data, hidden] layout on a CPU.
    """

    widths: tuple[int, ...]
    activation: str = "relu"
    dtype: str = "float32"
    dropout: float = 0.0  # share of hidden units that are masked when training with a key

    pretrained = False

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return (self.dropout,) * len(self.widths) if self.dropout else ()

    def layers(self) -> list[str]:
        """Layer names from input to output."""
        return [f"hidden_{i}" for i in range(len(self.widths))] + ["output"]

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """Kernels N(0, g/fan_in) with g = 2 for relu and 1 otherwise; biases 0."""
        sizes = [inputs.shape[-1], *self.widths, num_outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        params = {}
        for i, name in enumerate(self.layers()):
            gain = 2.0 if self.activation in ("relu", "silu") and name != "output" else 1.0
            scale = (gain / sizes[i]) ** 0.5
            kernel = scale * jax.random.normal(keys[i], (sizes[i + 1], sizes[i]), self.dtype)
            params[name] = {"kernel": kernel, "bias": jnp.zeros(sizes[i + 1], self.dtype)}
        return Variables(params, {})

    def apply(
        self, variables: Variables, inputs: jax.Array, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[jax.Array, PyTree]:
        """Outputs [n, num_outputs]; in training with a key, hidden units are masked row by row at the dropout rate."""
        masked = train and key is not None and self.dropout > 0
        return self._forward(variables.params, inputs, key if masked else None, rows=True), variables.state

    def apply_masked(self, variables: Variables, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs under one draw of the masks on hidden units, the same for every row."""
        return self._forward(variables.params, inputs, key if self.dropout > 0 else None, rows=False)

    def _forward(self, params: PyTree, inputs: jax.Array, key: jax.Array | None, rows: bool) -> jax.Array:
        def layer(i: int, name: str, hidden: jax.Array) -> jax.Array:
            if key is not None and i > 0:
                shape = hidden.shape if rows else (hidden.shape[0], 1)
                keep = jax.random.bernoulli(jax.random.fold_in(key, i - 1), 1 - self.dropout, shape)
                hidden = jnp.where(keep, hidden / (1 - self.dropout), 0)
            return dense(params[name]["kernel"], params[name]["bias"], hidden)

        return self._run(inputs, layer)

    def _run(self, inputs: jax.Array, layer: Callable[[int, str, jax.Array], jax.Array]) -> jax.Array:
        """Outputs [n, num_outputs] of `layer(i, name, hidden)` for every layer, with activations between them."""
        hidden = inputs.reshape(-1, inputs.shape[-1]).T
        for i, name in enumerate(self.layers()):
            hidden = layer(i, name, ACTIVATIONS[self.activation](hidden) if i > 0 else hidden)
        return hidden.T

    def nodes(self) -> Nodes | None:
        """How the parameters make a sum of nodes; None with more than one hidden layer, or with masks."""
        if len(self.widths) > 1 or self.dropout:
            return None
        if not self.widths:
            return Nodes(0, ACTIVATIONS[self.activation], None, None, "output", "output")
        return Nodes(self.widths[0], ACTIVATIONS[self.activation], "hidden_0", "output", "output", None)

    def fully_connected(self) -> tuple[str, list[str]] | None:
        """Its activation and layers, for limits of infinite width; None with masks."""
        return None if self.dropout else (self.activation, self.layers())

    def dense_layers(self) -> list[tuple[str, str, bool]]:
        """Kernel, bias and whether the kernel is [out, in], of every layer in order."""
        return [(f"{name}/kernel", f"{name}/bias", True) for name in self.layers()]

    def apply_tapped(self, params: PyTree, inputs: jax.Array, shifts: PyTree) -> tuple[jax.Array, PyTree]:
        """Outputs with `shifts` [n, width] added before each activation, and the inputs [n, in] of every layer, both by
        the paths of kernels."""
        layer_inputs = {}

        def layer(i: int, name: str, hidden: jax.Array) -> jax.Array:
            path = f"{name}/kernel"
            layer_inputs[path] = hidden.T
            hidden = dense(params[name]["kernel"], params[name]["bias"], hidden)
            return hidden + shifts[path].T if path in shifts else hidden

        return self._run(inputs, layer), {path: layer_inputs[path] for path in shifts}

    def apply_local(self, mean: PyTree, std: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with every pre-activation drawn from its own Gaussian (the local reparameterisation).

        For W ~ N(M, S²) the entries of Wh + b are N(Mh + m_b, S²h² + s_b²), independent for each row.
        """
        keys = jax.random.split(key, len(self.layers()))

        def layer(i: int, name: str, hidden: jax.Array) -> jax.Array:
            m, s = mean[name], std[name]
            centre = m["kernel"] @ hidden + m["bias"][:, None]
            variance = s["kernel"] ** 2 @ hidden**2 + (s["bias"] ** 2)[:, None]
            return centre + jnp.sqrt(variance) * jax.random.normal(keys[i], centre.shape, centre.dtype)

        return self._run(inputs, layer)

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: jax.Array, key: jax.Array) -> jax.Array:
        """Outputs with the one perturbation Δ of all weights given other signs for every row (flipout).

        (M + Δ ∘ sr')h = Mh + s ∘ Δ(r ∘ h) with signs r, s of every row and layer: the same distribution for each row
        where Δ is symmetric and independent, and perturbations of two rows are uncorrelated.
        """
        keys = jax.random.split(key, len(self.layers()))

        def layer(i: int, name: str, hidden: jax.Array) -> jax.Array:
            m, d = mean[name], moved[name]
            shape = (len(m["bias"]) + len(hidden), hidden.shape[1])
            signs = jax.random.rademacher(keys[i], shape, hidden.dtype)
            out, into = signs[: len(m["bias"])], signs[len(m["bias"]) :]
            return dense(m["kernel"], m["bias"], hidden) + out * dense(d["kernel"], d["bias"], into * hidden)

        return self._run(inputs, layer)

    def info(self, params: PyTree) -> PyTree:
        """Kernels are [out, in]; a bias has its layer's fan-in."""

        def one(path: str, kind: str, layer: dict[str, jax.Array]) -> ParamInfo:
            fan_out, fan_in = layer["kernel"].shape
            axis = 1 if kind == "kernel" else None
            return ParamInfo(f"{path}/{kind}", kind, fan_in, fan_out, tuple(layer[kind].shape), axis)

        return {name: {kind: one(name, kind, layer) for kind in layer} for name, layer in params.items()}


def mlp(widths: Sequence[int] = (50,), activation: str = "relu", dropout: float = 0.0) -> MLP:
    """A multilayer perceptron; input size comes from the data, output size from the likelihood.

    Args:
        widths: hidden units of each hidden layer; an empty list is a linear model.
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        dropout: share of hidden units that are masked, row by row, in training; `mc_dropout` also predicts with masks.

    Example:
        >>> import credo
        >>> credo.networks.mlp([50, 50], activation="tanh").widths
        (50, 50)
    """
    one_of(activation, ACTIVATIONS, "activation")
    widths = [whole_number(w, "Hidden widths", most=MOST_WIDTH) for w in list_of(widths, "widths")]
    check_widths(widths)
    if not 0 <= dropout < 1:
        raise InputError(f"The dropout rate lies in [0, 1), got {dropout}.")
    return MLP(tuple(widths), activation, dropout=float(dropout))
