"""What HMC and NUTS share: Hamiltonian transitions of a Markov chain."""

from typing import Any

import jax
import numpy as np
from blackjax.mcmc import hmc as blackjax_hmc

from credo.core.tree import Layout, struct
from credo.methods.chains import ChainMethod
from credo.methods.chains import ChainState as ChainState

PyTree = Any


@struct
class HamiltonianMethod(ChainMethod):
    """Base of the Hamiltonian samplers on the full batch. A subclass says one transition.

    Warm-up runs the three-stage windows of Stan (step size; step size and mass in doubling windows; step size).
    """

    lockstep = False

    def start(self, key: jax.Array, layout: Layout, params: PyTree, log_density: Any) -> Any:
        return blackjax_hmc.init(layout.ravel(params), log_density)

    def metrics(self, chain: Any, info: Any) -> dict[str, jax.Array]:
        return {
            "log_density": chain.logdensity,
            "acceptance": info.acceptance_rate,
            "divergent": info.is_divergent,
            "energy": info.energy,
            "num_integration_steps": info.num_integration_steps,
        }

    def notes(self, trace: dict[str, Any]) -> list[str]:
        acceptance = float(np.mean(trace["acceptance"]))
        if acceptance >= 0.5:
            return []
        return [f"Mean acceptance was {acceptance:.2f}, which is low; lower step_size or lengthen the warm-up."]
