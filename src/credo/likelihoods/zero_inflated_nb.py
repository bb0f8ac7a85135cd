"""Counts with more zeros than a negative binomial has."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.densities import negative_binomial_log_prob
from credo.core.special import log_rate
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.likelihoods.base import OneParameter, checked_offset, log_normal_parameters, mode_and_value
from credo.likelihoods.negative_binomial import NegativeBinomial
from credo.likelihoods.zero_inflated import ZeroInflated


@struct
class ZeroInflatedNegativeBinomial(ZeroInflated, OneParameter):
    """y = 0 with probability π = 1/(1 + e^−g), else y ~ NB(μ, r) with log μ = f + offset; outputs are (f, g) of all
    entries of y, with one r for each; see `zero_inflated_negative_binomial`."""

    dispersion: str = "learned"
    value: Any = leaf(default=None)
    prior_loc: Any = leaf(default=1.0)
    prior_scale: Any = leaf(default=2.0)
    offset: Any = leaf(default=0.0)

    learns = "dispersion"
    path = "log_dispersion"
    field = "dispersion"

    @property
    def counted(self) -> NegativeBinomial:
        """The negative binomial, with the same ν."""
        return NegativeBinomial(**vars(self))

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """That of the negative binomial of the counts above 0: g explains the zeros."""
        return jnp.stack([self._start_of_column(y, weight) for y in targets.T])

    def _start_of_column(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        above = jnp.where(targets > 0, weight, 0.0)
        return self.counted.start(targets[:, None], above)[0]

    def entries(self, params: PyTree, f: jax.Array, targets: jax.Array) -> jax.Array:
        """log NB(y; μ, r) [n, k]."""
        log_r = jnp.expand_dims(self.counted.log_r(params), -1)
        return negative_binomial_log_prob(log_rate(f + self.offset)[..., None], log_r, targets[..., None])


def zero_inflated_negative_binomial(
    dispersion: float | str = "learned", *, prior_loc: float = 1.0, prior_scale: float = 2.0, offset: float = 0.0
) -> ZeroInflatedNegativeBinomial:
    """Counts of which a share π is always 0 and the others scatter more than a Poisson: y ~ π δ₀ + (1 − π) NB(μ, r).

    Greene (1994), Accounting for excess zeros and sample selection in Poisson and negative binomial regression models.
    The network has two outputs for each entry of y: all f = log μ − offset, then the logits of all π.

    Args:
        dispersion: r, a number (known), "learned" (a point for methods that optimise; samplers put it under
            its prior) or "inferred" (its own posterior under log r ~ N(prior_loc, prior_scale²)).
        prior_loc: mean of log r under its prior.
        prior_scale: standard deviation of log r under its prior.
        offset: added to f, such as the logarithm of the mean count: the prior of f is centred there.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import zero_inflated_negative_binomial
        >>> zero_inflated_negative_binomial(2.0).mean({}, jnp.zeros((1, 2))).tolist()
        [[0.5]]
    """
    return ZeroInflatedNegativeBinomial(
        *mode_and_value(dispersion, "dispersion"),
        *log_normal_parameters(prior_loc, prior_scale),
        checked_offset(offset),
    )
