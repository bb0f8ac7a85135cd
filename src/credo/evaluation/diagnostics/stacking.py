"""Weights of chains that sit in different modes: by how well each would have predicted rows that it had not seen."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from credo.errors import Refusal
from credo.evaluation.diagnostics.best_mixture import best_mixture
from credo.evaluation.diagnostics.left_out import left_out
from credo.evaluation.diagnostics.model_choice import LEAST_DRAWS, pointwise
from credo.methods.population.pareto_smoothing import good_shape
from credo.posteriors import Samples


class StackedChains(NamedTuple):
    """A fit whose chains are weighted.

    Attributes:
        fit: the fit, with these weights in its posterior.
        weights: of the chains [chain]; they sum to 1.
        elpd: Σ_n log p(y_n | y_−n) of every chain alone, of their equal mixture and of the weighted one.
        pareto_k: k̂ of every chain and row [chain, n].
        sentences: where leave-one-out cannot be relied on.
    """

    fit: Any
    weights: np.ndarray
    elpd: dict[str, Any]
    pareto_k: np.ndarray
    sentences: tuple[str, ...]


def stack(fit: Any, data: Any) -> StackedChains:
    """Weigh chains by stacking: max over w of Σ_n log Σ_c w_c p_c(y_n | y_−n), with w_c ≥ 0 and Σ_c w_c = 1.

    Chains that never meet cannot tell how much mass their modes have, so that equal weights are a guess. Stacking takes
    the mixture that would have predicted left-out rows best; each chain's p_c(y_n | y_−n) is leave-one-out by
    Pareto-smoothed importance sampling. Yao, Vehtari and Gelman (2022), Stacking for non-mixing Bayesian computations.

    Args:
        fit: of chains or members with stored draws.
        data: the training data, (inputs, targets).

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), credo.methods.HMC(chains=2, warmup=50), steps=100)
        >>> bool(np.isclose(credo.diagnostics.stack(fit, (x, y)).weights.sum(), 1))
        True
    """
    posterior = fit.posterior
    if not isinstance(posterior, Samples):
        raise Refusal("Stacking weighs chains by their draws, and this posterior is a distribution, not draws.")
    if posterior.members < 2:
        raise Refusal("Stacking weighs chains against each other, and there is only one.")
    if posterior.available < LEAST_DRAWS:
        raise Refusal(
            f"Leave-one-out reweights the draws of each chain: {posterior.available} are too few (at least "
            f"{LEAST_DRAWS}); keep more draws."
        )
    values = pointwise(fit, data, None, None)
    rows, shapes = left_out(values)
    weights = best_mixture(rows)
    chains, draws = values.shape[:2]
    with np.errstate(divide="ignore"):  # a weight may be 0
        log_weights = np.broadcast_to(np.log(weights / draws)[:, None], (chains, draws)).astype(np.float32)
    stacked = dataclasses.replace(posterior, weights=log_weights)
    elpd = {
        "chains": rows.sum(1),
        "equal": float((logsumexp(rows, axis=0) - np.log(chains)).sum()),
        "stacked": float(logsumexp(rows, axis=0, b=weights[:, None]).sum()),
    }
    bad = int((shapes > good_shape(draws)).any(0).sum())
    sentence = (
        f"k-hat is above {good_shape(draws):.2f} in some chain for {bad} of {shapes.shape[1]} rows, so that the "
        "weights are rough: longer chains make them better."
    )
    weighted = dataclasses.replace(fit, posterior=stacked, known=None)
    return StackedChains(weighted, weights, elpd, shapes, (sentence,) if bad else ())
