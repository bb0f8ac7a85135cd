"""ArviZ's numbers for the tests, by the library's own border: to import ArviZ while collecting tests would be slow."""

from typing import Any

import numpy as np

from credo.evaluation.diagnostics.arviz_border import arviz, assemble, modern, quiet

OURS = {"std": "sd"}  # what it calls a method that credo calls otherwise


def rhat(chains: np.ndarray) -> np.ndarray:
    return _each("rhat", chains)


def ess(chains: np.ndarray, method: str = "bulk") -> np.ndarray:
    # Version 1 looks at other tails by default.
    return _each("ess", chains, method=method, **({"prob": (0.05, 0.95)} if method == "tail" else {}))


def mcse(chains: np.ndarray, method: str = "mean") -> np.ndarray:
    """Monte-Carlo standard error of the means (or "std") of chains [chain, draw, …]."""
    return _each("mcse", chains, method=OURS.get(method, method))


def bfmi(energy: np.ndarray) -> np.ndarray:
    groups = {"posterior": {"energy": energy}, "sample_stats": {"energy": energy}}
    found = arviz().bfmi(assemble(groups, {}, {}))
    return np.asarray(found["energy"] if modern() else found)


def psislw(log_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights and k̂."""
    if modern():
        from arviz_stats.base import array_stats

        smooth, k = array_stats.psislw(-log_weights)  # it asks for log likelihoods
    else:
        smooth, k = arviz().psislw(log_weights)
    return np.asarray(smooth), float(k)


def loo(log_likelihood: np.ndarray, efficiency: float = 1.0) -> dict[str, Any]:
    """PSIS-LOO of log p(y_n | θ) [chain, draw, n]."""
    groups = {"posterior": {"row": log_likelihood[:, :, 0]}, "log_likelihood": {"y": log_likelihood}}
    with quiet():
        found = arviz().loo(assemble(groups, {}, {}), pointwise=True, reff=efficiency)
    elpd, p, rows = (found.elpd, found.p, found.elpd_i) if modern() else (found.elpd_loo, found.p_loo, found.loo_i)
    return {"elpd": elpd, "se": found.se, "p": p, "pointwise": np.asarray(rows), "pareto_k": np.asarray(found.pareto_k)}


def _each(name: str, chains: np.ndarray, **options: Any) -> np.ndarray:
    data = arviz().convert_to_dataset({"x": np.asarray(chains, np.float64)})
    return np.asarray(getattr(arviz(), name)(data, **options)["x"])
