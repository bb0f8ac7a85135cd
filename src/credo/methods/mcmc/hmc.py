"""Hamiltonian Monte Carlo with a fixed number of leapfrog steps."""

from typing import Any

import jax
from blackjax.mcmc import hmc as blackjax_hmc

from credo.core.tree import leaf, struct
from credo.methods.mcmc.hamiltonian import ChainState, HamiltonianMethod

KERNEL = blackjax_hmc.build_kernel()


@struct
class HMC(HamiltonianMethod):
    """Leapfrog paths of H(θ, r) = −log p(θ, D) + ½ r'M⁻¹r, accepted with min(1, exp(H_old − H_new)) (D3).

    Neal (2011). With `warmup=0` and a `step_size` nothing is adapted and the mass is the identity.

    Args:
        step_size: leapfrog step; None lets the warm-up find it.
        num_steps: leapfrog steps of each path.
        warmup: adaptation steps before the draws that are kept.
        chains: independent chains.
        jitter: each path's step size is shortened by a uniform factor in [1 − jitter, 1], which breaks the resonance
            of paths of one length with near-Gaussian posteriors.
        target_acceptance: acceptance that the warm-up aims at.
        mass: "diagonal" or "dense", learned in the warm-up, or "identity".

    Example:
        >>> import credo
        >>> credo.methods.HMC(step_size=1e-3, num_steps=100, warmup=0, chains=4).members
        4
    """

    num_steps: int = 50
    jitter: float = leaf(default=0.5)

    @property
    def lockstep(self) -> bool:  # type: ignore[override]
        """Paths are equally long, so chains may move together: an accelerator wants that, a core does not."""
        return jax.default_backend() != "cpu"

    def transition(self, key: jax.Array, log_density: Any, state: ChainState) -> tuple[Any, Any]:
        key_jitter, key_path = jax.random.split(key)
        factor = 1.0 - self.jitter * jax.random.uniform(key_jitter)
        return KERNEL(key_path, state.chain, log_density, factor * state.step_size, state.inverse_mass, self.num_steps)
