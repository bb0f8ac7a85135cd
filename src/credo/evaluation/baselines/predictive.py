"""Predictions of models that are no networks, as the same `Predictive` that networks give."""

import math
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from credo.core.batch import pad_rows
from credo.core.mixture import Flat
from credo.core.predictive import Predictive
from credo.likelihoods import bernoulli, categorical, heteroscedastic, heteroscedastic_t, negative_binomial

ROWS = 8192  # of one chunk
LEAST = 1e-6  # a probability


def mixture(means: np.ndarray, scales: np.ndarray, tails: float = math.inf) -> Predictive:
    """(1/K) Σ_k t_ν((y − m_k)/s_k)/s_k at n inputs, from arrays [K, n]; with ν = ∞, as it is usually, normals.

    Example:
        >>> import numpy as np
        >>> predictive = mixture(np.array([[0.0], [2.0]]), np.ones((2, 1)))
        >>> predictive.mean.tolist(), predictive.aleatoric.tolist(), predictive.epistemic.tolist()
        ([1.0], [1.0], [1.0])
    """
    # σ = log(1 + eᵃ) solved for a
    raw = scales + np.log(-np.expm1(-np.maximum(scales, 1e-12)))
    likelihood: Any = heteroscedastic(floor=1e-12) if tails == math.inf else heteroscedastic_t(1e-12, df=tails)
    return _predictive(likelihood, np.stack([means, raw], -1))


def class_probabilities(probs: np.ndarray) -> Predictive:
    """Classes with probabilities [n, C]; none is below 10⁻⁶, so that a class that was never seen costs 14 nats.

    Example:
        >>> import numpy as np
        >>> class_probabilities(np.array([[0.25, 0.75]])).probs.round(4).tolist()
        [[0.25, 0.75]]
    """
    logs = np.log(np.maximum(probs, LEAST))
    if probs.shape[1] == 2:
        return _predictive(bernoulli(), (logs[:, 1:] - logs[:, :1])[None])
    return _predictive(categorical(probs.shape[1]), logs[None])


def counts(means: np.ndarray, dispersion: float) -> Predictive:
    """Counts with means [n] and variances μ + μ²/r.

    Example:
        >>> import numpy as np
        >>> predictive = counts(np.array([2.0]), 4.0)
        >>> predictive.mean.round(4).tolist(), predictive.variance.round(4).tolist()
        ([2.0], [3.0])
    """
    return _predictive(negative_binomial(float(dispersion)), np.log(np.maximum(means, 1e-6))[None, :, None])


def _predictive(likelihood: Any, outputs: np.ndarray) -> Predictive:
    outputs = np.asarray(outputs, np.float32)
    number, rows = outputs.shape[:2]
    weights = jnp.full(number, -np.log(number), jnp.float32)

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for first in range(0, rows, ROWS):
            part = slice(first, min(first + ROWS, rows))
            block = outputs[:, part]
            if rows > ROWS:  # one program for all chunks
                block = pad_rows(block.swapaxes(0, 1), ROWS).swapaxes(0, 1)
            yield part, Flat(jnp.asarray(block), {}, weights)

    return Predictive(likelihood, chunks, rows, flat=True)
