"""Likelihoods of exported draws: settings and arrays for the library's own formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np

from credo.core.densities import (
    bernoulli_entropy,
    bernoulli_log_probs,
    categorical_entropy,
    categorical_log_probs,
    gamma_cdf,
    gamma_log_prob,
    log_above,
    log_normal_cdf,
    log_normal_log_prob,
    log_spread,
    mislabelled_log_probs,
    negative_binomial_cdf,
    negative_binomial_log_prob,
    negative_binomial_variance,
    normal_log_prob,
    ordinal_log_probs,
    overdispersion,
    poisson_cdf,
    poisson_log_prob,
    positive_location,
    student_t_log_prob,
    tempered_log_probs,
    zero_inflated_cdf,
    zero_inflated_log_prob,
    zero_inflated_variance,
)
from credo.core.special import log_rate, namespace, student_t_cdf
from credo.storage.export.portable.networks import of_part


class RealDraws:
    """Numbers: `gaussian`, `student_t`, and both with noise that the network predicts; outputs are [draw, n, out]."""

    kind = "real"
    zero: Any = None  # numbers may be any

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.floor = settings.get("floor")
        self.scale: Any = _each_draw(arrays, "scale")  # σ, None where the network predicts it
        self.df: Any = _each_draw(arrays, "df")  # of Student's t, None for normal noise
        self.factor = np.asarray(settings.get("correction", {}).get("factor", 1.0))  # of the noise's width

    def parts(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The centre and σ of y."""
        if self.scale is None:
            half = outputs.shape[-1] // 2
            return outputs[..., :half], self.factor * (self.floor + np.logaddexp(outputs[..., half:], 0))
        return outputs, self.factor * np.broadcast_to(self.scale, outputs.shape)

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """E[y | f]."""
        return self.parts(outputs)[0]

    def variance(self, outputs: np.ndarray) -> np.ndarray:
        """Var[y | f]."""
        factor = 1.0 if self.df is None else self.df / (self.df - 2.0)
        return self.parts(outputs)[1] ** 2 * factor

    def cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f)."""
        centre, sigma = self.parts(outputs)
        z = (y - centre) / sigma
        return namespace(z).ndtr(z) if self.df is None else student_t_cdf(self.df, z)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n], summed over the entries of y."""
        centre, sigma = self.parts(outputs)
        z, log_sigma = (y - centre) / sigma, np.log(sigma)
        return normal_log_prob(z, log_sigma) if self.df is None else student_t_log_prob(z, log_sigma, self.df)


