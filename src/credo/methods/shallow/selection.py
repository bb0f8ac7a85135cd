"""Which inputs matter: indicators that switch inputs on and off, the coefficients integrated out."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.nodes import Nodes
from credo.core.typing import PyTree
from credo.methods.shallow.prior_view import PriorView
from credo.methods.shallow.state import ShallowState
from credo.methods.shallow.sweep import Rows, log_marginal

Carry = tuple[jax.Array, jax.Array, jax.Array]


def flip_inputs(
    variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, state: ShallowState, share: Any, masked: bool
) -> tuple[ShallowState, Rows]:
    """Each input in turn: fresh weights where it is not used, then propose 1 − s_k and accept with min(1, r),

        r = p(D | γ, s̃) p(s̃_k) / [p(D | γ, s) p(s_k)].

    Weights of an unused input are in no likelihood, so their conditional is the prior's given the node's other weights
    (Carlin and Chib, 1995, with the prior in place of their pseudo-prior).
    """
    odds = jnp.log(share) - jnp.log1p(-share)

    def used_rows(used: jax.Array) -> Rows:
        return rows._replace(inputs=rows.all_inputs * jnp.concatenate([jnp.ones(1, used.dtype), used]))

    def value(gamma: jax.Array, used: jax.Array) -> jax.Array:
        return log_marginal(nodes, used_rows(used), view, gamma, state.active, masked)

    def flip(carry: Carry, at: tuple[jax.Array, ...]) -> tuple[Carry, None]:
        gamma, used, old = carry
        k, normals, log_u = at
        fresh = gamma.at[:, 1 + k].set(view.given_others(gamma, 1 + k, normals))
        gamma = jnp.where(used[k] > 0, gamma, fresh)
        flipped = used.at[k].set(1 - used[k])
        new = value(gamma, flipped)
        accepted = log_u < new - old + jnp.where(used[k] > 0, -odds, odds)
        return (gamma, jnp.where(accepted, flipped, used), jnp.where(accepted, new, old)), None

    inputs = (jnp.arange(state.used.shape[0]), variates["reborn"], variates["flip_log_u"])
    start = (state.gamma, state.used, value(state.gamma, state.used))
    (gamma, used, _), _ = jax.lax.scan(flip, start, inputs)
    return dataclasses.replace(state, gamma=gamma, used=used), used_rows(used)
