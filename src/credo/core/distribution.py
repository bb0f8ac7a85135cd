"""Distributions over parameters: a prior and a posterior over weights are the same kind of thing."""

from typing import Protocol, runtime_checkable

import jax

from credo.core.typing import PyTree


@runtime_checkable
class ParamDistribution(Protocol):
    """A distribution over a tree of parameters."""

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """`num` draws: every leaf gets a leading axis of that length."""
        ...

    def log_prob(self, params: PyTree) -> jax.Array:
        """Log density of one draw; raises `credo.errors.NoDensity` where there is none."""
        ...


@runtime_checkable
class Prior(Protocol):
    """A prior, independent of the network: `bind` turns it into a distribution over that network's weights.

    `params` are the prior's own hyper-parameters (an empty dict where it has none), unconstrained, themselves random
    under `log_hyperprior`.
    """

    def init(self, info: PyTree = None) -> PyTree:
        """Start values of the prior's own hyper-parameters for the weights that `info` describes."""
        ...

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """One draw of the hyper-parameters from their prior."""
        ...

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """Log density of the hyper-parameters, Jacobians of transforms included."""
        ...

    def bind(self, info: PyTree, params: PyTree) -> ParamDistribution:
        """The distribution over the weights that `info` (a tree of ParamInfo) describes."""
        ...
