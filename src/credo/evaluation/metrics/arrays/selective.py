"""What remains of the error when the least certain rows are left to someone else."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays
from credo.evaluation.metrics.arrays.means import row_weights, weighted_sum
from credo.evaluation.metrics.arrays.ranking import mass_below


class RiskCoverage(NamedTuple):
    """Share of rows kept, rising, and their mean loss; rows of one confidence enter together."""

    coverage: jax.Array
    risk: jax.Array


def _kept(losses: jax.Array, confidence: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """For each row the weight of rows at least as confident, and their mean loss."""
    mass = mass_below(-confidence, weights)[1]
    loss = mass_below(-confidence, jnp.where(weights > 0, weights * losses, 0))[1]
    return mass, loss / jnp.where(mass > 0, mass, 1)


@of_arrays(losses="n", confidence="n", weights="n")
def risk_coverage(losses: jax.Array, confidence: jax.Array, weights: jax.Array | None = None) -> RiskCoverage:
    """The curve of (share kept, mean loss of what is kept) as the least confident rows are dropped, one point a row.

    El-Yaniv and Wiener (2010), On the foundations of noise-free selective classification.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import risk_coverage
        >>> curve = risk_coverage(jnp.array([1.0, 0.0]), jnp.array([0.6, 0.9]))
        >>> curve.coverage.tolist(), curve.risk.tolist()
        ([0.5, 1.0], [0.0, 0.5])
    """
    weights = row_weights(weights, losses)
    mass, risk = _kept(losses, confidence, weights)
    order = jnp.argsort(mass)
    return RiskCoverage(mass[order] / weights.sum(), risk[order])


@of_arrays(losses="n", confidence="n", weights="n")
def aurc(losses: jax.Array, confidence: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """The area under the risk–coverage curve, Σ_i w_i risk(rows at least as confident as i) / Σ_i w_i.

    Geifman, Uziel and El-Yaniv (2019), Bias-reduced uncertainty estimation for deep neural classifiers.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import aurc
        >>> float(aurc(jnp.array([1.0, 0.0]), jnp.array([0.6, 0.9])))
        0.25
    """
    weights = row_weights(weights, losses)
    return weighted_sum(_kept(losses, confidence, weights)[1], weights) / weights.sum()
