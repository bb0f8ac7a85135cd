"""What HMC and NUTS share: Hamiltonian transitions of a Markov chain."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc import hmc as blackjax_hmc
from blackjax.util import linear_map
from jax.flatten_util import ravel_pytree

from credo.core.batch import Batch
from credo.core.method import Info, Phase
from credo.core.model import Model
from credo.core.tree import Layout, struct
from credo.core.typing import PyTree
from credo.methods.mcmc.chains import ChainMethod
from credo.methods.mcmc.chains import ChainState as ChainState


@struct
class HamiltonianMethod(ChainMethod):
    """Base of the Hamiltonian samplers on the full batch. A subclass says one transition.

    Warm-up runs the three-stage windows of Stan (step size; step size and mass in doubling windows; step size).
    """

    lockstep = False

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> Any:
        return blackjax_hmc.init(layout.ravel(params), log_density)

    def metrics(self, chain: Any, info: Any) -> dict[str, Any]:
        return {
            "log_density": chain.logdensity,
            "acceptance": info.acceptance_rate,
            "divergent": info.is_divergent,
            "path": info,  # for `step`, which knows the mass
            "num_integration_steps": info.num_integration_steps,
        }

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: ChainState, batch: Batch
    ) -> tuple[ChainState, Info]:
        new, info = super().step(noise, model, phase, state, batch)
        metrics: dict[str, Any] = dict(info.metrics)
        energy = kept_energy(metrics.pop("path"), new.chain, state.inverse_mass)
        return new, Info(metrics | {"energy": energy}, info.draw)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        acceptance = float(np.mean(trace["acceptance"]))
        if acceptance >= 0.5:
            return []
        return [f"Mean acceptance was {acceptance:.2f}, which is low; lower step_size or lengthen the warm-up."]


def kept_energy(path: Any, chain: Any, inverse_mass: jax.Array) -> jax.Array:
    """H(θ, r) = −log p(θ, D) + ½ r'M⁻¹r of the state that a chain keeps, as E-BFMI needs it (Betancourt, 2016).

    BlackJAX's NUTS tells just that. Its HMC tells the energy at the end of the path, accepted or not: a chain that
    stays where it was has that of the path's start.

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
