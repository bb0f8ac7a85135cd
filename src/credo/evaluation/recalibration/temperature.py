"""Temperature scaling: one number, learned on held-out rows, that widens or sharpens every prediction."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import logsumexp

from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal
from credo.evaluation.metrics.checks import class_probs, numbers
from credo.evaluation.metrics.terms import checked_weights
from credo.evaluation.recalibration.recalibrated import Recalibrated, from_logits, stretch

LIMIT = 100.0  # factors are sought between 1/100 and 100
COARSE = 25  # points of the logarithmic grid that is searched before the search narrows


@dataclasses.dataclass(frozen=True)
class TemperatureScaling:
    """A learned correction: `apply` makes a `Recalibrated` predictive of any other of the same kind.

    factor: the temperature T of classes, or the factor s of the spread of real targets. 1 changes nothing; above 1,
    predictions were too sure of themselves.
    """

    kind: str
    factor: float
    outputs: int  # classes, or entries of y
    rows: int
    note: str

    def __repr__(self) -> str:
        return f"TemperatureScaling(kind={self.kind!r}, factor={self.factor:.4g}, rows={self.rows})"

    def apply(self, predictive: Predictive) -> Recalibrated:
        """The predictive p ∝ p^(1/T), or that of m + s (y − m), at any inputs."""
        outputs = _outputs(predictive)
        if (predictive.kind, outputs) != (self.kind, self.outputs):
            raise InputError(
                f"This temperature was learned on {self.kind} targets with {self.outputs} entries; "
                f"these predictions are {predictive.kind} with {outputs}."
            )
        if self.kind == "classes":
            return from_logits(predictive.log_probs / self.factor, self.note)
        return stretch(predictive, self.factor, self.note)


def temperature_scaling(predictive: Predictive, targets: Any, weights: Any = None) -> TemperatureScaling:
    """Learn one temperature on calibration rows that neither training nor testing sees.

    Classes: p_T(c) ∝ p(c)^(1/T) with p of the whole mixture, T by maximum likelihood; the log likelihood is concave
    in 1/T. Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks. Real targets: y =
    m + s (y₀ − m) around the predictive mean m, s by maximum likelihood of the mixture's density; it keeps the shape
    and every variance times s². Levi, Gispan, Giladi and Fetaya (2022), Evaluating and calibrating uncertainty
    prediction in regression tasks. The factor is kept between 1/100 and 100.

    Args:
        predictive: predictions at the calibration rows.
        targets: what came true there.
        weights: of the calibration rows.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 80)[:, None]
        >>> y = x[:, 0] + 0.2 * np.random.default_rng(0).normal(size=80)
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(noise=0.05))
        >>> fit = credo.fit(jax.random.key(0), model, (x[::2], y[::2]), "map", steps=500)
        >>> held_out = credo.predict(jax.random.key(1), fit, x[1::2])
        >>> correction = credo.recalibration.temperature_scaling(held_out, y[1::2])
        >>> 3 < correction.factor < 6  # the noise was said to be a quarter of what it is
        True
        >>> correction.apply(held_out).note[:27]
        'Recalibrated after the fact'
    """
    if predictive.kind == "counts":
        raise Refusal(
            "Counts cannot be stretched around their mean: m + s (y − m) is not a whole number, so the result has no "
            "probabilities of counts. Use split_conformal, or a likelihood with a dispersion (negative_binomial)."
        )
    mass = checked_weights(weights, len(predictive))
    if predictive.kind == "classes":
        _, labels = class_probs(predictive, targets, "temperature_scaling")
        factor, words = _temperature(predictive.log_probs, labels, mass), "temperature T"
    else:
        factor = _spread(predictive, numbers(predictive, targets, "temperature_scaling"), mass)
        words = "factor of the spread s"
    note = f"Recalibrated after the fact: {words} = {factor:.4g}, learned by maximum likelihood on {len(mass)} rows."
    if not 1.0001 / LIMIT < factor < LIMIT / 1.0001:
        note += f" The likelihood rises up to this bound: {len(mass)} rows do not determine it."
    return TemperatureScaling(predictive.kind, factor, _outputs(predictive), len(mass), note)


def _outputs(predictive: Predictive) -> int:
    shape = predictive.mean.shape
    return shape[1] if len(shape) == 2 else 1


def _temperature(log_probs: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """The T that maximises Σ_n w_n log softmax(log p_n / T)[y_n]: the one zero of its slope in 1/T."""
    values = np.asarray(log_probs, np.float64)
    true_class = values[np.arange(len(labels)), labels]

    def slope(sharpness: float) -> float:
        tempered = values * sharpness
        probs = np.exp(tempered - logsumexp(tempered, axis=1, keepdims=True))
        return float(weights @ (true_class - (probs * values).sum(1)))

    low, high = 1 / LIMIT, LIMIT
    if slope(low) <= 0:
        return LIMIT
    if slope(high) >= 0:
        return 1 / LIMIT
    from scipy.optimize import brentq

    return float(1 / brentq(slope, low, high, xtol=1e-10))


def _spread(predictive: Predictive, targets: np.ndarray, weights: np.ndarray) -> float:
    """The s that maximises Σ_n w_n (log p(m_n + (y_n − m_n)/s) − k log s); a mixture's may have several tops."""
    mean, outputs = predictive.mean, _outputs(predictive)

    def loss(log_factor: float) -> float:
        density = predictive.log_prob(mean + (targets - mean) * np.exp(-log_factor))
        return float(weights @ (outputs * log_factor - density))

    edge = np.log(LIMIT)
    log_factors = np.linspace(-edge, edge, COARSE)
    best = int(np.argmin([loss(log_factor) for log_factor in log_factors]))
    bracket = log_factors[max(best - 1, 0)], log_factors[min(best + 1, COARSE - 1)]
    from scipy.optimize import minimize_scalar

    optimum = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(optimum.x))
