"""`prior_predictive`: what a model expects before it has seen any data."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.checks import checked_key, or_none, whole_number
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat
from credo.core.model import Model, checked_model
from credo.core.network import Variables
from credo.core.numeric import host_arrays
from credo.core.posterior import WeightPosterior
from credo.core.predict import KEEP_BYTES, predict
from credo.core.predictive import Predictive
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError

NUM_SAMPLES = 200


@struct
class PriorDraws(WeightPosterior):
    """The prior as the posterior that it is before there are data: every draw is made afresh."""

    model: Model = leaf()
    batch: Batch = leaf()  # one row, which gives the sizes

    members = 1

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        return self.model.sample_prior(key, self.batch)


class PriorFit(NamedTuple):
    """The members that `predict` needs of a fit, before there is one."""

    posterior: Any
    model: Model
    input_shape: Any
    target_shape: tuple[int, ...]


class PriorPredictive(Predictive):
    """p(y*|x*) = E_{p(θ)} p(y*|x*, θ) at some inputs: a `Predictive` that also shows its functions."""

    @cached_property
    def functions(self) -> np.ndarray:
        """E[y|x, θ] of every draw of θ, each one function of all inputs [draw, n, …]; probabilities of classes."""

        def means(likelihood: Likelihood, draws: Flat) -> jax.Array:
            return jnp.moveaxis(jax.vmap(likelihood.mean)(draws.params, draws.outputs), 0, 1)

        values = np.moveaxis(self._each(means), 1, 0)
        return values if self.kind == "classes" else self._real(values)

    def rescaled(self, shift: Any, scale: Any) -> "PriorPredictive":
        """The prior predictive of shift + scale · y."""
        return _as_prior(super().rescaled(shift, scale))


def prior_predictive(
    key: jax.Array,
    model: Model,
    inputs: PyTree,
    *,
    num_samples: int = NUM_SAMPLES,
    outputs: int | None = None,
    memory: int = KEEP_BYTES,
) -> PriorPredictive:
    """Functions and targets under the prior: weights, hyper-parameters and noise are drawn, and nothing is learned.

    A prior over weights is hard to read; its functions show what it believes. Noise that is learned as a point has no
    prior: it is drawn from the one that samplers use (`Model.inferring`).

    Args:
        key: a JAX key.
        model: network, prior and likelihood.
        inputs: array [n, …] (or a tree of them).
        num_samples: draws of all parameters.
        outputs: columns of the targets, where there are several; None: targets are one number (or class) for each row.
        memory: bytes of per-draw outputs to keep for further questions.

    Example:
        >>> import jax, credo, numpy as np
        >>> model = credo.Model(credo.networks.mlp([50]), credo.priors.fan_in_normal(), credo.likelihoods.gaussian(0.1))
        >>> x = np.linspace(-2, 2, 30)[:, None]
        >>> prior = credo.prior_predictive(jax.random.key(0), model, x)
        >>> prior.functions.shape, prior.std.shape
        ((200, 30), (30,))
    """
    checked_key(key), checked_model(model)
    num_samples, outputs = whole_number(num_samples, "num_samples"), or_none(whole_number, outputs, "outputs")
    if outputs is not None and model.likelihood.kind == "classes":
        raise InputError(f"outputs counts columns of targets that are numbers, at least 1, got {outputs}.")
    model = model.inferring()
    arrays = host_arrays(inputs)
    for x in jax.tree.leaves(arrays):
        if x.ndim < 2:
            raise InputError(f"Inputs are numbers of shape [rows, features], got {list(x.shape)}; use x[:, None].")
    first = jax.tree.map(lambda x: x[:1], arrays)
    targets = model.likelihood.prepare(np.zeros(1 if model.likelihood.kind == "classes" else (1, outputs or 1)))
    batch = Batch(first, targets, np.ones(1, np.float32), np.float32(1))
    shape = jax.tree.map(lambda x: tuple(x.shape[1:]), arrays)
    prior = PriorFit(PriorDraws(model, batch), model, shape, () if outputs is None else (outputs,))
    return _as_prior(predict(key, prior, arrays, num_samples=num_samples, memory=memory))


def _as_prior(predictive: Predictive) -> PriorPredictive:
    chunks: Callable[[], Any] = predictive._chunks
    return PriorPredictive(
        predictive.likelihood, chunks, len(predictive), predictive._flat, predictive._shift, predictive._scale
    )
