"""Scores of predicted numbers and counts. Arguments everywhere: the predictive, targets [n] or [n, k], weights of rows.

No score assumes a shape: intervals are quantiles of the mixture and densities its own.
Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
"""

from typing import Any

import jax
import numpy as np

from credo.core.predictive import Predictive
from credo.evaluation.metrics import arrays, distances
from credo.evaluation.metrics.checks import numbers
from credo.evaluation.metrics.terms import Terms, score


@score
def log_likelihood(predictive: Predictive, targets: Any) -> Terms:
    """Mean of log p(y_n | x_n, D), the log density of the whole mixture, in nats; of classes too."""
    return Terms(arrays.mean, (predictive.log_prob(targets),))


@score
def rmse(predictive: Predictive, targets: Any) -> Terms:
    """√ mean (E[y] − y)², over rows and outputs."""
    return Terms(arrays.root_mean, ((predictive.mean - numbers(predictive, targets, "rmse")) ** 2,))


@score
def mae(predictive: Predictive, targets: Any) -> Terms:
    """Mean |E[y] − y|, over rows and outputs."""
    return Terms(arrays.mean, (np.abs(predictive.mean - numbers(predictive, targets, "mae")),))


@score
def crps(predictive: Predictive, targets: Any, *, draws: int = 1000, seed: int = 0) -> Terms:
    """Mean CRPS ∫ (F(z) − 1[y ≤ z])² dz in units of the target, over rows and outputs; lower is better.

    Mixtures of normals: the closed form of Grimit et al. (2006) up to 256 components, an integral good to 10⁻⁴ of the
    spread beyond. Student-t and counts: an estimate without bias from `draws` draws of y, the same for the same
    `seed`; its error in one row is about the spread over √draws.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=500)
        >>> 0.02 < credo.metrics.crps(credo.predict(jax.random.key(1), fit, x), x[:, 0]) < 0.1
        True
    """
    numbers(predictive, targets, "crps")
    return Terms(arrays.mean, (distances.crps(predictive, targets, draws, seed),))


@score
def energy_score(predictive: Predictive, targets: Any, *, draws: int = 256, seed: int = 0) -> Terms:
    """Mean E‖Y − y‖ − ½ E‖Y − Y'‖ over rows, for several outputs at once; lower is better.

    An estimate without bias from `draws` draws of y, the same for the same `seed`. Outputs count in their own units:
    scale them first where units differ.
    """
    numbers(predictive, targets, "energy_score")
    return Terms(arrays.mean, (distances.energy(predictive, targets, draws, seed),))


@score
def coverage(predictive: Predictive, targets: Any, *, level: float = 0.9) -> Terms:
    """The share of targets inside the central interval of probability `level`; well calibrated is `level` itself.

    For counts the interval's ends belong to it, so its probability, and the coverage to expect, is above `level`.
    """
    values = numbers(predictive, targets, "coverage")
    low, high = predictive.interval(level)
    return Terms(arrays.mean, ((low <= values) & (values <= high),))


@score
def interval_width(predictive: Predictive, targets: Any = None, *, level: float = 0.9) -> Terms:
    """Mean width of the central interval of probability `level`: at equal coverage, narrower is better."""
    low, high = predictive.interval(level)
    return Terms(arrays.mean, (high - low,))


def _interval_score(low: jax.Array, high: jax.Array, values: jax.Array, weights: jax.Array, level: float) -> jax.Array:
    return arrays.mean(arrays.interval_score(low, high, values, level), weights)


@score
def interval_score(predictive: Predictive, targets: Any, *, level: float = 0.9) -> Terms:
    """Mean width of the central interval plus 2/(1 − level) times the distance of targets outside; lower is better."""
    values = numbers(predictive, targets, "interval_score")
    low, high = predictive.interval(level)
    return Terms(_interval_score, (low, high, values), (("level", float(level)),))


@score
def sharpness(predictive: Predictive, targets: Any = None) -> Terms:
    """How much predictions leave open, whatever came true: √ mean Var[y], or the mean entropy for classes (nats).

    Small is sharp, and good only where predictions are calibrated: Gneiting, Balabdaoui and Raftery (2007),
    Probabilistic forecasts, calibration and sharpness.
    """
    if predictive.kind == "classes":
        return Terms(arrays.mean, (predictive.entropy(),))
    return Terms(arrays.root_mean, (predictive.variance,))
