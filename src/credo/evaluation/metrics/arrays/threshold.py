"""What a threshold picks out: recall, precision and lift of the rows that a score ranks first.

Arguments everywhere: `probs` [n] (of the positive class), `labels` [n] (true or 1 for positive rows), `weights` of rows
[n] or None. Equal probabilities are never ordered: they pass a threshold together.
"""

import jax
import jax.numpy as jnp

from credo.evaluation.metrics.arrays.border import of_arrays
from credo.evaluation.metrics.arrays.means import row_weights
from credo.evaluation.metrics.arrays.ranking import mass_below


@of_arrays(probs="n", weights="n")
def best_threshold(probs: jax.Array, weights: jax.Array | None = None) -> jax.Array:
    """The probability t that maximises the expected F1 of the rows with p ≥ t, under the probabilities themselves.

    t = argmax_t 2 Σ_n w_n p_n 1[p_n ≥ t] / (Σ_n w_n 1[p_n ≥ t] + Σ_n w_n p_n). It sees no label, so that recall and
    precision at t are honest on the rows that chose it. Lipton, Elkan and Narayanaswamy (2014), Optimal thresholding of
    classifiers to maximize F1 measure.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import best_threshold
        >>> round(float(best_threshold(jnp.array([0.1, 0.2, 0.6, 0.9]))), 4)
        0.6
    """
    weights = row_weights(weights, probs)
    expected = weights * probs
    picked = mass_below(-probs, weights)[1]
    score = 2 * mass_below(-probs, expected)[1] / jnp.where(picked > 0, picked + expected.sum(), 1)
    return probs[jnp.where(weights > 0, score, -1).argmax()]


@of_arrays(probs="n", labels="n", weights="n", threshold="any")
def recall(
    probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, threshold: float | None = None
) -> jax.Array:
    """The share of positive rows with p ≥ t; t is `best_threshold` where None. NaN where no row is positive.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import recall
        >>> float(recall(jnp.array([0.1, 0.4, 0.6, 0.9]), jnp.array([0, 1, 0, 1]), threshold=0.5))
        0.5
    """
    picked, positive, weights = _picked(probs, labels, weights, threshold)
    return (weights * picked * positive).sum() / (weights * positive).sum()


@of_arrays(probs="n", labels="n", weights="n", threshold="any")
def precision(
    probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, threshold: float | None = None
) -> jax.Array:
    """The share of positive rows among those with p ≥ t; t is `best_threshold` where None. NaN where none passes.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import precision
        >>> float(precision(jnp.array([0.1, 0.4, 0.6, 0.9]), jnp.array([0, 1, 0, 1]), threshold=0.3)) > 2 / 3 - 1e-6
        True
    """
    picked, positive, weights = _picked(probs, labels, weights, threshold)
    return (weights * picked * positive).sum() / (weights * picked).sum()


@of_arrays(probs="n", labels="n", weights="n")
def lift(probs: jax.Array, labels: jax.Array, weights: jax.Array | None = None, share: float = 0.1) -> jax.Array:
    """How many times more frequent positive rows are among the `share` of rows with the largest p than among all.

    Rows of equal p at the border count in part. NaN where no row is positive.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.evaluation.metrics.arrays import lift
        >>> float(lift(jnp.array([0.1, 0.2, 0.3, 0.9]), jnp.array([0, 1, 0, 1]), share=0.25))
        2.0
    """
    weights, positive = row_weights(weights, probs), labels.astype(bool)
    above, upto = mass_below(-probs, weights)
    room = share * weights.sum()
    inside = jnp.clip((room - above) / jnp.where(upto > above, upto - above, 1), 0, 1)
    rate = (weights * positive).sum() / weights.sum()
    return (weights * inside * positive).sum() / room / rate


def _picked(
    probs: jax.Array, labels: jax.Array, weights: jax.Array | None, threshold: float | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    weights = row_weights(weights, probs)
    least = best_threshold(probs, weights) if threshold is None else threshold
    return probs >= least, labels.astype(bool), weights
