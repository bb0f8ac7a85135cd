"""Networks of convolutions and pooling: LeNet-5 and a small VGG."""

from collections.abc import Sequence

import jax

from credo.core.tree import struct
from credo.errors import InputError
from credo.networks import layers
from credo.networks.layered import NORMS, Images, check_options
from credo.networks.passes import Plain

POOLS = {"max": layers.max_pool, "mean": layers.mean_pool}
MASKED = ("dense", "convolutions", "all")


@struct
class LeNet(Images):
    """Convolutions with pooling, then dense layers; see `lenet`."""

    channels: tuple[int, ...] = (6, 16)
    widths: tuple[int, ...] = (120, 84)
    activation: str = "relu"
    dropout: float = 0.0
    masked: str = "dense"
    window: int = 5
    pool: str = "max"
    dtype: str = "float32"

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return _rates(self.dropout, self.masked, len(self.channels), len(self.widths))

    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array:
        for i, width in enumerate(self.channels):
            hidden = self._conv(run, f"conv_{i}", hidden, width, self.window, padding="VALID" if i else "SAME")
            hidden = _pooled(self._active(hidden), self.pool)
            if self.masked != "dense":
                # A dense layer has other weights for every position, hence other masks, too.
                hidden = run.mask(hidden if i < len(self.channels) - 1 else layers.flatten(hidden))
        return _dense_layers(self, run, hidden)


@struct
class VGG(Images):
    """Blocks of convolutions, each with pooling at its end, then dense layers; see `vgg`."""

    blocks: tuple[tuple[int, ...], ...] = ((32, 32), (64, 64), (128, 128))
    widths: tuple[int, ...] = (128,)
    normalisation: str | None = "group"
    activation: str = "relu"
    dropout: float = 0.0
    masked: str = "dense"
    dtype: str = "float32"

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return _rates(self.dropout, self.masked, len(self.blocks), len(self.widths))

    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array:
        for i, block in enumerate(self.blocks):
            for j, width in enumerate(block):
                plain = self.normalisation is None
                hidden = self._conv(run, f"conv_{i}_{j}", hidden, width, 3, bias=plain)
                hidden = self._norm(run, f"norm_{i}_{j}", hidden, self.normalisation)
            hidden = _pooled(hidden, "max")
            if self.masked != "dense":
                hidden = run.mask(hidden if i < len(self.blocks) - 1 else layers.flatten(hidden))
        return _dense_layers(self, run, hidden)


def _rates(rate: float, masked: str, convolutions: int, dense: int) -> tuple[float, ...]:
    count = convolutions * (masked != "dense") + dense * (masked != "convolutions")
    return (rate,) * count if rate else ()


def _pooled(hidden: jax.Array, kind: str) -> jax.Array:
    if min(hidden.shape[1:3]) < 2:
        raise InputError(
            f"Nothing is left to pool in a map of {hidden.shape[1]} × {hidden.shape[2]}: give larger images, a smaller "
            "window or fewer convolutions."
        )
    return POOLS[kind](hidden)


def _dense_layers(network: LeNet | VGG, run: Plain, hidden: jax.Array) -> jax.Array:
    hidden = layers.flatten(hidden) if hidden.ndim == 4 else hidden
    for i, width in enumerate(network.widths):
        hidden = network._active(network._dense(run, f"hidden_{i}", hidden, width))
        if network.masked != "convolutions":
            hidden = run.mask(hidden)
    return network._dense(run, "output", hidden)


def lenet(
    channels: Sequence[int] = (6, 16), widths: Sequence[int] = (120, 84), activation: str = "relu",
    dropout: float = 0.0, masked: str = "dense", window: int = 5, pool: str = "max",
) -> LeNet:  # fmt: skip
    """LeNet-5: two convolutions with pooling and two dense layers, 61,706 weights on 28 × 28 pixels and 10 classes.

    LeCun et al. (1998), Gradient-based learning applied to document recognition; with relu and the largest value of
    each square where the original has a sigmoid and the mean. Inputs are [n, height, width, channels] or
    [n, height, width]. The first convolution keeps the size of the image, others take whole windows alone.

    Args:
        channels: of each convolution.
        widths: hidden units of each dense layer.
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        dropout: share that is masked, row by row, in training; `mc_dropout` also predicts with masks.
        masked: what dropout masks: units after "dense" layers, channels after "convolutions", or "all".
        window: height and width of the convolutions.
        pool: "max" or "mean" of squares of 2 × 2.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.lenet(activation="tanh")
        >>> variables = network.init(jax.random.key(0), jnp.ones((1, 28, 28)), 10)
        >>> credo.core.tree.size(variables.params)
        61706
    """
    check_options(activation, dropout, {"channels": channels, "widths": widths, "window": [window]})
    _check_choice("masked", masked, MASKED)
    _check_choice("pool", pool, tuple(POOLS))
    if not channels:
        raise InputError("LeNet has at least one convolution; take networks.mlp for none.")
    sizes = tuple(map(int, channels)), tuple(map(int, widths))
    return LeNet(*sizes, activation, float(dropout), masked, int(window), pool)


def vgg(
    blocks: Sequence[Sequence[int]] = ((32, 32), (64, 64), (128, 128)), widths: Sequence[int] = (128,),
    normalisation: str | None = "group", activation: str = "relu", dropout: float = 0.0, masked: str = "dense",
) -> VGG:  # fmt: skip
    """A small VGG: blocks of 3 × 3 convolutions with pooling at the end of each, then dense layers.

    Simonyan and Zisserman (2015), Very deep convolutional networks for large-scale image recognition; normalised
    within each example, so that no row depends on another.

    Args:
        blocks: channels of the convolutions of every block.
        widths: hidden units of each dense layer.
        normalisation: "group" (Wu and He, 2018), "frn" (Singh and Krishnan, 2020; with relu also a learned threshold in
            its place) or None.
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        dropout: share that is masked, row by row, in training; `mc_dropout` also predicts with masks.
        masked: what dropout masks: units after "dense" layers, channels after the blocks ("convolutions"), or "all".

    Example:
        >>> import credo
        >>> credo.networks.vgg([(8, 8), (16,)], normalisation="frn").blocks
        ((8, 8), (16,))
    """
    channels = [list(block) for block in blocks]
    check_options(activation, dropout, {"Channels": [n for block in channels for n in block], "widths": widths})
    _check_choice("masked", masked, MASKED)
    _check_choice("normalisation", normalisation, NORMS)
    if not all(channels) or not channels:
        raise InputError("Every block has at least one convolution, such as blocks=[(32, 32), (64, 64)].")
    sizes = tuple(tuple(map(int, block)) for block in channels), tuple(map(int, widths))
    return VGG(*sizes, normalisation, activation, float(dropout), masked)


def _check_choice(name: str, value: str | None, choices: Sequence[str | None]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")
