"""Densities of targets y given the network's outputs f, for arrays of JAX or of NumPy.

η is the logarithm of a mean count, z = (y − centre)/σ. Exported predictors take this module along: NumPy alone will do.
"""

from typing import Any

from credo.core.special import (
    HALF_LOG_2PI,
    betainc,
    deviance,
    gammaincc,
    log_ratio,
    log_share_ratio,
    log_sigmoid,
    namespace,
    stirling_error,
)

WIDEST_LOG_GAP = 40.0  # between cut points of ordered classes
LOG_E_MINUS_1 = 0.541324854612918
# Outputs beyond which positive numbers grow linearly, and below which they shrink like 1/f: no row of training is e¹⁰
# times their mean, and y/μ stays a number of single precision.
POSITIVE_BOTTOM, POSITIVE_TOP = -20.0, 10.0
LOG_SPREAD_MOST, LOG_SPREAD_AT_0 = 3.0, -1.6  # largest σ of log y, and the logit of its share at an output of 0


def normal_log_prob(z: Any, log_sigma: Any) -> Any:
    """−½ z² − log σ − ½ log 2π, summed over the entries of y."""
    return (-0.5 * z * z - (log_sigma + HALF_LOG_2PI)).sum(-1)


def student_t_log_prob(z: Any, log_sigma: Any, df: Any) -> Any:
    """−½(ν+1) log(1 + z²/ν) − log(√ν B(½, ν/2)) − log σ, summed over the entries of y."""
    xp = namespace(z, log_sigma, df)
    # betaln, because the difference of two log Γ loses all digits for large ν
    log_norm = log_sigma + xp.betaln(0.5, 0.5 * df) + 0.5 * xp.log(df)
    return (-0.5 * (df + 1) * xp.log1p(z * z / df) - log_norm).sum(-1)


def positive_location(outputs: Any, offset: Any) -> Any:
    """f + offset between f = −20 and 10, and beyond the logarithm of what grows linearly, or shrinks like 1/f."""
    xp = namespace(outputs)
    above, below = xp.maximum(outputs - POSITIVE_TOP, 0), xp.maximum(POSITIVE_BOTTOM - outputs, 0)
    return xp.clip(outputs, POSITIVE_BOTTOM, POSITIVE_TOP) + xp.log1p(above) - xp.log1p(below) + offset


def positive_slope(outputs: Any) -> Any:
    """d location/df: 1 between f = −20 and 10."""
    xp = namespace(outputs)
    return 1 / (1 + xp.maximum(outputs - POSITIVE_TOP, 0) + xp.maximum(POSITIVE_BOTTOM - outputs, 0))


def log_above(y: Any, zero: Any) -> Any:
    """log(y − zero); where single precision cannot tell y from zero, that of the smallest difference it can."""
    xp = namespace(y, zero)
    return xp.log(xp.maximum(y - zero, xp.maximum(6e-8 * xp.abs(zero), 1e-30)))


def log_spread(raw: Any, least: Any) -> Any:
    """σ = least + (3 − least) s(a − 1.6), with s the logistic function."""
    return least + (LOG_SPREAD_MOST - least) * namespace(raw).expit(raw + LOG_SPREAD_AT_0)


def log_normal_log_prob(log_y: Any, centre: Any, sigma: Any) -> Any:
    """−½ ((log y − m)/σ)² − log σ − log y − ½ log 2π, summed over the entries of y."""
    xp = namespace(log_y, centre, sigma)
    return normal_log_prob((log_y - centre) / sigma, xp.log(sigma) + log_y)


def log_normal_cdf(log_y: Any, centre: Any, sigma: Any) -> Any:
    """Φ((log y − m)/σ)."""
    return namespace(log_y, centre, sigma).ndtr((log_y - centre) / sigma)


def gamma_log_prob(log_y: Any, eta: Any, log_shape: Any) -> Any:
    """α log(α y/μ) − α y/μ − log y − log Γ(α), summed over the entries of y."""
    shape = namespace(log_shape).exp(log_shape)
    # with log Γ(α) by Stirling's formula and its error, terms that cancel for large α are gone
    misfit = shape * deviance(log_y - eta) + stirling_error(shape)
    return (0.5 * log_shape - misfit - log_y - HALF_LOG_2PI).sum(-1)


