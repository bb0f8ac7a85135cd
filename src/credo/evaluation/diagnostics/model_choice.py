"""Which model predicts better? Leave-one-out cross-validation and WAIC from the draws of one fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from credo.core.capabilities import StoredPosterior, ask
from credo.core.draws import log_likelihood_draws
from credo.core.short import fields_in_short
from credo.errors import InputError, Refusal
from credo.evaluation.diagnostics.best_mixture import best_mixture
from credo.evaluation.diagnostics.chains import ess
from credo.evaluation.diagnostics.data import canonical
from credo.evaluation.diagnostics.draw_weights import importance
from credo.evaluation.diagnostics.left_out import left_out
from credo.methods.population.pareto_smoothing import good_shape
from credo.posteriors import Stacked
from credo.training.config import beta_of

LEAST_DRAWS = 100


@dataclasses.dataclass(frozen=True)
class Elpd:
    """An estimate of Σ_n log p(y_n | y_−n), the expected log predictive density of new rows, in nats.

    Attributes:
        kind: "loo" or "waic".
        elpd: the estimate; higher is better.
        se: its standard error over rows.
        p: the effective number of parameters.
        pointwise: of every row [n].
        pareto_k: k̂ of every row [n] (loo).
        good_k: the bound above which a row's estimate is not reliable (loo).
        sentences: what to know before believing it; empty where nothing is wrong.
    """

    kind: str
    elpd: float
    se: float
    p: float
    pointwise: np.ndarray = dataclasses.field(repr=False)
    pareto_k: np.ndarray | None = dataclasses.field(repr=False, default=None)
    good_k: float | None = None
    sentences: tuple[str, ...] = ()

    __repr__ = fields_in_short

    def __str__(self) -> str:
        first = f"elpd_{self.kind} is {self.elpd:.1f} ± {self.se:.1f}, with {self.p:.1f} effective parameters."
        return " ".join([first, *self.sentences])


@dataclasses.dataclass(frozen=True)
class ModelComparison:
    """Models ordered by elpd.

    Attributes:
        table: a DataFrame, best first: rank, elpd, its standard error (se) and effective number of parameters (p), the
            best one's elpd less this one's (elpd_diff) and its standard error (dse), and the stacking weight.
        sentences: who wins, whether the difference is more than chance, and which estimates are not reliable.
    """

    table: Any
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.table), *self.sentences])


def loo(fit: Any, data: Any, *, key: jax.Array | None = None, num: int | None = None) -> Elpd:
    """Leave-one-out cross-validation without refitting, by Pareto-smoothed importance sampling.

    p(y_n | y_−n) = 1 / E[1/p(y_n | θ)] over the posterior; the weights 1/p(y_n|θ) are smoothed, and their k̂ tells
    where that fails. They are right where each row counts once: fits with a temperature, a β or weights of rows are
    refused. Vehtari, Gelman and Gabry (2017).

    Args:
        fit: the result of `credo.fit`, with draws of a posterior.
        data: the training data, (inputs, targets). A loaded fit has forgotten whether they had weights, and cannot
            refuse.
        key: for draws that are made afresh.
        num: draws over all members; None takes all that are stored, or 1,000 of a distribution.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> y = x[:, 0] + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), "bayes_by_backprop", steps=1000)
        >>> credo.diagnostics.loo(fit, (x, y)).sentences
        ()
    """
    values = pointwise(fit, data, key, num)
    draws = values.reshape(-1, values.shape[2])
    rows, shapes = left_out(draws, _efficiency(fit, values))
    good = good_shape(len(draws))
    bad = int((shapes > good).sum())
    sentence = (
        f"k-hat is above {good:.2f} for {bad} of {len(shapes)} rows (largest {shapes.max():.2f}), whose "
        "estimates are not reliable: they move the posterior much; leave them out and fit again, or use a more "
        "robust likelihood."
    )
    parameters = float((_log_mean(values) - rows).sum())
    return Elpd("loo", float(rows.sum()), _error(rows), parameters, rows, shapes, good, (sentence,) if bad else ())


def waic(fit: Any, data: Any, *, key: jax.Array | None = None, num: int | None = None) -> Elpd:
    """WAIC = Σ_n log E[p(y_n|θ)] − Σ_n Var[log p(y_n|θ)]; `loo` says when it fails, this does less.

    The variances sum to the effective number of parameters. Watanabe (2010), Asymptotic equivalence of Bayes cross
    validation and widely applicable information criterion.

    Args:
        fit, data, key, num: as in `loo`.
    """
    values = pointwise(fit, data, key, num)
    spread = values.var((0, 1))
    rows = _log_mean(values) - spread
    large = int((spread > 0.4).sum())
    sentence = (
        f"The log density of {large} of {values.shape[2]} rows varies by more than 0.4 over the posterior, where "
        "WAIC is not reliable: use loo."
    )
    sentences = (sentence,) if large else ()
    return Elpd("waic", float(rows.sum()), _error(rows), float(spread.sum()), rows, sentences=sentences)


def compare(
    fits: Mapping[str, Any], data: Any, *, ic: str = "loo", key: jax.Array | None = None, num: int | None = None
) -> ModelComparison:
    """Models that were fitted to the same rows, by leave-one-out or WAIC, with stacking weights.

    Stacking chooses the mixture of predictive distributions that would have predicted the left-out rows best (Yao,
    Vehtari, Simpson and Gelman, 2018).

    Args:
        fits: name → fit.
        data: the rows that all of them learned from.
        ic: "loo" or "waic".
        key, num: as in `loo`.
    """
    if ic not in ("loo", "waic"):
        raise InputError(f'ic must be "loo" or "waic", got {ic!r}.')
    if len(fits) < 2:
        raise InputError(f"A comparison needs at least two fits, got {len(fits)}.")
    estimate = loo if ic == "loo" else waic
    estimates = {name: estimate(fit, data, key=key, num=num) for name, fit in fits.items()}
    table = _table(estimates)
    best, second = table.index[0], table.index[1]
    gap, error = float(table["elpd_diff"].iloc[1]), float(table["dse"].iloc[1])
    # Below four nats a difference is small, and its standard error too low (Sivula et al., 2020).
    sure = "more than chance explains" if gap > max(2 * error, 4.0) else "no more than chance could explain"
    sentences = [f"{best} predicts best: {gap:.1f} ± {error:.1f} nats above {second}, {sure}."]
    sentences += [f"{name}: {sentence}" for name, one in estimates.items() for sentence in one.sentences]
    return ModelComparison(table, tuple(sentences))


def pointwise(fit: Any, data: Any, key: jax.Array | None, num: int | None) -> np.ndarray:
    """log p(y_n | θ) [chain, draw, n] in double precision."""
    posterior = fit.posterior
    if isinstance(posterior, Stacked):
        raise Refusal(
            "Leave-one-out from one fit reweights draws of one posterior, and a stack has several: ask each of the "
            "fits that it is made of, or score it on rows that were held out."
        )
    if ask(posterior, StoredPosterior).log_weights is not None:
        raise Refusal("Leave-one-out needs draws of equal weight, and these are weighted; sample from them first.")
    _check_powers(fit)
    afresh = ask(posterior, StoredPosterior).available is None
    num = 1000 * posterior.num_draws(None)[0] if num is None and afresh else num
    members, each = posterior.num_draws(num)
    if members * each < LEAST_DRAWS:
        raise Refusal(
            f"Leave-one-out from one fit reweights draws of the posterior: {members * each} are too few (at least "
            f"{LEAST_DRAWS}); use a sampler or a variational method, or cross-validate by fitting again."
        )
    inputs, _, weight = canonical(fit, data)
    if not (weight == 1).all():
        raise Refusal("Leave-one-out counts every row once: give data without weights.")
    key = jax.random.key(0) if key is None else key
    return log_likelihood_draws(key, fit, inputs, data[1], num).astype(np.float64)


def _check_powers(fit: Any) -> None:
    """A row that is left out must have counted once: the weights 1/p(y_n|θ) take out just that."""
    beta, temperature = beta_of(fit.config.get("settings")), float(fit.model.temperature)
    if beta != 1 or temperature != 1:
        raise Refusal(
            "Leaving a row out divides the posterior by p(y_n|θ), but rows stand in this one as p(y_n|θ)^(1/(βT)) with "
            f"β = {beta:g} and T = {temperature:g}: fit with beta=1 and temperature=1."
        )
    if fit.loop is not None and not (np.asarray(fit.loop.source.weight) == 1).all():
        raise Refusal(
            "Leaving a row out divides the posterior by p(y_n|θ), but rows stand in this one as p(y_n|θ)^w with their "
            "weights w: fit without weights."
        )


def _table(estimates: Mapping[str, Elpd]) -> Any:
    """Estimates, best first, with their differences to the best and the weights of stacking."""
    import pandas as pd

    order = sorted(estimates, key=lambda name: -estimates[name].elpd)
    rows = np.stack([estimates[name].pointwise for name in order])
    gaps = rows[0] - rows
    columns = {
        "rank": range(len(order)),
        "elpd": [estimates[name].elpd for name in order],
        "se": [estimates[name].se for name in order],
        "p": [estimates[name].p for name in order],
        "elpd_diff": gaps.sum(1),
        "dse": [_error(gap) for gap in gaps],
        "weight": best_mixture(rows),
    }
    return pd.DataFrame(columns, index=order)


def _log_mean(values: np.ndarray) -> np.ndarray:
    """log E[p(y_n | θ)] of every row."""
    return logsumexp(values, axis=(0, 1)) - np.log(values[:, :, 0].size)


def _error(rows: np.ndarray) -> float:
    """The standard error of a sum over rows that are a sample."""
    return float(np.sqrt(len(rows) * rows.var()))


def _efficiency(fit: Any, values: np.ndarray) -> float:
    """ESS/S of the likelihoods, averaged over rows; 1 for independent draws."""
    if ask(fit.posterior, StoredPosterior).available is None:
        return 1.0
    if (weights := importance(fit.posterior)) is not None:  # draws that were chosen by weight repeat, in random order
        return float(np.clip(weights.worth / weights.draws, 1e-3, 1.0))
    sizes = ess(np.exp(values - values.max((0, 1))), "mean")
    return float(np.clip(np.nanmean(sizes) / values[:, :, 0].size, 1e-3, 1.0))
