"""The normal prior."""

from typing import Any

import jax

from credo.core.network import ParamInfo
from credo.core.tree import leaf, struct
from credo.priors.checks import positive
from credo.priors.elementwise import ElementDensity, ElementwisePrior


@struct
class NormalDensity(ElementDensity):
    """N(loc, scale²)."""

    loc: Any = leaf()
    scale: Any = leaf()

    def log_prob(self, x: jax.Array) -> jax.Array:
        """Log density, elementwise."""
        return jax.scipy.stats.norm.logpdf(x, self.loc, self.scale)

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Independent draws."""
        return self.loc + self.scale * jax.random.normal(key, shape)

    @property
    def gaussian(self) -> tuple[Any, Any]:
        """Its mean and standard deviation."""
        return self.loc, self.scale


@struct
class Normal(ElementwisePrior):
    """θ_i ~ N(0, scale²) for every weight and bias."""

    scale: Any = leaf(default=1.0)

    def density(self, info: ParamInfo) -> NormalDensity:
        """The same for every array."""
        return NormalDensity(0.0, self.scale)


def normal(scale: float = 1.0) -> Normal:
    """Independent normal prior N(0, scale²) on every weight and bias.

    Example:
        >>> import credo
        >>> credo.priors.normal(0.5)
        Normal(scale=0.5)
    """
    return Normal(positive(scale, "scale"))
