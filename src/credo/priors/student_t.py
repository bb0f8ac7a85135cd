"""The Student-t prior."""

from typing import Any

import jax

from credo.core.network import ParamInfo
from credo.core.tree import leaf, struct
from credo.priors.checks import positive
from credo.priors.elementwise import ElementDensity, ElementwisePrior


@struct
class StudentTDensity(ElementDensity):
    """x / scale ~ t(df)."""

    df: Any = leaf()
    scale: Any = leaf()

    def log_prob(self, x: jax.Array) -> jax.Array:
        """Log density, elementwise."""
        return jax.scipy.stats.t.logpdf(x, self.df, 0.0, self.scale)

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Independent draws."""
        return self.scale * jax.random.t(key, self.df, shape)


@struct
class StudentTPrior(ElementwisePrior):
    """θ_i / scale ~ t(df) for every weight and bias."""

    df: Any = leaf(default=3.0)
    scale: Any = leaf(default=1.0)

    def density(self, info: ParamInfo) -> StudentTDensity:
        """The same for every array."""
        return StudentTDensity(self.df, self.scale)


def student_t(df: float = 3.0, scale: float = 1.0) -> StudentTPrior:
    """Student-t prior on every weight and bias: heavy tails let single weights be large.

    Args:
        df: degrees of freedom; 1 is Cauchy, large is normal.
        scale: its scale; the standard deviation is scale √(df/(df − 2)) for df > 2.

    Example:
        >>> import credo
        >>> credo.priors.student_t(df=4).df
        4.0
    """
    return StudentTPrior(positive(df, "df"), positive(scale, "scale"))
