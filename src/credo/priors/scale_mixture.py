"""The scale mixture of two normals: many weights near zero, some free to be large."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.network import ParamInfo
from credo.core.tree import leaf, struct
from credo.errors import InputError
from credo.priors.checks import positive
from credo.priors.elementwise import ElementDensity, ElementwisePrior


@struct
class MixtureDensity(ElementDensity):
    """π N(0, s₁²) + (1 − π) N(0, s₂²)."""

    mix: Any = leaf()
    scale_wide: Any = leaf()
    scale_narrow: Any = leaf()

    def log_prob(self, x: jax.Array) -> jax.Array:
        """Log density, elementwise."""
        wide = jnp.log(self.mix) + jax.scipy.stats.norm.logpdf(x, 0.0, self.scale_wide)
        narrow = jnp.log1p(-self.mix) + jax.scipy.stats.norm.logpdf(x, 0.0, self.scale_narrow)
        return jnp.logaddexp(wide, narrow)

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Independent draws."""
        which, value = jax.random.split(key)
        scale = jnp.where(jax.random.bernoulli(which, self.mix, shape), self.scale_wide, self.scale_narrow)
        return scale * jax.random.normal(value, shape)


@struct
class ScaleMixture(ElementwisePrior):
    """θ_i ~ π N(0, s₁²) + (1 − π) N(0, s₂²) for every weight and bias."""

    mix: Any = leaf(default=0.5)
    scale_wide: Any = leaf(default=1.0)
    scale_narrow: Any = leaf(default=0.1)

    def density(self, info: ParamInfo) -> MixtureDensity:
        """The same for every array."""
        return MixtureDensity(self.mix, self.scale_wide, self.scale_narrow)


def scale_mixture(mix: float = 0.5, scale_wide: float = 1.0, scale_narrow: float = 0.1) -> ScaleMixture:
    """Spike-and-slab like prior π N(0, scale_wide²) + (1 − π) N(0, scale_narrow²) on every weight and bias.

    Reference: Blundell et al., Weight Uncertainty in Neural Networks, ICML 2015.

    Args:
        mix: π, the share of the wide part, strictly between 0 and 1.
        scale_wide: standard deviation of the wide part.
        scale_narrow: standard deviation of the narrow part.

    Example:
        >>> import credo
        >>> credo.priors.scale_mixture(mix=0.25).mix
        0.25
    """
    mix = positive(mix, "mix")
    if not isinstance(mix, jax.core.Tracer) and mix >= 1:
        raise InputError(f"mix must lie strictly between 0 and 1, got {mix}; for one normal take normal().")
    return ScaleMixture(mix, positive(scale_wide, "scale_wide"), positive(scale_narrow, "scale_narrow"))
