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
from credo.core.typing import PyTree
from credo.methods.shallow.variates import VariateShapes
from credo.priors.node_hierarchy import NodeHierarchy, pack, unpack, wishart_root
from credo.priors.scales import InverseGamma

Variates = dict[str, jax.Array]
NARROWEST = 0.1  # random walks take steps between this share of their scale and all of it, as curvatures differ
NOISE_MOVES = 4


def hyper_variates(model: Model, hyper: PyTree, nodes: int, outputs: int) -> VariateShapes:
    """The randomness of one draw of the hyper-parameters."""
    prior = model.prior
    if isinstance(prior, NodeHierarchy):
        dims = hyper["hidden"]["mean"].shape[0]
        return VariateShapes(
            {
                "output_mean": (), "output_scale": (outputs, nodes), "hidden_mean": (dims,),
                "hidden_scale": (nodes, dims), "hidden_root": (dims, dims),
            },
            {},
            {
                "output_gamma": jnp.asarray(prior.output_scale.shape),
                "hidden_gamma": 0.5 * (prior.degrees(dims) - jnp.arange(dims)),
            },
        )  # fmt: skip
    return walk_variates("hyper", (sum(x.size for x in jax.tree.leaves(hyper)),))


def draw_hyper(
    variates: Variates, model: Model, nodes: Nodes, hyper: PyTree, gamma: jax.Array, coefs: jax.Array, active: jax.Array
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

    def move_entry(carry: tuple[jax.Array, jax.Array], at: tuple[Any, ...]) -> tuple[tuple[jax.Array, jax.Array], None]:
        vector, value = carry
        index, step, log_u = at
        moved = vector.at[index].add(step)
        new = density(moved)
        accept = log_u < new - value
        return (jnp.where(accept, moved, vector), jnp.where(accept, new, value)), None

    order = (jnp.arange(vector.size), walk_step(variates, "hyper"), variates["hyper_log_u"])
    (vector, _), _ = jax.lax.scan(move_entry, (vector, density(vector)), order)
    return jax.tree.unflatten(treedef, [p.reshape(s) for p, s in zip(jnp.split(vector, cuts), shapes)])


def _hierarchy(
    variates: Variates, prior: NodeHierarchy, hyper: PyTree, gamma: jax.Array, beta: jax.Array, active: jax.Array
) -> PyTree:
    """μ_β, σ_β, μ_γ and S_γ in turn, each from its conditional given all others."""
    count, outputs = active.sum(), beta.shape[0]
    variance = jnp.exp(2 * hyper["output"]["log_scale"])
    precision = prior.output_mean**-2.0 + outputs * count / variance
    mean = (beta * active).sum() / variance / precision + variates["output_mean"] / jnp.sqrt(precision)
    rate = prior.output_scale.rate + 0.5 * (active * (beta - mean) ** 2).sum()
    inverse = (variates["output_gamma"] + 0.5 * (active * variates["output_scale"] ** 2).sum()) / rate
    output = {"mean": mean, "log_scale": -0.5 * jnp.log(inverse)}

    dims = gamma.shape[1]
    root = unpack(hyper["hidden"]["root"], dims)
    inverse_cov = root @ root.T
    chol = jnp.linalg.cholesky(prior.hidden_mean**-2.0 * jnp.eye(dims) + count * inverse_cov)
    pull = inverse_cov @ (active @ gamma)
    half = jax.scipy.linalg.solve_triangular(chol, pull, lower=True) + variates["hidden_mean"]
    centre = jax.scipy.linalg.solve_triangular(chol.T, half, lower=False)
    off = (gamma - centre) * active[:, None]
    squares = 2 * variates["hidden_gamma"] + (active[:, None] * variates["hidden_scale"] ** 2).sum(0)
    root = wishart_root(prior.inverse_scale(dims) + off.T @ off, variates["hidden_root"], squares)
    return {"output": output, "hidden": {"mean": centre, "root": pack(root)}}


# ---------------------------------------------------------------------- noise
def noise_variates(model: Model, noise: PyTree, rows: jax.Array) -> VariateShapes:
    """The randomness of one draw of σ; `rows` is the sum of the rows' weights."""
    if not noise:
        return VariateShapes()
    likelihood: Any = model.likelihood
    shape, prior = noise["log_scale"].shape, likelihood.scale_prior
    if isinstance(prior, InverseGamma):
        return VariateShapes(gammas={"noise_gamma": jnp.broadcast_to(prior.shape + 0.5 * rows, shape)})
    return walk_variates("noise", (NOISE_MOVES, *shape))


def draw_noise(variates: Variates, likelihood: Any, noise: PyTree, squares: jax.Array, rows: jax.Array) -> PyTree:
    """log σ given Σ w r² of each output [outputs] and Σ w: exact under an inverse-gamma prior, else a random walk."""
    if not noise:
        return noise
    prior = likelihood.scale_prior
    if isinstance(prior, InverseGamma):
        return {"log_scale": 0.5 * (jnp.log(prior.rate + 0.5 * squares) - jnp.log(variates["noise_gamma"]))}

    def density(u: jax.Array) -> jax.Array:
        log_prior = jax.vmap(lambda v: likelihood.log_prior({"log_scale": v[None]}))(u)
        return log_prior - rows * u - 0.5 * squares * jnp.exp(-2 * u)

    scale = 3.0 / jnp.sqrt(1.0 + 2 * rows)  # the curvature of log σ is 2 Σ w at its mode

    def move(u: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        moved = u + scale * at[0]
        return jnp.where(at[1] < density(moved) - density(u), moved, u), None

    moves = (walk_step(variates, "noise"), variates["noise_log_u"])
    return {"log_scale": jax.lax.scan(move, noise["log_scale"], moves)[0]}


def walk_variates(name: str, shape: tuple[int, ...]) -> VariateShapes:
    """The randomness of a random walk."""
    return VariateShapes({f"{name}_step": shape}, {f"{name}_scale": shape, f"{name}_log_u": shape})


def walk_step(variates: Variates, name: str) -> jax.Array:
    """Its steps, of scales between `NARROWEST` and 1: κ z with log κ / log NARROWEST uniform."""
    return NARROWEST ** jnp.exp(variates[f"{name}_scale"]) * variates[f"{name}_step"]
