"""Normal noise whose size is a function of the input."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.special import HALF_LOG_2PI
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import NoParameters, diagonal, real_targets


class ScaleOutput:
    """Numbers whose centre m and scale σ = floor + log(1 + eᵃ) are the outputs (m, a) [n, 2k]."""

    floor: Any
    kind = "real"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Finite numbers [n, k]."""
        return real_targets(targets, type(self).__name__)

    def num_outputs(self, targets: Any) -> int:
        """A centre and a raw scale for each entry of y."""
        return 2 * targets.shape[1]

    def raw(self, outputs: jax.Array) -> jax.Array:
        """a, the second half of the outputs."""
        return outputs[..., outputs.shape[-1] // 2 :]

    def sigma(self, outputs: jax.Array) -> jax.Array:
        """The noise scale σ [n, k]."""
        return self.floor + jax.nn.softplus(self.raw(outputs))

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """m, the first half of the outputs."""
        return outputs[..., : outputs.shape[-1] // 2]


@struct
class Heteroscedastic(ScaleOutput, NoParameters):
    """y ~ N(m, σ²) with outputs (m, a) [n, 2k] and σ = floor + log(1 + eᵃ); see `heteroscedastic`."""

    floor: Any = leaf(default=1e-3)

    normal = True

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """−½ ((y − m)/σ)² − log σ − ½ log 2π, summed over the entries of y."""
        sigma = self.sigma(outputs)
        z = (targets - self.mean(params, outputs)) / sigma
        return (-0.5 * z * z - jnp.log(sigma) - HALF_LOG_2PI).sum(-1)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ²."""
        return self.sigma(outputs) ** 2

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Φ((y − m)/σ)."""
        return jax.scipy.stats.norm.cdf(targets, self.mean(params, outputs), self.sigma(outputs))

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """The floor, for the NumPy predictor."""
        return {"floor": float(self.floor)}, {}

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """m + σ ε."""
        mean = self.mean(params, outputs)
        return mean + self.sigma(outputs) * jax.random.normal(key, mean.shape, mean.dtype)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """σ⁻² for the means and 2 (σ'(a)/σ)² for the raw scales, on the diagonal."""
        sigma = self.sigma(outputs)
        slope = jax.nn.sigmoid(self.raw(outputs))
        return diagonal(jnp.concatenate([sigma**-2.0, 2 * (slope / sigma) ** 2], -1))


def heteroscedastic(floor: float = 1e-3) -> Heteroscedastic:
    """Regression with normal noise whose size the network predicts: y ~ N(m(x), (floor + softplus(a(x)))²).

    Softplus rather than exp: it cannot overflow, and one wild output cannot make a likelihood of e⁵⁰.
    Nix and Weigend (1994), Estimating the mean and variance of the target probability distribution.

    Args:
        floor: smallest σ, in units of the targets; it bounds the density, which would else grow without limit
            at a data point that the mean meets.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import heteroscedastic
        >>> heteroscedastic().num_outputs(jnp.zeros((10, 3)))
        6
    """
    return Heteroscedastic(checked_floor(floor))


def checked_floor(floor: float) -> float:
    """A builder's smallest σ."""
    if not 0 < floor < math.inf:
        raise InputError(f"The floor of the noise scale must be a positive, finite number, got {floor}.")
    return float(floor)
