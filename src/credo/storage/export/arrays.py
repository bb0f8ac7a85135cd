"""A predictor as numbers: draws of the weights of built-in perceptrons, for `portable`."""

from typing import Any

import jax
import numpy as np

from credo.core.capabilities import ModalPosterior, ask
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.tree import by_paths
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.likelihoods.calibrated import Corrected
from credo.networks import MLP, Embedded, Piecewise, ResidualMLP, Shallow
from credo.posteriors import Stacked
from credo.registry import LIKELIHOODS
from credo.storage.export.draws import make_draws
from credo.storage.export.stacks import each_part, widths_of
from credo.storage.export.subject import Subject
from credo.training.fit import Fit

Arrays = dict[str, np.ndarray]
INSTEAD = 'use form="stablehlo"'


def numbers(subject: Subject, mode: str | None) -> tuple[dict[str, Any], Arrays]:
    """Network, likelihood and weights for `portable`: plain data, and arrays by name."""
    fit = subject.fit
    posterior = fit.posterior if mode is None else fit.posterior.view(mode)
    if isinstance(posterior, Stacked):
        return _stack(posterior, fit, subject.key, subject.num_samples)
    return _numbers(posterior, fit.model, subject.key, subject.num_samples)


def _stack(posterior: Stacked, fit: Fit, key: jax.Array, num: int | None) -> tuple[dict[str, Any], Arrays]:
    """The same of a stack: for each part, with its index before the names of its arrays."""
    described, arrays = zip(*each_part(posterior, fit, key, num, _numbers))
    joined = {f"{c}/{name}": x for c, part in enumerate(arrays) for name, x in part.items() if name != "log_weights"}
    shares = np.asarray(jax.nn.log_softmax(np.asarray(posterior.log_shares)), np.float64)
    joined["log_weights"] = np.concatenate([share + part["log_weights"] for share, part in zip(shares, arrays)])
    likelihood = {
        "name": "stack", "parts": [part["likelihood"] for part in described],
        "draws": [len(part["log_weights"]) for part in arrays],
        "outputs": widths_of(fit.model.likelihood, posterior.kinds),
    }  # fmt: skip
    network = {"name": "stack", "parts": [part["network"] for part in described]}
    return {"network": network, "likelihood": likelihood}, joined


def _numbers(posterior: Any, model: Model, key: jax.Array, num: int | None) -> tuple[dict[str, Any], Arrays]:
    network = _network(model)
    if ask(posterior, ModalPosterior).mode == "probit":
        raise Refusal(f'The NumPy predictor has no mode="probit"; take "linearised" or "sampled", or {INSTEAD}.')
    draws = make_draws(posterior, model, key, num)
    if draws is None:
        has_weights = isinstance(posterior, WeightPosterior)
        what = INSTEAD if has_weights else "it predicts from all training rows: keep the run and use credo.predict"
        raise Refusal(f"A {type(posterior).__name__} has no draws of weights for the NumPy predictor; {what}.")
    count = draws.log_weights.size
    params = jax.tree.map(lambda x: np.asarray(x).reshape(count, *x.shape[2:]), draws.likelihood)
    settings, arrays = _likelihood(model.likelihood, params, count)
    arrays |= {"log_weights": draws.log_weights.reshape(count)}
    lead = 1 if draws.moves else 2  # draws of networks are one axis, members merged
    for path, x in by_paths(draws.network).items():
        arrays[f"network/{path}"] = np.asarray(x, np.float32).reshape(-1, *x.shape[lead:])
    arrays |= {f"deviation/{path}": np.asarray(x, np.float32) for path, x in draws.moves.items()}
    return {"network": network, "likelihood": settings}, arrays


def _network(model: Model) -> dict[str, Any]:
    return _described(model.network)


def _described(network: Any) -> dict[str, Any]:
    if type(network) is Embedded:
        return _described(network.network) | {"codes": [list(column) for column in network.columns]}
    if type(network) is Piecewise:
        columns, knots = network.cut_columns()
        return _described(network.network) | {"pieces": {"columns": columns, "knots": knots}}
    if type(network) is ResidualMLP:
        return {"name": "residual_mlp", "depth": network.depth, "activation": network.activation}
    if type(network) is MLP:
        return {"name": "mlp", "layers": network.layers(), "activation": network.activation}
    if type(network) is Shallow:
        settings = {"nodes": network.num_nodes, "beside": network.beside, "activation": network.activation}
        return {"name": "shallow"} | settings
    raise Refusal(
        f"The NumPy predictor knows credo's perceptrons and shallow networks, and this fit has a "
        f"{type(network).__name__}; {INSTEAD}, which takes every network."
    )


def _likelihood(likelihood: Any, params: PyTree, count: int) -> tuple[dict[str, Any], Arrays]:
    """Its name and settings, and its parameters for each draw [draw, k]; `params` have a leading axis over draws."""
    inner = likelihood
    while isinstance(inner, Corrected):
        inner = inner.inner
    row = LIKELIHOODS.row_of(inner)
    if row is None or not row.numpy:
        raise Refusal(
            f"The NumPy predictor has not the formulas of every likelihood, and this fit has a {type(inner).__name__}; "
            f"{INSTEAD}, which takes them all."
        )
    settings, _ = likelihood.exported(jax.tree.map(lambda x: x[0], params))
    values = jax.vmap(lambda p: likelihood.exported(p)[1], axis_size=count)(params)
    arrays = {f"likelihood/{name}": np.asarray(x, np.float32).reshape(count, -1) for name, x in values.items()}
    return {"name": row.name} | settings, arrays
