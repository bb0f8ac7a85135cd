"""The base of `gibbs` and `reversible_jump`: the models that they take, the step of a chain, and draws."""

import dataclasses
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.capabilities import NodeNetwork, ask
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.nodes import Nodes, with_constant
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.likelihoods import Bernoulli, Gaussian
from credo.methods.shallow.conditionals import draw_hyper, draw_noise, hyper_variates, noise_variates
from credo.methods.shallow.marginal import Solved, draw, moments, solve
from credo.methods.shallow.polya_gamma import polya_gamma
from credo.methods.shallow.prior_view import PriorView
from credo.methods.shallow.selection import flip_inputs
from credo.methods.shallow.state import ShallowState
from credo.methods.shallow.sweep import NodeFit, Rows, mask
from credo.methods.shallow.variates import VariateShapes, draw_all
from credo.methods.shallow.walk import Walk, start_walk
from credo.posteriors import Samples


@struct
class ShallowMethod(Method):
    """Base of the samplers that integrate the coefficients out. A subclass moves the nodes (`update_nodes`).

    With `select_inputs` each input k has an indicator s_k of prior probability `input_share`, and the network sees
    s ⊙ x. Weights of an input that is not used have their prior, and are 0 in the draws.
    """

    warmup: int = 1000
    chains: int = 4
    select_inputs: bool = False
    input_share: float = leaf(default=0.5)
    over: str = "auto"

    default_steps = 2000
    precision = "float64"

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.chains < 1 or self.warmup < 0:
            raise InputError(f"There are at least one chain and no negative warm-up, got {self.chains}, {self.warmup}.")
        if not isinstance(self.input_share, jax.core.Tracer) and not 0 < self.input_share < 1:
            raise InputError(f"input_share is a probability between 0 and 1, got {self.input_share}.")
        nodes_of(model)
        if not isinstance(model.likelihood, Gaussian | Bernoulli):
            raise Refusal(
                "The coefficients of the nodes are integrated out, which has a closed form under Gaussian noise of one "
                "size and, by Pólya-gamma variates, for two classes; not under the "
                f"{type(model.likelihood).__name__} likelihood."
            )
        if not isinstance(model.temperature, jax.core.Tracer) and model.temperature != 1.0:
            raise Refusal("Its conditionals are those of temperature 1: tempered hyper-priors are not conjugate.")
        return inferring(model)

    def check_weights(self, model: Model, weights: Any) -> None:
        if isinstance(model.likelihood, Bernoulli) and not np.isin(weights, (0, 1)).all():
            raise Refusal(
                "Pólya-gamma variates stand for whole rows of two classes, so weights must be 0 or 1; repeat rows "
                "instead."
            )

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        sample = Phase("sample", steps, "full", keeps_draws=True, program="chain")
        return (Phase("adapt", self.warmup, "full", program="chain"), sample) if self.warmup else (sample,)

    def first_active(self, nodes: Nodes) -> jax.Array:
        """Which nodes a chain starts with."""
        return jnp.ones(nodes.num)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> ShallowState:
        params = jax.tree.map(lambda x: x.astype(jnp.result_type(float)), variables.params)
        nodes = nodes_of(model)
        gamma, coefs = nodes.split(params["network"])
        active = self.first_active(nodes).astype(gamma.dtype)
        rows, used = data.weight.sum().astype(gamma.dtype), jnp.ones(gamma.shape[1] - 1, gamma.dtype)
        return ShallowState(
            gamma, coefs, active, params["prior"], params["likelihood"], start_walk(gamma), used, rows, variables.state
        )  # fmt: skip

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: ShallowState) -> PyTree:
        key_all, key_spare = jax.random.split(key)
        outputs, nodes = state.coefs.shape[0], state.gamma.shape[0]
        shapes = self.node_variates(model, state) | VariateShapes({"coefs": state.coefs.shape})
        shapes |= hyper_variates(model, state.hyper, nodes, outputs) | noise_variates(model, state.noise, state.rows)
        if self.select_inputs:
            inputs = state.used.shape[0]
            shapes |= VariateShapes({"reborn": (inputs, nodes)}, {"flip_log_u": (inputs,)})
        return draw_all(key_all, shapes) | {"key": key_spare}

    # ------------------------------------------------------------------ what a subclass defines
    @abstractmethod
    def node_variates(self, model: Model, state: ShallowState) -> VariateShapes:
        """The randomness of one `update_nodes`."""

    @abstractmethod
    def update_nodes(
        self, variates: PyTree, nodes: Nodes, rows: Rows, view: PriorView, state: ShallowState
    ) -> tuple[NodeFit, Walk, dict[str, jax.Array]]:
        """New nodes given the hyper-parameters alone, the walk that has learned from it, and metrics."""

    masked = False  # True: some nodes may be inactive

    def for_hyper(self, variates: PyTree, nodes: Nodes, view: PriorView, state: ShallowState) -> ShallowState:
        """The state that the hyper-parameters are drawn from."""
        return state

    # ------------------------------------------------------------------ the sweep
    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: ShallowState, batch: Batch
    ) -> tuple[ShallowState, Info]:
        nodes, likelihood = nodes_of(model), model.likelihood
        rows = self._rows(noise["key"], nodes, likelihood, state, batch)
        view = PriorView(model, nodes, state.gamma, state.coefs, state.hyper)
        if self.select_inputs:
            state, rows = flip_inputs(noise, nodes, rows, view, state, self.input_share, self.masked)
        fit, walk, metrics = self.update_nodes(noise, nodes, rows, view, state)
        columns = mask(nodes, fit.design.shape[0], fit.active, self.masked)
        solved = solve(moments(fit.design, rows.targets, rows.precision), view.coefficients, columns)
        coefs = self.draw_coefficients(noise, solved, columns)
        state = dataclasses.replace(state, gamma=fit.gamma, coefs=coefs, active=fit.active, walk=walk)
        outputs = fit.design.T @ coefs.T
        squares = (batch.weight[:, None] * (rows.targets - outputs) ** 2).sum(0)
        new_noise = draw_noise(noise, likelihood, state.noise, squares, state.rows)
        source = self.for_hyper(noise, nodes, view, state)
        hyper = draw_hyper(noise, model, nodes, state.hyper, source.gamma, source.coefs, state.active)
        state = dataclasses.replace(state, hyper=hyper, noise=new_noise)
        params = self.params(nodes, state)
        if self.select_inputs:
            metrics = metrics | {"inputs": state.used.sum()}
        if not self.masked:  # densities over different numbers of nodes cannot be compared
            metrics = metrics | {"log_density": model.log_joint(Variables(params, state.network), batch)[0]}
        return state, Info(metrics, jax.tree.map(lambda x: x.astype(jnp.float32), params))

    def draw_coefficients(self, variates: PyTree, solved: Solved, columns: jax.Array | None) -> jax.Array:
        """Coefficients from their exact conditional given the current nodes."""
        return draw(solved, variates["coefs"], columns)

    def _rows(self, key: jax.Array, nodes: Nodes, likelihood: Any, state: ShallowState, batch: Batch) -> Rows:
        """The data as a regression: as they are under Gaussian noise, given fresh Pólya-gamma variates for classes."""
        dtype = state.gamma.dtype
        inputs = with_constant(batch.inputs, dtype)
        used = inputs * jnp.concatenate([jnp.ones(1, dtype), state.used]) if self.select_inputs else inputs
        weight = batch.weight.astype(dtype)[:, None]
        if isinstance(likelihood, Bernoulli):
            logits = nodes.design(used, state.gamma) @ state.coefs.T
            omega = polya_gamma(jax.random.fold_in(key, 2), logits)
            return Rows(used, inputs, (batch.targets.astype(dtype)[:, None] - 0.5) / omega, weight * omega)
        sigma = jnp.broadcast_to(likelihood.sigma(state.noise), batch.targets.shape[1:]).astype(dtype)
        return Rows(used, inputs, batch.targets.astype(dtype), weight * sigma**-2.0)

    def params(self, nodes: Nodes, state: ShallowState) -> PyTree:
        """All parameters of the model, those of unused inputs 0."""
        gamma, coefs = state.gamma, state.coefs
        if self.select_inputs:
            used = jnp.concatenate([jnp.ones(1, gamma.dtype), state.used])
            others = jnp.ones(coefs.shape[1] - nodes.num - (0 if nodes.linear is None else len(state.used)))
            linear = state.used if nodes.linear is not None else state.used[:0]
            gamma, coefs = gamma * used, coefs * jnp.concatenate([others, linear, jnp.ones(nodes.num)])
        return {"network": nodes.join(gamma, coefs), "likelihood": state.noise, "prior": state.hyper}

    def point(self, model: Model, state: ShallowState) -> Variables:
        params = self.params(nodes_of(model), state)
        return Variables(jax.tree.map(lambda x: x.astype(jnp.float32), params), state.network)

    def posterior(self, model: Model, state: ShallowState, draws: PyTree) -> Samples:
        return Samples(draws, state.network)


def nodes_of(model: Model) -> Nodes:
    """The model's network as a sum of nodes; refused where it is none."""
    if model.fixed is not None:
        raise Refusal("Coefficients are integrated out all together, so this method holds no parameter fixed.")
    nodes = ask(model.network, NodeNetwork).nodes()
    if nodes is None:
        raise Refusal(
            "This method moves the nodes of one hidden layer one at a time, so the network must be a sum of nodes: "
            "take credo.networks.shallow(nodes), or mlp with at most one hidden layer and no dropout. Learned vectors "
            "of categories (embeddings) enter in products, which are none: leave such columns out."
        )
    return nodes
