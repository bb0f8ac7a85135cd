"""Do class probabilities hold? Calibration errors in bins, and the Brier score with its parts.

Arguments everywhere: `probs` [n, C], `labels` [n] (class indices), `weights` of rows [n] or None.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays
from credo.evaluation.metrics.arrays.means import mean, row_weights
from credo.evaluation.metrics.arrays.ranking import mass_below

BINS = 15


@of_arrays(probs="n c", labels="n")
def hits(probs: jax.Array, labels: jax.Array) -> jax.Array:
    """1 where the most probable class (the first of equals) is the right one."""
    return (probs.argmax(-1) == labels).astype(jnp.result_type(probs))


def equal_width(values: jax.Array, bins: int) -> jax.Array:
    """The bin of each probability: bin b is [b/B, (b + 1)/B), and p = 1 belongs to the last."""
    return jnp.clip((values * bins).astype(jnp.int32), 0, bins - 1)


def equal_mass(values: jax.Array, weights: jax.Array, bins: int) -> jax.Array:
    """The bin of each value when bins hold equal weight; equal values share the bin of their middle."""
    below, upto = mass_below(values, weights)
    middle = (below + upto) / (2 * weights.sum())
    return jnp.clip((middle * bins).astype(jnp.int32), 0, bins - 1)


def gap(values: jax.Array, right: jax.Array, weights: jax.Array, bin_index: jax.Array, bins: int) -> jax.Array:
    """Σ_b W_b/W |mean of right − mean of values| over bins."""
    sums = jax.ops.segment_sum(weights * (right - values), bin_index, bins)
    return jnp.abs(sums).sum() / weights.sum()


@of_arrays(probs="n c", labels="n", weights="n")
def ece(probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, bins: int = BINS) -> jax.Array:
    """Expected calibration error of the most probable class: Σ_b W_b/W |accuracy_b − confidence_b|, equal widths.

    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning; Guo et al.
    (2017), On calibration of modern neural networks.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import ece
        >>> round(float(ece(jnp.array([[0.2, 0.8], [0.2, 0.8]]), jnp.array([1, 0]))), 4)
        0.3
    """
    confidence = jnp.minimum(probs.max(-1), 1)  # sums of probabilities may end a hair above 1
    return gap(confidence, hits(probs, labels), row_weights(weights, probs), equal_width(confidence, bins), bins)


@of_arrays(probs="n c", labels="n", weights="n")
def adaptive_ece(probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, bins: int = BINS) -> jax.Array:
    """ECE over bins of equal weight, which crowd where confidences do.

    Rows of one confidence share a bin, so the order of rows does not matter and two equal rows are one of double
    weight. Nguyen and O'Connor (2015), Posterior calibration and exploratory analysis for NLP models.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import adaptive_ece
        >>> probs = jnp.array([[0.1, 0.9], [0.1, 0.9], [0.4, 0.6], [0.4, 0.6]])
        >>> round(float(adaptive_ece(probs, jnp.array([1, 1, 1, 0]), bins=2)), 4)
        0.1
    """
    confidence, weights = jnp.minimum(probs.max(-1), 1), row_weights(weights, probs)
    return gap(confidence, hits(probs, labels), weights, equal_mass(confidence, weights, bins), bins)


@of_arrays(probs="n c", labels="n", weights="n")
def classwise_ece(probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, bins: int = BINS) -> jax.Array:
    """The mean over classes of Σ_b W_b/W |share of class c_b − mean p_c,b|, in bins of p_c of equal width.

    Kull et al. (2019), Beyond temperature scaling; Nixon et al. (2019), Measuring calibration in deep learning.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import classwise_ece
        >>> round(float(classwise_ece(jnp.array([[0.2, 0.8], [0.2, 0.8]]), jnp.array([1, 0]))), 4)
        0.3
    """
    weights = row_weights(weights, probs)
    classes = jnp.arange(probs.shape[-1])

    def one(column: jax.Array, index: jax.Array) -> jax.Array:
        return gap(column, (labels == index).astype(jnp.result_type(probs)), weights, equal_width(column, bins), bins)

    return jax.vmap(one, (1, 0))(probs, classes).mean()


@of_arrays(probs="n c", labels="n")
def brier_terms(probs: jax.Array, labels: jax.Array) -> jax.Array:
    """The Brier score of each row [n]: Σ_c (p_c − 1[y = c])², halved for two classes, where it is (p₁ − y)²."""
    return _scale(probs) * ((probs - jax.nn.one_hot(labels, probs.shape[-1], dtype=jnp.result_type(probs))) ** 2).sum(
        -1
    )


@of_arrays(probs="n c", labels="n", weights="n")
def brier(probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """Mean Σ_c (p_c − 1[y = c])², between 0 and 2; for two classes mean (p₁ − y)², between 0 and 1.

    This is `sklearn.metrics.brier_score_loss`. Brier (1950), Verification of forecasts expressed in terms of
    probability, has the factor 2 for two classes, too.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import brier
        >>> float(brier(jnp.array([[0.5, 0.5], [0.0, 1.0]]), jnp.array([1, 0])))
        0.625
    """
    return mean(brier_terms(probs, labels), weights)


def _scale(probs: jax.Array) -> float:
    return 0.5 if probs.shape[-1] == 2 else 1.0


class BrierParts(NamedTuple):
    """brier = reliability − resolution + uncertainty + within_bin, up to rounding; see `brier_decomposition`."""

    brier: jax.Array
    reliability: jax.Array
    resolution: jax.Array
    uncertainty: jax.Array
    within_bin: jax.Array


@of_arrays(probs="n c", labels="n", weights="n")
def brier_decomposition(
    probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, bins: int = BINS
) -> BrierParts:
    """The parts of the Brier score, summed over classes (halved for two), with p_c in equal-width bins b.

    p̄_b and ō_b are the mean forecast and the mean outcome of a bin.

    reliability Σ_b W_b/W (p̄_b − ō_b)² (0 where calibrated); resolution Σ_b W_b/W (ō_b − ō)² (large is good);
    uncertainty ō (1 − ō), of the data alone. Murphy (1973), A new vector partition of the probability score. These
    add up to the score only where all forecasts of a bin are equal; what is left is `within_bin`, the variance of
    forecasts inside bins less twice their covariance with the outcomes: Stephenson, Coelho and Jolliffe (2008), Two
    extra components in the Brier score decomposition.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import brier_decomposition
        >>> parts = brier_decomposition(jnp.array([[0.2, 0.8], [0.2, 0.8]]), jnp.array([1, 0]))
        >>> [round(float(part), 4) for part in parts]
        [0.34, 0.09, 0.0, 0.25, 0.0]
    """
    weights = row_weights(weights, probs)
    share = weights / weights.sum()

    def one(forecast: jax.Array, index: jax.Array) -> tuple[jax.Array, ...]:
        outcome = (labels == index).astype(jnp.result_type(probs))
        bin_index = equal_width(forecast, bins)
        mass, forecasts, outcomes = (
            jax.ops.segment_sum(share * x, bin_index, bins) for x in (jnp.ones_like(share), forecast, outcome)
        )
        safe = jnp.where(mass > 0, mass, 1)
        means, rates = forecasts / safe, outcomes / safe
        rate = (share * outcome).sum()
        inside, deviation = forecast - means[bin_index], outcome - rates[bin_index]
        reliability, resolution = (mass * (means - rates) ** 2).sum(), (mass * (rates - rate) ** 2).sum()
        return reliability, resolution, rate * (1 - rate), (share * inside * (inside - 2 * deviation)).sum()

    parts = jax.vmap(one, (1, 0))(probs, jnp.arange(probs.shape[-1]))
    return BrierParts(brier(probs, labels, weights), *(_scale(probs) * part.sum() for part in parts))