class PositiveDraws:
    """Numbers above 0: `log_normal` and `gamma`; outputs are [draw, n, out]."""

    kind = "real"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.zero, self.offset = np.asarray(settings["zero"], float), np.asarray(settings["offset"], float)
        self.least = settings.get("least")
        self.factor = np.asarray(settings.get("factor", 1.0))  # of the spread of log y
        self.log_shape: Any = _each_draw(arrays, "log_shape")  # of the gamma, None for the log-normal

    def parts(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of the mean and log α of a gamma, centre and σ of the logarithm of a log-normal."""
        if self.log_shape is not None:
            return positive_location(outputs, self.offset), self.log_shape
        half = outputs.shape[-1] // 2
        sigma = self.factor * log_spread(outputs[..., half:], self.least)
        return positive_location(outputs[..., :half], self.offset), sigma

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """E[y | f]."""
        location, spread = self.parts(outputs)
        return self.zero + np.exp(location + (0.5 * spread**2 if self.log_shape is None else 0.0))

    def variance(self, outputs: np.ndarray) -> np.ndarray:
        """Var[y | f]."""
        location, spread = self.parts(outputs)
        if self.log_shape is None:
            return np.exp(2 * location + spread**2) * np.expm1(spread**2)
        return np.exp(2 * location - spread)

    def cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f)."""
        formula = log_normal_cdf if self.log_shape is None else gamma_cdf
        return np.where(y > self.zero, formula(log_above(y, self.zero), *self.parts(outputs)), 0.0)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n], summed over the entries of y."""
        formula = log_normal_log_prob if self.log_shape is None else gamma_log_prob
        log_density = formula(log_above(y, self.zero), *self.parts(outputs))
        return np.where((y < self.zero).any(-1), -np.inf, log_density)


class CountDraws:
    """Counts: `poisson` and `negative_binomial`, and both with zeros of their own."""

    kind = "counts"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.log_r: Any = _each_draw(arrays, "log_dispersion")
        self.factor = np.asarray(settings.get("correction", {}).get("factor", 1.0))  # of the noise's width
        self.offset, self.inflated = settings.get("offset", 0.0), settings.get("inflated", False)
        self.corrected = "correction" in settings and bool((self.factor != 1).any())

    def fitted(self, outputs: np.ndarray) -> tuple[np.ndarray, Any]:
        """η = log μ of the likelihood that was fitted, and logits of zeros (None)."""
        f, logits = np.split(outputs, 2, -1) if self.inflated else (outputs, None)
        return log_rate(f + self.offset), logits

    def parts(self, outputs: np.ndarray) -> tuple[np.ndarray, Any, Any]:
        """η, log r of the negative binomial with this variance (None: Poisson), and logits of zeros (None)."""
        eta, logits = self.fitted(outputs)
        if not self.corrected:
            return eta, self.log_r, logits
        inverse: Any = 0.0 if self.log_r is None else np.exp(-self.log_r)
        if logits is not None:  # only mean and variance are kept
            mean = _inflated_mean(eta, logits)
            excess = zero_inflated_variance(np.exp(eta), _count_variance(eta, self.log_r), logits) - mean
            eta = log_rate(np.log(np.maximum(mean, 1e-30)))
            return (
                eta,
                -np.log(overdispersion(self.factor, mean, np.maximum(excess, 0) / np.maximum(mean, 1e-15) ** 2)),
                None,
            )
        return eta, -np.log(overdispersion(self.factor, np.exp(eta), inverse)), None

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """The rate of those that are not always 0, times their share."""
        return _inflated_mean(*self.fitted(outputs))

    def variance(self, outputs: np.ndarray) -> np.ndarray:
        """The rate μ, μ²/r more under the negative binomial, and more with zeros of their own."""
        eta, log_r, logits = self.parts(outputs)
        variance = _count_variance(eta, log_r)
        return variance if logits is None else zero_inflated_variance(np.exp(eta), variance, logits)

    def cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f)."""
        eta, log_r, logits = self.parts(outputs)
        cdf = poisson_cdf(np.exp(eta), y) if log_r is None else negative_binomial_cdf(eta, log_r, y)
        return cdf if logits is None else zero_inflated_cdf(cdf, logits, y)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n], summed over the entries of y."""
        eta, log_r, logits = self.parts(outputs)
        eta, y_each = eta[..., None], y[..., None]
        log_probs = (
            poisson_log_prob(eta, y_each)
            if log_r is None
            else negative_binomial_log_prob(eta, log_r[..., None], y_each)
        )
        return log_probs.sum(-1) if logits is None else zero_inflated_log_prob(log_probs, logits, y)


def _inflated_mean(eta: np.ndarray, logits: Any) -> np.ndarray:
    return np.exp(eta) if logits is None else np.exp(eta - np.logaddexp(0, logits))


def _count_variance(eta: np.ndarray, log_r: Any) -> np.ndarray:
    return np.exp(eta) if log_r is None else negative_binomial_variance(eta, log_r)


class ClassDraws:
    """Classes: `bernoulli`, `categorical`, `mislabelled` with a share of random labels, and `ordinal`."""

    kind = "classes"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.name = settings["name"]
        self.logit: Any = _each_draw(arrays, "logit_share")
        self.thresholds: Any = _each_draw(arrays, "thresholds")
        self.correction = settings.get("correction")

    def log_probs(self, outputs: np.ndarray) -> np.ndarray:
        """log p(y = c | f) [draw, n, classes]."""
        fitted = self.uncorrected(outputs)
        if self.correction is None:
            return fitted
        log_frequencies = np.log(self.correction["frequencies"])
        return tempered_log_probs(fitted, self.correction["heat"], self.correction["share"], log_frequencies)

    def uncorrected(self, outputs: np.ndarray) -> np.ndarray:
        """The same of the likelihood that was fitted."""
        if self.name == "bernoulli":
            return bernoulli_log_probs(outputs)
        if self.thresholds is not None:
            return ordinal_log_probs(outputs, self.thresholds)
        return categorical_log_probs(outputs) if self.logit is None else mislabelled_log_probs(outputs, self.logit)

    def entropy(self, outputs: np.ndarray) -> np.ndarray:
        """H[p] in nats [draw, n]."""
        if self.name == "bernoulli" and self.correction is None:
            return bernoulli_entropy(outputs)
        return categorical_entropy(self.log_probs(outputs))

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n] of class indices y [n]."""
        log_probs = self.log_probs(outputs)
        return np.take_along_axis(log_probs, np.broadcast_to(y[:, None], (len(outputs), len(y), 1)), -1)[..., 0]


