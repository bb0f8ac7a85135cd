"""The base of all stochastic-gradient samplers: the phases, the gradient, the schedule of steps, and draws."""

import dataclasses
from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.points.map import MAP, PointState
from credo.methods.sgmcmc.tuning import (
    BY_NOISE,
    GIVEN,
    TINY,
    Landscape,
    Pilot,
    StepChoice,
    direction,
    ends_round,
    landscape,
    next_round,
    normal_like,
    observe,
    signs_like,
    start_pilot,
)
from credo.posteriors import Samples

SCHEDULES = ("constant", "decay", "cyclical")
FLAT = 2**15  # numbers up to which one vector is faster than a tree: here every step copies it to a draw and back


@struct
class StochasticState:
    """A chain: its position and dynamics, and the results of the phases before it."""

    position: PyTree = leaf()
    momentum: PyTree = leaf()  # all else that the dynamics move; () for Langevin
    count: jax.Array = leaf()  # steps of the chain
    step_size: jax.Array = leaf()
    friction: jax.Array = leaf()
    limit: jax.Array = leaf()  # what the step size was limited by
    root: PyTree = leaf()  # P^½, the preconditioner's root
    optimiser: Any = leaf()  # PointState of the search for the mode, or ()
    anchor: PyTree = leaf()  # (θ*, ∇log p(θ*, D)) of control variates, or ()
    pilot: Any = leaf()  # Pilot, or ()
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class StochasticMethod(Method):
    """Base of the samplers on minibatches. A subclass defines a step (`move`) and how large it may be
    (`choose`).

    The target is exp(log_joint), the model's own density at its temperature, and the injected noise belongs to
    temperature 1 of that density: nothing depends on the batch size. Phases: a search for the mode, at which the chain
    starts; a sweep for the gradient there (control variates); a pilot, which finds preconditioner, step and friction;
    burn-in; the draws.
    """

    step_size: float | None = leaf(default=None)
    burn_in: int = 1000
    chains: int = 4
    map_steps: int = 2000
    learning_rate: float = leaf(default=0.005)
    pilot_steps: int = 300
    tolerance: float = leaf(default=0.02)
    control_variates: bool = False
    schedule: str = "constant"
    decay_after: float = leaf(default=1000.0)
    decay_power: float = leaf(default=0.33)
    cycle_length: int = leaf(default=5000)
    boost: float = leaf(default=4.0)
    step_scale: float = leaf(default=1.0)
    over: str = "auto"

    default_steps = 5000
    step_field = "step_scale"
    equilibrates = True  # does the preconditioner come from rounds of scaled probes?

    @property
    def members(self) -> int:
        return self.chains

    @property
    def piloted(self) -> bool:
        """Is there a pilot? Where the step size is given, there is none."""
        return self.step_size is None

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.schedule not in SCHEDULES:
            raise InputError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}.")
        if self.chains < 1:
            raise InputError(f"At least one chain is needed, got chains={self.chains}.")
        if min(self.burn_in, self.map_steps) < 0 or (self.piloted and self.pilot_steps < 6):
            raise InputError(
                "burn_in and map_steps cannot be negative and a pilot needs at least 6 steps, got "
                f"burn_in={self.burn_in}, map_steps={self.map_steps}, pilot_steps={self.pilot_steps}."
            )
        if self.step_size is not None and not self.step_size > 0:
            raise InputError(f"step_size must be positive, or None to let a pilot find it, got {self.step_size}.")
        if not 0 < self.tolerance < 1:
            raise InputError(f"tolerance is a relative error of a variance, between 0 and 1, got {self.tolerance}.")
        if self.boost < 1 or self.cycle_length < 2:
            raise InputError("A cycle needs at least 2 steps and boost ≥ 1.")
        return inferring(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        phases = [Phase("optimise", self.map_steps, "random")] if self.map_steps else []
        phases += [Phase("anchor", 1, "sweep")] if self.control_variates else []
        phases += [Phase("pilot", self.pilot_steps, "random")] if self.piloted else []
        phases += [Phase("burn_in", self.burn_in, "random", program="chain")] if self.burn_in else []
        return (*phases, Phase("sample", steps, "random", keeps_draws=True, program="chain"))

    # ------------------------------------------------------------------ what a subclass defines
    def start(self, key: jax.Array, position: PyTree) -> PyTree:
        """The momentum before the first step."""
        return ()

    @abstractmethod
    def choose(self, land: Landscape) -> StepChoice:
        """Step size and friction for the pilot's estimates."""

    def square(self, probe: PyTree, gradient: PyTree, product: PyTree) -> PyTree:
        """What the pilot averages for the preconditioner: (HDz)², whose mean is Σ_j H_ij² D_j²."""
        return jax.tree.map(jnp.square, product)

    def root(self, square: PyTree, scale: PyTree) -> PyTree:
        """D = P^½ after a round that began with `scale`: rows of DHD are to be equally long."""
        return jax.tree.map(lambda s, d: jnp.sqrt(d) * (s + TINY) ** -0.25, square, scale)

    @abstractmethod
    def move(self, noise: PyTree, gradient: PyTree, state: StochasticState, rate: jax.Array) -> tuple[PyTree, PyTree]:
        """New position and momentum; `rate` multiplies the simulated time squared (SGHMC) or the time (SGLD)."""

    # ------------------------------------------------------------------ the contract
    def _map(self) -> MAP:
        return MAP(self.learning_rate)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> StochasticState:
        layout = Layout.of(variables.params, FLAT)
        position = layout.ravel(variables.params)
        key_pilot, key_momentum, key_map = jax.random.split(key, 3)
        initial = 1.0 if self.step_size is None else self.step_size
        number = jnp.zeros((), jnp.float32)
        point: Any = self._map().init(key_map, model, variables, data) if self.map_steps else ()
        ones = jnp.ones_like if self.piloted else (lambda x: jnp.ones((), x.dtype))
        zeros = jax.tree.map(jnp.zeros_like, position)
        return StochasticState(
            position, self.start(key_momentum, position), jnp.zeros((), jnp.int32), number + initial,
            number + self.first_friction(initial), jnp.zeros((), jnp.int32) + GIVEN, jax.tree.map(ones, position),
            point, (position, zeros) if self.control_variates else (),
            start_pilot(key_pilot, position) if self.piloted else (), variables.state, layout,
        )  # fmt: skip

    def first_friction(self, step_size: Any) -> Any:
        """The friction where no pilot chooses one."""
        return 0.0

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: StochasticState) -> PyTree:
        if phase.name == "pilot":
            return signs_like(key, state.position)
        return normal_like(key, state.position) if phase.name in ("chain", "sample") else key

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: StochasticState, batch: Batch
    ) -> tuple[StochasticState, Info]:
        if phase.name == "optimise":
            point, info = self._map().step(noise, model, phase, state.optimiser, batch)
            return self._arrived(state, point), info
        if phase.name == "anchor":
            return self._add_anchor(model, phase, state, batch)
        if phase.name == "pilot":
            return self._look(noise, model, phase, state, batch)
        value, gradient = self.gradient(model, state, state.position, batch)
        rate, log_weight = self.rate(state.count - self.burn_in)
        position, momentum = self.move(noise, gradient, state, rate)
        metrics = {"log_density": value, "step_size": self.step_scale * state.step_size, "limit": state.limit}
        draw = state.layout.unravel(position)  # type: ignore[union-attr]
        new = dataclasses.replace(state, position=position, momentum=momentum, count=state.count + 1)
        plain = self.schedule == "constant"
        return new, Info(metrics, draw if plain else {"params": draw, "log_weight": log_weight})

    def _arrived(self, state: StochasticState, point: PointState) -> StochasticState:
        position = state.layout.ravel(point.layout.unravel(point.values))  # type: ignore[union-attr]
        anchor = (position, state.anchor[1]) if self.control_variates else ()
        return dataclasses.replace(state, position=position, optimiser=point, anchor=anchor, network=point.network)

    def log_density(self, model: Model, state: StochasticState, batch: Batch) -> Any:
        """The batch's estimate of log p(θ, D) as a function of the flat parameters."""

        def log_density(position: PyTree) -> jax.Array:
            params = state.layout.unravel(position)  # type: ignore[union-attr]
            return model.log_joint(Variables(params, state.network), batch)[0]

        return log_density

    def gradient(
        self, model: Model, state: StochasticState, position: PyTree, batch: Batch
    ) -> tuple[jax.Array, PyTree]:
        """An unbiased estimate of log p(θ, D) and of its gradient; with control variates
        ∇̃(θ) + (∇(θ*) − ∇̃(θ*)), both ∇̃ from the same rows."""
        log_density = self.log_density(model, state, batch)
        value, gradient = jax.value_and_grad(log_density)(position)
        if self.control_variates:
            at_anchor = jax.grad(log_density)(state.anchor[0])
            gradient = jax.tree.map(lambda g, whole, part: g + (whole - part), gradient, state.anchor[1], at_anchor)
        return value, gradient

    def _add_anchor(
        self, model: Model, phase: Phase, state: StochasticState, batch: Batch
    ) -> tuple[StochasticState, Info]:
        """One batch of the gradient at θ*. A sweep sees every row once: nothing is scaled by N."""

        def share(position: PyTree) -> jax.Array:
            variables = Variables(state.layout.unravel(position), state.network)  # type: ignore[union-attr]
            per_row, _ = model.log_likelihood(variables, batch)
            rows = jnp.where(batch.weight > 0, batch.weight * per_row, 0.0).sum()
            return (model.log_prior(variables.params) / phase.steps + rows) / model.temperature

        point, total = state.anchor
        value, gradient = jax.value_and_grad(share)(point)
        anchor = (point, jax.tree.map(jnp.add, total, gradient))
        return dataclasses.replace(state, anchor=anchor), Info({"log_density": value})

    def _look(
        self, probe: PyTree, model: Model, phase: Phase, state: StochasticState, batch: Batch
    ) -> tuple[StochasticState, Info]:
        pilot: Pilot = state.pilot
        root = state.root
        negative = jax.grad(lambda p: -self.log_density(model, state, batch)(p))
        tangent = direction(pilot, probe, root, phase.steps)
        gradient, product = jax.jvp(negative, (state.position,), (tangent,))
        square = self.square(probe, gradient, product)
        if self.control_variates:  # their noise is 0 at θ* and grows with the distance from it
            typical = jax.tree.map(lambda p, r, s: p + r * s, state.position, root, pilot.signs)
            gradient = jax.tree.map(jnp.negative, self.gradient(model, state, typical, batch)[1])
        pilot = observe(pilot, probe, root, gradient, product, square, phase.steps)
        root = self.root(pilot.square, pilot.scale)
        pilot = next_round(pilot, root, ends_round(state.pilot, phase.steps) & self.equilibrates)
        land = landscape(pilot, root, batch)
        choice = self.choose(land)
        new = dataclasses.replace(
            state, pilot=pilot, root=root, step_size=choice.step_size.astype(state.step_size.dtype),
            friction=choice.friction.astype(state.friction.dtype), limit=choice.limit.astype(state.limit.dtype),
        )  # fmt: skip
        return new, Info(land._asdict() | {"step_size": choice.step_size, "friction": choice.friction})

    def rate(self, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        """(the factor on the step at this step of the sampling phase, the log weight of its draw).

        "decay": (1 + t/b)^{-γ}, draws weighted by it (Welling and Teh, 2011). "cyclical": (B/2)(1 + cos πr) at the
        share r of a cycle (Zhang et al., 2020); draws count where the factor is at most 1.
        """
        time = jnp.maximum(step, 0).astype(jnp.float32)
        if self.schedule == "decay":
            rate = (1 + time / self.decay_after) ** -self.decay_power
            return rate, self.log_time(rate)
        if self.schedule == "cyclical":
            share = (time % self.cycle_length) / self.cycle_length
            rate = 0.5 * self.boost * (1 + jnp.cos(jnp.pi * share))
            return jnp.where(step < 0, 1.0, rate), jnp.where(rate > 1.0, -jnp.inf, 0.0)
        return jnp.ones(()), jnp.zeros(())

    def log_time(self, rate: jax.Array) -> jax.Array:
        """The log of the simulated time that a draw stands for."""
        return jnp.log(rate)

    def point(self, model: Model, state: StochasticState) -> Variables:
        return Variables(state.layout.unravel(state.position), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: StochasticState, draws: PyTree) -> Samples:
        if self.schedule == "constant":
            return Samples(draws, state.network)
        params, weights = draws["params"], draws["log_weight"]
        if self.schedule == "decay" or isinstance(weights, jax.core.Tracer):
            return Samples(params, state.network, weights)
        index = np.flatnonzero(np.asarray(weights)[0] == 0)  # all chains keep step
        if not len(index):
            raise InputError("No draw fell into the sampling part of a cycle: take more steps, or shorter cycles.")
        return Samples(jax.tree.map(lambda x: x[:, index], params), state.network)

    def smaller_step(self, factor: float = 0.1) -> "StochasticMethod":
        """Lower the steps of the chain and of the search for the mode: either may have been too large."""
        return dataclasses.replace(self, step_scale=factor * self.step_scale, learning_rate=factor * self.learning_rate)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        if not self.piloted:
            return []
        steps = np.asarray(trace["step_size"])[:, -1]
        reason = "gradient noise" if np.median(np.asarray(trace["limit"])[:, -1]) == BY_NOISE else "curvature"
        low, high = f"{steps.min():.2g}", f"{steps.max():.2g}"
        size = low if low == high else f"{low} to {high}"
        return [
            f"The pilot chose step_size = {size}: the largest whose errors of the posterior variances stay below "
            f"{100 * float(self.tolerance):.2g} % near the mode, here limited by {reason}."
        ]