def gamma_cdf(log_y: Any, eta: Any, log_shape: Any) -> Any:
    """P(α, α y/μ), the regularised lower incomplete gamma function."""
    xp = namespace(log_y, eta, log_shape)
    scaled = xp.exp(xp.minimum(log_shape + log_y - eta, 40.0))
    return 1 - gammaincc(xp.exp(log_shape) + xp.zeros_like(scaled), scaled)


def poisson_log_prob(eta: Any, y: Any) -> Any:
    """y η − eᵑ − log y!, summed over the entries of y."""
    xp = namespace(eta, y)
    count = xp.maximum(y, 1)
    # y log λ − log y! cancels: off by a nat at y = 10⁶ in float32. Relative to λ = y every term is small.
    log_count = xp.log(count)
    positive = -count * deviance(eta - log_count) - stirling_error(count) - 0.5 * log_count - HALF_LOG_2PI
    return xp.where(y > 0, positive, -xp.exp(eta)).sum(-1)


def poisson_cdf(rate: Any, y: Any) -> Any:
    """Q(⌊y⌋ + 1, λ), and 0 for y < 0."""
    xp = namespace(rate, y)
    return xp.where(y < 0, 0, gammaincc(xp.clip(xp.floor(y), 0, 1e18) + 1, rate))


def negative_binomial_log_prob(eta: Any, log_r: Any, y: Any) -> Any:
    """log Γ(y+r)/(Γ(r) y!) + r log(r/(r+μ)) + y log(μ/(r+μ)), summed over the entries of y."""
    xp = namespace(eta, log_r, y)
    mu, r = xp.exp(eta), xp.exp(log_r)
    count = xp.maximum(y, 1)
    log_count = xp.log(count)
    # Loader's form: each term is small where the density is large, so float32 serves for any y and r
    shift = log_ratio(count, mu, r)
    # the difference of η and log y is off by 10⁻⁶ in float32, and by the square of that times y here
    misfit = r * deviance(shift) + count * deviance(log_share_ratio(count, mu, r, shift + eta - log_count))
    stirling = stirling_error(r + count) - stirling_error(r) - stirling_error(count)
    positive = stirling - misfit + 0.5 * (log_r - xp.log(r + count) - log_count) - HALF_LOG_2PI
    return xp.where(y > 0, positive, r * log_sigmoid(log_r - eta)).sum(-1)


def negative_binomial_variance(eta: Any, log_r: Any) -> Any:
    """μ + μ²/r."""
    xp = namespace(eta, log_r)
    return xp.exp(eta) + xp.exp(2 * eta - log_r)


def negative_binomial_cdf(eta: Any, log_r: Any, y: Any) -> Any:
    """I_{r/(r+μ)}(r, ⌊y⌋ + 1), and 0 for y < 0."""
    xp = namespace(eta, log_r, y)
    r, floor = xp.broadcast_to(xp.exp(log_r), eta.shape), xp.clip(xp.floor(y), 0, 1e18)
    return xp.where(y < 0, 0, betainc(r, floor + 1, xp.expit(log_r - eta), xp.expit(eta - log_r)))


def zero_inflated_log_prob(log_counts: Any, logits: Any, y: Any) -> Any:
    """log(π + (1 − π) P(0)) where y = 0, else log(1 − π) + log P(y), summed over the entries of y; π = s(g)."""
    xp = namespace(log_counts, logits, y)
    counted = log_sigmoid(-logits) + log_counts
    return xp.where(y > 0, counted, xp.logaddexp(log_sigmoid(logits), counted)).sum(-1)


def zero_inflated_variance(mean: Any, variance: Any, logits: Any) -> Any:
    """(1 − π) (v + π μ²)."""
    xp = namespace(mean, variance, logits)
    return xp.expit(-logits) * (variance + xp.expit(logits) * mean * mean)


def zero_inflated_cdf(below: Any, logits: Any, y: Any) -> Any:
    """π + (1 − π) P(Y ≤ y), and 0 for y < 0."""
    xp = namespace(below, logits, y)
    return xp.where(y < 0, 0, xp.expit(logits) + xp.expit(-logits) * below)


