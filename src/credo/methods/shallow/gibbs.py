"""Gibbs sampling of a shallow network, with the coefficients integrated out where nodes move."""

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.nodes import Nodes
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.methods.shallow.chain import ShallowMethod
from credo.methods.shallow.prior_view import PriorView
from credo.methods.shallow.state import ShallowState
from credo.methods.shallow.sweep import NodeFit, Rows, move_nodes, node_fit
from credo.methods.shallow.variates import VariateShapes
from credo.methods.shallow.walk import Walk, learn, propose


@struct
class Gibbs(ShallowMethod):
    """One hidden layer by Gibbs and Metropolis, after Müller and Ríos Insua (1998) (E1).

    A step is a sweep: each node's γ_j by Metropolis with all coefficients integrated out, then the coefficients from
    their exact normal conditional, then hyper-parameters and noise from theirs. The order matters: the coefficients
    must be drawn after the nodes have moved and before anything is drawn given them, because the nodes' moves forget
    them. Under `node_hierarchy` and inverse-gamma noise every conditional but that of γ is exact; other priors of
    scales get a random walk.

    Args:
        warmup: sweeps in which each node learns how far to step, before the draws that are kept.
        chains: independent chains.
        select_inputs: also sample which inputs are used; weights of those that are not are 0 in a draw.
        input_share: prior probability that an input is used.
        passes: moves of every node in a sweep.
        fresh: share of moves that propose a draw of the prior instead of a step: they find other modes.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-2, 2, 60)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.shallow(3), credo.priors.node_hierarchy(),
        ...     credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(2.0, 0.1)),
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(2 * x[:, 0])), "gibbs", steps=200)
        >>> fit.posterior.members, fit.posterior.available
        (4, 200)
    """

    passes: int = 5
    fresh: float = leaf(default=0.1)

    def node_variates(self, model: Model, state: ShallowState) -> VariateShapes:
        nodes, dims = state.gamma.shape
        moves = (self.passes, nodes)
        return VariateShapes({"walk": (*moves, dims)}, {"fresh": moves, "log_u": moves})

    def update_nodes(
        self, variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, state: ShallowState
    ) -> tuple[NodeFit, Walk, dict[str, jax.Array]]:
        start = node_fit(nodes, rows, view, state.gamma, state.active, self.masked)
        if not nodes.num:
            return start, state.walk, {}

        def pass_over(carry: tuple[NodeFit, Walk], at: tuple[jax.Array, ...]) -> tuple[tuple[NodeFit, Walk], jax.Array]:
            (fit, walk), (normals, drawn, chance, log_u) = carry, at
            fresh = (jnp.exp(chance) < self.fresh).astype(normals.dtype)
            proposals = jnp.where(fresh[:, None] > 0, drawn, propose(walk, fit.gamma, normals))
            fit, moved = move_nodes(nodes, rows, view, fit, proposals, fresh, log_u)
            walk = learn(walk, fit.gamma, moved, 1 - fresh, self.passes * self.warmup)
            return (fit, walk), (moved * (1 - fresh)).sum() / jnp.maximum((1 - fresh).sum(), 1)

        moves = (variates["walk"], self.fresh_nodes(variates, view), variates["fresh"], variates["log_u"])
        (fit, walk), shares = jax.lax.scan(pass_over, (start, state.walk), moves)
        return fit, walk, {"acceptance": shares.mean()}

    def fresh_nodes(self, variates: PyTree, view: PriorView) -> jax.Array:
        """Draws of the prior that the moves of a sweep may propose, each of them once [passes, nodes, dims]."""
        return view.fresh_nodes(variates["walk"], variates["key"])
