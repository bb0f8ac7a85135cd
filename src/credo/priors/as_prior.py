"""A posterior over weights as the next prior."""

import dataclasses
from typing import Any

import jax

from credo.core.capabilities import MarginalPosterior, capability
from credo.core.distribution import ParamDistribution, Prior
from credo.core.network import ParamInfo, is_info
from credo.core.tree import by_paths, leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.posteriors.mean_field import MeanField
from credo.priors.checks import check_weights
from credo.priors.elementwise import ElementwisePrior
from credo.priors.normal import NormalDensity

WEIGHTS = "The weights of the distribution given to as_prior"


@struct
class AsPrior(ElementwisePrior):
    """p(θ) = q(θ), the marginal of a distribution over the network's weights."""

    distribution: ParamDistribution = leaf()

    def bind(self, info: PyTree, params: PyTree) -> Any:
        """The distribution over weights, once its paths and shapes agree with the network's."""
        q = self.distribution
        draw = jax.eval_shape(lambda: q.sample(jax.random.key(0), 1))
        wrapped = isinstance(draw, dict) and "network" in draw
        shapes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), draw["network"] if wrapped else draw
        )
        check_weights(info, by_paths(shapes), WEIGHTS)
        if not isinstance(q, MeanField):
            return WeightDistribution(q, wrapped)
        if q.members == 1:
            return super().bind_part(info, params)
        # Independent parts: leaving the others out is the exact marginal.
        mean, std = ({"network": tree["network"]} for tree in (q.mean, q.std))
        return WeightDistribution(dataclasses.replace(q, mean=mean, std=std, points={}, state={}))

    def bind_part(self, info: PyTree, params: PyTree) -> Any:
        """The marginal of some of the weights, where the posterior has it in closed form."""
        q: Any = self.distribution
        if isinstance(q, MeanField) and q.members == 1:
            return super().bind_part(info, params)
        if capability(q, MarginalPosterior) is None:
            raise Refusal(
                f"Under by_path, as_prior takes a Gaussian posterior: {type(q).__name__} does not say the distribution "
                "of some of the weights alone."
            )
        part = q.marginal(tuple(i.path for i in jax.tree.leaves(info, is_leaf=is_info)))
        arrays = {path: x[0] for path, x in part.mean["network"].items()}
        check_weights(info, arrays, WEIGHTS)
        return WeightDistribution(part)

    def density(self, info: ParamInfo) -> NormalDensity:
        """The normal of one array of a mean-field posterior with one member."""
        q: Any = self.distribution
        mean, std = (by_paths(tree["network"]) for tree in (q.mean, q.std))
        check_weights(info, {path: x[0] for path, x in mean.items()}, WEIGHTS, part=True)
        return NormalDensity(mean[info.path][0], std[info.path][0])


@struct
class WeightDistribution:
    """A distribution over `{"network": weights}` (wrapped) or over bare weights, as one over weights."""

    distribution: ParamDistribution = leaf()
    wrapped: bool = True

    def log_prob(self, params: PyTree) -> jax.Array:
        """log q(θ)."""
        return self.distribution.log_prob({"network": params} if self.wrapped else params)

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """`num` draws; where a mixture returns a few more, to be even over members, a random subset of them."""
        draw, choose = jax.random.split(key)
        draws = self.distribution.sample(draw, num)
        draws = draws["network"] if self.wrapped else draws
        total = jax.tree.leaves(draws)[0].shape[0]
        return take(draws, jax.random.permutation(choose, total)[:num]) if total > num else draws


def as_prior(distribution: Any) -> Any:
    """Use a distribution over weights, such as the last posterior, as a prior (continual learning).

    Args:
        distribution: anything with `sample` and `log_prob` over the weights; a prior is returned as it is.

    Example:
        >>> import jax.numpy as jnp, credo
        >>> mean = {"network": {"output": {"kernel": jnp.zeros((1, 1, 3)), "bias": jnp.zeros((1, 1))}}}
        >>> q = credo.posteriors.MeanField(mean, mean, {}, {})
        >>> credo.priors.as_prior(q).distribution is q
        True
    """
    if isinstance(distribution, Prior):
        return distribution
    if not isinstance(distribution, ParamDistribution):
        raise InputError(f"as_prior expects a distribution with sample and log_prob, got {distribution!r}.")
    return AsPrior(distribution)
