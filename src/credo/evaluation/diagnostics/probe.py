"""One look at a fit: its functions at a few inputs, their uncertainty, and what the prior alone would say there."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import mixture
from credo.core.capabilities import PredictingLikelihood, StoredPosterior, ask
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import WeightPosterior
from credo.core.precision import in_single
from credo.core.predict import checked_inputs, disk_outputs
from credo.core.tree import paths, take
from credo.core.typing import PyTree
from credo.posteriors.subset import SubsetPosterior

MOST_INPUTS = 32
PRIOR_DRAWS = 200


class Probe(NamedTuple):
    """What a fit says at n inputs, NumPy arrays."""

    values: np.ndarray  # f [member, draw, n, out]
    likelihood: dict[str, np.ndarray]  # ν of every draw [member, draw, ...], by name
    log_weights: np.ndarray | None  # [member, draw]
    aleatoric: np.ndarray  # E[Var[y|θ]] [n, k]
    epistemic: np.ndarray  # Var[E[y|θ]] [n, k]
    prior_mean: np.ndarray | None  # mean of f under the prior [n, out]; None where it cannot be drawn from
    prior_std: np.ndarray | None
    distinct: int  # inputs that differ
    noise: np.ndarray | None = None  # ½ log Var[y|θ] [member, draw, n, k]; None where f alone decides it

    @property
    def mean(self) -> np.ndarray:
        """Mean of f over all draws [n, out]."""
        return np.average(self.values, axis=(0, 1), weights=self._weights())

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of f over all draws [n, out]."""
        square = (self.values - self.mean) ** 2
        return np.sqrt(np.average(square, axis=(0, 1), weights=self._weights()))

    def _weights(self) -> np.ndarray | None:
        return None if self.log_weights is None else np.exp(self.log_weights)

    def only(self, members: np.ndarray) -> "Probe":
        """The draws of these members alone; the variances stay those of all."""
        weights, noise = (None if x is None else x[members] for x in (self.log_weights, self.noise))
        likelihood = {name: x[members] for name, x in self.likelihood.items()}
        return self._replace(values=self.values[members], likelihood=likelihood, log_weights=weights, noise=noise)


def training_inputs(fit: Any, most: int = MOST_INPUTS) -> PyTree | None:
    """At most `most` training inputs, spread evenly over the rows; None for a loaded fit, which has no data, and for a
    model that is a log density alone, which has no functions."""
    if fit.loop is None or not ask(fit.model.likelihood, PredictingLikelihood).predicts:
        return None
    source = fit.loop.source
    rows = np.unique(np.linspace(0, source.num_rows - 1, most).round().astype(int))
    return jax.tree.map(lambda x: np.asarray(x[rows]), source.inputs)


@in_single
def look(key: jax.Array, fit: Any, inputs: PyTree, num: int | None = None) -> Probe:
    """Draws of f at the inputs, as many as are stored (or 200 of each member); the prior's where they look alike."""
    inputs = checked_inputs(fit, inputs)
    posterior, likelihood = fit.posterior, fit.model.likelihood
    if ask(posterior, StoredPosterior).on_disk:
        outputs = disk_outputs(key, posterior, fit.model, [lambda: inputs], num)[0]
        draws, moments = jax.tree.map(np.asarray, (outputs, mixture.moments(likelihood, mixture.flatten(outputs))))
        posterior = posterior.part(np.zeros(1, int), np.zeros(1, int))
    else:
        # One device: where members lie must not make another program.
        posterior = jax.device_put(posterior, jax.local_devices()[0])
        draws, moments = jax.tree.map(np.asarray, _look(key, posterior, fit.model, inputs, num))
    parameters = dict(zip(paths(draws.likelihood), jax.tree.leaves(draws.likelihood)))
    noise = np.asarray(_noise(likelihood, draws)) if parameters else None
    first = jax.tree.leaves(inputs)[0]
    distinct = len(np.unique(np.asarray(first).reshape(len(first), -1), axis=0))
    probe = Probe(
        draws.values, parameters, draws.log_weights, moments["aleatoric"], moments["epistemic"], None, None, distinct,
        noise,
    )  # fmt: skip
    if not _may_be_prior(fit, probe):
        return probe
    prior = np.asarray(_prior_functions(key, posterior, fit.model, inputs))
    return probe._replace(prior_mean=prior.mean(0), prior_std=prior.std(0))


def _may_be_prior(fit: Any, probe: Probe) -> bool:
    """Could this be the prior? Its functions have no trend that stands out from their spread. Cheap to rule out."""
    posterior = fit.posterior
    if not isinstance(posterior, WeightPosterior) or posterior.available == 1:
        return False
    if fit.model.fixed is not None or isinstance(posterior, SubsetPosterior):
        return False  # held weights would have to be held under the prior too
    return bool((probe.mean.std(0) < 0.5 * probe.std.mean(0)).all())


@partial(jax.jit, static_argnames="num")
def _look(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Any:
    draws = posterior.outputs(key, model, inputs, num)
    return draws, mixture.moments(model.likelihood, mixture.flatten(draws))


@jax.jit
def _noise(likelihood: Any, draws: Any) -> jax.Array:
    def one(params: PyTree, values: jax.Array) -> jax.Array:
        return 0.5 * jnp.log(likelihood.variance(params, values))

    return jax.vmap(jax.vmap(one))(draws.likelihood, draws.values)


@jax.jit
def _prior_functions(key: jax.Array, posterior: Any, model: Model, inputs: PyTree) -> jax.Array:
    """f under the prior [draw, n, out], with the prior's own hyper-parameters those of one draw of the posterior."""
    key_draw, key_prior = jax.random.split(key)
    zero = jnp.zeros((), jnp.int32)
    sample = posterior.draw(key_draw, zero, zero)
    params = model.complete(sample.params)
    bound = model.prior.bind(model.network.info(params["network"]), params["prior"])

    def one(key: jax.Array) -> jax.Array:  # one set of weights at a time: many of a large network fill the memory
        return model.network.apply(Variables(take(bound.sample(key, 1), 0), sample.state), inputs)[0]

    return jax.lax.map(one, jax.random.split(key_prior, PRIOR_DRAWS))
