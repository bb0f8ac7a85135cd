"""By how much the predictions of a few chains would move if they were run again, or longer."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from credo.core.mixture import draw_moments
from credo.core.precision import in_single
from credo.core.predict import member_outputs


@in_single
def movement(fit: Any, inputs: Any) -> float:
    """√(Σ_n (Δ_n² + b_n/c) / Σ_n Var[y_n]): a share of the standard deviation of predictions.

    Δ is the mean of y in the later half of the draws less that in the earlier half, over all c chains: it tells a
    drift. b is the variance of the means of chains: where each stays in a mode of its own, c others have another mean
    by about √(b/c). Of classes y is the vector of their indicators.

    Args:
        fit: a result of `credo.fit` with draws of several chains, in memory.
        inputs: where to look.
    """
    posterior = jax.device_put(fit.posterior, jax.local_devices()[0])
    draws = member_outputs(jax.random.key(0), posterior, fit.model, inputs, None)
    means, noise = (np.asarray(x, np.float64) for x in draw_moments(fit.model.likelihood, draws))
    half = means.shape[1] // 2
    drift = means[:, half:].mean((0, 1)) - means[:, : max(half, 1)].mean((0, 1))
    between = means.mean(1).var(0, ddof=1) / len(means) if len(means) > 1 else 0.0
    total = noise.mean((0, 1)) + means.var((0, 1))
    usable = np.isfinite(total)
    return float(np.sqrt((drift**2 + between)[usable].sum() / total[usable].sum())) if usable.any() else np.inf
