"""The Laplace prior."""

from typing import Any

import jax

from credo.core.network import ParamInfo
from credo.core.tree import leaf, struct
from credo.priors.checks import positive
from credo.priors.elementwise import ElementDensity, ElementwisePrior


@struct
class LaplaceDensity(ElementDensity):
    """p(x) = exp(−|x|/b) / 2b."""

    scale: Any = leaf()

    def log_prob(self, x: jax.Array) -> jax.Array:
        """Log density, elementwise."""
        return jax.scipy.stats.laplace.logpdf(x, 0.0, self.scale)

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Independent draws."""
        return self.scale * jax.random.laplace(key, shape)


@struct
class LaplacePrior(ElementwisePrior):
    """θ_i ~ Laplace(0, scale) for every weight and bias."""

    scale: Any = leaf(default=1.0)

    def density(self, info: ParamInfo) -> LaplaceDensity:
        """The same for every array."""
        return LaplaceDensity(self.scale)


def laplace(scale: float = 1.0) -> LaplacePrior:
    """Laplace prior exp(−|θ|/b) / 2b on every weight and bias; its MAP is L1 regularisation.

    Args:
        scale: b; the standard deviation is √2 b.

    Example:
        >>> import credo
        >>> credo.priors.laplace(0.5).scale
        0.5
    """
    return LaplacePrior(positive(scale, "scale"))
