"""One method on many tasks of equal size, side by side as one program; and on one task alone, as a user fits it."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import credo
from benchmarks.grid import Choice
from benchmarks.uci_data import Task
from credo.core import mixture
from credo.core.batch import Batch
from credo.errors import InputError
from credo.registry import build_method
from credo.tables.model import build, default_prior, parse_likelihood, parse_network, parse_prior, recipe
from credo.training.many import fit_many

GROUP = 128  # fits that move in lock-step


class Built(NamedTuple):
    """A method and a model, and how long they run."""

    method: Any
    model: Any
    steps: int | None
    batch_size: int | None


def from_choice(name: str, choice: Choice, steps: int | None = None) -> Built:
    """A setting of the study's grid; `steps` instead of its own."""
    kind = getattr(credo.likelihoods, choice.likelihood)
    if choice.likelihood == "gaussian":
        likelihood = kind(choice.noise)
    else:
        likelihood = kind(floor=choice.floor) if choice.likelihood == "heteroscedastic" else kind()
    network = credo.networks.mlp(choice.widths, choice.activation)
    model = credo.Model(network, credo.priors.fan_in_normal(choice.scale), likelihood)
    built = build_method(name, **dict(choice.settings))
    return Built(built, model, choice.steps if steps is None else steps, choice.batch_size)


def from_words(words: Mapping[str, Any]) -> Built:
    """What `Choice.words` gives, as a table of numbers gets it: the model by the words of `credo.tables.model`."""
    method, options = build(words["method"], words["settings"])
    if "noise" in options:
        raise InputError("The UCI study standardises targets; give the noise as --set likelihood=gaussian:NUMBER.")
    network = parse_network(words["network"])
    likelihood = options.get("likelihood", recipe(words["method"]).likelihood or "gaussian")
    prior = parse_prior(options["prior"]) if "prior" in options else default_prior("regression", method, network)
    model = credo.Model(network, prior, parse_likelihood(likelihood), float(options.get("temperature", 1.0)))
    return Built(method, model, words["steps"], words["batch_size"])


def scores(key: jax.Array, built: Built, tasks: Sequence[Task]) -> np.ndarray:
    """[log-likelihood, mean squared error] of every task, on the original scale."""
    if built.method.precision == "float64":  # `credo.fit` alone switches precision
        results = [alone(k, built, one) for k, one in zip(jax.random.split(key, len(tasks)), tasks)]
        return np.array([[one["log_likelihood"], one["mse"]] for one in results])
    stacked = Task(*(np.stack(x) for x in zip(*tasks)))
    rows = np.full(len(tasks), stacked.y.shape[1], np.float32)
    data = Batch(stacked.x, stacked.y, np.ones(stacked.y.shape[:2], np.float32), rows)
    return fit_many(
        key, built.method, built.model, data, _scores, extra=(stacked.new_x, stacked.new_y, stacked.spread),
        steps=built.steps, batch_size=built.batch_size, group=GROUP,
    )  # fmt: skip


def _scores(key: jax.Array, model: Any, posterior: Any, new: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    draws = mixture.flatten(posterior.outputs(key, model, new[0], None))
    log_prob = mixture.log_prob(model.likelihood, draws, new[1]) - jnp.log(new[2])
    error = (mixture.moments(model.likelihood, draws)["mean"] - new[1]) * new[2]
    return jnp.stack([log_prob.mean(), (error**2).mean()])


def alone(key: jax.Array, built: Built, one: Task) -> dict[str, float]:
    """The same scores by `credo.fit` and `credo.predict`, and the seconds of the fit, compilation among them."""
    began = time.perf_counter()
    fit = credo.fit(
        key, built.model, (one.x, one.y[:, 0]), built.method, steps=built.steps, batch_size=built.batch_size,
        progress=False,
    )  # fmt: skip
    spent = time.perf_counter() - began
    predictive = credo.predict(key, fit, one.new_x)
    compiling = float(fit.timing["seconds_compile"])
    return original_scale(predictive, one) | {"seconds": spent, "seconds_compile": compiling}


def original_scale(predictive: Any, one: Task) -> dict[str, float]:
    """Log-likelihood and mean squared error on the scale that the targets have in the table."""
    rescaled = predictive.rescaled(0.0, float(one.spread))
    targets = one.new_y[:, 0] * float(one.spread)
    log_likelihood = float(credo.metrics.log_likelihood(rescaled, targets))
    return {"log_likelihood": log_likelihood, "mse": float(credo.metrics.rmse(rescaled, targets)) ** 2}
