"""Microcanonical Langevin Monte Carlo: paths of constant speed, with or without a Metropolis test."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation
from blackjax.mcmc import adjusted_mclmc, mclmc
from blackjax.mcmc.adjusted_mclmc import rescale
from blackjax.mcmc.hmc import HMCState
from blackjax.mcmc.integrators import IntegratorState
from blackjax.util import generate_unit_vector

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.tree import Layout, leaf, size, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.mcmc.chains import ChainMethod, ChainState, num_dims
from credo.methods.mcmc.energy_variance import energy_variance_tuner

ADJUSTED = adjusted_mclmc.build_kernel()
UNADJUSTED = mclmc.build_kernel()


class Path(NamedTuple):
    """What the warm-up and the trace need of a path."""

    acceptance_rate: jax.Array  # of an unadjusted path the tuner's signal: the mean of (ΔE)²/P over its steps
    is_divergent: jax.Array
    num_integration_steps: jax.Array


@dataclasses.dataclass(frozen=True)
class Padded(Layout):
    """Parameters as one vector of at least two numbers: a direction needs two dimensions.

    The added numbers are standard normal and independent of the parameters.
    """

    @property
    def added(self) -> int:
        """How many numbers are not parameters."""
        return max(0, 2 - self._size)

    @property
    def _size(self) -> int:
        return size([jax.ShapeDtypeStruct(shape, jnp.float32) for shape in self.shapes])

    def ravel(self, tree: PyTree) -> jax.Array:
        vector = super().ravel(tree)
        return jnp.concatenate([vector, jnp.zeros(self.added, vector.dtype)])

    def unravel(self, vector: PyTree) -> PyTree:
        return super().unravel(vector[: self._size])


@struct
class MCLMC(ChainMethod):
    """Microcanonical paths dθ/dt = C^½ u with |u| = 1, du/dt = (I − uu') C^½ ∇log p(θ, D) / (P − 1) (D3).

    The speed is constant; −log p only turns the direction u. Energy is kept exactly by the continuous path, so that
    momenta need not be drawn to change it. C is a diagonal that the warm-up learns; paths then have the length
    `length` √P, the size of the posterior in its own units.

    `adjusted=True` draws a new direction for each path and accepts its end with min(1, exp(−ΔE)): draws are exact. The
    number of steps of a path is random, which breaks resonance. `adjusted=False` lets the direction change by a little
    noise at every step and tests nothing. It is faster in many dimensions and its draws are biased: the step size is
    that at which Var[ΔE]/P is `energy_variance`, which bounds the bias and does not remove it.

    Robnik, De Luca, Silverstein and Seljak (2023), Microcanonical Hamiltonian Monte Carlo; Robnik and Seljak (2024),
    Fluctuation without dissipation: microcanonical Langevin Monte Carlo; Robnik, Cohn-Gordon and Seljak (2025),
    Metropolis adjusted microcanonical Hamiltonian Monte Carlo. Steps, kernels and tuning rules are BlackJAX's; its
    last stage, which learns the length from autocorrelations, is left out: `length` sets it.

    Args:
        step_size: of the integrator; None lets the warm-up find it.
        adjusted: with the Metropolis test, hence exact.
        length: of a path, in units of √P posterior standard deviations.
        energy_variance: what the warm-up aims at where not adjusted.
        max_steps: mean number of integrator steps of a path, at most.
        warmup: adaptation steps before the draws that are kept.
        chains: independent chains.
        target_acceptance: acceptance that the warm-up aims at where adjusted.
        mass: "diagonal", learned in the warm-up, or "identity".

    Example:
        >>> import credo
        >>> credo.methods.MCLMC(chains=2).adjusted
        True
    """

    target_acceptance: Any = leaf(default=0.9)
    adjusted: bool = True
    length: float = leaf(default=1.5)
    energy_variance: float = leaf(default=5e-4)
    max_steps: int = leaf(default=100)

    default_steps = 500

    @property
    def lockstep(self) -> bool:
        """On an accelerator chains move together, though adjusted paths differ in length; a core does one at a time."""
        return jax.default_backend() != "cpu"

    @property
    def first_step(self) -> float:  # type: ignore[override]
        """No test stops an unadjusted path whose step is too large: it would throw the chain far from its start."""
        return 0.1 if self.adjusted else 1e-3

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.mass == "dense":
            raise InputError('MCLMC has a diagonal mass or none: mass is "diagonal" or "identity", got \'dense\'.')
        model, notes = super().prepare(model)
        if self.adjusted:
            return model, notes
        return model, [
            *notes,
            "Draws are biased a little, because no path is tested: adjusted=True tests them and takes longer.",
        ]

    def _layout(self, params: PyTree) -> Padded:
        layout = Layout.of(params, limit=2**62)
        return Padded(layout.treedef, layout.shapes, layout.flat)

    def _log_density(self, model: Model, state_or_layout: Any, network: PyTree, batch: Batch) -> Any:
        inner = super()._log_density(model, state_or_layout, network, batch)
        added = state_or_layout.added
        return (lambda z: inner(z) - 0.5 * jnp.square(z[-added:]).sum()) if added else inner

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> IntegratorState:
        position = layout.ravel(params)
        value, gradient = jax.value_and_grad(log_density)(position)
        return IntegratorState(position, generate_unit_vector(key, position), value, gradient)

    def _tuner(self, dims: int) -> tuple[Any, Any, Any]:
        if self.adjusted:
            return dual_averaging_adaptation(self.target_acceptance)
        return energy_variance_tuner(self.energy_variance)

    def transition(self, key: jax.Array, log_density: Any, state: ChainState) -> tuple[IntegratorState, Path]:
        length = self.length * jnp.sqrt(float(num_dims(state.chain.position)))
        mean = jnp.clip(length / state.step_size, 1.0, self.max_steps)
        return (self._tested if self.adjusted else self._untested)(key, log_density, state, length, mean)

    def _tested(
        self, key: jax.Array, log_density: Any, state: ChainState, length: jax.Array, mean: jax.Array
    ) -> tuple[IntegratorState, Path]:
        """One path with a Metropolis test at its end."""
        key_count, key_path = jax.random.split(key)
        count = jnp.maximum(jnp.ceil(jax.random.uniform(key_count) * rescale(mean)), 1).astype(jnp.int32)
        before = state.chain
        chain = HMCState(before.position, before.logdensity, before.logdensity_grad)
        chain, info = ADJUSTED(key_path, chain, log_density, state.step_size, (count,), state.inverse_mass)
        after = IntegratorState(chain.position, before.momentum, chain.logdensity, chain.logdensity_grad)
        return after, Path(info.acceptance_rate, info.is_divergent, count)

    def _untested(
        self, key: jax.Array, log_density: Any, state: ChainState, length: jax.Array, mean: jax.Array
    ) -> tuple[IntegratorState, Path]:
        """A stretch of the one long path, about one `length` long."""

        def take_step(i: jax.Array, loop: tuple[IntegratorState, jax.Array, jax.Array]) -> Any:
            chain, squares, finite = loop
            chain, info = UNADJUSTED(
                jax.random.fold_in(key, i), chain, log_density, state.inverse_mass, length, state.step_size
            )
            return chain, squares + jnp.square(info.energy_change), finite & info.nonans

        count = jnp.round(mean).astype(jnp.int32)
        start = (state.chain, jnp.zeros_like(state.chain.logdensity), jnp.asarray(True))
        chain, squares, finite = jax.lax.fori_loop(0, count, take_step, start)
        signal = squares / (count * num_dims(chain.position))
        return chain, Path(jnp.where(finite, signal, jnp.inf), ~finite, count)

    def metrics(self, chain: Any, info: Any) -> dict[str, jax.Array]:
        name = "acceptance" if self.adjusted else "energy_variance"
        return {
            "log_density": chain.logdensity,
            name: info.acceptance_rate,
            "divergent": info.is_divergent,
            "num_integration_steps": info.num_integration_steps,
        }
