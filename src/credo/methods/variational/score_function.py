"""Score-function estimates of the gradient of a mean-field bound, with control variates and Rao–Blackwellisation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.tree import Layout
from credo.core.typing import PyTree
from credo.methods.variational.state import rest_of_prior
from credo.priors.elementwise import ElementDensity, Elementwise


class DensityTerms(NamedTuple):
    """log p(θ) and log q(θ) of K draws, split by the coordinates that each term depends on."""

    shared: jax.Array  # what depends on many coordinates [K]
    prior: PyTree  # log p_i(θ_i), laid out like θ [K, …]; 0 where it is part of `shared`
    density: PyTree  # log q_i(θ_i), laid out like θ [K, …]


def terms(model: Model, layout: Layout, prior: PyTree, draws: PyTree, eps: PyTree, log_std: PyTree) -> DensityTerms:
    """The terms of the prior and of q at draws θ = m + s ε [K, …].

    Args:
        model: the model; its prior is split by coordinates where it is a product.
        layout: of the random parameters.
        prior: (mean, log std, is-a-weight) of a Gaussian prior, or None.
        draws, eps: θ and ε [K, …].
        log_std: log s.
    """
    density = jax.tree.map(lambda e, r: _log_normal(e) - r, eps, log_std)
    if prior is not None:

        def log_normal(x: jax.Array, loc: jax.Array, log_scale: jax.Array, where: jax.Array) -> jax.Array:
            return where * (_log_normal((x - loc) * jnp.exp(-log_scale)) - log_scale)

        log_prior = jax.tree.map(log_normal, draws, *prior)
        shared = jax.vmap(lambda theta: rest_of_prior(model, layout.unravel(theta) | _no_points(model)))(draws)
        return DensityTerms(shared, log_prior, density)
    shared, log_prior = jax.vmap(lambda theta: _split(model, layout, layout.unravel(theta)))(draws)
    return DensityTerms(shared, log_prior, density)


def _split(model: Model, layout: Layout, random: PyTree) -> tuple[jax.Array, PyTree]:
    """log p(θ) of one draw: the term of many coordinates, and the terms of single ones."""
    params = model.complete(random | _no_points(model))
    zeros = jax.tree.map(jnp.zeros_like, random)
    bound = model.prior.bind(model.network.info(params["network"]), params["prior"])
    rest = rest_of_prior(model, random | _no_points(model))
    if not isinstance(bound, Elementwise) or jax.tree.leaves(params["prior"]):
        return rest + bound.log_prob(params["network"]), layout.ravel(zeros)
    log_prior = jax.tree.map(
        lambda d, x: d.log_prob(x), bound.densities, params["network"], is_leaf=lambda d: isinstance(d, ElementDensity)
    )
    log_weights = model.free(params | {"network": log_prior})["network"]
    return rest, layout.ravel(zeros | {"network": log_weights})


def _no_points(model: Model) -> PyTree:
    """Stands for parameters that are points: they have no prior."""
    return {"likelihood": {}} if model.likelihood.point else {}


def score_gradient(
    eps: PyTree, log_std: PyTree, shared: jax.Array, local: PyTree, control: bool
) -> tuple[PyTree, PyTree]:
    """Estimates of ∇_m and ∇_{log s} of E_q[f], f = shared + local_i for coordinate i, from K draws.

    ∇E_q[f] = E_q[f ∇log q] with ∇_m log q = ε/s and ∇_{log s} log q = ε² − 1. A control variate a ∇log q has mean 0;
    the best a is E[f h²]/E[h²] with h = ∇log q, estimated for each draw from the others, so that the
    estimate is unbiased. Ranganath, Gerrish and Blei (2014), Black box variational inference.

    Args:
        eps: ε of the draws [K, …].
        log_std: log s.
        shared: the part of f that depends on many coordinates [K].
        local: the part that depends on one alone [K, …], or None.
        control: use control variates.
    """

    def estimate(e: jax.Array, r: jax.Array, f: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        common = shared.reshape(-1, *[1] * r.ndim)
        value = common if f is None else common + f
        return _mean(e * jnp.exp(-r), value, control), _mean(e**2 - 1, value, control)

    leaves, treedef = jax.tree.flatten(eps)
    parts = [None] * len(leaves) if local is None else jax.tree.leaves(local)
    pairs = [estimate(e, r, f) for e, r, f in zip(leaves, jax.tree.leaves(log_std), parts)]
    return jax.tree.unflatten(treedef, [p[0] for p in pairs]), jax.tree.unflatten(treedef, [p[1] for p in pairs])


def _mean(score: jax.Array, value: jax.Array, control: bool) -> jax.Array:
    if control:
        weight = score**2
        product = weight * value
        others = weight.sum(0) - weight
        value = value - (product.sum(0) - product) / jnp.maximum(others, 1e-12)
    return (score * value).mean(0)


def _log_normal(z: jax.Array) -> jax.Array:
    return -0.5 * z**2 - 0.5 * jnp.log(2 * jnp.pi)
