"""A predictor as numbers: draws of the weights of built-in perceptrons, for `portable`."""

from typing import Any

import jax
import numpy as np

from credo import likelihoods as lk
from credo.core.capabilities import ModalPosterior, ask
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.networks import MLP, Shallow
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


NAMES = {
    lk.Gaussian: "gaussian", lk.StudentT: "student_t", lk.Heteroscedastic: "heteroscedastic",
    lk.HeteroscedasticT: "heteroscedastic_t", lk.Poisson: "poisson", lk.NegativeBinomial: "negative_binomial",
    lk.Bernoulli: "bernoulli", lk.Categorical: "categorical", lk.Mislabelled: "mislabelled",
}  # fmt: skip


def _likelihood(likelihood: Any, params: PyTree, count: int) -> tuple[dict[str, Any], Arrays]:
    """Its name and settings, and its parameters for each draw [draw, k]; `params` have a leading axis over draws."""
    if isinstance(likelihood, lk.Stretched | lk.Tempered | lk.Overdispersed):
        return _corrected(likelihood, params, count)
    kind = type(likelihood)
    if kind not in NAMES:
        raise Refusal(f"The NumPy predictor knows credo's likelihoods, and this fit has a {kind.__name__}; {INSTEAD}.")
    settings: dict[str, Any] = {"name": NAMES[kind]}
    found: dict[str, Any] = {}
    if kind in (lk.Gaussian, lk.StudentT):
        found["scale"] = np.exp(params["log_scale"]) if "log_scale" in params else likelihood.scale
    if kind is lk.StudentT:
        found["df"] = likelihood.df
    if kind in (lk.Heteroscedastic, lk.HeteroscedasticT):
        settings["floor"] = float(likelihood.floor)
    if kind is lk.HeteroscedasticT:
        found["df"] = jax.vmap(likelihood.freedom)(params) if params else likelihood.df
    if kind in (lk.Poisson, lk.NegativeBinomial):
        settings["offset"] = float(likelihood.offset)
    if kind is lk.NegativeBinomial:
        found["log_dispersion"] = params.get("log_dispersion", None if params else np.log(likelihood.value))
    if kind is lk.Mislabelled:
        found["logit_share"] = jax.vmap(likelihood.logit)(params) if params else likelihood.logit({})
    arrays = {}
    for name, value in found.items():
        own = np.atleast_1d(np.asarray(value, np.float32))
        arrays[f"likelihood/{name}"] = np.broadcast_to(own, (count, own.shape[-1]))
    return settings, arrays


def _corrected(likelihood: Any, params: PyTree, count: int) -> tuple[dict[str, Any], Arrays]:
    """The inner likelihood, and its correction."""
    settings, arrays = _likelihood(likelihood.inner, params, count)
    if isinstance(likelihood, lk.Tempered):
        shares = np.exp(np.asarray(likelihood.log_frequencies, np.float64))
        own = {"heat": float(likelihood.heat), "share": float(likelihood.share), "frequencies": shares.tolist()}
        return settings | {"correction": own}, arrays
    return settings | {"correction": {"factor": np.asarray(likelihood.factor, np.float64).tolist()}}, arrays
