"""What a fit said of rows that it had not seen, and the correction of its likelihood that those rows ask for."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from credo.core.capabilities import StretchedLikelihood, capability
from credo.core.likelihood import Likelihood
from credo.core.typing import PyTree
from credo.likelihoods import Mixed, Overdispersed, Stretched, Tempered

LEVELS = (0.8, 0.9, 0.95)  # of the intervals that shall hold what they say; the middle one is told
LEVEL = 0.9
SLACK = 0.03  # of a coverage: a difference that is let be, however many rows prove it
SURE = 2.5  # standard errors beyond which a coverage is off
NATS = 5.0  # by which two numbers must raise the log-likelihood: chance alone does in less than one of 100 cases
NARROWEST, WIDEST = 0.25, 100.0  # factors of the noise
NARROWED, LEAST_NARROWER = 0.25, 0.05  # of s²: what is left of it at least, and what is not worth a correction
LEAST = 0.01  # of that of counts, whose dispersion may be far from learned; below a Poisson's it does not go
HEATS = np.exp(np.linspace(np.log(0.2), np.log(20.0), 47))
FEWEST = 20  # rows that can tell something


class Unseen(NamedTuple):
    """Draws of fits at rows that those fits had not seen, each row with the weights of the draws that it may have."""

    likelihood: Any
    params: PyTree  # the likelihood's, leaves [K, …]
    outputs: np.ndarray  # [K, n, out]
    log_weights: np.ndarray  # [K, n], normalised over K; −∞ where a draw has seen the row
    targets: np.ndarray  # canonical
    weight: np.ndarray  # [n]
    members: int = 0  # of the whole mixture, where each row is here predicted by some of them; 0: by all


class Correction(NamedTuple):
    """A corrected likelihood, and figures: a coverage of 90 % intervals, or nats of a row beside those of the classes'
    frequencies; before and after. `settings` make the same likelihood again (`with_settings`); None leave it alone.
    `honest` is False where the correction did not do."""

    likelihood: Any
    settings: dict[str, Any] | None
    honest: bool
    facts: dict[str, Any]
    sentence: str


def corrected(
    parts: Sequence[Unseen], frequencies: np.ndarray | None = None, always: bool = False, narrower: float = 0.0
) -> Correction:
    """The likelihood after what unseen rows say of it.

    Numbers and counts: the factor s of the noise (`Stretched`, `Overdispersed`) at which intervals of 80, 90 and 95 %
    hold, on average over the three, as many rows as they say: mean_l (coverage_l(s) − l) = 0, which rises with s.
    Outliers do not move it. Classes: temperature and share of the frequencies by maximum likelihood (`Tempered`); at a
    share of 1 the prediction is the frequencies', so that on these rows it is never worse.

    Args:
        parts: rows of fits that had not seen them, such as one part for each fold.
        frequencies: of the classes among the training rows.
        always: True takes the best correction; False leaves a likelihood alone where it is right as far as so many
            rows can tell.
        narrower: the share of s² that noise has to lose, because the whole mixture errs less on new rows, and spreads
            more, than those who predicted these (`disagreement`).
    """
    weight = np.concatenate([part.weight for part in parts]).astype(np.float64)
    rows = float(weight.sum() ** 2 / np.square(weight).sum()) if weight.sum() > 0 else 0.0
    if rows < FEWEST:
        warning = f"Warning: {rows:.0f} rows outside of training are too few to tell whether error bars are honest."
        return Correction(parts[0].likelihood, None, False, {"rows": int(rows)}, warning)
    if parts[0].likelihood.kind == "classes":
        assert frequencies is not None
        return _classes(parts, frequencies, rows, always)
    return _numbers(parts, rows, always, narrower)


def with_settings(likelihood: Any, settings: dict[str, Any]) -> Any:
    """The likelihood with a correction whose settings are known; that of a stack in each of its parts."""
    if isinstance(likelihood, Mixed):
        return dataclasses.replace(likelihood, parts=tuple(with_settings(part, settings) for part in likelihood.parts))
    if "heat" in settings:
        log_frequencies = np.log(np.asarray(settings["frequencies"], np.float64)).tolist()
        return Tempered(likelihood, settings["heat"], settings["share"], tuple(log_frequencies))
    able = capability(likelihood, StretchedLikelihood)
    if able is not None:
        return able.stretched(settings["factor"])
    kind = Overdispersed if likelihood.kind == "counts" else Stretched
    return kind(likelihood, settings["factor"])


# ---------------------------------------------------------------------- numbers and counts
def _numbers(parts: Sequence[Unseen], rows: float, always: bool, narrower: float) -> Correction:
    plain: Any = parts[0].likelihood
    ends = (LEAST if plain.kind == "counts" else NARROWEST), WIDEST
    before = float(coverages(parts)[LEVELS.index(LEVEL)])
    off = max(SLACK, SURE * math.sqrt(LEVEL * (1 - LEVEL) / rows))
    facts = {"rows": int(rows), "level": LEVEL, "coverage": before}
    if not always and abs(before - LEVEL) <= off and narrower < LEAST_NARROWER:
        return Correction(plain, None, True, facts, "")

    def stretched(factor: float) -> list[Unseen]:
        return [part._replace(likelihood=with_settings(plain, {"factor": factor})) for part in parts]

    low, high = math.log(ends[0]), math.log(ends[1])
    for _ in range(14):
        middle = 0.5 * (low + high)
        gap = float(np.mean(coverages(stretched(math.exp(middle))) - LEVELS))
        low, high = (middle, high) if gap < 0 else (low, middle)
    raw = math.exp(0.5 * (low + high))
    after = float(coverages(stretched(raw))[LEVELS.index(LEVEL)])
    factor = _for_all(parts, raw, ends)
    if narrower:
        factor = max(raw * math.sqrt(max(1.0 - narrower / raw**2, NARROWED)), ends[0])
    facts |= {"factor": factor, "coverage_after": after, "narrower": narrower}
    honest = bool(abs(after - LEVEL) <= off)
    if not honest and abs(before - LEVEL) < abs(after - LEVEL):  # wider counts of small mean are nearly all 0
        facts = {"rows": int(rows), "level": LEVEL, "coverage": before}
        warning = (
            f"Warning: on {rows:.0f} rows outside of training, 90 % intervals held {before:.0%}; no factor mends that."
        )
        honest = bool(abs(before - LEVEL) <= off)
        return Correction(plain, None, honest, facts, "" if honest else warning)
    settings = {"factor": factor}
    return Correction(
        with_settings(plain, settings),
        settings,
        honest,
        facts,
        _sentence(before, after, factor, rows, honest, narrower > 0),
    )


def _for_all(parts: Sequence[Unseen], factor: float, ends: tuple[float, float]) -> float:
    """The factor of the whole mixture, from that of the members that had not seen the rows.

    A mean of m members errs by v/m around that of all, v their variance, and their mixture knows v(1 − 1/m) of it. With
    M members the error is smaller and the mixture wider, by v(1/m − 1/M) each: that much less noise has to do.
    """
    part = parts[0]
    if part.members < 2 or part.likelihood.kind != "real":
        return factor
    weights = np.exp(part.log_weights)
    each = 1.0 / np.square(weights).sum(0)  # members of a row
    several = each > 1.5
    if not several.any():
        return factor
    means, noise = (np.asarray(x, np.float64) for x in _moments(part.likelihood, part.params, part.outputs))
    member_weights, count = weights[:, several, None], each[several][:, None]
    centre = (member_weights * means[:, several]).sum(0)
    spread = (member_weights * np.square(means[:, several] - centre)).sum(0) * count / (count - 1)
    ratio = float(np.mean(spread) / np.mean((member_weights * noise[:, several]).sum(0)))
    gained = float(np.mean(1.0 / each)) - 1.0 / part.members
    square = factor**2 - 2 * ratio * max(gained, 0.0)
    return float(np.clip(math.sqrt(max(square, NARROWED * factor**2)), *ends))


@jax.jit
def _moments(likelihood: Likelihood, params: PyTree, outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(likelihood.mean)(params, outputs), jax.vmap(likelihood.variance)(params, outputs)


def coverages(parts: Sequence[Unseen]) -> np.ndarray:
    """How often central intervals of each of `LEVELS` hold, on average over rows and entries of y.

    A count counts by the share of its step of the distribution function that lies inside: so coverage is the level
    where the model is right, which that of intervals that end at whole numbers is not.
    """
    each = [_mixture_cdf(part) for part in parts]
    upper, lower = (np.concatenate(x) for x in zip(*each))
    weight, step = np.concatenate([part.weight for part in parts]), upper - lower
    averages = []
    for level in LEVELS:
        low, high = 0.5 - level / 2, 0.5 + level / 2
        inside = np.clip(np.minimum(upper, high) - np.maximum(lower, low), 0.0, None)
        covered = np.where(step > 1e-9, inside / np.maximum(step, 1e-9), (upper >= low) & (upper <= high))
        averages.append(float(np.average(covered.mean(1), weights=weight)))
    return np.array(averages)


def _mixture_cdf(unseen: Unseen) -> tuple[np.ndarray, np.ndarray]:
    """P(Y ≤ y) and P(Y < y) of each row's mixture [n, k]."""
    weights = np.exp(unseen.log_weights)[..., None]
    cdfs = _cdfs(unseen.likelihood, unseen.params, unseen.outputs, unseen.targets)
    upper, lower = ((weights * np.nan_to_num(np.asarray(x, np.float64), nan=0.0)).sum(0) for x in cdfs)
    return upper, lower


