"""A predictor as numbers: draws of the weights of built-in perceptrons, for `portable`."""

from typing import Any

import jax
import numpy as np

from credo.core.capabilities import ModalPosterior, ask
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.likelihoods.calibrated import Corrected
from credo.networks import MLP, Shallow
from credo.registry import LIKELIHOODS
from credo.storage.export.draws import by_path, drawn
from credo.storage.export.subject import Subject

Arrays = dict[str, np.ndarray]
INSTEAD = 'use form="stablehlo"'


def numbers(subject: Subject, mode: str | None) -> tuple[dict[str, Any], Arrays]:
    """What `portable` must know of network, likelihood and weights: plain data, and arrays by name."""
    fit = subject.fit
    posterior = fit.posterior if mode is None else fit.posterior.view(mode)
    network = _network(fit.model)
    if ask(posterior, ModalPosterior).mode == "probit":
        raise Refusal(f'The NumPy predictor has no mode="probit"; take "linearised" or "sampled", or {INSTEAD}.')
    found = drawn(posterior, fit.model, subject.key, subject.num_samples)
    if found is None:
        own = isinstance(posterior, WeightPosterior)
        what = INSTEAD if own else "it predicts from all training rows: keep the run and use credo.predict"
        raise Refusal(f"A {type(posterior).__name__} has no draws of weights for the NumPy predictor; {what}.")
    count = found.log_weights.size
    each = jax.tree.map(lambda x: np.asarray(x).reshape(count, *x.shape[2:]), found.likelihood)
    settings, arrays = _likelihood(fit.model.likelihood, each, count)
    arrays |= {"log_weights": found.log_weights.reshape(count)}
    lead = 1 if found.moves else 2  # draws of whole networks are one axis, whatever member they are of
    for path, x in by_path(found.network).items():
        arrays[f"network/{path}"] = np.asarray(x, np.float32).reshape(-1, *x.shape[lead:])
    arrays |= {f"deviation/{path}": np.asarray(x, np.float32) for path, x in found.moves.items()}
    return {"network": network, "likelihood": settings}, arrays


def _network(model: Model) -> dict[str, Any]:
    network: Any = model.network
    if type(network) is MLP:
        return {"name": "mlp", "layers": network.layers(), "activation": network.activation}
    if type(network) is Shallow:
        named = {"nodes": network.num_nodes, "beside": network.beside, "activation": network.activation}
        return {"name": "shallow"} | named
    raise Refusal(
        f"The NumPy predictor knows credo's perceptrons and shallow networks, and this fit has a "
        f"{type(network).__name__}; {INSTEAD}, which takes every network."
    )


def _likelihood(likelihood: Any, params: PyTree, count: int) -> tuple[dict[str, Any], Arrays]:
    """Its name and settings, and its parameters for each draw [draw, k]; `params` have a leading axis over draws."""
    plain = likelihood
    while isinstance(plain, Corrected):
        plain = plain.inner
    row = LIKELIHOODS.row_of(plain)
    if row is None or not row.numpy:
        raise Refusal(
            f"The NumPy predictor has not the formulas of every likelihood, and this fit has a {type(plain).__name__}; "
            f"{INSTEAD}, which takes them all."
        )
    settings, _ = likelihood.exported(jax.tree.map(lambda x: x[0], params))
    values = jax.vmap(lambda p: likelihood.exported(p)[1], axis_size=count)(params)
    each = {f"likelihood/{name}": np.asarray(x, np.float32).reshape(count, -1) for name, x in values.items()}
    return {"name": row.name} | settings, each
