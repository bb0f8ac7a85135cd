"""The probability integral transform: where targets fall in their own predictive distribution."""

from typing import Any

import jax
import numpy as np

from credo.core import mixture
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.evaluation.metrics import arrays
from credo.evaluation.metrics.checks import numbers
from credo.evaluation.metrics.terms import checked_weights


def _chunk(likelihood: Likelihood, draws: Flat, y: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    upto = mixture.cdf(likelihood, draws, y)
    return (mixture.cdf(likelihood, draws, y - 1) if likelihood.kind == "counts" else upto), upto


def _ends(predictive: Predictive, targets: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """F(y⁻) and F(y), in the shape of the targets; the same for real targets."""
    shape = numbers(predictive, targets, name).shape
    low, high = (np.clip(x, 0, 1).astype(np.float64) for x in predictive.by_chunk(_chunk, targets))
    return np.minimum(low, high).reshape(shape), high.reshape(shape)


def pit(predictive: Predictive, targets: Any, key: jax.Array | None = None) -> np.ndarray:
    """F(y) of every target, uniform on [0, 1] where predictions are calibrated (Dawid 1984).

    Counts jump, so F(y) cannot be uniform. With a key, v ~ U(0, 1) gives F(y − 1) + v p(y), which is (Brockwell 2007);
    without, v = ½: its mean is right, its spread too small. `pit_histogram` needs neither.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=100)
        >>> predictive = credo.predict(jax.random.key(1), fit, x)
        >>> bool(np.allclose(credo.metrics.pit(predictive, predictive.quantile(0.2)), 0.2, atol=1e-4))
        True
    """
    low, high = _ends(predictive, targets, "pit")
    share = 0.5 if key is None else np.asarray(jax.random.uniform(key, low.shape), np.float64)
    return low + share * (high - low)


def pit_histogram(predictive: Predictive, targets: Any, weights: Any = None, *, bins: int = 10) -> np.ndarray:
    """The share of PIT values in each of `bins` equal bins; all 1/bins where predictions are calibrated.

    For counts each target is spread evenly over [F(y − 1), F(y)]: the mean over all random PITs, without randomness.
    Czado, Gneiting and Held (2009), Predictive model assessment for count data.
    """
    low, high = _ends(predictive, targets, "pit_histogram")
    with jax.enable_x64(True):
        shares = jax.jit(arrays.pit_shares, static_argnames="bins")
        return np.asarray(shares(low, high, checked_weights(weights, len(low)), bins=bins))
