"""Stein variational gradient descent: particles that climb the posterior and push each other apart."""

import dataclasses

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.points.optimise import descend, fade, optimiser
from credo.methods.variational.state import weights_from_prior
from credo.posteriors import Samples

STARTS = ("init", "start", "prior")


@struct
class ParticleState:
    """All particles as rows of one matrix: they interact, so they are one member."""

    step: jax.Array = leaf()
    particles: jax.Array = leaf()  # [n, P]
    memory: PyTree = leaf()
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class SVGD(Method):
    """Move n particles by φ(θ_i) = (1/n) Σ_j [k(θ_j, θ_i) ∇log p(θ_j, D) + ∇_{θ_j} k(θ_j, θ_i)] until φ = 0 (B4).

    k(θ, θ') = exp(−‖θ − θ'‖²/b) with b = median² / log n of the distances between particles. The first term climbs, the
    second pushes particles apart. With one particle it is MAP. The mean of a Gaussian posterior is exact; its spread is
    too small, the more so the more parameters there are for each particle: distances in many dimensions are all alike,
    and the push is too weak. Learned noise is put under its default prior. Liu and Wang (2016), Stein variational
    gradient descent; Ba et al. (2022), Understanding the variance collapse of SVGD in high dimensions.

    Args:
        learning_rate: size of the optimiser's steps; decays to 0 by a cosine over the second half.
        particles: n.
        start: "init" (every particle at a fresh initialisation, the first one where the fit starts), "start" (all of
            them around where the fit starts) or "prior" (draws of the prior).
        initial_std: normal noise that is added to every particle at the start.
        optimiser: "adam", "rmsprop", "momentum" or "sgd".

    Example:
        >>> import credo
        >>> credo.methods.SVGD(particles=50).members
        1
    """

    learning_rate: float = leaf(default=0.01)
    particles: int = 30
    start: str = "init"
    initial_std: float = leaf(default=0.05)
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 5000
    step_field = "learning_rate"

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.particles < 1:
            raise InputError(f"At least one particle is needed, got particles={self.particles}.")
        if self.start not in STARTS:
            raise InputError(f"start must be one of {', '.join(STARTS)}, got {self.start!r}.")
        return inferring(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> ParticleState:
        layout = Layout.of(variables.params, limit=2**62)
        key_start, key_noise = jax.random.split(key)

        def start(key: jax.Array) -> jax.Array:
            if self.start == "prior":
                return layout.ravel(weights_from_prior(key, model, variables).params)
            return layout.ravel((model.init(key, data) if self.start == "init" else variables).params)

        particles = jax.lax.map(start, jax.random.split(key_start, self.particles))
        if self.start == "init":
            particles = particles.at[0].set(layout.ravel(variables.params))
        # Particles at one point would stay together: their gradients are equal and nothing pushes them apart.
        particles = particles + self.initial_std * jax.random.normal(key_noise, particles.shape, particles.dtype)
        memory = optimiser(self.optimiser).init(particles)
        return ParticleState(jnp.zeros((), jnp.int32), particles, memory, variables.state, layout)

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: ParticleState, batch: Batch
    ) -> tuple[ParticleState, Info]:
        def log_density(theta: jax.Array, key: jax.Array) -> tuple[jax.Array, PyTree]:
            variables = Variables(state.layout.unravel(theta), state.network)  # type: ignore[union-attr]
            return model.log_joint(variables, batch, key=key, train=True)

        evaluate = jax.vmap(jax.value_and_grad(log_density, has_aux=True))
        (values, networks), gradient = evaluate(state.particles, jax.random.split(noise, self.particles))
        direction, bandwidth = stein_direction(state.particles, gradient)
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps)
        down = -direction / batch.num_data
        particles, memory = descend(self.optimiser, rate, down, state.memory, state.particles)
        network = jax.tree.map(lambda x: x[0], networks)
        metrics = {"loss": -values.mean() / batch.num_data, "bandwidth": jnp.sqrt(bandwidth)}
        return dataclasses.replace(
            state, step=state.step + 1, particles=particles, memory=memory, network=network
        ), Info(metrics)

    def point(self, model: Model, state: ParticleState) -> Variables:
        return Variables(state.layout.unravel(state.particles[0]), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: ParticleState, draws: PyTree) -> Samples:
        params = jax.vmap(jax.vmap(state.layout.unravel))(state.particles)  # type: ignore[union-attr]
        # Equal weights say that these are points of one measure, not draws of a chain one after another.
        return Samples(params, state.network, jnp.zeros(state.particles.shape[:2], state.particles.dtype))


def stein_direction(particles: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    """φ of every particle [n, P] from positions and gradients [n, P], and the squared bandwidth b."""
    count = len(particles)
    if count == 1:
        return gradient, jnp.ones((), particles.dtype)
    centred = particles - particles.mean(0)
    norms = (centred**2).sum(1)
    squares = jnp.maximum(norms[:, None] + norms - 2 * centred @ centred.T, 0.0)
    pairs = jnp.sort(squares[jnp.triu_indices(count, 1)])
    median = pairs[len(pairs) // 2]
    bandwidth = jnp.maximum(median / jnp.log(count), 1e-12)
    kernel = jnp.exp(-squares / bandwidth)
    push = 2 / bandwidth * (centred * kernel.sum(1, keepdims=True) - kernel @ centred)
    return (kernel @ gradient + push) / count, bandwidth
