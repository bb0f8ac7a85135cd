"""A model with one parameter whose sign the data do not tell, although predictions depend on it."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from credo.adapters.functional import from_functions
from credo.core.mixture import Flat
from credo.core.model import Model
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.truth import Truth, truth_of_draws
from credo.likelihoods.gaussian import gaussian
from credo.priors.normal import normal

NOISE = 1.0
SCALE = 1.5
NODES = 4001


def _init(key: jax.Array, inputs: jax.Array) -> dict[str, jax.Array]:
    return {"weight": jax.random.normal(key, (1,))}


def _apply(params: dict[str, jax.Array], inputs: jax.Array) -> jax.Array:
    weight = params["weight"][0]
    return (weight**2 * inputs[:, :1]) + weight * inputs[:, 1:]


def bimodal() -> Problem:
    """f(x) = w² x₁ + w x₂, and every row of the data has x₂ = 0: both signs of w are equally likely.

    The valley between the modes is e³ times less likely than the modes, so a chain can cross it, but seldom does.
    """
    inputs = np.column_stack([np.linspace(0.5, 1.5, 12), np.zeros(12)]).astype(np.float32)
    rng = np.random.default_rng(4)
    noise = rng.normal(size=12)
    targets = (0.9 * inputs[:, 0] + NOISE * (noise - noise.mean())).astype(np.float32)
    places = np.array([(a, b) for a in (0.0, 0.5, 1.0) for b in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)], np.float32)
    places = places[~(places == 0).all(1)]
    model = Model(from_functions(_init, _apply), normal(SCALE), gaussian(noise=NOISE))
    shows = "Two equally likely modes that predict differently: one mode is half of the truth."
    return Problem(
        "bimodal", shows, model, inputs, targets, places, lambda: _truth(inputs, targets, places), unimodal=False
    )  # fmt: skip


def _truth(inputs: np.ndarray, targets: np.ndarray, places: np.ndarray) -> Truth:
    weight = np.linspace(-6, 6, NODES)
    errors = targets.astype(np.float64) - weight[:, None] ** 2 * inputs[:, 0]
    log_weights = -0.5 * (errors**2).sum(1) / NOISE**2 - 0.5 * weight**2 / SCALE**2
    log_weights -= special.logsumexp(log_weights)
    keep = log_weights > -40
    outputs = weight[keep, None] ** 2 * places[:, 0] + weight[keep, None] * places[:, 1]
    draws = Flat(jnp.asarray(outputs[..., None], jnp.float32), {}, jnp.asarray(log_weights[keep], jnp.float32))
    return truth_of_draws(gaussian(noise=NOISE), draws, np.inf, f"Quadrature over {NODES} nodes.")
