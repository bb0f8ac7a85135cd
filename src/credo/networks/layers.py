"""Layers as functions of arrays, laid out [channels, height, width, data] with the data axis minor."""

from collections.abc import Callable
from functools import reduce

import jax
import jax.numpy as jnp

from credo.errors import InputError

FEW = 16  # channels below which a convolution is a product with patches on every backend
PATCH_BYTES = 64 * 2**20  # patches of a convolution that may be in memory at once on a CPU
OTHER_BYTES = 2**31  # likewise, on other backends
NARROW = 32  # a row of the window with fewer inputs is too small a product: all rows are then multiplied together
EPSILON = 1e-6


def dense(kernel: jax.Array, bias: jax.Array | None, hidden: jax.Array) -> jax.Array:
    """W h + b for activations h [in, data] and a kernel W [out, in].

    Example:
        >>> import jax.numpy as jnp
        >>> dense(jnp.ones((2, 3)), jnp.ones(2), jnp.ones((3, 5))).shape
        (2, 5)
    """
    product = kernel @ hidden
    return product if bias is None else product + bias[:, None]


def conv(
    kernel: jax.Array, bias: jax.Array | None, hidden: jax.Array, stride: int = 1, padding: str = "SAME"
) -> jax.Array:
    """z[o, y, x] = b[o] + Σ_{i, j, c} K[i, j, c, o] h[c, sy + i − p, sx + j − p], zero outside of the map.

    On a CPU it is a product of the kernel with patches: XLA's own convolution takes several times as long inside of a
    compiled loop, and every fit is one. Other backends do the same for few channels, where libraries of
    convolutions are slow. The bias is a row of the kernel, so that its gradient is a part of the product's. Patches are
    multiplied row by row of the window, or all at once where there are few channels.

    Args:
        kernel: [height, width, in, out].
        bias: [out], or None.
        hidden: [in, height, width, data].
        stride: positions between two windows.
        padding: "SAME" gives ⌈size/stride⌉ positions along each side; "VALID" takes windows inside of the map alone.

    Example:
        >>> import jax.numpy as jnp
        >>> conv(jnp.ones((3, 3, 2, 4)), jnp.zeros(4), jnp.ones((2, 8, 8, 5)), padding="VALID").shape
        (4, 6, 6, 5)
    """
    backend = jax.default_backend()
    if backend != "cpu" and kernel.shape[2] >= FEW:
        numbers = ("CHWN", "HWIO", "CHWN")
        product = jax.lax.conv_general_dilated(hidden, kernel, (stride, stride), padding, dimension_numbers=numbers)
        return product if bias is None else product + bias[:, None, None, None]
    height, width, num_in, num_out = kernel.shape
    if padding == "SAME":
        padding_sizes = [_same_padding(n, k, stride) for n, k in zip(hidden.shape[1:3], (height, width))]
        hidden = jnp.pad(hidden, ((0, 0), *padding_sizes, (0, 0)))
    rows, columns = ((n - k) // stride + 1 for n, k in zip(hidden.shape[1:3], (height, width)))
    offsets = [(i, j) for i in range(height) for j in range(width)]
    flat = kernel.reshape(height * width, num_in, num_out)
    positions = rows * columns * hidden.shape[3]
    sizes = (height * width, width, 1) if width * num_in < NARROW else (width, 1)
    limit = PATCH_BYTES if backend == "cpu" else OTHER_BYTES
    step = next(n for n in sizes if n == 1 or n * num_in * positions * 4 <= limit)

    def group(start: int) -> jax.Array:
        starts = offsets[start : start + step]
        ends = [(i + (rows - 1) * stride + 1, j + (columns - 1) * stride + 1) for i, j in starts]
        parts = [hidden[:, i:m:stride, j:n:stride] for (i, j), (m, n) in zip(starts, ends)]
        weights = [flat[start : start + step].reshape(-1, num_out)]
        if start == 0 and bias is not None:
            parts.append(jnp.ones((1, *parts[0].shape[1:]), hidden.dtype))
            weights.append(bias[None])
        patches = jnp.concatenate(parts) if len(parts) > 1 else parts[0]
        return jnp.concatenate(weights).T @ patches.reshape(len(patches), positions)

    product = reduce(jnp.add, [group(start) for start in range(0, len(offsets), step)])
    return product.reshape(num_out, rows, columns, hidden.shape[3])


def _same_padding(size: int, window: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, as XLA puts them for "SAME"."""
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def max_pool(hidden: jax.Array, window: int = 2) -> jax.Array:
    """The largest value of every square of `window` × `window` positions; a remainder at the ends is dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> max_pool(jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0].tolist()
        [[5.0, 7.0], [13.0, 15.0]]
    """
    # Pairs of slices, because the gradient of `reduce_window` with a maximum is slow on a CPU.
    return _pool(hidden, window, lambda a, b: jnp.where(a >= b, a, b))


def mean_pool(hidden: jax.Array, window: int = 2) -> jax.Array:
    """The mean of every square of `window` × `window` positions; a remainder at the ends is dropped.

    Example:
        >>> import jax.numpy as jnp
        >>> mean_pool(jnp.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0].tolist()
        [[2.5, 4.5], [10.5, 12.5]]
    """
    return _pool(hidden, window, jnp.add) / window**2


def _pool(hidden: jax.Array, window: int, pair: Callable[[jax.Array, jax.Array], jax.Array]) -> jax.Array:
    rows, columns = (n // window * window for n in hidden.shape[1:3])
    merged = reduce(pair, [hidden[:, i:rows:window] for i in range(window)])
    return reduce(pair, [merged[:, :, j:columns:window] for j in range(window)])


def global_mean(hidden: jax.Array) -> jax.Array:
    """The mean over all positions [channels, data].

    Example:
        >>> import jax.numpy as jnp
        >>> global_mean(jnp.ones((3, 4, 4, 5))).shape
        (3, 5)
    """
    return hidden.mean((1, 2))


def flatten(hidden: jax.Array) -> jax.Array:
    """All numbers of an example [height · width · channels, data], channels fastest.

    Example:
        >>> import jax.numpy as jnp
        >>> flatten(jnp.ones((3, 4, 4, 5))).shape
        (48, 5)
    """
    return hidden.transpose(1, 2, 0, 3).reshape(-1, hidden.shape[3])


def group_norm(scale: jax.Array, bias: jax.Array, hidden: jax.Array, groups: int) -> jax.Array:
    """γ (h − μ)/√(σ² + ε) + β with mean and variance over the positions and channels of a group, for every example.

    Wu and He (2018), Group normalization. Examples do not see each other, so the network stays a function of one row.

    Example:
        >>> import jax.numpy as jnp
        >>> group_norm(jnp.ones(4), jnp.zeros(4), jnp.ones((4, 2, 2, 5)), groups=2).shape
        (4, 2, 2, 5)
    """
    parts = hidden.reshape(groups, hidden.shape[0] // groups, *hidden.shape[1:])
    parts = parts - parts.mean((1, 2, 3), keepdims=True)
    parts = parts * jax.lax.rsqrt((parts**2).mean((1, 2, 3), keepdims=True) + EPSILON)
    return _along(scale, hidden) * parts.reshape(hidden.shape) + _along(bias, hidden)


def filter_response_norm(scale: jax.Array, bias: jax.Array, hidden: jax.Array) -> jax.Array:
    """γ h/√(ν² + ε) + β with ν² the mean square over the positions of one channel of one example.

    Singh and Krishnan (2020), Filter response normalization layer: eliminating batch dependence.

    Example:
        >>> import jax.numpy as jnp
        >>> round(float(filter_response_norm(jnp.ones(1), jnp.zeros(1), jnp.full((1, 2, 2, 1), 3.0))[0, 0, 0, 0]), 5)
        1.0
    """
    if hidden.shape[1] * hidden.shape[2] == 1:
        raise InputError(
            "Filter-response normalisation of a map of one place leaves only signs: give larger images or take "
            'normalisation="group".'
        )
    mean_square = (hidden**2).mean((1, 2), keepdims=True)
    return _along(scale, hidden) * (hidden * jax.lax.rsqrt(mean_square + EPSILON)) + _along(bias, hidden)


def thresholded(threshold: jax.Array, hidden: jax.Array) -> jax.Array:
    """max(h, τ) with a threshold for every channel, the unit that goes with filter-response normalisation.

    Example:
        >>> import jax.numpy as jnp
        >>> thresholded(jnp.array([-1.0]), jnp.array([[[[-2.0, 3.0]]]])).tolist()
        [[[[-1.0, 3.0]]]]
    """
    return jnp.maximum(hidden, _along(threshold, hidden))


def _along(vector: jax.Array, hidden: jax.Array) -> jax.Array:
    """A number for each channel, broadcast over the data by a product, whose gradient is a product, too: XLA on a CPU
    sums over the minor axis one number at a time."""
    ones = jnp.ones((1, hidden.shape[3]), hidden.dtype)
    return (vector[:, None] @ ones)[:, None, None]
