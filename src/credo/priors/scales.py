"""Priors of positive scales, as densities of their logarithm."""

from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from credo.core.gamma import log_gamma
from credo.core.tree import leaf, struct
from credo.priors.checks import positive

LOG_2 = 0.6931471805599453


class ScalePrior(ABC):
    """A prior of a scale s > 0. Samplers and optimisers see u = log s: densities are those of u, Jacobian included."""

    @abstractmethod
    def log_prob(self, u: jax.Array) -> jax.Array:
        """Log density of u = log s, elementwise."""

    @abstractmethod
    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draws of u = log s."""

    @property
    @abstractmethod
    def start(self) -> Any:
        """A value of u in the middle of the prior."""


@struct
class HalfNormal(ScalePrior):
    """s ~ |N(0, scale²)|: p(u) = √(2/π)/scale · exp(−s²/2scale²) · s."""

    scale: Any = leaf(default=1.0)

    def log_prob(self, u: jax.Array) -> jax.Array:
        """log p(s) + u, because ds/du = s."""
        return 0.5 * jnp.log(2 / jnp.pi) - jnp.log(self.scale) - 0.5 * jnp.exp(2 * (u - jnp.log(self.scale))) + u

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """log |scale z|."""
        return jnp.log(self.scale) + jnp.log(jnp.abs(jax.random.normal(key, shape)))

    @property
    def start(self) -> Any:
        """The median of s."""
        return jnp.log(0.6745 * jnp.asarray(self.scale))


@struct
class HalfCauchy(ScalePrior):
    """s ~ |Cauchy(0, scale)|: p(u) = 2/(π scale (1 + s²/scale²)) · s."""

    scale: Any = leaf(default=1.0)

    def log_prob(self, u: jax.Array) -> jax.Array:
        """log p(s) + u, because ds/du = s."""
        v = u - jnp.log(self.scale)
        return jnp.log(2 / jnp.pi) - jax.nn.softplus(2 * v) + v

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """The ratio of two normals is Cauchy."""
        top, bottom = jnp.log(jnp.abs(jax.random.normal(key, (2, *shape))))
        return jnp.log(self.scale) + top - bottom

    @property
    def start(self) -> Any:
        """The median of s."""
        return jnp.log(jnp.asarray(self.scale, jnp.float32))


@struct
class InverseGamma(ScalePrior):
    """s² ~ IG(shape, rate): p(v) = rate^shape/Γ(shape) · v^{−shape−1} exp(−rate/v) with v = s²."""

    shape: Any = leaf(default=2.0)
    rate: Any = leaf(default=1.0)

    def log_prob(self, u: jax.Array) -> jax.Array:
        """log p(v) + log 2 + 2u, because dv/du = 2v."""
        constant = self.shape * jnp.log(self.rate) - gammaln(self.shape)
        return constant - 2 * self.shape * u - self.rate * jnp.exp(-2 * u) + LOG_2

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """½ log(rate/g) with g ~ Gamma(shape, 1)."""
        return 0.5 * (jnp.log(self.rate) - log_gamma(key, self.shape, shape))

    @property
    def start(self) -> Any:
        """s² = rate/shape, the mode of u."""
        return 0.5 * jnp.log(jnp.asarray(self.rate) / self.shape)


@struct
class LogNormal(ScalePrior):
    """log s ~ N(loc, spread²)."""

    loc: Any = leaf(default=0.0)
    spread: Any = leaf(default=1.0)

    def log_prob(self, u: jax.Array) -> jax.Array:
        """A normal in u: no Jacobian."""
        return jax.scipy.stats.norm.logpdf(u, self.loc, self.spread)

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """loc + spread · z."""
        return self.loc + self.spread * jax.random.normal(key, shape)

    @property
    def start(self) -> Any:
        """The median."""
        return jnp.asarray(self.loc, jnp.float32)


def half_normal(scale: float = 1.0) -> HalfNormal:
    """s ~ |N(0, scale²)|, for `hierarchical`."""
    return HalfNormal(positive(scale, "scale"))


def half_cauchy(scale: float = 1.0) -> HalfCauchy:
    """s ~ |Cauchy(0, scale)|, for `hierarchical`."""
    return HalfCauchy(positive(scale, "scale"))


def inverse_gamma(shape: float = 2.0, rate: float = 1.0) -> InverseGamma:
    """s² ~ IG(shape, rate), for `hierarchical`."""
    return InverseGamma(positive(shape, "shape"), positive(rate, "rate"))


def log_normal(median: float = 1.0, spread: float = 1.0) -> LogNormal:
    """log s ~ N(log median, spread²), for `hierarchical`."""
    median = positive(median, "median")
    loc = jnp.log(median) if isinstance(median, jax.core.Tracer) else float(jnp.log(median))
    return LogNormal(loc, positive(spread, "spread"))
