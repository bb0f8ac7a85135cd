"""Recurrent networks: a cell over a sequence, and a dense layer on its last state."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.network import Variables
from credo.core.short import is_array
from credo.core.tree import struct
from credo.errors import InputError
from credo.networks import layers
from credo.networks.layered import Layered, check_options
from credo.networks.passes import Plain


@struct
class Recurrent(Layered):
    """f(x) = W h_T + b with h_t = cell(h_{t−1}, x_t); see `lstm` and `gru`.

    Kernels are [out, in] with the gates one below the other: input, forget, cell and output of an LSTM, reset and
    update of a GRU, whose candidate has kernels of its own.
    """

    cell: str = "lstm"
    width: int = 64
    num_layers: int = 1
    dropout: float = 0.0
    dtype: str = "float32"

    activation = "tanh"

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return (self.dropout,) * self.num_layers if self.dropout else ()

    def init(self, key: jax.Array, inputs: jax.Array, num_outputs: int) -> Variables:
        """Kernels N(0, 1/fan_in); biases 0, but 1 at the forget gates of an LSTM (Jozefowicz et al., 2015)."""
        params, state = super().init(key, inputs, num_outputs)
        if self.cell == "lstm":
            for i in range(self.num_layers):
                layer = params[f"lstm_{i}_input"]
                layer["bias"] = layer["bias"].at[self.width : 2 * self.width].set(1.0)
        return Variables(params, state)

    def _hidden(self, inputs: Any) -> jax.Array:
        shape = inputs.shape if is_array(inputs) else None
        if shape is None or len(shape) not in (2, 3):
            raise InputError(
                "Recurrent networks take inputs [n, time, features] or [n, time], got "
                f"{type(inputs).__name__ if shape is None else tuple(shape)}: reshape them."
            )
        rows = inputs[..., None] if len(shape) == 2 else inputs
        return rows.transpose(2, 1, 0)

    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array:
        read = self._lstm if self.cell == "lstm" else self._gru
        for i in range(self.num_layers):
            hidden = run.mask(read(run, f"{self.cell}_{i}", hidden))  # one mask for all times
        return self._dense(run, "output", hidden[:, -1])

    def _lstm(self, run: Plain, name: str, hidden: jax.Array) -> jax.Array:
        """States [width, time, data] for inputs [features, time, data]."""
        shape = (4 * self.width, self.width)
        projected = run.linear(f"{name}_input", hidden, (4 * self.width, len(hidden)), _over_time)

        def step(carry: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
            state, memory = carry
            gates = x + run.linear(f"{name}_state", state, shape, layers.dense, bias=False)
            input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4)
            memory = jax.nn.sigmoid(forget_gate) * memory + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
            state = jax.nn.sigmoid(output_gate) * jnp.tanh(memory)
            return (state, memory), state

        start = jnp.zeros((self.width, projected.shape[2]), projected.dtype)
        return _scan(step, (start, start), projected)

    def _gru(self, run: Plain, name: str, hidden: jax.Array) -> jax.Array:
        """States [width, time, data] for inputs [features, time, data]."""
        shape = (2 * self.width, self.width)
        projected = run.linear(f"{name}_input", hidden, (3 * self.width, len(hidden)), _over_time)

        def step(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            gates, candidate = jnp.split(x, [2 * self.width])
            gates = gates + run.linear(f"{name}_state", state, shape, layers.dense, bias=False)
            reset, update = jnp.split(jax.nn.sigmoid(gates), 2)
            memory = run.linear(f"{name}_candidate", state, (self.width, self.width), layers.dense)
            state = update * state + (1 - update) * jnp.tanh(candidate + reset * memory)
            return state, state

        return _scan(step, jnp.zeros((self.width, projected.shape[2]), projected.dtype), projected)


def _over_time(kernel: jax.Array, bias: jax.Array | None, hidden: jax.Array) -> jax.Array:
    """A dense layer at every time of [features, time, data]."""
    flat = layers.dense(kernel, bias, hidden.reshape(len(hidden), -1))
    return flat.reshape(-1, *hidden.shape[1:])


def _scan(step: Any, start: Any, inputs: jax.Array) -> jax.Array:
    states = jax.lax.scan(step, start, inputs.transpose(1, 0, 2))[1]
    return states.transpose(1, 0, 2)


def lstm(width: int = 64, layers: int = 1, dropout: float = 0.0) -> Recurrent:
    """A long short-term memory on sequences [n, time, features] or [n, time], and a dense layer on its last state.

    c_t = σ(f_t) c_{t−1} + σ(i_t) tanh(g_t), h_t = σ(o_t) tanh(c_t), with (i, f, g, o)_t = W x_t + U h_{t−1} + b.
    Hochreiter and Schmidhuber (1997), Long short-term memory.

    Args:
        width: units of the state.
        layers: how many are stacked; each reads the states of the one before.
        dropout: share of the units of a state that are masked on the way to the next layer, row by row and alike at all
            times (Gal and Ghahramani, 2016), in training; `mc_dropout` also predicts with masks.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.lstm(8)
        >>> series = jnp.ones((3, 20, 2))
        >>> network.apply(network.init(jax.random.key(0), series, 1), series)[0].shape
        (3, 1)
    """
    return _build("lstm", width, layers, dropout)


def gru(width: int = 64, layers: int = 1, dropout: float = 0.0) -> Recurrent:
    """A gated recurrent unit on sequences [n, time, features] or [n, time], and a dense layer on its last state.

    h_t = z_t h_{t−1} + (1 − z_t) tanh(W x_t + b + r_t (U h_{t−1} + c)), with reset r and update z the sigmoids of
    layers of x_t and h_{t−1}. Cho et al. (2014), Learning phrase representations using RNN encoder-decoder.

    Args:
        width: units of the state.
        layers: how many are stacked; each reads the states of the one before.
        dropout: share of the units of a state that are masked on the way to the next layer; as in `lstm`.

    Example:
        >>> import credo
        >>> credo.networks.gru(8, layers=2).num_layers
        2
    """
    return _build("gru", width, layers, dropout)


def _build(cell: str, width: int, count: int, dropout: float) -> Recurrent:
    check_options("tanh", dropout, {"width and layers": [width, count]})
    return Recurrent(cell, int(width), int(count), float(dropout))
