"""Simulated annealing: a chain that is cooled until it reaches a mode."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from blackjax.mcmc import hmc as blackjax_hmc

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.points.map import MEMORY
from credo.methods.points.optimise import descend, fade, optimiser
from credo.posteriors import Samples

KERNEL = blackjax_hmc.build_kernel()
AIM = 0.574  # acceptance of Langevin moves
GAIN = 0.05  # how fast the step size follows the acceptance


@struct
class AnnealedState:
    """Where the chain is, the best point that it has seen, and the memory of the polish."""

    step: jax.Array = leaf()  # of the phase
    values: PyTree = leaf()
    step_size: jax.Array = leaf()
    best: PyTree = leaf()
    best_value: jax.Array = leaf()  # log p(θ, D) there
    memory: PyTree = leaf()
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class SimulatedAnnealing(Method):
    """A chain on p(θ, D)^{1/T} while T falls from `hot` to `cold`, and the best θ that it saw (D4).

    T_t = hot (cold/hot)^{t/steps}. While T is high the chain crosses valleys; as it falls the chain settles in a mode
    that is deep, not merely near. Moves are Metropolis-adjusted Langevin steps of size ε√T, with ε following the
    acceptance. T is on top of the model's own temperature. The chain ends near a mode, as far away as `cold` leaves it;
    a polish by gradients from the best point then reaches it. The posterior is that one point. Noise that is "learned"
    is a point as well. Kirkpatrick, Gelatt and Vecchi (1983), Optimization by simulated annealing.

    Args:
        hot: T at the start.
        cold: T at the end.
        step_size: ε at the start.
        polish: steps of the polish; 0 leaves it out.
        learning_rate: of the polish, by Adam, decaying to 0.

    Example:
        >>> import credo
        >>> [phase.name for phase in credo.methods.SimulatedAnnealing().phases(100, 500)]
        ['anneal', 'polish']
    """

    hot: float = leaf(default=10.0)
    cold: float = leaf(default=0.001)
    step_size: float = leaf(default=0.1)
    polish: int = 1000
    learning_rate: float = leaf(default=0.005)

    default_steps = 5000
    step_field = "learning_rate"

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if not 0 < float(self.cold) <= float(self.hot) or not float(self.step_size) > 0 or self.polish < 0:
            raise InputError(
                "Annealing needs 0 < cold ≤ hot, a positive step_size and a polish of 0 steps or more, got "
                f"cold={self.cold}, hot={self.hot}, step_size={self.step_size}, polish={self.polish}."
            )
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        anneal = Phase("anneal", steps, "full", main=True)
        return (anneal, Phase("polish", self.polish, "full")) if self.polish else (anneal,)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> AnnealedState:
        layout = Layout.of(variables.params)
        values = layout.ravel(variables.params)
        memory = optimiser("adam", MEMORY).init(values)
        value = self._log_joint(model, layout, variables.state, data)(values)
        return AnnealedState(
            jnp.zeros((), jnp.int32), values, jnp.asarray(self.step_size, jnp.float32), values, value, memory,
            variables.state, layout,
        )  # fmt: skip

    def _log_joint(self, model: Model, layout: Any, network: PyTree, batch: Batch) -> Any:
        return lambda values: model.log_joint(Variables(layout.unravel(values), network), batch)[0]

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: AnnealedState, batch: Batch
    ) -> tuple[AnnealedState, Info]:
        log_joint = self._log_joint(model, state.layout, state.network, batch)
        return (self._cool if phase.name == "anneal" else self._descend)(noise, log_joint, phase, state)

    def _cool(self, key: jax.Array, log_joint: Any, phase: Phase, state: AnnealedState) -> tuple[AnnealedState, Info]:
        share = state.step / jnp.maximum(phase.steps - 1, 1)
        heat = self.hot * (self.cold / self.hot) ** jnp.minimum(share, 1.0)

        def tempered(values: PyTree) -> jax.Array:
            return log_joint(values) / heat

        chain = blackjax_hmc.init(state.values, tempered)
        size = sum(x.size for x in jax.tree.leaves(state.values))
        chain, info = KERNEL(key, chain, tempered, state.step_size * jnp.sqrt(heat), jnp.ones(size), 1)
        step_size = state.step_size * jnp.exp(GAIN * (info.acceptance_rate - AIM))
        state = self._with_best(state, chain.position, heat * chain.logdensity)
        last = state.step + 1 >= phase.steps
        # The polish starts at the best point, and counts its own steps.
        values = jax.tree.map(lambda b, v: jnp.where(last, b, v), state.best, chain.position)
        step = jnp.where(last & (self.polish > 0), 0, state.step + 1)
        metrics = {"log_density": state.best_value, "heat": heat, "acceptance": info.acceptance_rate}
        return dataclasses.replace(state, step=step, values=values, step_size=step_size), Info(metrics)

    def _descend(self, _: Any, log_joint: Any, phase: Phase, state: AnnealedState) -> tuple[AnnealedState, Info]:
        value, gradient = jax.value_and_grad(log_joint)(state.values)
        state = self._with_best(state, state.values, value)
        rate = self.learning_rate * fade("cosine", state.step, phase.steps)
        down = jax.tree.map(jnp.negative, gradient)
        values, memory = descend("adam", rate, down, state.memory, state.values, MEMORY)
        new = dataclasses.replace(state, step=state.step + 1, values=values, memory=memory)
        return new, Info({"log_density": state.best_value})

    def _with_best(self, state: AnnealedState, values: PyTree, value: jax.Array) -> AnnealedState:
        """The state with this point as its best, where it is better."""
        better = value > state.best_value
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), values, state.best)
        return dataclasses.replace(state, best=best, best_value=jnp.where(better, value, state.best_value))

    def point(self, model: Model, state: AnnealedState) -> Variables:
        return Variables(state.layout.unravel(state.best), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: AnnealedState, draws: PyTree) -> Samples:
        points = jax.vmap(lambda s: self.point(model, s))(state)
        return Samples(jax.tree.map(lambda x: x[:, None], points.params), points.state)
