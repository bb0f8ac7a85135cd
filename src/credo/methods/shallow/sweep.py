"""One pass over the nodes: Metropolis on each γ_j with the coefficients integrated out.

A move changes one column of the design. Write A = D + Z'WZ and h = Dm + Z'Wt with that column last, B and h_B for the
others, a for its products with them and α for its own entry. Then log p(D | γ) is a part without node j plus

    ½ log D_j − ½ D_j m_j² − ½ log s + ½ r²/s,   s = α − a'B⁻¹a,   r = h_j − a'B⁻¹h_B,

and B⁻¹ follows from A⁻¹ by removing a row, at the cost of a product with a vector. A⁻¹ comes afresh from a Cholesky
factor at the start of every pass, so that rounding does not pile up.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.core.nodes import Nodes
from credo.methods.shallow.marginal import moments, solve
from credo.methods.shallow.prior_view import PriorView


class Rows(NamedTuple):
    """Data as a regression on the nodes' columns: the used inputs with a leading 1 [n, dims], 0 for the others; all
    inputs; working targets and precisions [n, outputs]. Padded rows have precision 0."""

    inputs: jax.Array
    all_inputs: jax.Array
    targets: jax.Array
    precision: jax.Array


class NodeFit(NamedTuple):
    """Nodes and their sums. Columns of inactive nodes are 0 in h and those of the identity in A⁻¹."""

    gamma: jax.Array  # [nodes, dims]
    active: jax.Array  # [nodes], 1 or 0
    design: jax.Array  # [columns, n]
    inverse: jax.Array  # A⁻¹ [outputs, columns, columns]
    pull: jax.Array  # h [outputs, columns]


class Change(NamedTuple):
    """Another γ_j or another indicator: its part of log p(D | γ) and what accepting it needs."""

    value: jax.Array  # new part minus old part, summed over outputs
    j: jax.Array
    node: jax.Array
    on: jax.Array  # 1 where the node is active afterwards
    column: jax.Array  # [n]
    row: jax.Array  # B⁻¹a [outputs, columns]
    schur: jax.Array  # s [outputs]
    pull: jax.Array  # h_j [outputs]


def mask(nodes: Nodes, columns: int, active: jax.Array, masked: bool) -> jax.Array | None:
    """Which columns count [columns]; None where all do, always."""
    return counted(nodes, columns, active) if masked else None


def counted(nodes: Nodes, columns: int, active: jax.Array) -> jax.Array:
    """1 for columns of the linear part and of active nodes [columns]."""
    return jnp.concatenate([jnp.ones(columns - nodes.num, active.dtype), active])


def node_fit(nodes: Nodes, rows: Rows, view: PriorView, gamma: jax.Array, active: jax.Array, masked: bool) -> NodeFit:
    """Design, A⁻¹ and h of these nodes."""
    design = nodes.design(rows.inputs, gamma).T
    columns = mask(nodes, design.shape[0], active, masked)
    solved = solve(moments(design, rows.targets, rows.precision), view.coefficients, columns)
    identity = jnp.broadcast_to(jnp.eye(design.shape[0]), solved.root.shape)
    half = jax.scipy.linalg.solve_triangular(solved.root, identity, lower=True)
    pull = (solved.root @ solved.half[..., None])[..., 0]
    return NodeFit(gamma, active, design, jnp.swapaxes(half, -1, -2) @ half, pull)


def log_marginal(
    nodes: Nodes, rows: Rows, view: PriorView, gamma: jax.Array, active: jax.Array, masked: bool
) -> jax.Array:
    """log p(D | γ) up to a constant."""
    design = nodes.design(rows.inputs, gamma).T
    columns = mask(nodes, design.shape[0], active, masked)
    return solve(moments(design, rows.targets, rows.precision), view.coefficients, columns).log_marginal


def change(
    nodes: Nodes, rows: Rows, view: PriorView, old: NodeFit, j: jax.Array, node: jax.Array, on: jax.Array, masked: bool
) -> Change:
    """How log p(D | γ) changes when node j gets these weights and this indicator."""
    columns = old.design.shape[0]
    at = columns - nodes.num + j
    hot = jnp.arange(columns) == at
    mean, precision = (x[:, at] for x in view.coefficients)
    column = nodes.activation(rows.inputs @ node)
    weighted = rows.precision * column[:, None]  # [n, outputs]
    products = (old.design @ weighted).T  # [outputs, columns]
    if masked:
        products = products * counted(nodes, columns, old.active)
    products = jnp.where(hot, 0.0, products)
    entries = old.inverse[:, :, at]  # [outputs, columns]
    corner = entries[:, at]
    row = (old.inverse @ products[..., None])[..., 0] - entries * ((entries * products).sum(-1) / corner)[:, None]
    schur = precision + column @ weighted - (products * row).sum(-1)
    pull = precision * mean + (weighted * rows.targets).sum(0)
    rest = pull - (row * jnp.where(hot, 0.0, old.pull)).sum(-1)
    new_part = 0.5 * (rest**2 / schur - jnp.log(schur)).sum()
    old_part = 0.5 * ((entries * old.pull).sum(-1) ** 2 / corner + jnp.log(corner)).sum()
    if masked:
        prior = 0.5 * (jnp.log(precision) - precision * mean**2).sum()
        new_part = jnp.where(on > 0, prior + new_part, 0.0)
        old_part = jnp.where(old.active[j] > 0, prior + old_part, 0.0)
    return Change(new_part - old_part, j, node, on, column, row, schur, pull)


def accept_if(accepted: jax.Array, nodes: Nodes, old: NodeFit, new: Change, masked: bool) -> NodeFit:
    """The fit after the change where accepted, else the old one."""
    at = old.design.shape[0] - nodes.num + new.j
    hot = jnp.arange(old.design.shape[0]) == at
    entries = old.inverse[:, :, at]
    corner = entries[:, at][:, None, None]
    entry = jnp.where(hot, 1.0, -new.row)
    added = entry[:, :, None] * entry[:, None, :] / new.schur[:, None, None]
    pull = jnp.where(hot, new.pull[:, None], old.pull)
    active = old.active
    if masked:
        added = jnp.where(new.on > 0, added, (hot[:, None] & hot).astype(added.dtype))
        pull = jnp.where(hot & (new.on == 0), 0.0, pull)
        active = active.at[new.j].set(jnp.where(accepted, new.on, active[new.j]))
    inverse = old.inverse - entries[:, :, None] * entries[:, None, :] / corner + added
    return NodeFit(
        old.gamma.at[new.j].set(jnp.where(accepted, new.node, old.gamma[new.j])),
        active,
        old.design.at[at].set(jnp.where(accepted, new.column, old.design[at])),
        jnp.where(accepted, inverse, old.inverse),
        jnp.where(accepted, pull, old.pull),
    )


def move_nodes(
    nodes: Nodes,
    rows: Rows,
    view: PriorView,
    start: NodeFit,
    proposals: jax.Array,
    fresh: jax.Array,
    log_u: jax.Array,
    masked: bool = False,
) -> tuple[NodeFit, jax.Array]:
    """Each node in turn: accept γ̃_j with probability min(1, r),

        r = p(D | γ̃, ν) p(γ̃_j | ν) g(γ_j | γ̃_j) / [p(D | γ, ν) p(γ_j | ν) g(γ̃_j | γ_j)].

    Args:
        proposals: γ̃_j of every node [nodes, dims]: of a symmetric walk, or a fresh draw of the prior.
        fresh: which of them are draws of the prior [nodes]: their p and g cancel.
        log_u: logarithms of uniforms [nodes].
        masked: some nodes may be inactive; they stay as they are.

    Returns:
        the new fit, and 1 for every node that moved.
    """

    def move_node(old: NodeFit, at: tuple[jax.Array, ...]) -> tuple[NodeFit, jax.Array]:
        j, node, is_fresh, u = at
        new = change(nodes, rows, view, old, j, node, old.active[j], masked)
        prior = view.log_node(old.gamma, j, node) - view.log_node(old.gamma, j, old.gamma[j])
        accepted = u < new.value + jnp.where(is_fresh > 0, 0.0, prior)
        if masked:
            accepted = accepted & (old.active[j] > 0)
        return accept_if(accepted, nodes, old, new, masked), accepted.astype(node.dtype)

    return jax.lax.scan(move_node, start, (jnp.arange(nodes.num), proposals, fresh, log_u))