def overdispersion(factor: Any, mean: Any, inverse: Any) -> Any:
    """1/r' = (s² − 1)/μ + s²/r of counts with s² times the variance; next to 0 (Poisson) where there is no such r'."""
    xp = namespace(factor, mean, inverse)
    square = xp.square(factor)
    return xp.maximum((square - 1.0) / xp.maximum(mean, 1e-30) + square * inverse, 1e-8)


def bernoulli_log_probs(outputs: Any) -> Any:
    """(log s(−f), log s(f)) [.., 2] with s the logistic function."""
    return log_sigmoid(namespace(outputs).concatenate([-outputs, outputs], -1))


def bernoulli_entropy(outputs: Any) -> Any:
    """H[p] = log(1 + e^−|f|) + |f| s(−|f|) in nats [..]: a sum of terms that are ≥ 0."""
    xp = namespace(outputs)
    size = xp.abs(outputs[..., 0])
    return xp.log1p(xp.exp(-size)) + size * xp.expit(-size)


def categorical_log_probs(outputs: Any) -> Any:
    """f_c − log Σ_j exp(f_j) [.., C]."""
    return namespace(outputs).log_softmax(outputs, axis=-1)


def categorical_entropy(outputs: Any) -> Any:
    """H[p] = log Σ_j exp(d_j) − Σ_j p_j d_j in nats [..], with d = f − max f: terms ≥ 0 only."""
    xp = namespace(outputs)
    top = outputs.argmax(-1)[..., None] == xp.arange(outputs.shape[-1])
    gap = xp.where(top, 0, outputs - outputs.max(-1, keepdims=True))
    rest = xp.where(top, 0, xp.exp(gap))
    others = rest.sum(-1)
    return xp.log1p(others) - xp.where(rest > 0, rest * gap, 0).sum(-1) / (1 + others)


def mislabelled_log_probs(outputs: Any, logit: Any) -> Any:
    """log of (1 − ε) softmax(f)_c + ε/C [.., C] from logit ε."""
    xp = namespace(outputs, logit)
    right = log_sigmoid(-logit) + xp.log_softmax(outputs, axis=-1)
    return xp.logaddexp(right, log_sigmoid(logit) - xp.log(float(outputs.shape[-1])))


def ordinal_edges(thresholds: Any) -> Any:
    """κ [.., C − 1] of (κ_1, log(κ_2 − κ_1), log(κ_3 − κ_2), …)."""
    xp = namespace(thresholds)
    return xp.cumsum(xp.concatenate([thresholds[..., :1], _gaps(thresholds)], -1), -1)


def _gaps(thresholds: Any) -> Any:
    """κ_{c+1} − κ_c, kept where neither they nor their sums leave single precision."""
    xp = namespace(thresholds)
    return xp.exp(xp.clip(thresholds[..., 1:], -WIDEST_LOG_GAP, WIDEST_LOG_GAP))


def ordinal_spread(outputs: Any) -> Any:
    """σ of ordered classes: 1, or 0.01 + log(1 + (e − 1) eᵍ) [.., 1] of a second output g."""
    if outputs.shape[-1] == 1:
        return 1.0
    return 0.01 + namespace(outputs).logaddexp(outputs[..., 1:] + LOG_E_MINUS_1, 0)


def ordinal_log_probs(outputs: Any, thresholds: Any) -> Any:
    """log(s(z_c) − s(z_{c−1})) [.., C] with z_c = (κ_c − f)/σ and s the logistic function.

    s(a) − s(b) = s(a) s(−b) (1 − e^{b−a}), so that nothing cancels.
    """
    xp, spread = namespace(outputs, thresholds), ordinal_spread(outputs)
    z = (ordinal_edges(thresholds) - outputs[..., :1]) / spread
    below, above = log_sigmoid(z), log_sigmoid(-z)
    between = below[..., 1:] + above[..., :-1] + xp.log(-xp.expm1(-_gaps(thresholds) / spread))
    return xp.concatenate([below[..., :1], between, above[..., -1:]], -1)


def tempered_log_probs(log_probs: Any, heat: Any, share: Any, log_frequencies: Any) -> Any:
    """log of (1 − w) p(c)^(1/T)/Σ_j p(j)^(1/T) + w π_c [.., C]."""
    xp = namespace(log_probs, heat, share, log_frequencies)
    scaled = xp.log_softmax(log_probs / heat, axis=-1)
    return xp.logaddexp(xp.log1p(-share) + scaled, xp.log(share) + log_frequencies)
