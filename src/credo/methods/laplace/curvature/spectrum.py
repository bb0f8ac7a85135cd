"""What every structure of curvature offers: log |H + P| and the Gaussian N(0, T (H + P)⁻¹), for any scale of P."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.typing import PyTree
from credo.methods.laplace.curvature.ggn import Roots
from credo.methods.laplace.curvature.paths import Arrays
from credo.methods.laplace.curvature.prior import LocalPrior

LOG_2PI = math.log(2 * math.pi)


class Spread(Protocol):
    """A Gaussian over deviations δ from the mode, by path; a pytree without the member axis."""

    def draw(self, key: jax.Array) -> Arrays:
        """One draw of δ."""
        ...

    def log_prob(self, deviation: Arrays) -> jax.Array:
        """log N(δ; 0, Σ)."""
        ...

    def square(self, gradient: Arrays) -> jax.Array:
        """g'Σg for a gradient g by path."""
        ...

    def variance(self, model: Model, variables: Variables, inputs: PyTree) -> jax.Array:
        """diag(J Σ J') [n, out]: the variances of the linearised outputs."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters that are spread; all others are points."""
        ...


class Spectrum(NamedTuple):
    """Curvature at the mode, ready for any scale of the prior's precision (a number for each path)."""

    log_det: Callable[[Arrays], jax.Array]  # scales ↦ log |H + scale · P|
    at: Callable[[Arrays, Any], Any]  # scales, T ↦ the Spread with covariance T (H + scale · P)⁻¹


class Sums(Protocol):
    """The curvature of the data added up so far; a pytree of fixed size."""

    def add(self, model: Model, variables: Variables, batch: Batch, roots: Roots) -> Any:
        """With the rows of one batch."""
        ...

    def spectrum(self, prior: LocalPrior) -> Spectrum:
        """The sum, with the prior's precision still to be scaled."""
        ...


def covariance_root(lower: jax.Array, temperature: Any) -> jax.Array:
    """Upper triangular S with S S' = T (L L')⁻¹."""
    inverse = jax.scipy.linalg.solve_triangular(lower, jnp.eye(len(lower), dtype=lower.dtype), lower=True)
    return jnp.sqrt(temperature) * inverse.T


def root_log_prob(root: jax.Array, deviation: jax.Array) -> jax.Array:
    """log N(δ; 0, S S') = −½ |S⁻¹δ|² − log |S| − P/2 log 2π for upper triangular S."""
    z = jax.scipy.linalg.solve_triangular(root, deviation.astype(root.dtype), lower=False)
    return -0.5 * (z @ z) - jnp.log(jnp.abs(jnp.diagonal(root))).sum() - 0.5 * len(z) * LOG_2PI
