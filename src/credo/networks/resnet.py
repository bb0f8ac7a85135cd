"""Residual networks for small images."""

import jax
import jax.numpy as jnp

from credo.core.tree import struct
from credo.errors import InputError
from credo.networks import layers
from credo.networks.layered import Images, check_options
from credo.networks.passes import Plain


@struct
class ResNet(Images):
    """h ↦ ψ(h + norm(conv(ψ(norm(conv(h)))))) in three stages of n = (depth − 2)/6 blocks; see `resnet20`."""

    depth: int = 20
    width: int = 16
    normalisation: str = "frn"
    activation: str = "relu"
    dropout: float = 0.0
    dtype: str = "float32"

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of its dropout layers."""
        return (self.dropout,) * (self.depth // 2 - 1) if self.dropout else ()

    def _layers(self, run: Plain, hidden: jax.Array) -> jax.Array:
        hidden = self._conv(run, "stem_conv", hidden, self.width, 3, bias=False)
        hidden = self._norm(run, "stem_norm", hidden, self.normalisation)
        for i in range(self.depth // 2 - 1):
            stage, index = divmod(i, (self.depth - 2) // 6)
            hidden = self._block(run, f"block_{i}", hidden, self.width * 2**stage, 2 if stage and not index else 1)
        return self._dense(run, "output", layers.global_mean(hidden))

    def _block(self, run: Plain, name: str, hidden: jax.Array, width: int, stride: int) -> jax.Array:
        inner = self._conv(run, f"{name}_conv_0", hidden, width, 3, stride, bias=False)
        inner = run.mask(self._norm(run, f"{name}_norm_0", inner, self.normalisation))
        inner = self._conv(run, f"{name}_conv_1", inner, width, 3, bias=False)
        # Where the size changes, the shortcut takes every other position, and zeros for the new channels: no weights.
        short = jnp.pad(hidden[:, ::stride, ::stride], ((0, width - len(hidden)), (0, 0), (0, 0), (0, 0)))
        return self._norm(run, f"{name}_norm_1", inner, self.normalisation, plus=short)


def resnet20(
    depth: int = 20, width: int = 16, normalisation: str = "frn", activation: str = "relu", dropout: float = 0.0
) -> ResNet:
    """The residual network of CIFAR: 19 convolutions in three stages and one dense layer, 0.27 million weights.

    He et al. (2016), Deep residual learning for image recognition, section 4.2, with shortcuts that have no weights.
    Normalised within each example, so that a weight posterior is one over functions of a row: batch statistics would
    make every row depend on the others. Inputs are [n, height, width, channels] or [n, height, width].

    Args:
        depth: 6n + 2 layers: 8, 14, 20, 26, 32, …
        width: channels of the first stage; the others have twice and four times as many.
        normalisation: "frn" (Singh and Krishnan, 2020), with a learned threshold in place of relu, or, for any other
            activation, that activation itself (Izmailov et al., 2021, take "silu"); or "group" (Wu and He, 2018).
        activation: "relu", "tanh", "erf", "silu" or "logistic".
        dropout: share of the channels that are masked, row by row, between the two convolutions of a block.

    Example:
        >>> import jax, jax.numpy as jnp, credo
        >>> network = credo.networks.resnet20(normalisation="group")
        >>> variables = network.init(jax.random.key(0), jnp.ones((1, 32, 32, 3)), 10)
        >>> credo.core.tree.size(variables.params)
        269722
    """
    check_options(activation, dropout, {"depth and width": [depth, width]})
    if depth < 8 or (depth - 2) % 6:
        raise InputError(f"The depth of a residual network is 6n + 2: 8, 14, 20, 26, 32 and so on, got {depth}.")
    if normalisation not in ("frn", "group"):
        raise InputError(f'normalisation must be "frn" or "group", got {normalisation!r}.')
    return ResNet(int(depth), int(width), normalisation, activation, float(dropout))