@jax.jit
def _cdfs(likelihood: Any, params: PyTree, outputs: jax.Array, targets: jax.Array) -> tuple[jax.Array, jax.Array]:
    each = jax.vmap(likelihood.cdf, (0, 0, None))
    upper = each(params, outputs, targets)
    return upper, each(params, outputs, targets - 1.0) if likelihood.kind == "counts" else upper


def _sentence(before: float, after: float, factor: float, rows: float, honest: bool, mixture: bool = False) -> str:
    change = "wider" if factor >= 1 else "narrower"
    size = factor if factor >= 1 else 1 / factor
    sentence = f"On {rows:.0f} rows outside of training, 90 % intervals held {100 * before:.0f} %"
    if 0.95 <= factor <= 1.05:
        return "" if honest else f"Warning: {sentence[0].lower()}{sentence[1:]}; do not trust them."
    if mixture:
        sentence += f" for members one by one: noise was made {size:.2f} times {change} for the mixture of all."
    else:
        sentence += f": noise was made {size:.2f} times {change}, after which they hold {100 * after:.0f} %."
    if honest:
        return sentence
    return f"Warning: {sentence[0].lower()}{sentence[1:]} That is as far as it goes; do not trust them."


# ---------------------------------------------------------------------- classes
def _classes(parts: Sequence[Unseen], frequencies: np.ndarray, rows: float, always: bool) -> Correction:
    plain = parts[0].likelihood
    labels = np.concatenate([part.targets for part in parts]).astype(int).ravel()
    weight = np.concatenate([part.weight for part in parts]).astype(np.float64)
    each = [np.asarray(_log_probs(plain, part.params, part.outputs), np.float64) for part in parts]
    baseline = np.log(frequencies)[labels]

    def row_log_probs(heat: float) -> np.ndarray:
        """log p(y) of each row's mixture at a temperature."""
        return np.concatenate([_mixture_log_probs(log_probs / heat, part) for log_probs, part in zip(each, parts)])

    before, worst = float(np.average(row_log_probs(1.0), weights=weight)), float(np.average(baseline, weights=weight))
    facts: dict[str, Any] = {"rows": int(rows), "log_likelihood": before, "log_likelihood_of_frequencies": worst}
    after, share, heat = max((*_best_share(row_log_probs(heat), baseline, weight), float(heat)) for heat in HEATS)
    if not always and (after - before) * rows <= NATS:
        return Correction(plain, None, True, facts, "")
    settings = {"heat": heat, "share": share, "frequencies": frequencies.tolist()}
    facts |= {"heat": heat, "share": share, "log_likelihood_after": after}
    sentence = ""
    if (after - before) * rows > NATS:
        sentence = (
            f"On {rows:.0f} rows outside of training, log loss was {-before:.3f} (that of the classes' frequencies "
            f"{-worst:.3f}): probabilities were {_cooled(heat, share)}, after which it is {-after:.3f}."
        )
    return Correction(with_settings(plain, settings), settings, True, facts, sentence)