class StackDraws:
    """Draws of several likelihoods, one after another; each part's outputs are padded with zeros to the widest."""

    zero: Any = None

    def __init__(self, kind: str, settings: dict[str, Any], arrays: dict[str, np.ndarray], times: int):
        self.kind, self.widths = kind, settings["outputs"]
        self.ends = np.cumsum([0, *settings["draws"]]) * times
        self.parts = [_plain_draws(kind, part, of_part(arrays, c)) for c, part in enumerate(settings["parts"])]

    def _each(self, function: Callable[[Any, np.ndarray], np.ndarray], outputs: np.ndarray) -> np.ndarray:
        """The function of each part at its draws and outputs."""
        values = []
        for c, part in enumerate(self.parts):
            f = outputs[self.ends[c] : self.ends[c + 1]]
            values.append(function(part, f if self.widths is None else f[..., : self.widths[c]]))
        return np.concatenate(values)

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """E[y | f]."""
        return self._each(lambda part, f: part.mean(f), outputs)

    def variance(self, outputs: np.ndarray) -> np.ndarray:
        """Var[y | f]."""
        return self._each(lambda part, f: part.variance(f), outputs)

    def cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f)."""
        return self._each(lambda part, f: part.cdf(f, y), outputs)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n]."""
        return self._each(lambda part, f: part.log_prob(f, y), outputs)

    def log_probs(self, outputs: np.ndarray) -> np.ndarray:
        """log p(y = c | f) [draw, n, classes]."""
        return self._each(lambda part, f: part.log_probs(f), outputs)

    def entropy(self, outputs: np.ndarray) -> np.ndarray:
        """H[p] in nats [draw, n]."""
        return self._each(lambda part, f: part.entropy(f), outputs)


def likelihood_of_draws(kind: str, settings: dict[str, Any], arrays: dict[str, np.ndarray], times: int) -> Any:
    """The likelihood of exported draws, each repeated `times` times."""
    repeated = {name: np.repeat(x, times, axis=0) for name, x in arrays.items() if "likelihood/" in name}
    if settings["name"] == "stack":
        return StackDraws(kind, settings, repeated, times)
    return _plain_draws(kind, settings, repeated)


def _plain_draws(kind: str, settings: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Draws of one likelihood."""
    return PositiveDraws(settings, arrays) if settings["name"] in POSITIVE else KINDS[kind](settings, arrays)


def _each_draw(arrays: dict[str, np.ndarray], name: str) -> np.ndarray | None:
    """A parameter of the likelihood [draw, 1, k], or None."""
    array = arrays.get(f"likelihood/{name}")
    return None if array is None else array.astype(float)[:, None, :]


POSITIVE = ("log_normal", "gamma")
KINDS: dict[str, Any] = {each.kind: each for each in (RealDraws, CountDraws, ClassDraws)}
