"""The regularised horseshoe: most weights near zero, a few as large as they like up to a slab."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.network import is_info
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.priors.checks import positive
from credo.priors.elementwise import Elementwise
from credo.priors.normal import NormalDensity
from credo.priors.scales import HalfCauchy, InverseGamma


@struct
class Horseshoe:
    """θ_i ~ N(0, τ²λ̃_i²), λ̃_i² = c²λ_i²/(c² + τ²λ_i²), λ_i ~ C⁺(0, 1), τ ~ C⁺(0, τ₀), c² ~ IG(ν/2, νs²/2).

    Hyper-parameters are `{"log_local": {path: log λ}, "log_global": log τ, "log_slab": log c}`; where `known` τ = τ₀.
    """

    global_scale: Any = leaf(default=0.1)
    slab_scale: Any = leaf(default=2.0)
    slab_df: Any = leaf(default=4.0)
    known: bool = False

    def _slab(self) -> InverseGamma:
        return InverseGamma(0.5 * self.slab_df, 0.5 * self.slab_df * self.slab_scale**2)

    def init(self, info: PyTree = None) -> PyTree:
        """λ = 1, τ = τ₀ and c = s."""
        if info is None:
            raise InputError("The horseshoe has a scale for every weight: give `init` the network's info.")
        infos = jax.tree.leaves(info, is_leaf=is_info)
        params = {
            "log_local": {i.path: jnp.zeros(i.shape) for i in infos},
            "log_slab": jnp.log(jnp.asarray(self.slab_scale, jnp.float32)),
        }
        return params if self.known else params | {"log_global": HalfCauchy(self.global_scale).start}

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """Independent draws of all scales."""
        infos = jax.tree.leaves(info, is_leaf=is_info)
        key_global, key_slab, *keys = jax.random.split(key, 2 + len(infos))
        params = {
            "log_local": {i.path: HalfCauchy().sample(k, i.shape) for i, k in zip(infos, keys)},
            "log_slab": self._slab().sample(key_slab),
        }
        return params if self.known else params | {"log_global": HalfCauchy(self.global_scale).sample(key_global)}

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """log p(log λ) + log p(log τ) + log p(log c)."""
        local = sum((HalfCauchy().log_prob(u).sum() for u in params["log_local"].values()), jnp.zeros(()))
        log_global = 0.0 if self.known else HalfCauchy(self.global_scale).log_prob(params["log_global"])
        return local + log_global + self._slab().log_prob(params["log_slab"])

    def bind(self, info: PyTree, params: PyTree) -> Elementwise:
        """Normals, each with its own scale τλ̃."""
        infos, treedef = jax.tree.flatten(info, is_leaf=is_info)
        log_global = jnp.log(self.global_scale) if self.known else params["log_global"]
        densities = []
        for i in infos:
            free = log_global + params["log_local"][i.path]
            log_scale = free - 0.5 * jax.nn.softplus(2 * (free - params["log_slab"]))
            densities.append(NormalDensity(0.0, jnp.exp(log_scale)))
        return Elementwise(jax.tree.unflatten(treedef, densities), tuple(i.shape for i in infos))


def horseshoe(
    global_scale: float = 0.1, *, slab_scale: float = 2.0, slab_df: float = 4.0, known: bool = False
) -> Horseshoe:
    """Regularised horseshoe prior: most weights are shrunk to zero, a few stay as large as N(0, c²) lets them.

    Every weight has its own scale λ_i beside it as a parameter, so there are twice as many. The form is centred (θ is
    the parameter, not θ/τλ̃), and the posterior has a funnel for every weight that the data say little about: give NUTS
    `target_acceptance=0.95` or more and look at its divergences; mean-field methods see only one part of each funnel.
    The joint density of θ and log τ has no highest point for more than one weight, so for MAP fix τ: `known=True`.
    Reference: J. Piironen and A. Vehtari, Sparsity information and regularization in the horseshoe, 2017.

    Args:
        global_scale: τ₀: about (weights that matter)/(weights that do not) · σ/√N.
        slab_scale: s, how large weights that matter may be.
        slab_df: ν of the slab, Student-t.
        known: τ = τ₀ instead of τ ~ C⁺(0, τ₀).

    Example:
        >>> import credo
        >>> credo.priors.by_path({"hidden_0/kernel": credo.priors.horseshoe(0.05), "*": credo.priors.normal(1.0)}).globs
        ('hidden_0/kernel', '*')
    """
    numbers = (positive(global_scale, "global_scale"), positive(slab_scale, "slab_scale"), positive(slab_df, "slab_df"))
    return Horseshoe(*numbers, known=bool(known))
