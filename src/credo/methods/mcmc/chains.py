"""The base of all Markov chains on the full batch: one state, window adaptation as ordinary steps, and draws."""

import dataclasses
from abc import abstractmethod
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.adaptation.window_adaptation import build_schedule

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.posteriors import Samples

MASSES = ("diagonal", "dense", "identity")


# Its own jit: a kernel asks for the gradient at several places, and all share what is traced and differentiated once.
@partial(jax.jit, static_argnums=0, inline=True)
def _log_joint(layout: Any, model: Model, network: PyTree, batch: Batch, position: PyTree) -> jax.Array:
    # Accelerators round factors of matrix products to ten bits by default; energies need all 24.
    with jax.default_matmul_precision("float32"):
        return model.log_joint(Variables(layout.unravel(position), network), batch)[0]


@struct
class ChainState:
    """A chain: its position, step size, mass and adaptation."""

    chain: Any = leaf()  # BlackJAX's state: position, log density and, where a kernel needs it, gradient or momentum
    step_size: jax.Array = leaf()
    inverse_mass: jax.Array = leaf()  # the estimated covariance of the posterior, [P] or [P, P]
    adaptation: PyTree = leaf()  # (step size, mass matrix or (), windows [warmup, 2], step); () without warm-up
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class ChainMethod(Method):
    """Base of the Markov chains on the full batch. A subclass defines `start` and `transition`.

    Warm-up runs the three-stage windows of Stan (step size; step size and mass in doubling windows; step size). They
    are ordinary steps that share one program with sampling: a counter in the state says when the warm-up is over. With
    mass="identity" only the step size is learned: a mass estimated before a chain is in the typical set slows it down.
    """

    step_size: float | None = leaf(default=None)
    warmup: int = 500
    chains: int = 4
    target_acceptance: Any = leaf(default=0.8)
    mass: str = "diagonal"
    over: str = "auto"

    default_steps = 500
    step_field = None
    first_step = 0.1  # where the warm-up's search for the step size begins

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.mass not in MASSES:
            raise Refusal(f"mass must be one of {', '.join(MASSES)}, got {self.mass!r}.")
        if self.warmup < 0 or (self.warmup == 0 and self.step_size is None):
            raise InputError("Without warm-up the step size cannot be learned: give step_size, or warmup > 0.")
        if self.chains < 1:
            raise InputError(f"At least one chain is needed, got chains={self.chains}.")
        return inferring(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        # One program for both phases: compiling a sampler's step takes longer than most warm-ups.
        sample = Phase("sample", steps, "full", keeps_draws=True, program="chain")
        return (Phase("adapt", self.warmup, "full", program="chain"), sample) if self.warmup else (sample,)

    def _layout(self, params: PyTree) -> Layout:
        return Layout.of(params)

    def _log_density(self, model: Model, state_or_layout: Any, network: PyTree, batch: Batch) -> Any:
        return partial(_log_joint, state_or_layout, model, network, batch)

    @abstractmethod
    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> Any:
        """BlackJAX's state of a chain that starts at these parameters."""

    def _tuner(self, dims: int) -> tuple[Any, Any, Any]:
        """(init, update, final) of the step size: dual averaging to the target acceptance."""
        return dual_averaging_adaptation(self.target_acceptance)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> ChainState:
        layout = self._layout(variables.params)
        chain = self.start(key, layout, variables.params, self._log_density(model, layout, variables.state, data))
        dims = num_dims(chain.position)
        step_size = jnp.asarray(self.first_step if self.step_size is None else self.step_size, jnp.float32)
        if not self.warmup:
            return ChainState(chain, step_size, jnp.ones(dims), (), variables.state, layout)
        tuned = self._tuner(dims)[0](step_size)
        windows = jnp.asarray(build_schedule(self.warmup), jnp.int32)
        learned = self.mass != "identity"
        mass: Any = mass_matrix_adaptation(self.mass == "diagonal")[0](dims) if learned else ()
        inverse = mass.inverse_mass_matrix if learned else jnp.ones(dims)
        adaptation = (tuned, mass, windows, jnp.zeros((), jnp.int32))
        return ChainState(chain, step_size, inverse, adaptation, variables.state, layout)

    @abstractmethod
    def transition(self, key: Any, log_density: Any, state: ChainState) -> tuple[Any, Any]:
        """One transition of the kernel: BlackJAX's new state, and what `metrics` and the warm-up need of it."""

    def metrics(self, chain: Any, info: Any) -> dict[str, jax.Array]:
        """What the trace stores of a transition."""
        return {"log_density": chain.logdensity, "acceptance": info.acceptance_rate}

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: ChainState, batch: Batch
    ) -> tuple[ChainState, Info]:
        log_density = self._log_density(model, state.layout, state.network, batch)
        chain, info = self.transition(noise, log_density, state)
        metrics = self.metrics(chain, info) | {"step_size": state.step_size}
        new = dataclasses.replace(state, chain=chain)
        if self.warmup:
            warming = state.adaptation[-1] < self.warmup
            new = jax.lax.cond(warming, self._adapt, lambda s, _: s, new, info.acceptance_rate)
        return new, Info(metrics, state.layout.unravel(chain.position))  # type: ignore[union-attr]

    def _adapt(self, state: ChainState, signal: jax.Array) -> ChainState:
        """One step of the windows: the step size always, the mass in slow windows, which end by using it."""
        _, mass_update, mass_final = mass_matrix_adaptation(self.mass == "diagonal")
        init, update, final = self._tuner(num_dims(state.chain.position))
        tuned, mass, windows, count = state.adaptation
        slow, ends = windows[count, 0] == 1, windows[count, 1] == 1
        tuned = update(tuned, signal)
        position, inverse = state.chain.position, state.inverse_mass
        if self.mass != "identity":
            mass = jax.lax.cond(slow, lambda m: mass_update(m, position), lambda m: m, mass)
            tuned, mass = jax.lax.cond(
                ends, lambda d, m: (init(final(d)), mass_final(m)), lambda d, m: (d, m), tuned, mass
            )  # fmt: skip
            inverse = jnp.where(ends, mass.inverse_mass_matrix, inverse)
        last = count + 1 == windows.shape[0]
        step_size = jnp.where(last, final(tuned), jnp.exp(tuned.log_step_size))
        adaptation = (tuned, mass, windows, count + 1)
        return dataclasses.replace(state, step_size=step_size, inverse_mass=inverse, adaptation=adaptation)

    def point(self, model: Model, state: ChainState) -> Variables:
        return Variables(state.layout.unravel(state.chain.position), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: ChainState, draws: PyTree) -> Samples:
        return Samples(draws, state.network)


def num_dims(position: PyTree) -> int:
    """How many numbers a position holds."""
    return sum(int(np.prod(x.shape)) for x in jax.tree.leaves(position))


def low_acceptance(trace: dict[str, Any], least: float) -> list[str]:
    """A note where the mean acceptance is below `least`."""
    acceptance = float(np.mean(trace["acceptance"]))
    if acceptance >= least:
        return []
    return [f"Mean acceptance was {acceptance:.2f}, which is low; lower step_size or lengthen the warm-up."]
