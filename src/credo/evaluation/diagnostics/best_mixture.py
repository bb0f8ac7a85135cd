"""The weights of a mixture of predictive distributions that predicts given rows best."""

import numpy as np

TURNS = 10_000
SMALLEST_GAIN = 1e-10  # nats a row: below it a turn changes nothing


def best_mixture(log_density: np.ndarray) -> np.ndarray:
    """The weights w that maximise Σ_n log Σ_c w_c p_cn, for log p [chain, n]: a concave problem.

    Expectation–maximisation for known components: w_c ← mean_n w_c p_cn / Σ_d w_d p_dn never lowers the sum.
    """
    density = np.exp(log_density - log_density.max(0))
    weights = np.full(len(density), 1 / len(density))
    before = -np.inf
    for _ in range(TURNS):
        mixed = weights @ density
        value = np.log(mixed).mean()
        if value - before < SMALLEST_GAIN:
            break
        before = value
        weights = weights * (density / mixed).mean(1)
    return weights / weights.sum()
