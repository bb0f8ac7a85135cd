"""How well a Gaussian around a mode predicts rows that were held out."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp, ndtri

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.typing import PyTree

NODES = 32


def held_out_score(model: Model, variables: Variables, spread: Any, inputs: PyTree, targets: Any) -> jax.Array:
    """Σ_n log E[p(y_n | f)] with f ~ N(f(x_n), diag(J Σ J')), the marginals of the linearised outputs.

    The mean is over the same 32 points for every row and every spread (equally likely parts of the standard normal,
    shifted differently for each output), so that a grid of spreads is compared without noise.
    """
    inputs = jax.tree.map(jnp.asarray, inputs)
    values = jnp.asarray(targets)
    values = values.astype(jnp.int32).ravel() if model.likelihood.kind == "classes" else values.reshape(len(values), -1)
    outputs, _ = model.outputs(variables, inputs)
    std = jnp.sqrt(spread.variance(model, variables, inputs))
    params = model.complete(variables.params)["likelihood"]
    # Multiples of the golden ratio fill the unit interval evenly for every output.
    shift = 0.6180339887 * jnp.arange(1, outputs.shape[1] + 1)
    order = jnp.arange(NODES)[:, None] * jnp.where(jnp.arange(outputs.shape[1]) % 2, 13, 1)
    nodes = ndtri(jnp.clip(((order + 0.5) / NODES + shift) % 1.0, 1e-4, 1 - 1e-4)).astype(outputs.dtype)

    def log_prob(z: jax.Array) -> jax.Array:
        return model.likelihood.log_prob(params, outputs + std.astype(outputs.dtype) * z, values)

    log_probs = jax.lax.map(log_prob, nodes)
    return (logsumexp(log_probs, axis=0) - jnp.log(NODES)).sum()
