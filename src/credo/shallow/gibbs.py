"""Gibbs sampling of a shallow network, with the coefficients integrated out where nodes move."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.nodes import Nodes
from credo.core.tree import leaf, struct
from credo.shallow.chain import ShallowMethod, ShallowState
from credo.shallow.prior_view import PriorView
from credo.shallow.sweep import Place, Rows, move_nodes, place_of
from credo.shallow.walk import Walk, learn, propose

PyTree = Any


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

    fresh: float = leaf(default=0.1)

    def node_variates(self, key: jax.Array, model: Model, state: ShallowState) -> PyTree:
        keys = jax.random.split(key, 4)
        nodes = state.gamma.shape[0]
        return {
            "walk": jax.random.normal(keys[0], state.gamma.shape),
            "fresh": (jax.random.uniform(keys[1], (nodes,)) < self.fresh).astype(state.gamma.dtype),
            "log_u": jnp.log(jax.random.uniform(keys[2], (nodes,))),
            "key": keys[3],
        }

    def update_nodes(
        self, variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, state: ShallowState
    ) -> tuple[Place, Walk, dict[str, jax.Array]]:
        start = place_of(nodes, rows, view, state.gamma, state.active, self.masked)
        if not nodes.num:
            return start, state.walk, {}
        fresh = variates["fresh"]
        spare = view.spare(variates["key"], nodes.num)
        drawn = jax.vmap(view.fresh)(
            jnp.arange(nodes.num), variates["walk"], spare
        )  # fmt: skip
        steps = propose(state.walk, state.gamma, variates["walk"])
        proposals = jnp.where(fresh[:, None] > 0, drawn, steps)
        place, moved = move_nodes(nodes, rows, view, start, proposals, fresh, variates["log_u"])
        walk = learn(state.walk, place.gamma, moved, 1 - fresh, self.warmup)
        share = (moved * (1 - fresh)).sum() / jnp.maximum((1 - fresh).sum(), 1)
        return place, walk, {"acceptance": share}
