"""Likelihoods of NumPy arrays: mean, variance, distribution function and density of y for every draw of f."""

import math
from typing import Any

import numpy as np

from credo.storage.export.portable.special import (
    HALF_LOG_2PI,
    betainc,
    deviance,
    gammaincc,
    log_gamma,
    log_rate,
    log_ratio,
    logsumexp,
    ndtr,
    sigmoid,
    softplus,
    stirling_error,
)


class Real:
    """Numbers: `gaussian`, `student_t`, and both with noise that the network predicts; outputs are [draw, n, out]."""

    kind = "real"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.floor = settings.get("floor")
        self.scale: Any = _each_draw(arrays, "scale")  # σ, None where the network predicts it
        self.df: Any = _each_draw(arrays, "df")  # of Student's t, None for normal noise
        self.factor = np.asarray(settings.get("correction", {}).get("factor", 1.0))  # noise is so many times as wide

    def parts(self, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The centre and σ of y."""
        if self.scale is None:
            half = outputs.shape[-1] // 2
            return outputs[..., :half], self.factor * (self.floor + softplus(outputs[..., half:]))
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
        if self.df is None:
            return ndtr(z)
        square = np.minimum(z * z, 1e30)
        outer, inner = self.df / (self.df + square), square / (self.df + square)
        central = square < 1
        a, b = np.where(central, 0.5, 0.5 * self.df), np.where(central, 0.5 * self.df, 0.5)
        beta = betainc(a, b, np.where(central, inner, outer), np.where(central, outer, inner))
        tail = 0.5 * np.where(central, 1 - beta, beta)
        return np.where(z < 0, tail, 1 - tail)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n], summed over the entries of y."""
        centre, sigma = self.parts(outputs)
        z = (y - centre) / sigma
        if self.df is None:
            return (-0.5 * z * z - np.log(sigma) - HALF_LOG_2PI).sum(-1)
        half = 0.5 * self.df
        norm = log_gamma(half) + math.lgamma(0.5) - log_gamma(half + 0.5) + 0.5 * np.log(self.df)
        return (-(half + 0.5) * np.log1p(z * z / self.df) - np.log(sigma) - norm).sum(-1)


class Counts:
    """Counts: `poisson` and `negative_binomial`."""

    kind = "counts"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.log_r: Any = _each_draw(arrays, "log_dispersion")
        self.square = np.asarray(settings.get("correction", {}).get("factor", 1.0)) ** 2  # variance is so much larger
        self.offset = settings.get("offset", 0.0)
        self.poisson = self.log_r is None and bool((self.square == 1).all())

    def shape(self, eta: np.ndarray) -> np.ndarray:
        """log r of the negative binomial with this variance."""
        if (self.square == 1).all():
            return np.broadcast_to(self.log_r, eta.shape)
        own = 0.0 if self.log_r is None else np.exp(-self.log_r)
        mean = np.maximum(np.exp(eta), 1e-30)
        return -np.log(np.maximum((self.square - 1) / mean + self.square * own, 1e-8))

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """The rate."""
        return np.exp(log_rate(outputs + self.offset))

    def variance(self, outputs: np.ndarray) -> np.ndarray:
        """The rate μ, and μ²/r more under the negative binomial."""
        eta = log_rate(outputs + self.offset)
        return np.exp(eta) if self.poisson else np.exp(eta) + np.exp(2 * eta - self.shape(eta))

    def cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y | f)."""
        y = np.broadcast_to(y, outputs.shape)
        count, eta = np.clip(np.floor(y), 0.0, 1e18) + 1, log_rate(outputs + self.offset)
        if self.poisson:
            below = gammaincc(count, np.exp(eta))
        else:
            log_r = self.shape(eta)
            below = betainc(np.exp(log_r), count, sigmoid(log_r - eta), sigmoid(eta - log_r))
        return np.where(y < 0, 0.0, below)

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n], summed over the entries of y."""
        eta = log_rate(outputs + self.offset)
        mu, y, none = np.exp(eta), np.maximum(y, 1.0), y <= 0
        log_y = np.log(y)
        # Loader's form: y log λ − log y! cancels where counts are large
        if self.poisson:
            found = -y * deviance(eta - log_y) - stirling_error(y) - 0.5 * log_y - HALF_LOG_2PI
            return np.where(none, -mu, found).sum(-1)
        log_r = self.shape(eta)
        r = np.exp(log_r)
        shift = log_ratio(y, mu, r)
        misfit = r * deviance(shift) + y * deviance(shift + eta - log_y)
        stirling = stirling_error(r + y) - stirling_error(r) - stirling_error(y)
        found = stirling - misfit + 0.5 * (log_r - np.log(r + y) - log_y) - HALF_LOG_2PI
        return np.where(none, -r * softplus(eta - log_r), found).sum(-1)


class Classes:
    """Classes: `bernoulli`, `categorical`, and `mislabelled` with a share of random labels."""

    kind = "classes"

    def __init__(self, settings: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.name = settings["name"]
        self.logit: Any = _each_draw(arrays, "logit_share")
        self.correction = settings.get("correction")

    def log_probs(self, outputs: np.ndarray) -> np.ndarray:
        """log p(y = c | f) [draw, n, classes]."""
        found = self.uncorrected(outputs)
        if self.correction is None:
            return found
        found = found / self.correction["heat"]
        own = found - logsumexp(found, -1)[..., None]
        with np.errstate(divide="ignore"):
            kept, drawn = np.log1p(-self.correction["share"]), np.log(self.correction["share"])
        return np.logaddexp(kept + own, drawn + np.log(self.correction["frequencies"]))

    def uncorrected(self, outputs: np.ndarray) -> np.ndarray:
        """The same of the likelihood that was fitted."""
        if self.name == "bernoulli":
            return -softplus(np.concatenate([outputs, -outputs], -1))
        right = outputs - logsumexp(outputs, -1)[..., None]
        if self.logit is None:
            return right
        return np.logaddexp(right - softplus(self.logit), -softplus(-self.logit) - math.log(outputs.shape[-1]))

    def log_prob(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | f) [draw, n] of class indices y [n]."""
        return np.take_along_axis(self.log_probs(outputs), np.broadcast_to(y[:, None], (len(outputs), len(y), 1)), -1)[
            ..., 0
        ]


def _each_draw(arrays: dict[str, np.ndarray], name: str) -> np.ndarray | None:
    """A parameter of the likelihood [draw, 1, k], or None."""
    found = arrays.get(f"likelihood/{name}")
    return None if found is None else found.astype(float)[:, None, :]


LIKELIHOODS = {
    "gaussian": Real, "heteroscedastic": Real, "student_t": Real, "heteroscedastic_t": Real,
    "poisson": Counts, "negative_binomial": Counts, "bernoulli": Classes, "categorical": Classes,
    "mislabelled": Classes,
}  # fmt: skip
