"""Scores with intervals: how much of a score is the luck of which rows were tested."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import share
from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.evaluation.metrics.terms import Score, checked_weights, padded

NUMBERS = 2**22  # weights of rows held at once, over all resamples of one program


class Interval(NamedTuple):
    """A score on the rows at hand, and the ends of its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def with_interval(
    score: Score,
    predictive: Predictive,
    targets: Any = None,
    *,
    key: jax.Array,
    level: float = 0.9,
    resamples: int = 1000,
    weights: Any = None,
) -> Any:
    """A score with its percentile bootstrap interval: rows drawn again with replacement, the fit held fixed.

    A resample is a set of multinomial weights of rows, so terms of rows are computed once. Where a score does not
    exist on a resample (one class only), that resample does not count. Efron and Tibshirani (1993), An Introduction
    to the Bootstrap, chapter 13.

    Args:
        score: such as `metrics.rmse`, or with options `metrics.coverage.given(level=0.5)`.
        predictive: the predictions.
        targets: what came true.
        key: a JAX key; the same key gives the same interval.
        level: the probability of the interval.
        resamples: how many.
        weights: of rows.

    Returns:
        An `Interval`, or a tuple of them where the score has parts (`brier_decomposition`).

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.evaluation import metrics
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(9 * x[:, 0])), "map", steps=100)
        >>> predictive = credo.predict(jax.random.key(1), fit, x)
        >>> rmse = metrics.with_interval(metrics.rmse, predictive, np.sin(9 * x[:, 0]), key=jax.random.key(2))
        >>> rmse.low < rmse.value < rmse.high
        True
    """
    terms = score.terms(predictive, targets)
    return bootstrap(terms.function, *terms.arrays, key=key, level=level, resamples=resamples, weights=weights,
                     options=terms.options)  # fmt: skip


def difference(
    score: Score,
    first: Predictive,
    second: Predictive,
    targets: Any = None,
    *,
    key: jax.Array,
    level: float = 0.9,
    resamples: int = 1000,
    weights: Any = None,
) -> Any:
    """score(first) − score(second) on the same rows, with its paired bootstrap interval.

    Each resample takes the same rows for both, so what makes rows hard for both cancels: the interval is the one to
    ask whether one is better, not whether two intervals overlap.
    """
    if len(first) != len(second):
        raise InputError(f"A paired difference needs predictions at the same rows, got {len(first)} and {len(second)}.")
    a, b = (score.terms(predictive, targets) for predictive in (first, second))
    if (a.function, a.options, len(a.arrays)) != (b.function, b.options, len(b.arrays)):
        raise InputError("A paired difference needs two predictions of one kind.")
    return bootstrap(_gap, *a.arrays, *b.arrays, key=key, level=level, resamples=resamples, weights=weights,
                     options=(("function", a.function), ("options", a.options)))  # fmt: skip


def _gap(*arrays: jax.Array, function: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Any:
    *terms, weights = arrays
    half = len(terms) // 2
    values = [function(*part, weights, **dict(options)) for part in (terms[:half], terms[half:])]
    return jax.tree.map(jnp.subtract, *values)


def bootstrap(
    function: Callable[..., Any],
    *arrays: Any,
    key: jax.Array,
    level: float = 0.9,
    resamples: int = 1000,
    weights: Any = None,
    options: tuple[tuple[str, Any], ...] = (),
) -> Any:
    """Any pure function of (arrays of n rows…, weights, **options), with its interval; see `with_interval`.

    Example:
        >>> import jax, numpy as np
        >>> from credo.evaluation import metrics
        >>> scores, labels = np.arange(40.0), np.arange(40) > 15
        >>> metrics.bootstrap(metrics.arrays.auroc, scores, labels, key=jax.random.key(0))
        Interval(value=1.0, low=1.0, high=1.0)
    """
    share(level, "The level of an interval")
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, got {resamples}.")
    rows = len(arrays[0])
    row_weights = checked_weights(weights, rows)
    with jax.enable_x64(True):
        terms, mass = padded(tuple(np.asarray(a) for a in arrays), row_weights)
        at_once = min(resamples + 1, max(1, NUMBERS // len(mass)))
        parts = [
            jax.tree.map(np.asarray, _resample(function, options, terms, mass, rows, key, start + np.arange(at_once)))
            for start in range(-1, resamples, at_once)
        ]
    scores = jax.tree.map(lambda *x: np.concatenate(x)[: resamples + 1], *parts)
    tails = (0.5 - level / 2, 0.5 + level / 2)
    return jax.tree.map(lambda x: Interval(float(x[0]), *defined_quantiles(x[1:], tails)), scores)


def defined_quantiles(scores: np.ndarray, tails: tuple[float, float]) -> tuple[float, float]:
    """Two quantiles of the scores that are not NaN; NaN where none is."""
    defined = scores[~np.isnan(scores)]
    if len(defined) == 0:
        return np.nan, np.nan
    low, high = np.quantile(defined, tails)
    return float(low), float(high)


@partial(jax.jit, static_argnums=(0, 1))
def _resample(
    function: Callable[..., Any], options: Any, arrays: Any, weights: jax.Array, rows: Any, key: jax.Array, which: Any
) -> Any:
    """The score under the resamples of these numbers; number −1 is the rows as they are."""

    def one(index: jax.Array) -> Any:
        width = len(weights)
        row_indices = jax.random.randint(jax.random.fold_in(key, index), (width,), 0, rows, jnp.int32)
        row_indices = jnp.where(jnp.arange(width) < rows, row_indices, width)  # as many draws as there are real rows
        counts = jnp.zeros(width).at[row_indices].add(1.0, mode="drop")
        return function(*arrays, weights * jnp.where(index < 0, 1.0, counts), **dict(options))

    return jax.vmap(one)(which)
