"""Any log density as a model, so that every method of credo runs on it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.adapters.functional import from_functions
from credo.adapters.plain import hashable
from credo.core.model import Model
from credo.core.numeric import host_array
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.likelihoods.base import NoParameters
from credo.priors.elementwise import ElementDensity, ElementwisePrior

NOTHING = "A model that is a log density alone describes no targets, so there is nothing to predict; look at the draws."


@struct
class FlatDensity(ElementDensity):
    """p(x) ∝ 1."""

    def log_prob(self, x: jax.Array) -> jax.Array:
        return jnp.zeros_like(x)

    def sample(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        raise Refusal("A flat prior is not a distribution, so nothing can be drawn from it.")


@struct
class FlatPrior(ElementwisePrior):
    """log p(θ) = 0: the log density has all the information on θ."""

    def density(self, info: Any) -> FlatDensity:
        return FlatDensity()


@struct
class OutputIsLogDensity(NoParameters):
    """log p(y | f) = f: the network's output is the log density."""

    kind = "real"
    predicts = False  # diagnostics then look at θ itself

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        return np.zeros((len(targets), 1), np.float32)

    def num_outputs(self, targets: Any) -> int:
        return 1

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        return outputs[:, 0]

    def _nothing(self, *_: Any) -> jax.Array:
        raise Refusal(NOTHING)

    mean = variance = cdf = sample = curvature = _nothing


@struct
class DensityModel(Model):
    """exp(log_density(θ)) as a model of no data; `data` is what `credo.fit` takes for it."""

    @property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """One row without information."""
        return np.zeros((1, 1), np.float32), np.zeros(1, np.float32)


def from_density(log_density: Callable[[Any], jax.Array], start: Any) -> DensityModel:
    """A model whose posterior is π(θ)/Z for log π = `log_density`, known up to a constant; its evidence is Z.

    Args:
        log_density: a differentiable function of θ, all of whose numbers are unconstrained.
        start: θ where a method starts: a vector or a dict of arrays; members start nearby.

    Example:
        >>> import jax, credo
        >>> model = credo.from_density(lambda x: -0.5 * (x**2).sum(), [0.0, 0.0])
        >>> fit = credo.fit(jax.random.key(0), model, model.data, credo.methods.HMC(warmup=100), steps=50)
        >>> fit.posterior.params["network"]["theta"].shape
        (4, 50, 2)
    """
    if not callable(log_density):
        raise InputError(f"from_density expects a function of θ, got {log_density!r}.")
    hashable(log_density, "log_density")
    plain = not isinstance(start, dict)
    tree = {"theta": start} if plain else start
    tree = {k: np.asarray(host_array(v, "Start values")).astype(np.float32) for k, v in tree.items()}
    first = tuple((k, tuple(v.ravel().tolist()), v.shape) for k, v in tree.items())

    network = from_functions(_Start(first), _LogDensity(log_density, plain))
    return DensityModel(network, FlatPrior(), OutputIsLogDensity())


@struct
class _Start:
    """Initial values near those of the user."""

    first: tuple[tuple[str, tuple[float, ...], tuple[int, ...]], ...] = ()

    def __call__(self, key: jax.Array, inputs: jax.Array) -> PyTree:
        keys = jax.random.split(key, len(self.first))
        return {
            name: jnp.asarray(values, jnp.float32).reshape(shape) + 0.1 * jax.random.normal(k, shape)
            for k, (name, values, shape) in zip(keys, self.first)
        }


@struct
class _LogDensity:
    """f(x) = log π(θ), the same for every row."""

    function: Callable[[Any], jax.Array]
    plain: bool = True

    def __call__(self, params: PyTree, inputs: jax.Array) -> jax.Array:
        value = self.function(params["theta"] if self.plain else params)
        return jnp.broadcast_to(value, (inputs.shape[0], 1))
