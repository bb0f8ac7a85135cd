"""Logistic regression with two parameters: the posterior by quadrature on a fine grid."""

import jax.numpy as jnp
import numpy as np
from scipy import optimize, special

from credo.core.mixture import Flat
from credo.core.model import Model
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.truth import Truth, truth_of_draws
from credo.likelihoods.bernoulli import bernoulli
from credo.networks.mlp import mlp
from credo.priors.normal import normal

SCALE = 2.0
NODES = 161


def logistic() -> Problem:
    """P(y = 1|x) = 1/(1 + e^{−(b + wx)}) with b, w ~ N(0, 2²) and few rows: the posterior is skewed."""
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-3, 3, size=(20, 1)).astype(np.float32)
    targets = (rng.uniform(size=20) < special.expit(0.5 + 1.5 * inputs[:, 0])).astype(np.int32)
    places = np.linspace(-5, 5, 21, dtype=np.float32)[:, None]
    model = Model(mlp([]), normal(SCALE), bernoulli())
    shows = "Logistic regression with two parameters: the exact, skewed posterior by quadrature."
    return Problem("logistic", shows, model, inputs, targets, places, lambda: _truth(inputs, targets, places))


def _truth(inputs: np.ndarray, targets: np.ndarray, places: np.ndarray) -> Truth:
    x, sign = inputs[:, 0].astype(np.float64), 2.0 * targets - 1

    def log_joint(b: np.ndarray, w: np.ndarray) -> np.ndarray:
        logits = b[..., None] + w[..., None] * x
        return special.log_expit(sign * logits).sum(-1) - (b**2 + w**2) / (2 * SCALE**2)

    mode = optimize.minimize(lambda t: -log_joint(t[0], t[1]), np.zeros(2)).x
    slopes = special.expit(mode[0] + mode[1] * x)
    columns = np.column_stack([np.ones_like(x), x])
    precision = columns.T @ (columns * (slopes * (1 - slopes))[:, None]) + np.eye(2) / SCALE**2
    reach = 8 * np.sqrt(np.diag(np.linalg.inv(precision)))
    b, w = np.meshgrid(*(m + r * np.linspace(-1, 1, NODES) for m, r in zip(mode, reach)), indexing="ij")
    log_weights = log_joint(b, w).ravel()
    log_weights -= special.logsumexp(log_weights)
    keep = log_weights > -40
    outputs = b.ravel()[keep, None] + w.ravel()[keep, None] * places[:, 0]
    draws = Flat(jnp.asarray(outputs[..., None], jnp.float32), {}, jnp.asarray(log_weights[keep], jnp.float32))
    return truth_of_draws(bernoulli(), draws, np.inf, f"Quadrature over {NODES} × {NODES} nodes.")
