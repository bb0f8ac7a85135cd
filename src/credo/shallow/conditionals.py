"""Hyper-parameters and noise given nodes and coefficients: exact draws where the prior is conjugate, else Metropolis.

Everything random comes in as standard variates that are drawn for many sweeps at once. Their number must not depend on
how many nodes are active, so a Gamma(a + k/2) is made as Gamma(a) + ½ Σ_{i≤k} z_i², and a χ² likewise.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.model import Model
from credo.core.nodes import Nodes
from credo.priors.node_hierarchy import NodeHierarchy, pack, unpack, wishart_root
from credo.priors.scales import InverseGamma

PyTree = Any
NARROWEST = 0.1  # random walks take steps between this share of their scale and all of it, as curvatures differ
NOISE_MOVES = 4


def hyper_variates(key: jax.Array, model: Model, hyper: PyTree, nodes: int, outputs: int) -> PyTree:
    """The randomness of one draw of the hyper-parameters."""
    keys = jax.random.split(key, 5)
    prior = model.prior
    if isinstance(prior, NodeHierarchy):
        dims = hyper["hidden"]["mean"].shape[0]
        halves = 0.5 * (prior.degrees(dims) - jnp.arange(dims))
        return {
            "output": jax.random.normal(keys[0], (1 + outputs * nodes,)),
            "gamma": jnp.exp(jax.random.loggamma(keys[1], prior.output_scale.shape + 0.0)),
            "mean": jax.random.normal(keys[2], (dims,)),
            "normals": jax.random.normal(keys[3], (nodes + dims, dims)),
            "squares": 2 * jnp.exp(jax.random.loggamma(keys[4], halves)),
        }
    size = sum(x.size for x in jax.tree.leaves(hyper))
    return walk_variates(keys[0], (size,))


def draw_hyper(
    variates: PyTree, model: Model, nodes: Nodes, hyper: PyTree, gamma: jax.Array, coefs: jax.Array, active: jax.Array
) -> PyTree:
    """Hyper-parameters given the active nodes and their coefficients."""
    if isinstance(model.prior, NodeHierarchy):
        return _hierarchy(variates, model.prior, hyper, gamma, coefs[:, coefs.shape[1] - nodes.num :], active)
    leaves, treedef = jax.tree.flatten(hyper)
    if not leaves:
        return hyper
    params = nodes.join(gamma, coefs)
    info = model.network.info(params)
    vector, shapes = jnp.concatenate([x.ravel() for x in leaves]), [x.shape for x in leaves]
    cuts = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]

    def density(vector: jax.Array) -> jax.Array:
        parts = [p.reshape(s) for p, s in zip(jnp.split(vector, cuts), shapes)]
        tree = jax.tree.unflatten(treedef, parts)
        return model.prior.log_hyperprior(tree) + model.prior.bind(info, tree).log_prob(params)

    def one(carry: tuple[jax.Array, jax.Array], at: tuple[Any, ...]) -> tuple[tuple[jax.Array, jax.Array], None]:
        vector, value = carry
        place, step, log_u = at
        moved = vector.at[place].add(step)
        new = density(moved)
        accept = log_u < new - value
        return (jnp.where(accept, moved, vector), jnp.where(accept, new, value)), None

    steps = variates["step"].astype(vector.dtype)
    order = (jnp.arange(vector.size), steps, variates["log_u"])
    (vector, _), _ = jax.lax.scan(one, (vector, density(vector)), order)
    return jax.tree.unflatten(treedef, [p.reshape(s) for p, s in zip(jnp.split(vector, cuts), shapes)])


def _hierarchy(
    variates: PyTree, prior: NodeHierarchy, hyper: PyTree, gamma: jax.Array, beta: jax.Array, active: jax.Array
) -> PyTree:
    """μ_β, σ_β, μ_γ and S_γ in turn, each from its conditional given all others."""
    count, outputs = active.sum(), beta.shape[0]
    first, rest = variates["output"][0], variates["output"][1:].reshape(beta.shape)
    variance = jnp.exp(2 * hyper["output"]["log_scale"])
    precision = prior.output_mean**-2.0 + outputs * count / variance
    mean = (beta * active).sum() / variance / precision + first / jnp.sqrt(precision)
    rate = prior.output_scale.rate + 0.5 * (active * (beta - mean) ** 2).sum()
    inverse = (variates["gamma"] + 0.5 * (active * rest**2).sum()) / rate
    output = {"mean": mean, "log_scale": -0.5 * jnp.log(inverse)}

    dims = gamma.shape[1]
    root = unpack(hyper["hidden"]["root"], dims)
    inverse_cov = root @ root.T
    chol = jnp.linalg.cholesky(prior.hidden_mean**-2.0 * jnp.eye(dims) + count * inverse_cov)
    pull = inverse_cov @ (active @ gamma)
    half = jax.scipy.linalg.solve_triangular(chol, pull, lower=True) + variates["mean"]
    centre = jax.scipy.linalg.solve_triangular(chol.T, half, lower=False)
    off = (gamma - centre) * active[:, None]
    normals = variates["normals"]
    squares = variates["squares"] + (active[:, None] * normals[: gamma.shape[0]] ** 2).sum(0)
    root = wishart_root(prior.inverse_scale(dims) + off.T @ off, normals[gamma.shape[0] :], squares)
    return {"output": output, "hidden": {"mean": centre, "root": pack(root)}}


# ---------------------------------------------------------------------- noise
def noise_variates(key: jax.Array, model: Model, noise: PyTree, rows: jax.Array) -> PyTree:
    """The randomness of one draw of σ; `rows` is the sum of the rows' weights."""
    likelihood = model.likelihood
    if not noise:
        return ()
    shape = noise["log_scale"].shape
    if isinstance(likelihood.scale_prior, InverseGamma):
        return jnp.exp(jax.random.loggamma(key, likelihood.scale_prior.shape + 0.5 * rows, shape))
    return walk_variates(key, (NOISE_MOVES, *shape))


def draw_noise(variates: PyTree, likelihood: Any, noise: PyTree, squares: jax.Array, rows: jax.Array) -> PyTree:
    """log σ given Σ w r² of each output [outputs] and Σ w: exact under an inverse-gamma prior, else by a random walk."""
    if not noise:
        return noise
    prior = likelihood.scale_prior
    if isinstance(prior, InverseGamma):
        return {"log_scale": 0.5 * (jnp.log(prior.rate + 0.5 * squares) - jnp.log(variates))}

    def density(u: jax.Array) -> jax.Array:
        each = jax.vmap(lambda v: likelihood.log_prior({"log_scale": v[None]}))(u)
        return each - rows * u - 0.5 * squares * jnp.exp(-2 * u)

    scale = 3.0 / jnp.sqrt(1.0 + 2 * rows)  # the curvature of log σ is 2 Σ w at its mode

    def one(u: jax.Array, at: PyTree) -> tuple[jax.Array, None]:
        moved = u + scale * at["step"]
        return jnp.where(at["log_u"] < density(moved) - density(u), moved, u), None

    return {"log_scale": jax.lax.scan(one, noise["log_scale"], variates)[0]}


def walk_variates(key: jax.Array, shape: tuple[int, ...]) -> PyTree:
    """Steps of a random walk, of scales between `NARROWEST` and 1, and log uniforms to judge them by."""
    key_step, key_scale, key_u = jax.random.split(key, 3)
    scale = NARROWEST ** jax.random.uniform(key_scale, shape)
    return {
        "step": scale * jax.random.normal(key_step, shape),
        "log_u": jnp.log(jax.random.uniform(key_u, shape)),
    }


