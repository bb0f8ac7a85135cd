"""Is q close enough to the posterior? The Pareto shape of its importance weights."""

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import CentredPosterior, ask
from credo.core.distribution import ParamDistribution
from credo.core.draws import log_likelihood_draws
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.short import fields_in_short
from credo.errors import InputError, NoDensity
from credo.evaluation.diagnostics.data import canonical
from credo.methods.population.pareto_smoothing import good_shape, pareto_smooth

ROWS = 4096  # rows whose log likelihoods under all draws are held together


@dataclasses.dataclass(frozen=True)
class ParetoK:
    """The Pareto shape of importance weights.

    Attributes:
        k: k̂ of the largest weights (the worst member's, where members have points of their own).
        good: the bound below which importance sampling with so many draws works, min(1 − 1/log₁₀ S, 0.7).
        ess: 1/Σw² of the smoothed weights: how many draws of the posterior the draws of q are worth.
        log_weights: smoothed and normalised [draw].
    """

    k: float
    good: float
    ess: float
    log_weights: np.ndarray = dataclasses.field(repr=False)

    __repr__ = fields_in_short

    @property
    def ok(self) -> bool:
        """Is q close enough to be corrected by weights?"""
        return bool(self.k < self.good)

    def __str__(self) -> str:
        text = f"Pareto k-hat of q is {self.k:.2f}"
        if self.ok:
            return f"{text} (below {self.good:.2f}): q is close enough to the posterior to be corrected by weights."
        return (
            f"{text} (above {self.good:.2f}): q misses parts of the posterior; do not trust its tails, and use a "
            "richer posterior or a sampler."
        )


def pareto_k(key: jax.Array, fit: Any, data: Any, num: int = 1000) -> ParetoK:
    """k̂ of log w = log p(θ, D) − log q(θ) for θ ~ q, with the weights smoothed.

    Below 0.5 the weights have a variance; above 0.7 no number of draws will do. Parameters that are points beside q
    (learned noise) are held: the weights are those of the random parameters given the points. Where q predicts with the
    network's linearisation, p(θ, D) is that of the network itself. Where the fit has T ≠ 1, it is raised to 1/T, as in
    the fit; β is not undone, so that k̂ also tells how far β took q from the posterior.
    Yao, Vehtari, Simpson and Gelman (2018), Yes, but did it work? Evaluating variational inference; Vehtari et al.
    (2024), Pareto smoothed importance sampling.

    Args:
        key: for draws of q.
        fit: the result of `credo.fit` with a posterior that has a density.
        data: the training data, (inputs, targets) or with weights.
        num: draws of q.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "bayes_by_backprop", steps=1000)
        >>> credo.diagnostics.pareto_k(jax.random.key(1), fit, (x, x[:, 0])).ok
        True
    """
    posterior = fit.posterior
    if not isinstance(posterior, WeightPosterior) or not isinstance(posterior, ParamDistribution):
        raise NoDensity("This posterior has no density of weights; fit a variational or Laplace posterior to get one.")
    if num < 25:
        raise InputError(f"The tail of fewer than 25 weights cannot be judged, got num={num}.")
    if posterior.members > 1 and jax.tree.leaves(ask(posterior, CentredPosterior).points):
        # Each member has points of its own, hence is a posterior of its own.
        alone = [jax.tree.map(lambda x, m=m: x[m : m + 1], posterior) for m in range(posterior.members)]
    else:
        alone = [posterior]
    results = [_of_one(key, dataclasses.replace(fit, posterior=q, known=None), data, num) for q in alone]
    return max(results, key=lambda one: one.k)


def _of_one(key: jax.Array, fit: Any, data: Any, num: int) -> ParetoK:
    raw = log_weights(key, fit, data, num)
    with jax.enable_x64(True):
        tail = pareto_smooth(raw)
        return ParetoK(float(tail.k), good_shape(len(raw)), float(tail.effective), np.asarray(tail.log_weights))


def log_weights(key: jax.Array, fit: Any, data: Any, num: int) -> np.ndarray:
    """log p(θ, D) − log q(θ) [draw], summed over rows in double precision."""
    # A linearisation's likelihood is not that of θ, where q and the prior are looked at.
    fit = dataclasses.replace(fit, posterior=fit.posterior.view("sampled"), known=None)
    inputs, targets, weight = canonical(fit, data)
    prior, q = (np.asarray(x, np.float64) for x in _densities(key, jax.device_put(fit.posterior), fit.model, num))
    total = np.zeros(len(prior))
    for start in range(0, len(targets), ROWS):
        rows = slice(start, start + ROWS)
        block = jax.tree.map(lambda x, r=rows: x[r], inputs)
        # The same key gives the same θ to every block and to `_densities`.
        each = log_likelihood_draws(key, fit, block, targets[rows], num).reshape(len(prior), -1)
        total += each.astype(np.float64) @ weight[rows]
    return (prior + total) / float(fit.model.temperature) - q


@partial(jax.jit, static_argnames="num")
def _densities(key: jax.Array, posterior: Any, model: Model, num: int) -> tuple[jax.Array, jax.Array]:
    """log p(θ) and log q(θ) of the draws that `log_likelihood_draws` makes with this key."""
    draws = posterior.sample(key, num)
    return jax.lax.map(lambda params: (model.log_prior(params), posterior.log_prob(params)), draws)
