"""One pass over the nodes: Metropolis on each γ_j with the coefficients integrated out."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.core.nodes import Nodes
from credo.shallow.marginal import Moments, moments, solve, with_row
from credo.shallow.prior_view import PriorView


class Rows(NamedTuple):
    """Data as a regression on the nodes' columns: inputs with a leading 1 [n, dims], those of them that are used and 0
    elsewhere, working targets and precisions [n, outputs]; rows that do not count have precision 0."""

    inputs: jax.Array
    all_inputs: jax.Array
    targets: jax.Array
    precision: jax.Array


class Place(NamedTuple):
    """Nodes with everything that follows from them."""

    gamma: jax.Array  # [nodes, dims]
    design: jax.Array  # [columns, n]
    sums: Moments
    value: jax.Array  # log p(D | γ), the coefficients integrated out
    active: jax.Array  # [nodes], 1 or 0


def place_of(nodes: Nodes, rows: Rows, view: PriorView, gamma: jax.Array, active: jax.Array, masked: bool) -> Place:
    """Columns, sums and marginal likelihood of these nodes."""
    design = nodes.design(rows.inputs, gamma).T
    sums = moments(design, rows.targets, rows.precision)
    value = solve(sums, view.coefficients, mask(nodes, design, active, masked)).log_marginal
    return Place(gamma, design, sums, value, active)


def mask(nodes: Nodes, design: jax.Array, active: jax.Array, masked: bool) -> jax.Array | None:
    """Which columns count [columns]; None where all do, always."""
    if not masked:
        return None
    return jnp.concatenate([jnp.ones(design.shape[0] - nodes.num, active.dtype), active])


def change(
    nodes: Nodes,
    rows: Rows,
    view: PriorView,
    old: Place,
    j: jax.Array,
    node: jax.Array,
    active: jax.Array,
    masked: bool,
) -> tuple[Place, jax.Array]:
    """The place with another γ_j or other indicators, and that node's column. Only one row of the design is computed,
    and one row of the sums; the design itself is left for whoever accepts."""
    column = nodes.activation(rows.inputs @ node)
    at = old.design.shape[0] - nodes.num + j
    weighted = rows.precision * column[:, None]  # [n, outputs]
    square = (old.design @ weighted).T.at[:, at].set(column @ weighted)
    sums = with_row(old.sums, at, square, (weighted * rows.targets).sum(0))
    value = solve(sums, view.coefficients, mask(nodes, old.design, active, masked)).log_marginal
    return Place(old.gamma.at[j].set(node), old.design, sums, value, active), column


def accept_if(taken: jax.Array, nodes: Nodes, new: Place, old: Place, j: jax.Array, column: jax.Array) -> Place:
    """The new place where taken, else the old one."""
    at = old.design.shape[0] - nodes.num + j
    design = old.design.at[at].set(jnp.where(taken, column, old.design[at]))
    pairs = ((new.gamma, new.sums, new.value, new.active), (old.gamma, old.sums, old.value, old.active))
    gamma, sums, value, active = jax.tree.map(lambda a, b: jnp.where(taken, a, b), *pairs)
    return Place(gamma, design, sums, value, active)


def move_nodes(
    nodes: Nodes,
    rows: Rows,
    view: PriorView,
    start: Place,
    proposals: jax.Array,
    fresh: jax.Array,
    log_u: jax.Array,
    masked: bool = False,
) -> tuple[Place, jax.Array]:
    """Each node in turn: accept γ̃_j with probability min(1, r),

        r = p(D | γ̃, ν) p(γ̃_j | ν) g(γ_j | γ̃_j) / [p(D | γ, ν) p(γ_j | ν) g(γ̃_j | γ_j)].

    Args:
        proposals: γ̃_j of every node [nodes, dims]: of a symmetric walk, or a fresh draw of the prior.
        fresh: which of them are draws of the prior [nodes]: their p and g cancel.
        log_u: logarithms of uniforms [nodes].
        masked: some nodes may be inactive; they stay as they are.

    Returns:
        the new place, and 1 for every node that moved.
    """

    def one(old: Place, at: tuple[jax.Array, ...]) -> tuple[Place, jax.Array]:
        j, node, is_fresh, u = at
        new, column = change(nodes, rows, view, old, j, node, old.active, masked)
        prior = view.log_node(old.gamma, j, node) - view.log_node(old.gamma, j, old.gamma[j])
        ratio = new.value - old.value + jnp.where(is_fresh > 0, 0.0, prior)
        taken = (u < ratio) & (old.active[j] > 0)
        return accept_if(taken, nodes, new, old, j, column), taken.astype(node.dtype)

    return jax.lax.scan(one, start, (jnp.arange(nodes.num), proposals, fresh, log_u))
