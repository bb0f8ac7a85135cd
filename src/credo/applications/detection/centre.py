"""The network at the centre of a posterior: what an attacker aims at who does not know that there is a spread."""

import dataclasses
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import CentredPosterior, StoredPosterior, ask, capability
from credo.core.network import Variables
from credo.errors import Refusal
from credo.posteriors.dropout import ActivationDropout, WeightDropout
from credo.posteriors.linearised import Linearised
from credo.posteriors.samples import Samples
from credo.posteriors.subset import SubsetPosterior


def centre_of(posterior: Any) -> Any:
    """The posterior with one draw for each member, at its mean: the weights without their spread, or without masks.

    Members of an ensemble stay apart, because the mean of their weights is no network that fits. For the same reason
    chains are refused: a posterior over weights has many modes that differ in the order of hidden units, and the mean
    over them is at none.

    Args:
        posterior: that of a fit.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 20)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0] > 0), "laplace", steps=50)
        >>> credo.applications.detection.centre_of(fit.posterior).num_draws(None)
        (1, 1)
    """
    if isinstance(posterior, Samples):
        if posterior.available > 1:
            raise Refusal(
                "The mean of a chain's weights is no draw of the posterior, because hidden units may change places "
                'along it: attack through="predictive".'
            )
        return posterior
    if isinstance(posterior, SubsetPosterior):
        return dataclasses.replace(posterior, inner=centre_of(posterior.inner))
    if isinstance(posterior, Linearised):
        return centre_of(posterior.weights)
    if isinstance(posterior, WeightDropout | ActivationDropout):
        return _point(Variables(posterior.params, posterior.state))
    if capability(posterior, CentredPosterior) is not None:
        return _point(Variables(posterior.mean | posterior.points, posterior.state))
    raise Refusal(f'{type(posterior).__name__} has no mean over weights: attack through="predictive".')


def _point(variables: Variables) -> Samples:
    return Samples(jax.tree.map(lambda x: np.asarray(x)[:, None], variables.params), variables.state)


def fewer(key: jax.Array, posterior: Any, num: int | None) -> Any:
    """The posterior with other stored draws in each call, where it stores more than are asked for.

    `outputs` takes evenly spaced ones whatever its key; where draws are made afresh nothing needs doing. Weighted draws
    are taken by the weight of their position along the chain, which all chains share.
    """
    if isinstance(posterior, SubsetPosterior):
        return dataclasses.replace(posterior, inner=fewer(key, posterior.inner, num))
    if not isinstance(posterior, Samples) or posterior.num_draws(num)[1] == posterior.available:
        return posterior
    count, weights = posterior.num_draws(num)[1], posterior.weights
    if weights is None:
        index = jax.random.permutation(key, posterior.available)[:count]
    else:
        log_probs = jax.scipy.special.logsumexp(weights, axis=0)
        index = jax.random.categorical(key, log_probs, shape=(count,))
        weights = weights[:, index] - log_probs[index]
    params = jax.tree.map(lambda x: x[:, index], posterior.params)
    return dataclasses.replace(posterior, params=params, weights=weights)


def in_memory(posterior: Any, num: int | None) -> Any:
    """The posterior with the draws that are asked for read from disk, where they lie there."""
    if not ask(posterior, StoredPosterior).on_disk:
        return posterior
    if posterior.log_weights is not None:
        raise Refusal("Weighted draws on disk cannot be attacked through: give a fit with fewer draws.")
    return posterior.part(np.arange(posterior.members), posterior.chosen(num))
