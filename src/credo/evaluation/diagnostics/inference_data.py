"""A fit as ArviZ's data: what the rest of the Bayesian world reads."""

from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import StoredPosterior, ask
from credo.core.draws import function_draws, log_likelihood_draws
from credo.core.likelihood import Likelihood
from credo.core.posterior import Draws, WeightPosterior
from credo.core.predict import checked_inputs
from credo.core.tree import by_paths
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.evaluation.diagnostics.arviz_border import assemble
from credo.evaluation.diagnostics.data import canonical
from credo.evaluation.diagnostics.weights import weight_draws

# Names that ArviZ and its plots look for.
STATISTICS = {
    "log_density": "lp",
    "acceptance": "acceptance_rate",
    "divergent": "diverging",
    "energy": "energy",
    "step_size": "step_size",
    "num_integration_steps": "n_steps",
}
TYPES = {"diverging": bool, "n_steps": np.int64}  # traces keep every metric as a float; plots use the first as a mask


def to_arviz(
    fit: Any, inputs: PyTree | None = None, targets: Any = None, *, key: jax.Array | None = None, num: int | None = None
) -> Any:
    """Draws of weights, statistics of the sampler and, at given inputs, functions and predictions.

    Groups: posterior (weights by path, with "." for "/", since files know "/" as a folder; function values `f`),
    sample_stats (of chains), log_likelihood, posterior_predictive, observed_data, constant_data. Members are chains;
    draws of a distribution are made afresh, one chain for each member; weighted draws have their `log_weight` among the
    statistics. With ArviZ 1 the result is xarray's DataTree, before that InferenceData. `to_netcdf` writes a file,
    `to_zarr` of a DataTree (`to_datatree()` of InferenceData) a zarr store.

    Args:
        fit: the result of `credo.fit` or `credo.load`.
        inputs: adds `f`, posterior predictive draws and constant_data.
        targets: adds the log likelihood and observed_data.
        key: for draws that are made afresh.
        num: draws over all members; None takes all that are stored, or 200 of each member.
    """
    if inputs is None and targets is not None:
        raise InputError("Targets need the inputs that they belong to.")
    key, key_noise = jax.random.split(jax.random.key(0) if key is None else key)
    groups: dict[str, Any] = {"posterior": {}}
    dims: dict[str, list[str]] = {}
    if isinstance(fit.posterior, WeightPosterior):
        groups["posterior"] |= {n.replace("/", "."): x for n, x in weight_draws(key, fit, num).items()}
    if num is None:
        groups["sample_stats"] = _statistics(fit)
    if inputs is not None:
        inputs = checked_inputs(fit, inputs)
        draws = function_draws(key, fit, inputs, num)
        groups["posterior"]["f"], dims["f"] = draws.values, ["row", "output"]
        replicated = replicate(key_noise, fit.model.likelihood, draws)
        flat = fit.target_shape == () and replicated.ndim == 4
        groups["posterior_predictive"] = {"y": replicated[..., 0] if flat else replicated}
        groups["constant_data"] = constants = _constants(inputs)
        dims |= {name: ["row"] + [f"{name}_{i}" for i in range(x.ndim - 1)] for name, x in constants.items()}
        dims["y"] = ["row"] if flat or replicated.ndim == 3 else ["row", "entry"]
    if targets is not None:
        _, observed, _ = canonical(fit, (inputs, targets))
        groups["log_likelihood"] = {"y": log_likelihood_draws(key, fit, inputs, targets, num)}
        groups["observed_data"] = {"y": observed[..., 0] if dims["y"] == ["row"] and observed.ndim == 2 else observed}
    groups = {name: values for name, values in groups.items() if values}
    return assemble(groups, dims, {"inference_library": "credo", "method": str(fit.config.get("method", ""))})


def _statistics(fit: Any) -> dict[str, np.ndarray]:
    """Metrics of the steps whose draws were kept, for chains alone."""
    stored = ask(fit.posterior, StoredPosterior).available
    weights = ask(fit.posterior, StoredPosterior).log_weights
    statistics = {} if weights is None else {"log_weight": np.asarray(weights)}
    if stored is None or stored < 2 or "log_density" not in fit.trace:
        return statistics
    steps = np.shape(fit.trace["log_density"])[1]
    thin = -(-steps // stored)
    stored_steps = np.minimum((np.arange(stored) + 1) * thin, steps) - 1
    metrics = {new: np.asarray(fit.trace[old])[:, stored_steps] for old, new in STATISTICS.items() if old in fit.trace}
    return statistics | {name: values.astype(TYPES.get(name, values.dtype)) for name, values in metrics.items()}


def _constants(inputs: PyTree) -> dict[str, np.ndarray]:
    if not isinstance(inputs, dict | list | tuple):
        return {"x": np.asarray(inputs)}
    return {"x." + path.replace("/", "."): np.asarray(x) for path, x in by_paths(inputs).items()}


def replicate(key: jax.Array, likelihood: Likelihood, draws: Draws) -> np.ndarray:
    """One draw of y at every row under every draw of θ [member, draw, n, k] ([member, draw, n] for classes).

    The key must be split off from that of the draws: `fold_in(key, i)` may be `split(key, n)[i]`, which made θ_i.
    """
    members, each = draws.values.shape[:2]
    merge = partial(jax.tree.map, lambda x: np.asarray(x).reshape(members * each, *np.shape(x)[2:]))
    replicated = np.asarray(_replicate(key, likelihood, merge(draws.likelihood), merge(draws.values)))
    return replicated.reshape(members, each, *replicated.shape[1:])


@jax.jit
def _replicate(key: jax.Array, likelihood: Likelihood, params: PyTree, values: jax.Array) -> jax.Array:
    keys = jax.random.split(key, values.shape[0])
    return jax.lax.map(lambda one: likelihood.sample(*one), (keys, params, values))
