"""Variationally inferred sampling: q_0 refined by T steps of a sampler, learned together under a valid bound."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.mcmc import hmc as blackjax_hmc
from jax.flatten_util import ravel_pytree

from credo.core.batch import Batch
from credo.core.method import Info, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import field_values, leaf, size, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.mcmc.hamiltonian import state_energy
from credo.methods.variational.bayes_by_backprop import BayesByBackprop
from credo.methods.variational.refinement.dynamics import SAMPLERS, Refined, first_learned, momenta, refine
from credo.methods.variational.state import VariationalState
from credo.posteriors import Samples

KERNEL = blackjax_hmc.build_kernel()
INFERENCES = ("chain", "refined")
MOST_FLOW = 300  # numbers of θ under "gradient", whose steps need a determinant


@struct
class VISState(VariationalState):
    """The variational state, and the chain that follows it."""

    chain: Any = leaf(default=None)  # BlackJAX's state
    tuned: Any = leaf(default=None)  # its step size, in units of the learned steps
    count: Any = leaf(default=None)  # steps of the chain so far


@struct
class VIS(BayesByBackprop):
    """Maximise a lower bound of log p(D) over q_0 and over a sampler's own parameters, then let the sampler run (F1).

    θ_0 ~ q_0 goes T steps of a sampler with step sizes, damping and bridges that are learned by differentiating through
    the steps; see `credo.refinement` for the bounds. With T = 0 this is `bayes_by_backprop`. Afterwards
    T → ∞: a Metropolis-corrected chain starts at a refined draw and moves by the learned steps, so that what is kept
    are draws of the posterior whatever T was.

    On minibatches one half of the rows drives the steps and the other half judges where they end: on the same rows, a
    path would gain by following the noise of its minibatch, and the estimate would not be a bound.

    Gallego and Ríos Insua (2019), Variationally Inferred Sampling Through a Refined Bound; Salimans, Kingma and Welling
    (2015); Geffner and Domke (2021).

    Args:
        refinement: T.
        sampler: "hamiltonian" (leapfrog steps, momentum renewed in part), "langevin" (renewed wholly), "leapfrog"
            (drawn once) or "gradient" (no noise; the Jacobian is a determinant, so up to 300 parameters).
        bridge: steps follow learned bridges from q_0 to the posterior, or the posterior itself from the first.
        refined_step: the sampler's first step, in units of `initial_std`.
        inference: "chain" (T → ∞), or "refined": independent draws of q_T.
        learning_steps: steps in which q_0 and the sampler are learned, before the draws.
        settle: steps of the chain before its draws, which adapt the step size to an acceptance of 0.8.
        path: leapfrog steps between draws of the chain.
        bound_draws: paths over which `fit.phases["bound"]` measures the bound on all data at the end.
        chains: members, each with a q_0 and a sampler of its own.
        learning_rate, num_samples, initial_std, beta, family, …: as for `bayes_by_backprop`.

    Example:
        >>> import credo
        >>> credo.methods.VIS(refinement=10, sampler="langevin").members
        4
    """

    refinement: int = 5
    sampler: str = "hamiltonian"
    bridge: bool = True
    refined_step: float = leaf(default=0.3)
    inference: str = "chain"
    learning_steps: int = 5000
    settle: int = 300
    path: int = 20
    bound_draws: int = 500
    chains: int = 4

    default_steps = 1000

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.sampler not in SAMPLERS or self.inference not in INFERENCES:
            raise InputError(
                f"sampler must be one of {', '.join(SAMPLERS)} and inference one of {', '.join(INFERENCES)}, got "
                f"{self.sampler!r} and {self.inference!r}."
            )
        least = {"refinement": 0, "learning_steps": 1, "settle": 1, "path": 1, "bound_draws": 1, "chains": 1}
        for name, value in least.items():
            if vars(self)[name] < value:
                raise InputError(f"{name} must be at least {value}, got {vars(self)[name]}.")
        if self.refinement and self.estimator != "weights":
            raise Refusal(
                f'estimator="{self.estimator}" draws every row apart, but the steps of a sampler move one θ for all '
                'rows: use estimator="weights", or refinement=0.'
            )
        model, notes = inferring(model)
        return model, notes + super().prepare(model)[1]

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        first = (Phase("map", self.map_steps, "random"),) if self.mean == "map" else ()
        learn = (*first, Phase("optimise", self.learning_steps, "random"), Phase("bound", self.bound_draws, "full"))
        if self.inference == "refined":
            return (*learn, Phase("sample", steps, "full", keeps_draws=True))
        settle = Phase("settle", self.settle, "full", program="chain")
        return (*learn, settle, Phase("sample", steps, "full", keeps_draws=True, program="chain"))

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> VISState:
        if self.sampler == "gradient" and self.refinement and size(variables.params) > MOST_FLOW:
            raise Refusal(
                f"The Jacobian of a step uphill is a determinant of {size(variables.params):,} rows, too large for "
                f'every step (at most {MOST_FLOW}): use sampler="hamiltonian".'
            )
        state = super().init(key, model, variables, data)
        if self.refinement:  # the prior at θ_T has no closed form
            state = dataclasses.replace(state, prior=None)
        fields = field_values(state)
        theta = state.family.random.ravel(self._first(state))
        zero = jnp.zeros((), jnp.float32)
        chain = blackjax_hmc.HMCState(theta, zero, jax.tree.map(jnp.zeros_like, theta))
        tuned = dual_averaging_adaptation(0.8)[0](jnp.ones((), jnp.float32))
        return VISState(**fields, chain=chain, tuned=tuned, count=jnp.zeros((), jnp.int32))

    def _first(self, state: Any) -> PyTree:
        parts = state.layout.unravel(state.values)
        return state.family.random.unravel(jax.tree.map(lambda x: x[0], state.family.centres(parts)))

    def _more_parts(self, position: PyTree) -> dict[str, Any]:
        return {"sampler": first_learned(self.sampler, self.refinement, position, self.initial_std)}

    def _sampler(self, parts: PyTree) -> dict[str, Any]:
        """The sampler's parameters. `refined_step` is a factor and not the start of what is learned, so that lowering
        it helps a fit whose steps were too long from the first."""
        learned = parts["sampler"]
        factor = jnp.log(self.refined_step)
        return learned | {"log_step": jax.tree.map(lambda x: x + factor, learned["log_step"])}

    def smaller_step(self, factor: float = 0.1) -> Any:
        smaller = super().smaller_step(factor**0.5 if self.refinement else factor)
        if smaller is None or not self.refinement:
            return smaller
        return dataclasses.replace(smaller, refined_step=factor * self.refined_step)  # type: ignore[type-var]

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: Any) -> PyTree:
        if phase.name == "optimise" and not self.refinement:
            return super().noise(key, model, phase, state)
        return self._paths_noise(key, state, self.num_samples) if phase.name in ("optimise", "bound") else key

    def _paths_noise(self, key: jax.Array, state: Any, num: int) -> PyTree:
        """(ε of q_0, a key for the network, momenta of every path)."""
        key_eps, key_net, key_path = jax.random.split(key, 3)
        parts = state.layout.unravel(state.values)
        eps = state.family.noise(key_eps, parts, num // (1 + self.antithetic))
        like = jax.tree.map(lambda x: x[0], state.family.centres(parts))
        keys = jax.random.split(key_path, num * state.family.components)
        return eps, key_net, jax.vmap(lambda k: momenta(k, self.sampler, self.refinement, like))(keys)

    def step(self, noise: PyTree, model: Model, phase: Phase, state: Any, batch: Batch) -> tuple[Any, Info]:
        if phase.name in ("map", "optimise"):
            new, info = super().step(noise, model, phase, state, batch)
            return new, Info(info.metrics | {"bound": -info.metrics["loss"] * batch.num_data}, info.draw)
        if phase.name == "bound":
            return state, Info(self._bound(noise, model, state, batch))
        if self.inference == "refined":
            theta, _ = self._one_path(noise, model, state, batch)
            return state, Info({"log_density": self._joint(model, state, batch, theta)}, self._params(state, theta))
        return self._chain_step(noise, model, state, batch)

    def _terms(
        self, noise: PyTree, model: Model, state: Any, values: PyTree, batch: Batch
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:  # fmt: skip
        """E[log p(D|θ_T)], E[log p(θ_T)], H[q_0] + E[Δ] and the network's new state."""
        if not self.refinement:
            return super()._terms(noise, model, state, values, batch)
        family, parts = state.family, state.layout.unravel(values)
        drive, judge = halves(batch)
        paths, starts = self._refined(noise, model, state, parts, drive)

        def path_terms(theta: PyTree) -> tuple[jax.Array, jax.Array, PyTree]:
            params = family.random.unravel(theta) | parts["points"]
            per_row, network = model.log_likelihood(Variables(params, state.network), judge, key=noise[1], train=True)
            return judge.total(per_row), model.log_prior(params), network

        likelihood, prior, network = jax.vmap(path_terms)(paths.position)
        entropy = (family.path_entropy if self.path_gradient else family.entropy)(parts, starts)
        network = jax.tree.map(lambda x: x[0], network)
        # Temperature divides the log joint alone, not Δ and the entropy.
        return likelihood.mean(), prior.mean(), entropy + paths.log_ratio.mean(), network

    def _refined(self, noise: PyTree, model: Model, state: Any, parts: PyTree, batch: Batch) -> tuple[Refined, PyTree]:
        """Paths and where they start, one for every draw and component."""
        family = state.family
        eps, key, moves = noise
        starts, learned = family.draws(parts, self._pairs(eps)), self._sampler(parts)

        def target(theta: PyTree) -> jax.Array:
            params = family.random.unravel(theta) | parts["points"]
            return model.log_joint(Variables(params, state.network), batch, key=key, train=True)[0]

        def refine_one(theta: PyTree, momentum: PyTree) -> Refined:
            start = lambda x: family.log_prob(parts, x)  # noqa: E731
            return refine(self.sampler, learned, momentum, theta, start, target, self.refinement, self.bridge)

        return jax.vmap(refine_one)(starts, moves), starts

    def _bound(self, noise: PyTree, model: Model, state: Any, batch: Batch) -> dict[str, jax.Array]:
        """The bound on all data under the averaged parameters, from fresh paths."""
        if not self.refinement:
            noise = noise[:2]
        likelihood, prior, entropy, _ = self._terms(noise, model, state, state.average, batch)
        metrics = {"bound": (likelihood + prior) / model.temperature + entropy}
        if self.sampler == "gradient" and self.refinement:
            parts = state.layout.unravel(state.average)
            metrics["folds"] = self._refined(noise, model, state, parts, batch)[0].folds.mean()
        return metrics

    def _one_path(self, key: jax.Array, model: Model, state: Any, batch: Batch) -> tuple[PyTree, PyTree]:
        """A draw of q_T, and of the component that it starts from."""
        key_pick, key_path = jax.random.split(key)
        parts = state.layout.unravel(state.average)
        single = dataclasses.replace(self, num_samples=1, antithetic=False)
        paths, starts = single._refined(single._paths_noise(key_path, state, 1), model, state, parts, batch)
        which = jax.random.randint(key_pick, (), 0, state.family.components)
        return jax.tree.map(lambda x: x[which], (paths.position, starts))

    def _params(self, state: Any, theta: PyTree) -> PyTree:
        parts = state.layout.unravel(state.average)
        return state.family.random.unravel(theta) | parts["points"]

    def _joint(self, model: Model, state: Any, batch: Batch, theta: PyTree) -> jax.Array:
        with jax.default_matmul_precision("float32"):
            return model.log_joint(Variables(self._params(state, theta), state.network), batch)[0]

    def _chain_step(self, key: jax.Array, model: Model, state: Any, batch: Batch) -> tuple[Any, Info]:
        """A leapfrog path of the chain; its first starts at a draw of q_T, those of `settle` adapt the step size."""
        key_start, key_jitter, key_path = jax.random.split(key, 3)
        log_density = lambda theta: self._joint(model, state, batch, theta)  # noqa: E731

        def begin() -> Any:
            return blackjax_hmc.init(self._one_path(key_start, model, state, batch)[0], log_density)

        chain = jax.lax.cond(state.count == 0, begin, lambda: state.chain)
        _, update, final = dual_averaging_adaptation(0.8)
        settling = state.count < self.settle
        step_size = jnp.where(settling, jnp.exp(state.tuned.log_step_size), final(state.tuned))
        jitter = 1.0 - 0.5 * jax.random.uniform(key_jitter)
        mass = ravel_pytree(self._scales(state))[0] ** 2
        chain, info = KERNEL(key_path, chain, log_density, jitter * step_size, mass, self.path)
        tuned = jax.lax.cond(settling, lambda t: update(t, info.acceptance_rate), lambda t: t, state.tuned)
        metrics = {
            "log_density": chain.logdensity, "acceptance": info.acceptance_rate, "divergent": info.is_divergent,
            "energy": state_energy(info, chain, mass), "step_size": step_size,
        }  # fmt: skip
        new = dataclasses.replace(state, chain=chain, tuned=tuned, count=state.count + 1)
        return new, Info(metrics, self._params(state, chain.position))

    def _scales(self, state: Any) -> PyTree:
        """The step of every number of θ: the sampler's, or the spread of q_0 where no sampler was learned."""
        parts = state.layout.unravel(state.average)
        if self.refinement:
            return jax.tree.map(jnp.exp, self._sampler(parts)["log_step"])
        variance = state.family.moments(parts)[1]
        if state.family.components > 1:
            variance = jax.tree.map(lambda v: v.mean(0), variance)
        return jax.tree.map(jnp.sqrt, variance)

    def posterior(self, model: Model, state: Any, draws: PyTree) -> Samples:
        return Samples(draws, state.network)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        if self.inference == "refined":
            return []
        acceptance = float(np.mean(trace["acceptance"]))
        return [] if acceptance > 0.5 else [f"Mean acceptance was {acceptance:.2f}, which is low; lengthen settle."]

    def remarks(self, phases: dict[str, dict[str, Any]]) -> list[str]:
        traces = {k: np.asarray(v, np.float64) for k, v in phases.get("bound", {}).items()}
        if not traces:
            return []
        best = traces["bound"][np.argmax(traces["bound"].mean(1))]
        error = best.std() / np.sqrt(len(best))
        sentences = [f"The log evidence is at least {best.mean():.2f} ± {error:.2f} (the best member's bound)."]
        if traces.get("folds", np.zeros(1)).mean() > 0:
            sentences.append(
                f"{traces['folds'].mean() / self.refinement:.1%} OF THE STEPS UPHILL FOLDED, so this is not a bound: "
                'lower refined_step, or use sampler="hamiltonian".'
            )
        return sentences


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """Even and odd rows of a minibatch; all rows twice where the batch is all data."""
    if batch.rows is None:
        return batch, batch
    if batch.weight.shape[0] < 3:  # batches differ by one row: with fewer, some half would have none
        raise InputError("Half of a minibatch drives the steps and half judges them: give batch_size=3 or more.")
    even, odd = (jax.tree.map(lambda x, i=i: x[i::2], batch._replace(num_data=None)) for i in (0, 1))
    return even._replace(num_data=batch.num_data), odd._replace(num_data=batch.num_data)
