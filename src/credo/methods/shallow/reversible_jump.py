"""Reversible jumps between shallow networks with different numbers of nodes."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.nodes import Nodes
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.shallow.chain import ShallowMethod, nodes_of
from credo.methods.shallow.prior_view import PriorView
from credo.methods.shallow.state import ShallowState
from credo.methods.shallow.sweep import NodeFit, Rows, accept_if, change, counted, move_nodes, node_fit
from credo.methods.shallow.variates import VariateShapes
from credo.methods.shallow.walk import TARGET
from credo.priors.node_hierarchy import NodeHierarchy

NARROWEST = 0.03  # steps of nodes are between this share of the learned scale and all of it: nodes differ a lot


@struct
class CommonWalk:
    """One scale for all nodes, because nodes come and go: γ̃_j = γ_j + e^s κ S^½ z with a random κ, S the prior's."""

    log_scale: jax.Array = leaf()
    count: jax.Array = leaf()


@struct
class ReversibleJump(ShallowMethod):
    """The number of hidden nodes is unknown too: birth, death and moves of nodes (E2).

    y = u(x)'a + Σ_j d_j β_j ψ(γ_j'(1, x)) + ε with indicators d_j. The number M = Σ d_j has the prior p(M) ∝ λ^M up to
    the network's number of nodes J, and every choice of M among J is as likely. A birth makes an inactive node active
    and draws its γ from the prior, a death does the reverse; the coefficients are integrated out, so that the ratio is

        p(D | γ̃, d̃, ν) p(M̃) / [p(D | γ, d, ν) p(M)]

    and nothing else: proposals of γ cancel against its prior, the choices of nodes against their number. Green (1995),
    Reversible jump Markov chain Monte Carlo computation; Ríos Insua and Müller (1998), Feedforward neural networks for
    nonparametric regression. Nodes have no order: ask the fit for functions and for `fit.trace["nodes"]`, the number of
    nodes of every draw; where it is 0 the draw is linear.

    Args:
        more: λ, how much less likely one node more is before the data; between 0 and 1.
        jumps: births and deaths that a sweep tries.
        passes: moves of every node in a sweep.
        warmup: sweeps in which the scale of the moves is learned, before the draws that are kept.
        chains: independent chains, started at networks of different sizes.
        select_inputs, input_share: as in `Gibbs`.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-2, 2, 60)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.shallow(6), credo.priors.node_hierarchy(), credo.likelihoods.gaussian(0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.abs(x[:, 0])), "reversible_jump", steps=500)
        >>> bool((fit.trace["nodes"] > 0).mean() > 0.9)
        True
    """

    more: float = leaf(default=0.5)
    jumps: int = 5
    passes: int = 1

    masked = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if not isinstance(self.more, jax.core.Tracer) and not 0 < self.more <= 1:
            raise InputError(f"more is a share between 0 and 1, got {self.more}.")
        if self.jumps < 1 or self.passes < 0:
            raise InputError(f"A sweep has at least one jump, got jumps={self.jumps}, passes={self.passes}.")
        return super().prepare(model)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> ShallowState:
        state = super().init(key, model, variables, data)
        nodes = state.gamma.shape[0]
        first = jnp.floor(jax.random.uniform(key) * (nodes + 1))
        active = (jnp.arange(nodes) < first).astype(state.gamma.dtype)
        walk: Any = CommonWalk(jnp.zeros((), state.gamma.dtype), jnp.zeros((), jnp.int32))
        coefs = state.coefs * counted(nodes_of(model), state.coefs.shape[1], active)
        return dataclasses.replace(state, active=active, coefs=coefs, walk=walk)

    def node_variates(self, model: Model, state: ShallowState) -> VariateShapes:
        nodes, dims = state.gamma.shape
        moves, jumps = (self.passes, nodes), (self.jumps,)
        shapes = VariateShapes(
            {"walk": (*moves, dims), "born": (*jumps, dims)},
            {"kappa": moves, "log_u": moves, "up": jumps, "score": (*jumps, nodes), "jump_log_u": jumps},
        )
        if not _fills(model, state):
            return shapes
        return shapes | VariateShapes({"fill_nodes": state.gamma.shape, "fill_coefs": state.coefs.shape})

    def update_nodes(
        self, variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, state: ShallowState
    ) -> tuple[NodeFit, Any, dict[str, jax.Array]]:
        fit = node_fit(nodes, rows, view, state.gamma, state.active, True)
        if not nodes.num:
            return fit, state.walk, {"nodes": state.active.sum()}
        fit, jumped = self._jump(variates, nodes, rows, view, fit)
        scale = jnp.exp(state.walk.log_scale)
        no_fresh = jnp.zeros(nodes.num, fit.gamma.dtype)

        def pass_over(fit: NodeFit, at: tuple[jax.Array, ...]) -> tuple[NodeFit, jax.Array]:
            normals, kappa, log_u = at
            steps = NARROWEST ** jnp.exp(kappa)[:, None] * jax.vmap(view.spread)(jnp.arange(nodes.num), normals)
            proposals = fit.gamma + scale * steps
            fit, moved = move_nodes(nodes, rows, view, fit, proposals, no_fresh, log_u, True)
            return fit, moved.sum() / jnp.maximum(fit.active.sum(), 1)

        share = jnp.full((), TARGET)
        if self.passes:
            fit, shares = jax.lax.scan(pass_over, fit, (variates["walk"], variates["kappa"], variates["log_u"]))
            share = jnp.where(fit.active.sum() > 0, shares.mean(), TARGET)
        metrics = {"nodes": fit.active.sum(), "acceptance": share, "jumped": jumped}
        return fit, self._learn(state.walk, share), metrics

    def _jump(
        self, variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, fit: NodeFit
    ) -> tuple[NodeFit, jax.Array]:
        """Births and deaths, and the share of them that was accepted."""
        spare = view.spare(variates["key"], self.jumps)
        log_more = jnp.log(self.more)

        def jump(old: NodeFit, at: tuple[Any, ...]) -> tuple[NodeFit, jax.Array]:
            chance, score, born, log_u, extra = at
            up = jnp.exp(chance) < 0.5
            can = jnp.where(up, 1 - old.active, old.active)
            j = jnp.argmax(jnp.where(can > 0, score, -jnp.inf))
            node = jnp.where(up, view.fresh(j, born, extra), old.gamma[j])
            new = change(nodes, rows, view, old, j, node, up.astype(old.active.dtype), True)
            accepted = (log_u < new.value + jnp.where(up, log_more, -log_more)) & (can.sum() > 0)
            return accept_if(accepted, nodes, old, new, True), accepted.astype(node.dtype)

        moves = (variates["up"], variates["score"], variates["born"], variates["jump_log_u"], spare)
        fit, accepted = jax.lax.scan(jump, fit, moves)
        return fit, accepted.mean()

    def _learn(self, walk: CommonWalk, share: jax.Array) -> CommonWalk:
        rate = jnp.where(walk.count < self.warmup, 2.0 * (walk.count + 1.0) ** -0.6, 0.0)
        return CommonWalk(walk.log_scale + rate * (share - TARGET), walk.count + 1)

    def for_hyper(self, variates: PyTree, nodes: Nodes, view: PriorView, state: ShallowState) -> ShallowState:
        """Where hyper-parameters are drawn given all J nodes, inactive ones are filled with draws of the prior (Carlin
        and Chib, 1995); the conjugate hierarchy leaves them out instead."""
        if "fill_nodes" not in variates:
            return state
        fill = view.fresh_nodes(variates["fill_nodes"][None], jax.random.fold_in(variates["key"], 1))[0]
        gamma = jnp.where(state.active[:, None] > 0, state.gamma, fill)
        mean, precision = view.coefficients
        on = counted(nodes, state.coefs.shape[1], state.active)
        coefs = jnp.where(on > 0, state.coefs, mean + variates["fill_coefs"] / jnp.sqrt(precision))
        return dataclasses.replace(state, gamma=gamma, coefs=coefs)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        if "nodes" not in trace:
            return []
        counts = np.asarray(trace["nodes"]).ravel().round().astype(int)
        share = np.bincount(counts) / len(counts)
        best = int(share.argmax())
        if best == 0:
            return [f"The relation is most likely linear: no hidden node has probability {share[0]:.2g}."]
        return [
            f"The number of hidden nodes is most likely {best} (probability {share[best]:.2g}); that the relation is "
            f"linear has probability {share[0]:.2g}."
        ]


def _fills(model: Model, state: ShallowState) -> bool:
    return bool(jax.tree.leaves(state.hyper)) and not isinstance(model.prior, NodeHierarchy)
