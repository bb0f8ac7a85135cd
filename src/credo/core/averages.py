"""Functionals of a mixture Σ_k w_k p_k from those of its components: arrays [draw, …] of JAX or of NumPy.

Exported predictors take this module along: NumPy alone will do.
"""

from collections.abc import Callable
from typing import Any

from credo.core.special import namespace

MOST = 1e18  # the largest count: distribution functions go no further


def average(values: Any, log_weights: Any) -> Any:
    """Σ_k w_k v_k, summed as deviations from one draw: many large numbers would lose what separates them."""
    xp = namespace(values, log_weights)
    weights = xp.softmax(log_weights, axis=-1)
    return values[0] + xp.tensordot(weights, values - values[0], 1)


def moments_of(means: Any, variances: Any, log_weights: Any) -> dict[str, Any]:
    """Mean, E[Var[y|f]] (aleatoric) and Var[E[y|f]] (epistemic), each centred before it is squared (G2)."""
    mean = average(means, log_weights)
    spread = average((means - mean) ** 2, log_weights)
    return {"mean": mean, "aleatoric": average(variances, log_weights), "epistemic": spread}


def class_summary_of(log_probs: Any, entropies: Any, log_weights: Any) -> dict[str, Any]:
    """p, Std_k[p_k], total entropy H[p], aleatoric E[H[p_k]] and epistemic H[p] − E[H[p_k]] ≥ 0 (G2)."""
    xp = namespace(log_probs, entropies, log_weights)
    probs = xp.exp(log_probs)
    mean = xp.clip(average(probs, log_weights), 0.0, 1.0)  # weights that were rounded sum to a little more than 1
    std = xp.sqrt(average((probs - mean) ** 2, log_weights))
    entropy = -xp.xlogy(mean, mean).sum(-1)
    aleatoric = average(entropies, log_weights)
    # Mutual information as the mean KL[p_k‖p], which cannot come out negative by cancellation.
    log_mean = xp.logsumexp(log_probs + log_weights[:, None, None], axis=0)
    divergence = xp.where(probs > 0, probs * (log_probs - log_mean), 0.0).sum(-1)
    epistemic = xp.maximum(average(divergence, log_weights), 0.0)
    parts = {"mean": mean, "log_mean": log_mean, "probs_std": std}
    return parts | {"entropy": entropy, "aleatoric": aleatoric, "epistemic": epistemic}


def log_average(log_probs: Any, log_weights: Any) -> Any:
    """log Σ_k w_k p_k [n]."""
    return namespace(log_probs, log_weights).logsumexp(log_probs + log_weights[:, None], axis=0)


def count_quantile(below: Callable[[Any, Any], Any], mean: Any, spread: Any, level: Any) -> Any:
    """The smallest count y with P(Y ≤ y) ≥ level [n, k], by bisection over whole numbers between Cantelli's ends
    mean − spread √((1−p)/p) and mean + spread √(p/(1−p)).

    Whole numbers are exact in single precision up to 2²⁴, however large mean and spread are: one draw that extrapolates
    can make them huge and leave the quantile small. Halves are equal in log(y + 2), so that huge ends cost few steps.

    Args:
        below: `below(y, asked)` is where P(Y ≤ y) < level; only entries that are asked for matter.
        mean, spread: the mixture's mean and standard deviation [n, k].
        level: the probability.
    """
    xp = namespace(mean, spread, level)
    # One draw may overflow: then the ends are unknown. A level may round to 1.
    mean = xp.nan_to_num(mean, nan=MOST, posinf=MOST)
    spread = xp.maximum(xp.nan_to_num(spread, nan=xp.inf, posinf=xp.inf), 1e-6)
    slack = 1.0 + 0.01 * spread + 1e-5 * mean  # how far rounding may have moved the ends
    low = xp.floor(xp.maximum(mean - spread * xp.sqrt((1.0 - level) / level) - slack, -1.0))
    high = xp.floor(xp.minimum(mean + spread * xp.sqrt(level / (1.0 - level)) + slack, MOST))

    def between(ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = xp.clip(xp.floor(xp.sqrt((low + 2.0) * (high + 2.0))) - 2.0, low + 1.0, high - 1.0)
        return middle, (middle > low) & (middle < high)

    def halve(ends: tuple[Any, Any]) -> tuple[Any, Any]:
        middle, inside = between(ends)
        lower = below(middle, inside)
        return xp.where(inside & lower, middle, ends[0]), xp.where(inside & ~lower, middle, ends[1])

    return xp.while_loop(lambda ends: between(ends)[1].any(), halve, (low, high))[1]
