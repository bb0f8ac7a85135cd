"""Values of the objective as a surrogate sees them."""

import numpy as np

FENCE = 3.0  # interquartile ranges below the lower quartile: worse gains count as if they lay there


def standardised(gains: np.ndarray) -> tuple[np.ndarray, float, float]:
    """(gains − shift) / scale with mean 0 and variance 1, and shift and scale.

    Where the objective is very bad does not matter, but would rule the scale: gains far below the rest (Tukey's outer
    fence) are lifted to the fence first. Good ones are left as they are.
    """
    values = np.asarray(gains, np.float64)
    low, high = np.quantile(values, [0.25, 0.75])
    if high > low:
        values = np.maximum(values, low - FENCE * (high - low))
    shift, scale = float(values.mean()), float(values.std())
    # All alike to rounding: there is nothing to scale by.
    scale = scale if scale > 1e-12 * max(1.0, abs(shift)) else 1.0
    return (values - shift) / scale, shift, scale


def room(num: int) -> int:
    """Rows to make room for: a power of 2, so that surrogates of a growing history share a few programs."""
    return max(32, 1 << max(0, num - 1).bit_length())
