"""What HMC and NUTS share: Hamiltonian transitions of a Markov chain."""

from typing import Any

import jax
import jax.numpy as jnp
from blackjax.mcmc import hmc as blackjax_hmc
from blackjax.util import linear_map
from jax.flatten_util import ravel_pytree

from credo.core.batch import Batch
from credo.core.method import Info, Phase
from credo.core.model import Model
from credo.core.tree import Layout, struct
from credo.core.typing import PyTree
from credo.methods.mcmc.chains import ChainMethod, low_acceptance
from credo.methods.mcmc.chains import ChainState as ChainState


@struct
class HamiltonianMethod(ChainMethod):
    """Base of the Hamiltonian samplers on the full batch. A subclass defines `transition`."""

    lockstep = False

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> Any:
        return blackjax_hmc.init(layout.ravel(params), log_density)

    def metrics(self, chain: Any, info: Any) -> dict[str, Any]:
        return {
            "log_density": chain.logdensity,
            "acceptance": info.acceptance_rate,
            "divergent": info.is_divergent,
            "path": info,  # for `step`, which has the mass
            "num_integration_steps": info.num_integration_steps,
        }

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: ChainState, batch: Batch
    ) -> tuple[ChainState, Info]:
        new, info = super().step(noise, model, phase, state, batch)
        metrics: dict[str, Any] = dict(info.metrics)
        energy = state_energy(metrics.pop("path"), new.chain, state.inverse_mass)
        return new, Info(metrics | {"energy": energy}, info.draw)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        return low_acceptance(trace, 0.5)


def state_energy(path: Any, chain: Any, inverse_mass: jax.Array) -> jax.Array:
    """H(θ, r) = −log p(θ, D) + ½ r'M⁻¹r of the chain's new state, as E-BFMI needs it (Betancourt, 2016).

    BlackJAX's NUTS reports that. Its HMC reports the energy at the end of the path, accepted or not: after a
    rejection the state's energy is that at the start.

    Args:
        path: BlackJAX's info on the transition.
        chain: the state after it.
        inverse_mass: M⁻¹, a diagonal or a matrix.
    """
    if not isinstance(path, blackjax_hmc.HMCInfo):
        return path.energy
    momentum = ravel_pytree(path.momentum)[0]
    start = 0.5 * jnp.dot(linear_map(inverse_mass, momentum), momentum) - chain.logdensity
    return jnp.where(path.is_accepted, path.energy, start)
