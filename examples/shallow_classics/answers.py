"""What one method says about one problem: its scores on rows that it has not seen, and what to draw."""

import dataclasses
from typing import Any

import jax
import numpy as np
from fits import Ahead, Learned, Sampler, fit_process, fit_rows, fit_series, process_series, shorter
from problems import Curve, Series

GRID, BEYOND = 200, 0.04  # points of a curve, and how far it goes beyond the data, as a share of their range


@dataclasses.dataclass(frozen=True)
class Answer:
    """What one method says about one problem.

    Attributes:
        log_likelihood, errors: of every row that was not learned from.
        fits: the fit to all training rows, then those of the folds.
        grid, along: a curve's inputs and the predictive there.
        ahead: a series' future.
    """

    log_likelihood: np.ndarray
    errors: np.ndarray
    fits: list[Learned]
    grid: np.ndarray | None = None
    along: Any = None
    ahead: Ahead | None = None


def answer_of(key: jax.Array, sampler: Sampler | None, problem: Curve | Series) -> Answer:
    """Fit and judge; None is the Gaussian process."""
    if isinstance(problem, Series):
        return _series(key, sampler, problem)
    return _with_test(key, sampler, problem) if problem.folds is None else _cross_validated(key, sampler, problem)


def _series(key: jax.Array, sampler: Sampler | None, series: Series) -> Answer:
    learned, ahead = process_series(series) if sampler is None else fit_series(key, sampler, series)
    values = series.values[series.num_train :]
    return Answer(ahead.one_step.log_prob(values), values - ahead.one_step.mean, [learned], ahead=ahead)


def _with_test(key: jax.Array, sampler: Sampler | None, curve: Curve) -> Answer:
    learned = _learn(key, sampler, curve.inputs[:, None], curve.targets)
    inputs, targets = curve.test
    found, grid = learned.predict(inputs[:, None]), _grid(curve)
    return Answer(found.log_prob(targets), targets - found.mean, [learned], grid, learned.predict(grid[:, None]))


def _cross_validated(key: jax.Array, sampler: Sampler | None, curve: Curve) -> Answer:
    """Each fold by a fit to the others, standardised on the others; the curve is that of all rows."""
    x, y, grid = curve.inputs[:, None], curve.targets, _grid(curve)
    fits = [_learn(key, sampler, x, y)]
    scores, errors = np.zeros(len(y)), np.zeros(len(y))
    for fold in np.unique(curve.folds):
        out = curve.folds == fold
        fits.append(_learn(jax.random.fold_in(key, 1 + fold), sampler and shorter(sampler), x[~out], y[~out]))
        found = fits[-1].predict(x[out])
        scores[out], errors[out] = found.log_prob(y[out]), y[out] - found.mean
    return Answer(scores, errors, fits, grid, fits[0].predict(grid[:, None]))


def _learn(key: jax.Array, sampler: Sampler | None, inputs: np.ndarray, targets: np.ndarray) -> Learned:
    return fit_process(inputs, targets) if sampler is None else fit_rows(key, sampler, inputs, targets)


def _grid(curve: Curve) -> np.ndarray:
    """The range of training and test inputs, and a little more."""
    known = curve.inputs if curve.test is None else np.concatenate([curve.inputs, curve.test[0]])
    low, high = known.min(), known.max()
    more = BEYOND * (high - low)
    return np.linspace(low - more, high + more, GRID)
