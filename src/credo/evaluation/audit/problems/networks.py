"""Small networks, whose posterior is known from long chains that are stored with the package."""

from functools import partial

import numpy as np

from credo.core.model import Model
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.reference import load_reference
from credo.likelihoods.categorical import categorical
from credo.likelihoods.gaussian import gaussian
from credo.likelihoods.heteroscedastic import heteroscedastic
from credo.networks.mlp import mlp
from credo.priors.normal import normal


def tanh_network() -> Problem:
    """y = tanh curve + noise of unknown size, by one hidden layer of four units."""
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-2, 2, size=(40, 1))
    targets = np.tanh(2 * inputs[:, 0]) + 0.2 * rng.normal(size=40)
    places = np.linspace(-4, 4, 25)[:, None]
    model = Model(mlp([4], "tanh"), normal(1.0), gaussian(noise="inferred"))
    shows = "A tanh network with inferred noise, judged inside and outside the data."
    return _stored("tanh_network", shows, model, inputs, targets, places)


def class_network() -> Problem:
    """Three classes in the plane, by one hidden layer of three units."""
    rng = np.random.default_rng(6)
    targets = np.repeat(np.arange(3), 15)
    angle = 2 * np.pi * targets / 3
    inputs = 1.2 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.7 * rng.normal(size=(45, 2))
    places = 3.5 * np.stack(np.meshgrid(*[np.linspace(-1, 1, 6)] * 2), -1).reshape(-1, 2)
    model = Model(mlp([3], "tanh"), normal(1.5), categorical(3))
    shows = "A tanh network for three classes, judged on and far from the data."
    return _stored("class_network", shows, model, inputs, targets, places)


def heteroscedastic_line() -> Problem:
    """Mean and log-noise of y are both linear in x."""
    rng = np.random.default_rng(7)
    inputs = rng.uniform(-2, 2, size=(60, 1))
    noise = np.log1p(np.exp(0.9 * inputs[:, 0] - 0.8))
    targets = 0.5 - inputs[:, 0] + noise * rng.normal(size=60)
    places = np.linspace(-3, 3, 19)[:, None]
    model = Model(mlp([]), normal(1.5), heteroscedastic())
    shows = "Noise that grows with x: what is noise and what is not known must be told apart."
    return _stored("heteroscedastic", shows, model, inputs, targets, places, quick=True)


def gap() -> Problem:
    """Two clusters of data with nothing in between: an honest posterior is unsure in the gap."""
    rng = np.random.default_rng(8)
    inputs = np.concatenate([rng.uniform(-2, -1.2, size=15), rng.uniform(1.2, 2, size=15)])[:, None]
    targets = np.sin(2 * inputs[:, 0]) * 0.8 + 0.1 * rng.normal(size=30)
    places = np.linspace(-2.5, 2.5, 31)[:, None]
    model = Model(mlp([8], "tanh"), normal(1.0), gaussian(noise=0.1))
    shows = "A gap between two clusters of data: uncertainty in between must grow (Foong et al., 2019)."
    between = np.abs(places[:, 0]) < 1.0
    return _stored("gap", shows, model, inputs, targets, places, {"gap": between})


def _stored(
    name: str, shows: str, model: Model, inputs: np.ndarray, targets: np.ndarray, places: np.ndarray,
    regions: dict[str, np.ndarray] | None = None, quick: bool = False,
) -> Problem:  # fmt: skip
    inputs, places = inputs.astype(np.float32), places.astype(np.float32)
    targets = targets.astype(np.int32) if model.likelihood.kind == "classes" else targets.astype(np.float32)
    find = partial(load_reference, name, inputs, targets, places)
    return Problem(name, shows, model, inputs, targets, places, find, stored=True, quick=quick, regions=regions or {})
