"""What variational methods share: their state, the split into random parameters and points, and the Gaussian prior."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import GaussianDistribution, ask
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.noise import normals as normals
from credo.core.tree import Layout, leaf, size, struct
from credo.core.typing import PyTree
from credo.methods.points.optimise import optimiser


@struct
class VariationalState:
    """Variational parameters and points as one vector where small, and the optimiser's memory.

    prior: (mean, log std, is-a-weight) of a Gaussian prior, laid out like the random parameters; None where the prior
    is not Gaussian or has hyper-parameters of its own, and the KL is then estimated from the draws.
    """

    step: jax.Array = leaf()
    values: PyTree = leaf()
    average: PyTree = leaf()
    averaged: jax.Array = leaf()  # over how many iterates
    memory: PyTree = leaf()
    network: PyTree = leaf()
    prior: PyTree = leaf()
    family: Any = None  # what q is (credo.methods.variational.families): structure, not numbers
    layout: Layout | None = None  # the parameters of q and "points" in one vector


def start_state(optimiser_name: str, parts: PyTree, network: PyTree, prior: PyTree, family: Any) -> VariationalState:
    """The state before the first step, from the parameters of q and the points in `parts`."""
    layout = Layout.of(parts, limit=size(parts) if family.random.flat else -1)
    values, zero = layout.ravel(parts), jnp.zeros((), jnp.int32)
    memory = optimiser(optimiser_name).init(values)
    return VariationalState(zero, values, values, zero, memory, network, prior, family, layout)


def split_points(model: Model, params: PyTree) -> tuple[PyTree, PyTree]:
    """The parameters that are random, and those that are learned as points (noise without a prior)."""
    random = {k: v for k, v in params.items() if not (k == "likelihood" and model.likelihood.point)}
    return random, {k: v for k, v in params.items() if k not in random}


def gaussian_prior(model: Model, variables: Variables, random: PyTree, layout: Layout) -> PyTree:
    """(mean, log std, is-a-weight) of the prior, laid out like the random parameters; None where not Gaussian."""
    params = model.complete(variables.params)
    if jax.tree.leaves(params["prior"]):
        return None
    bound = model.prior.bind(model.network.info(params["network"]), params["prior"])
    moments = ask(bound, GaussianDistribution).gaussian()
    if moments is None:
        return None
    zeros, ones = (jax.tree.map(f, random) for f in (jnp.zeros_like, jnp.ones_like))
    mean, std = (model.free(params | {"network": m})["network"] for m in moments)
    log_std = jax.tree.map(jnp.log, std)
    rows = (zeros | {"network": mean}, zeros | {"network": log_std}, zeros | {"network": ones["network"]})
    return tuple(layout.ravel(row) for row in rows)


def expected_log_normal(mean: PyTree, variance: PyTree, loc: PyTree, log_scale: PyTree, where: PyTree) -> jax.Array:
    """E_q[log N(θ; loc, scale²)] for θ with these moments, summed over the entries that `where` marks with 1."""

    def expectation(m: jax.Array, v: jax.Array, a: jax.Array, b: jax.Array, w: jax.Array) -> jax.Array:
        square = (m - a) ** 2 + v
        return (w * (-0.5 * square * jnp.exp(-2 * b) - b - 0.5 * jnp.log(2 * jnp.pi))).sum()

    return sum(jax.tree.leaves(jax.tree.map(expectation, mean, variance, loc, log_scale, where)), jnp.zeros(()))


def rest_of_prior(model: Model, params: PyTree) -> jax.Array:
    """log p of the parameters that are not weights."""
    params = model.complete(params)
    return model.prior.log_hyperprior(params["prior"]) + model.likelihood.log_prior(params["likelihood"])


def weights_from_prior(key: jax.Array, model: Model, variables: Variables) -> Variables:
    """The same variables with the network's weights drawn from their prior."""
    params = model.complete(variables.params)
    bound = model.prior.bind(model.network.info(params["network"]), params["prior"])
    weights = jax.tree.map(lambda x, w: w[0].astype(x.dtype), params["network"], bound.sample(key, 1))
    return Variables(model.free(params | {"network": weights}), variables.state)
