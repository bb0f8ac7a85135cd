"""Posterior predictive checks: would the model make data like those it saw?"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.draws import function_draws
from credo.core.posterior import Draws
from credo.core.short import fields_in_short, name_of
from credo.errors import InputError
from credo.evaluation.diagnostics.data import canonical
from credo.evaluation.diagnostics.inference_data import replicate

Statistic = Callable[[np.ndarray], Any]
STATISTICS: dict[str, Statistic] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}
MOST_CLASSES = 10
EXTREME = 0.01


@dataclasses.dataclass(frozen=True)
class PredictiveCheck:
    """One statistic of the data beside the same statistic of data that the model makes.

    Attributes:
        name: of the statistic.
        observed: T(y).
        replicated: T(y_rep) for every draw.
        p_value: P(T(y_rep) > T(y)) + ½ P(T(y_rep) = T(y)); near 0 or 1 the model does not make data like these.
    """

    name: str
    observed: float
    replicated: np.ndarray = dataclasses.field(repr=False)
    p_value: float

    __repr__ = fields_in_short

    def __str__(self) -> str:
        low, high = np.quantile(self.replicated, [0.05, 0.95])
        first = f"The {self.name} of the data is {self.observed:.4g}; the model makes {low:.4g} to {high:.4g}"
        if EXTREME <= self.p_value <= 1 - EXTREME:
            return f"{first} (p = {self.p_value:.2f})."
        return f"{first} (p = {self.p_value:.3f}): it does not make data like these."


def posterior_predictive_check(
    key: jax.Array,
    fit: Any,
    data: Any,
    statistic: str | Statistic | Mapping[str, Statistic] | None = None,
    num: int | None = None,
) -> dict[str, PredictiveCheck]:
    """Statistics of replicated data y_rep ~ p(y | θ), θ ~ p(θ | D), beside those of the data.

    Gelman, Meng and Stern (1996). Values lean towards ½, since the model has seen the data: an extreme one says much,
    an ordinary one little.

    Args:
        key: for draws and noise.
        fit: the result of `credo.fit` or `credo.load`.
        data: (inputs, targets).
        statistic: "mean", "std", "min" or "max", a function of the targets, a mapping of such functions, or None for
            those that suit the targets (for counts also the share of zeros, for classes the share of each).
        num: draws over all members; None takes all that are stored, or 200 of each member.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> y = x[:, 0] + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), "bayes_by_backprop", steps=1000)
        >>> checks = credo.diagnostics.posterior_predictive_check(jax.random.key(1), fit, (x, y))
        >>> [name for name, check in checks.items() if 0.01 < check.p_value < 0.99]
        ['mean', 'std', 'min', 'max']
    """
    inputs, targets, _ = canonical(fit, data)
    key_draws, key_noise = jax.random.split(key)
    draws = _evenly(function_draws(key_draws, fit, inputs, num))
    replicated = replicate(key_noise, fit.model.likelihood, draws)
    replicated = replicated.reshape(-1, *replicated.shape[2:])
    if targets.ndim == 2 and fit.target_shape == ():
        targets, replicated = targets[:, 0], replicated[..., 0]
    statistics = _statistics(statistic, fit.model.likelihood.kind, targets, replicated)
    checks = {}
    for name, function in statistics.items():
        observed = float(function(targets))
        each = np.array([float(function(y)) for y in replicated])
        above = float((each > observed).mean() + 0.5 * (each == observed).mean())
        checks[name] = PredictiveCheck(name, observed, each, above)
    return checks


def _statistics(
    statistic: str | Statistic | Mapping[str, Statistic] | None, kind: str, targets: np.ndarray, replicated: np.ndarray
) -> dict[str, Statistic]:
    if isinstance(statistic, Mapping):
        return dict(statistic)
    if callable(statistic):
        return {name_of(statistic).strip("<>"): statistic}
    if statistic is not None:
        if statistic not in STATISTICS:
            raise InputError(f"A statistic is one of {', '.join(STATISTICS)}, or a function, got {statistic!r}.")
        if kind == "classes":
            raise InputError(f"Classes have no {statistic}: leave statistic out, or give a function of class indices.")
        return _per_output({statistic: STATISTICS[statistic]}, targets)
    if kind == "classes":
        count = min(MOST_CLASSES, int(max(targets.max(), replicated.max())) + 1)
        return {f"share of class {c}": partial(_share, value=c) for c in range(count)}
    more: dict[str, Statistic] = {"share of zeros": partial(_share, value=0)} if kind == "counts" else {}
    return _per_output(STATISTICS | more, targets)


def _per_output(statistics: dict[str, Statistic], targets: np.ndarray) -> dict[str, Statistic]:
    """One statistic for each column where targets have several."""
    if targets.ndim == 1:
        return statistics
    columns = range(targets.shape[1])
    column = lambda y, f, i: f(y[:, i])  # noqa: E731
    return {f"{name} of output {i + 1}": partial(column, f=f, i=i) for i in columns for name, f in statistics.items()}


def _share(y: np.ndarray, value: int) -> float:
    return float(np.mean(y == value))


def _evenly(draws: Draws) -> Draws:
    """Draws of equal weight: weighted ones are taken as often as they weigh (systematic resampling)."""
    if draws.log_weights is None:
        return draws
    weights = np.exp(np.asarray(draws.log_weights, np.float64)).ravel()
    levels = (np.arange(len(weights)) + 0.5) / len(weights)
    index = np.minimum(np.searchsorted(np.cumsum(weights / weights.sum()), levels), len(weights) - 1)
    members, each = draws.values.shape[:2]

    def pick(x: Any) -> Any:
        return x.reshape(members * each, *x.shape[2:])[index].reshape(x.shape)

    return Draws(pick(draws.values), jax.tree.map(pick, draws.likelihood), None)
