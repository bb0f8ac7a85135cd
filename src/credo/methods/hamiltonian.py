"""What HMC and NUTS share: one state, window adaptation as ordinary steps, and draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.adaptation.window_adaptation import build_schedule
from blackjax.mcmc import hmc as blackjax_hmc

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.errors import InputError, Refusal
from credo.posteriors import Samples

PyTree = Any


@struct
class ChainState:
    """Where a chain is, how it moves, and what it has learned about how to move."""

    chain: Any = leaf()  # BlackJAX's HMCState: position, log density, gradient
    step_size: jax.Array = leaf()
    inverse_mass: jax.Array = leaf()
    adaptation: PyTree = leaf()  # (dual averaging, mass matrix, windows [warmup, 2], step); () without warm-up
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class HamiltonianMethod(Method):
    """Base of the Hamiltonian samplers on the full batch. A subclass says one transition.

    Warm-up runs the three-stage windows of Stan (step size; step size and mass in doubling windows; step size).
    """

    step_size: float | None = leaf(default=None)
    warmup: int = 500
    chains: int = 4
    target_acceptance: float = leaf(default=0.8)
    mass: str = "diagonal"
    over: str = "auto"

    default_steps = 500
    lockstep = False
    step_field = None

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.mass not in ("diagonal", "dense"):
            raise Refusal(f'mass must be "diagonal" or "dense", got {self.mass!r}.')
        if self.warmup < 0 or (self.warmup == 0 and self.step_size is None):
            raise InputError("Without warm-up the step size cannot be learned: give step_size, or warmup > 0.")
        if self.chains < 1:
            raise InputError(f"At least one chain is needed, got chains={self.chains}.")
        if not model.likelihood.point:
            return model, []
        return model.inferring(), ['noise="learned" is sampled under its default prior by this method.']

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        # One program for both phases: compiling a sampler's step takes longer than most warm-ups.
        sample = Phase("sample", steps, "full", keeps_draws=True, program="chain")
        return (Phase("adapt", self.warmup, "full", program="chain"), sample) if self.warmup else (sample,)

    def _log_density(self, model: Model, state_or_layout: Any, network: PyTree, batch: Batch) -> Any:
        def log_density(position: PyTree) -> jax.Array:
            return model.log_joint(Variables(state_or_layout.unravel(position), network), batch)[0]

        return log_density

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> ChainState:
        layout = Layout.of(variables.params)
        position = layout.ravel(variables.params)
        chain = blackjax_hmc.init(position, self._log_density(model, layout, variables.state, data))
        dims = sum(int(np.prod(x.shape)) for x in jax.tree.leaves(position))
        step_size = jnp.asarray(0.1 if self.step_size is None else self.step_size, jnp.float32)
        if not self.warmup:
            return ChainState(chain, step_size, jnp.ones(dims), (), variables.state, layout)
        mass = mass_matrix_adaptation(self.mass == "diagonal")[0](dims)
        dual = dual_averaging_adaptation(self.target_acceptance)[0](step_size)
        windows = jnp.asarray(build_schedule(self.warmup), jnp.int32)
        adaptation = (dual, mass, windows, jnp.zeros((), jnp.int32))
        return ChainState(chain, step_size, mass.inverse_mass_matrix, adaptation, variables.state, layout)

    def transition(self, key: jax.Array, log_density: Any, state: ChainState) -> tuple[Any, Any]:
        """One transition of the kernel: BlackJAX's new state and info."""
        raise TypeError(f"{type(self).__name__} does not say its transition")

    def step(
        self, noise: jax.Array, model: Model, phase: Phase, state: ChainState, batch: Batch
    ) -> tuple[ChainState, Info]:
        log_density = self._log_density(model, state.layout, state.network, batch)
        chain, info = self.transition(noise, log_density, state)
        metrics = {
            "log_density": chain.logdensity,
            "acceptance": info.acceptance_rate,
            "divergent": info.is_divergent,
            "energy": info.energy,
            "num_integration_steps": info.num_integration_steps,
            "step_size": state.step_size,
        }
        new = ChainState(
            chain, state.step_size, state.inverse_mass, state.adaptation, state.network, state.layout
        )  # fmt: skip
        if self.warmup:
            warming = state.adaptation[-1] < self.warmup
            new = jax.lax.cond(warming, self._adapt, lambda s, _: s, new, info.acceptance_rate)
        return new, Info(metrics, state.layout.unravel(chain.position))  # type: ignore[union-attr]

    def _adapt(self, state: ChainState, acceptance: jax.Array) -> ChainState:
        """One step of the windows: the step size always, the mass in slow windows, which end by using it."""
        _, mass_update, mass_final = mass_matrix_adaptation(self.mass == "diagonal")
        dual_init, dual_update, dual_final = dual_averaging_adaptation(self.target_acceptance)
        dual, mass, windows, count = state.adaptation
        slow, ends = windows[count, 0] == 1, windows[count, 1] == 1
        dual = dual_update(dual, acceptance)
        position = state.chain.position
        mass = jax.lax.cond(slow, lambda m: mass_update(m, position), lambda m: m, mass)
        dual, mass = jax.lax.cond(
            ends, lambda d, m: (dual_init(dual_final(d)), mass_final(m)), lambda d, m: (d, m), dual, mass
        )
        last = count + 1 == windows.shape[0]
        step_size = jnp.exp(jnp.where(last, dual.log_step_size_avg, dual.log_step_size))
        inverse = jnp.where(ends, mass.inverse_mass_matrix, state.inverse_mass)
        return ChainState(
            state.chain, step_size, inverse, (dual, mass, windows, count + 1), state.network, state.layout
        )

    def point(self, model: Model, state: ChainState) -> Variables:
        return Variables(state.layout.unravel(state.chain.position), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: ChainState, draws: PyTree) -> Samples:
        return Samples(draws, state.network)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        acceptance = float(np.mean(trace["acceptance"]))
        if acceptance >= 0.5:
            return []
        return [f"Mean acceptance was {acceptance:.2f}, which is low; lower step_size or lengthen the warm-up."]
