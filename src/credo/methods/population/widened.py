"""A Gaussian proposal made wider, or given the tails of a Student-t, whatever structure its covariance has."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from credo.core.capabilities import CentredPosterior, capability
from credo.core.network import Variables
from credo.core.tree import size, take
from credo.core.typing import PyTree
from credo.errors import Refusal


def draw_from(key: jax.Array, q: Any, inflate: Any, tails: Any) -> Variables:
    """θ ~ q, or θ = c + s (θ_q − c) / √(χ²_ν / ν) with c the centre of a Gaussian q."""
    key_member, key_draw, key_tail = jax.random.split(key, 3)
    member = jax.random.randint(key_member, (), 0, q.members)
    drawn = q.draw(key_draw, member, jnp.zeros((), jnp.int32))
    if inflate is None and tails is None:
        return drawn
    centre = _centre(q)
    factor = jnp.asarray(1.0 if inflate is None else inflate)
    if tails is not None:
        factor = factor / jnp.sqrt(2 * jax.random.gamma(key_tail, 0.5 * tails) / tails)
    moved = {
        name: jax.tree.map(lambda c, x: (c + factor * (x - c)).astype(x.dtype), centre[name], drawn.params[name])
        for name in centre
    }
    return Variables(drawn.params | moved, drawn.state)


def log_density_of(q: Any, params: PyTree, inflate: Any, tails: Any) -> jax.Array:
    """The log density of the draws of `draw_from`.

    For a Gaussian log q(θ) = log q(c) − m²/2, which gives the Mahalanobis distance m of any structure. Then
    log t(θ) = log q(c) + P/2 log(2/ν) + log Γ((ν + P)/2) − log Γ(ν/2) − P log s − (ν + P)/2 log(1 + m²/νs²).
    """
    value = q.log_prob(params)
    if inflate is None and tails is None:
        return value
    centre = _centre(q)
    count = size(centre)
    peak = q.log_prob(params | centre)
    scale = jnp.asarray(1.0 if inflate is None else inflate)
    square = 2 * (peak - value) / scale**2
    if tails is None:
        return peak - count * jnp.log(scale) - 0.5 * square
    heavy = gammaln(0.5 * (tails + count)) - gammaln(0.5 * tails) + 0.5 * count * jnp.log(2 / tails)
    return peak + heavy - count * jnp.log(scale) - 0.5 * (tails + count) * jnp.log1p(square / tails)


def _centre(q: Any) -> PyTree:
    if capability(q, CentredPosterior) is None or q.members > 1:
        raise Refusal(
            "Only a proposal that is one Gaussian can be widened; this one is a mixture or has another shape: leave "
            "inflate and tails out."
        )
    return take(q.mean, 0)