def _mixture_log_probs(tempered: np.ndarray, part: Unseen) -> np.ndarray:
    """log p(y) of each row's mixture, from log probabilities [K, n, C] up to a constant."""
    labels = part.targets.astype(int).ravel()
    each = tempered[:, np.arange(len(labels)), labels] - logsumexp(tempered, axis=-1)
    return logsumexp(each + part.log_weights, axis=0)


def _cooled(heat: float, share: float) -> str:
    words = f"{'flattened' if heat > 1 else 'sharpened'} (temperature {heat:.2f})" if abs(heat - 1) > 0.02 else ""
    drawn = f"drawn {100 * share:.0f} % of the way to the frequencies" if share > 0.005 else ""
    return " and ".join(word for word in (words, drawn) if word) or "left as they are"


def _best_share(log_probs: np.ndarray, baseline: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """The largest mean of log((1 − w) p + w π), which is concave in w, and w."""

    def loss(share: float) -> float:
        mixed = np.logaddexp(np.log1p(-share) + log_probs, np.log(share) + baseline) if share > 0 else log_probs
        return -float(np.average(mixed, weights=weight))

    from scipy.optimize import minimize_scalar

    optimum = minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-3})
    share = 0.0 if loss(0.0) <= optimum.fun else float(optimum.x)
    return -loss(share), share


@jax.jit
def _log_probs(likelihood: Any, params: PyTree, outputs: jax.Array) -> jax.Array:
    return jax.vmap(likelihood.log_probs)(params, outputs)


def at_frequencies(labels: np.ndarray, weight: np.ndarray, classes: int) -> np.ndarray:
    """Frequencies of the classes, with half a row more of each: no class is impossible.

    Example:
        >>> import numpy as np
        >>> at_frequencies(np.array([0, 0, 1]), np.ones(3), 2).tolist()
        [0.625, 0.375]
    """
    counts = np.bincount(labels.astype(int).ravel(), weight, minlength=classes) + 0.5
    return counts / counts.sum()
