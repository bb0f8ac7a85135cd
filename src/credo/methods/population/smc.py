"""Sequential Monte Carlo: a population that is led from the prior to the posterior."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import hmc as blackjax_hmc
from blackjax.mcmc.random_walk import RWState
from blackjax.smc.ess import ess as effective_size
from blackjax.smc.resampling import systematic
from jax.scipy.special import logsumexp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.mcmc.metropolis import walk
from credo.methods.population.prior_draws import check_drawable
from credo.methods.population.smc_schedule import Schedule
from credo.posteriors import Particles

KERNEL = blackjax_hmc.build_kernel()
KERNELS = ("hmc", "mala", "random_walk")
AIM = {"hmc": 0.8, "mala": 0.574, "random_walk": 0.234}
HALVINGS = 30  # of the interval in which the next λ lies
NOWHERE = -1e30  # log density where a network overflows: a weight of nothing that is still a number


@struct
class SmcState:
    """The population as rows of one matrix, its λ and its kernel."""

    particles: jax.Array = leaf()  # [n, P]
    exponent: jax.Array = leaf()  # λ
    log_evidence: jax.Array = leaf()
    step_size: jax.Array = leaf()
    inverse_mass: jax.Array = leaf()  # variances or the covariance of the population
    arrived: jax.Array = leaf()  # steps since λ = 1
    network: PyTree = leaf()
    schedule: Schedule | None = leaf()  # of the first run, where there is a second
    layout: Layout | None = None


@struct
class SMC(Method):
    """n particles from π_0 = p(θ) to π_1 ∝ p(θ, D) along π_λ ∝ p(θ)^{1−λ} p(θ, D)^λ (D2).

    A step is a stage: the next λ is the one at which the weights w = (p(θ, D)/p(θ))^{λ' − λ} are worth `ess` · n draws;
    particles are resampled by weight (systematically) and each makes `moves` moves that leave π_λ' invariant, with the
    population's own spread as scale. Once λ = 1, further steps only move them. Particles start all over the prior, so
    that modes are found in the shares that they have. Π (1/n) Σ w estimates the evidence p(D); its logarithm is
    `fit.posterior.log_evidence`, for each of the `chains`. Del Moral, Doucet and Jasra (2006), Sequential Monte Carlo
    samplers; Chopin and Papaspiliopoulos (2020), chapter 17.

    The estimate is right as n grows (Beskos et al., 2016), but biased for finite n, because particles choose the λ and
    the kernels that they are weighed and moved by: 6 particles had a mean of 1.09 p(D) for two weights. With `repeat` a
    second population starts anew from the prior and follows the λ, step sizes and masses of the first. Then E[Π (1/n) Σ
    w] = p(D) for every n (of p(D), not of its logarithm), at twice the cost.

    Draws are exact as n grows. The number of stages is not fixed beforehand: `fit.status` says so where the steps were
    too few to reach λ = 1. Particles of one run share ancestors, so that only several runs (`chains`) show the error:
    R-hat and effective sizes compare them. Of a given start only batch statistics are used.

    Args:
        particles: n.
        chains: independent runs.
        kernel: of the moves: "hmc", "mala" or "random_walk".
        num_steps: leapfrog steps of an "hmc" move.
        moves: of each particle at each step.
        ess: share of the particles that the weights of a stage are worth.
        mass: of the moves: "diagonal", the variances of the population, or "dense", its covariance.
        repeat: run again with everything fixed that the first run adapted: draws and evidence are those of the second.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(noise=0.5))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), credo.methods.SMC(particles=200, chains=2))
        >>> fit.posterior.log_evidence.shape
        (2,)
    """

    particles: int = 1000
    chains: int = 4
    kernel: str = "hmc"
    num_steps: int = 10
    moves: int = 2
    ess: float = leaf(default=0.9)
    mass: str = "diagonal"
    repeat: bool = False
    over: str = "auto"

    default_steps = 150
    lockstep = False

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.kernel not in KERNELS or self.mass not in ("diagonal", "dense"):
            raise InputError(
                f'kernel must be one of {", ".join(KERNELS)} and mass "diagonal" or "dense", got {self.kernel!r} and '
                f"{self.mass!r}."
            )
        if self.particles < 2 or self.chains < 1 or self.moves < 1 or self.num_steps < 1:
            raise InputError(
                "A population needs two particles, one run, one move and one leapfrog step at least, got "
                f"particles={self.particles}, chains={self.chains}, moves={self.moves}, num_steps={self.num_steps}."
            )
        if not 0 < float(self.ess) < 1:
            raise InputError(f"ess is a share of the particles between 0 and 1, got {self.ess}.")
        return inferring(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        first = Phase("temper", steps, "full")
        return (first, Phase("repeat", steps, "full")) if self.repeat else (first,)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> SmcState:
        check_drawable(model, variables)
        layout = Layout.of(variables.params, limit=2**62)
        particles = self._prior_draws(key, model, layout, data)
        zero = jnp.zeros((), jnp.float32)
        first = jnp.asarray(0.5 if self.kernel != "random_walk" else 2.38 / np.sqrt(particles.shape[1]), jnp.float32)
        mass = self._spread(particles)
        schedule = Schedule.empty(first, mass) if self.repeat else None
        return SmcState(particles, zero, zero, first, mass, jnp.zeros((), jnp.int32), variables.state, schedule, layout)

    def _prior_draws(self, key: jax.Array, model: Model, layout: Layout, data: Batch) -> jax.Array:
        """n draws of the prior as rows of one matrix."""
        keys = jax.random.split(key, self.particles)
        return jax.lax.map(lambda k: layout.ravel(model.sample_prior(k, data).params), keys)

    def _spread(self, particles: jax.Array) -> jax.Array:
        """Variances or the covariance of the population, never singular."""
        count, dims = particles.shape
        if self.mass == "diagonal":
            return particles.var(0) + 1e-10
        centred = particles - particles.mean(0)
        # Shrunk towards its diagonal, because few particles estimate many correlations badly.
        share = count / (count + dims)
        covariance = centred.T @ centred / count
        return share * covariance + (1 - share) * jnp.diag(jnp.diag(covariance)) + 1e-10 * jnp.eye(dims)

    def step(self, noise: PyTree, model: Model, phase: Phase, state: SmcState, batch: Batch) -> tuple[SmcState, Info]:
        if phase.name == "repeat":
            return self._follow_schedule(noise, model, state, batch)
        key_resample, key_move = jax.random.split(noise)
        state = jax.lax.cond(
            state.exponent < 1, lambda s: self._reweight(key_resample, model, s, batch), lambda s: s, state
        )
        particles, acceptance = self._move(key_move, model, state, batch)
        # Once at λ = 1 adaptation fades: a scale that went on adapting to the draws would bias them.
        gain = 1.0 / (1.0 + state.arrived)
        aim = AIM[self.kernel]
        step_size = state.step_size * jnp.exp(gain * (acceptance - aim))
        arrived = state.arrived + (state.exponent >= 1)
        new = dataclasses.replace(state, particles=particles, step_size=step_size, arrived=arrived)
        return new, _info(state, acceptance)

    def _follow_schedule(self, noise: PyTree, model: Model, state: SmcState, batch: Batch) -> tuple[SmcState, Info]:
        """A stage of the second run: nothing in it depends on the particles but their weights and moves."""
        key_resample, key_move, key_start = jax.random.split(noise, 3)

        def begin(s: SmcState) -> SmcState:
            particles = self._prior_draws(key_start, model, s.layout, batch)  # type: ignore[arg-type]
            schedule = dataclasses.replace(s.schedule, started=jnp.ones((), bool))  # type: ignore[type-var]
            return dataclasses.replace(
                s, particles=particles, exponent=jnp.zeros_like(s.exponent), arrived=jnp.zeros_like(s.arrived),
                log_evidence=jnp.zeros_like(s.log_evidence), schedule=schedule,
            )  # fmt: skip

        def stage(s: SmcState) -> SmcState:
            exponent, step_size, mass, schedule = s.schedule.next_stage()  # type: ignore[union-attr]
            ratio = self._ratio(model, s, batch)
            s = self._resampled(key_resample, s, (exponent - s.exponent) * ratio)
            return dataclasses.replace(s, exponent=exponent, step_size=step_size, inverse_mass=mass, schedule=schedule)

        state = jax.lax.cond(state.schedule.started, lambda s: s, begin, state)  # type: ignore[union-attr]
        state = jax.lax.cond(state.exponent < 1, stage, lambda s: s, state)
        particles, acceptance = self._move(key_move, model, state, batch)
        arrived = state.arrived + (state.exponent >= 1)
        return dataclasses.replace(state, particles=particles, arrived=arrived), _info(state, acceptance)

    def _ratio(self, model: Model, state: SmcState, batch: Batch) -> jax.Array:
        """log p(θ, D) − log p(θ) of every particle: log p(D|θ) where T = 1."""

        def log_ratio(theta: jax.Array) -> jax.Array:
            params = state.layout.unravel(theta)  # type: ignore[union-attr]
            value = model.log_joint(Variables(params, state.network), batch)[0] - model.log_prior(params)
            return jnp.where(jnp.isfinite(value), value, NOWHERE)

        return jax.vmap(log_ratio)(state.particles)

    def _reweight(self, key: jax.Array, model: Model, state: SmcState, batch: Batch) -> SmcState:
        """The next λ by bisection, the evidence so far, and the particles resampled."""
        ratio = self._ratio(model, state, batch)
        remaining = 1.0 - state.exponent

        def halve(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            low, high = ends
            middle = 0.5 * (low + high)
            enough = effective_size(middle * ratio) > self.ess * self.particles
            return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

        low, _ = jax.lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(remaining), remaining))
        final = effective_size(remaining * ratio) > self.ess * self.particles
        # A step of 0, which only overflowing particles lead to, would never end.
        gap = jnp.where(final, remaining, jnp.maximum(low, remaining * 2.0**-HALVINGS))
        state = self._resampled(key, state, gap * ratio)
        mass, exponent = self._spread(state.particles), jnp.where(final, 1.0, state.exponent + gap)
        schedule = None if state.schedule is None else state.schedule.append(exponent, state.step_size, mass)
        return dataclasses.replace(state, exponent=exponent, inverse_mass=mass, schedule=schedule)

    def _resampled(self, key: jax.Array, state: SmcState, log_weights: jax.Array) -> SmcState:
        """Particles by their weights, and the evidence with the mean of those."""
        total = logsumexp(log_weights)
        chosen = systematic(key, jnp.exp(log_weights - total), self.particles)
        log_evidence = state.log_evidence + total - jnp.log(self.particles)
        return dataclasses.replace(state, particles=take(state.particles, chosen), log_evidence=log_evidence)

    def _move(self, key: jax.Array, model: Model, state: SmcState, batch: Batch) -> tuple[jax.Array, jax.Array]:
        """Every particle after its moves, and their mean acceptance."""
        share = state.exponent

        def log_density(theta: jax.Array) -> jax.Array:
            params = state.layout.unravel(theta)  # type: ignore[union-attr]
            joint = model.log_joint(Variables(params, state.network), batch)[0]
            value = (1 - share) * model.log_prior(params) + share * joint
            return jnp.where(jnp.isfinite(value), value, NOWHERE)

        def move_particle(key: jax.Array, theta: jax.Array) -> tuple[jax.Array, jax.Array]:
            run = self._walk if self.kernel == "random_walk" else self._follow
            return run(key, log_density, theta, state)

        particles, rates = jax.vmap(move_particle)(jax.random.split(key, self.particles), state.particles)
        return particles, rates.mean()

    def _follow(
        self, key: jax.Array, log_density: Any, theta: jax.Array, state: SmcState
    ) -> tuple[jax.Array, jax.Array]:
        """Moves of one particle along the gradient: leapfrog paths, one step of which is MALA."""
        count = 1 if self.kernel == "mala" else self.num_steps

        def follow(chain: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            key_jitter, key_path = jax.random.split(key)
            step = state.step_size * jax.random.uniform(key_jitter, minval=0.5, maxval=1.0)
            chain, info = KERNEL(key_path, chain, log_density, step, state.inverse_mass, count)
            return chain, info.acceptance_rate

        chain, rates = jax.lax.scan(follow, blackjax_hmc.init(theta, log_density), jax.random.split(key, self.moves))
        return chain.position, rates.mean()

    def _walk(self, key: jax.Array, log_density: Any, theta: jax.Array, state: SmcState) -> tuple[jax.Array, jax.Array]:
        """Random-walk moves of one particle."""
        key_move, key_accept = jax.random.split(key)
        moves = jax.random.normal(key_move, (self.moves, *theta.shape), theta.dtype)
        limits = jnp.log(jax.random.uniform(key_accept, (self.moves,)))
        start = RWState(theta, log_density(theta))
        chain, info = walk(log_density, start, state.step_size, state.inverse_mass, moves, limits)
        return chain.position, info.acceptance_rate

    def point(self, model: Model, state: SmcState) -> Variables:
        return Variables(state.layout.unravel(state.particles[0]), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: SmcState, draws: PyTree) -> Particles:
        params = jax.vmap(jax.vmap(state.layout.unravel))(state.particles)  # type: ignore[union-attr]
        return Particles(params, state.network, log_evidence=state.log_evidence)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        reached = float(np.min(trace["exponent"][:, -1]))
        steps = trace["exponent"].shape[1]
        if reached >= 1:
            values = np.asarray(trace["log_evidence"][:, -1], np.float64)
            spread = f", {values.std(ddof=1):.2f} apart from run to run" if len(values) > 1 else ""
            stages = int((trace["exponent"] < 1).sum(1).max()) + 1
            mean = np.logaddexp.reduce(values) - np.log(len(values))
            return [f"The log evidence is {mean:.2f}{spread}; λ = 1 was reached after {stages} steps."]
        return [
            f"THE POPULATION DID NOT REACH THE POSTERIOR: after {steps} steps it stands at p(θ)^(1−λ) p(θ, D)^λ with "
            f"λ = {reached:.2g}; run more steps, or lower ess."
        ]


def _info(state: SmcState, acceptance: jax.Array) -> Info:
    metrics = {"exponent": state.exponent, "log_evidence": state.log_evidence, "acceptance": acceptance,
               "step_size": state.step_size}  # fmt: skip
    return Info(metrics)
