"""What likelihoods share: checks of targets, and parameters that are absent, known, learned or inferred."""

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import positive
from credo.core.densities import categorical_entropy
from credo.core.numeric import host_array
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal


class NoParameters:
    """A likelihood whose every number comes from the network: ν is empty."""

    @property
    def point(self) -> bool:
        """There is nothing to learn as a point."""
        return False

    @property
    def inferred(self) -> bool:
        """There is nothing to infer."""
        return False

    def init(self, targets: jax.Array, weight: jax.Array) -> PyTree:
        """No parameters."""
        return {}

    def log_prior(self, params: PyTree) -> jax.Array:
        """0: an empty ν has no prior."""
        return jnp.zeros(())

    def sample_prior(self, key: jax.Array, targets: jax.Array) -> PyTree:
        """No parameters."""
        return {}

    def inferring(self) -> Self:
        """The same likelihood: nothing is learned as a point."""
        return self

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings, and arrays for one ν, that the NumPy predictor needs: none."""
        return {}, {}


class ClassLikelihood(NoParameters, ABC):
    """What classification likelihoods share; a subclass brings `log_probs`."""

    kind = "classes"

    @abstractmethod
    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """log p(y = c | f) of every class [n, C]."""

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Class probabilities [n, C]."""
        return jnp.exp(self.log_probs(params, outputs))

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log p(y | f) [n]."""
        log_probs = self.log_probs(params, outputs)
        # "clip" spares the check of the index, which `prepare` has made; measured faster than a one-hot mask
        return jnp.take_along_axis(log_probs, targets[..., None], -1, mode="clip")[..., 0]

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """p (1 − p) of every class [n, C]."""
        probs = self.mean(params, outputs)
        return probs * (1 - probs)

    def entropy(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """H[p] in nats [n]."""
        return categorical_entropy(self.log_probs(params, outputs))

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One class for every row [n]."""
        return jax.random.categorical(key, self.log_probs(params, outputs)).astype(jnp.int32)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """Refused: classes have no order."""
        raise Refusal("Classes have no order, so there is no distribution function; use log_probs or mean.")


class OneParameter(ABC):
    """The base of likelihoods whose ν is one number, or one for each entry of y: "known", "learned" (a point) or
    "inferred" under N(prior_loc, prior_scale²) on the scale of `params[path]`."""

    path: ClassVar[str]  # of ν in the parameters
    field: ClassVar[str]  # that holds the mode
    prior_loc: Any
    prior_scale: Any

    @property
    def argument(self) -> str:
        """The builder's argument that decides on the mode."""
        return self.field

    @property
    def mode(self) -> str:
        """ "known", "learned" or "inferred"."""
        return vars(self)[self.field]

    def inferring(self) -> Self:
        """The same likelihood with a learned ν put under its prior."""
        return dataclasses.replace(self, **{self.field: "inferred"}) if self.point else self  # type: ignore[type-var]

    @abstractmethod
    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """Where ν starts, on its unconstrained scale."""

    @property
    def point(self) -> bool:
        """True where ν is learned as a point."""
        return self.mode == "learned"

    @property
    def inferred(self) -> bool:
        """True where ν has a prior."""
        return self.mode == "inferred"

    def init(self, targets: jax.Array, weight: jax.Array) -> PyTree:
        """Start values of ν; nothing where it is known."""
        return {} if self.mode == "known" else {self.path: self.start(targets, weight)}

    def log_prior(self, params: PyTree) -> jax.Array:
        """log p(ν) where it is inferred, else 0: ν is on the scale of its prior, so there is no Jacobian."""
        return self._log_density(params[self.path]) if self.inferred else jnp.zeros(())

    def _log_density(self, value: jax.Array) -> jax.Array:
        return jax.scipy.stats.norm.logpdf(value, self.prior_loc, self.prior_scale).sum()

    def sample_prior(self, key: jax.Array, targets: jax.Array) -> PyTree:
        """ν from its prior; nothing where it is known."""
        if self.mode == "known":
            return {}
        if self.point:
            name = self.argument
            raise Refusal(f'{name}="learned" is a point without a prior, so it cannot be drawn: use {name}="inferred".')
        return {self.path: self._draw(key, targets.shape[1:] or (1,))}

    def _draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return self.prior_loc + self.prior_scale * jax.random.normal(key, shape)


@struct
class ScaleNoise(OneParameter):
    """y = f + σ ε with one σ for each entry of y.

    noise: "known" (σ = scale), "learned" (a point) or "inferred" (log σ ~ N(prior_loc, prior_scale²), or σ ~
    scale_prior where there is one).
    """

    noise: str = "learned"
    scale: Any = leaf(default=None)
    prior_loc: Any = leaf(default=-1.0)
    prior_scale: Any = leaf(default=2.0)
    scale_prior: Any = leaf(default=None)

    kind = "real"
    path = "log_scale"
    field = "noise"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Finite numbers [n, k]."""
        return real_targets(targets, type(self).__name__)

    def num_outputs(self, targets: Any) -> int:
        """One output for each entry of y."""
        return targets.shape[1]

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """log of half the standard deviation of the targets."""
        return jnp.log(0.5 * weighted_std(targets, weight) + 1e-3)

    def _log_density(self, value: jax.Array) -> jax.Array:
        return super()._log_density(value) if self.scale_prior is None else self.scale_prior.log_prob(value).sum()

    def _draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return super()._draw(key, shape) if self.scale_prior is None else self.scale_prior.sample(key, shape)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays that the NumPy predictor needs: σ."""
        return {}, {"scale": self.sigma(params)}

    def log_sigma(self, params: PyTree) -> jax.Array:
        """log σ [k] (or a scalar)."""
        return params["log_scale"] if "log_scale" in params else jnp.log(self.scale)

    def sigma(self, params: PyTree) -> jax.Array:
        """The noise scale σ [k] (or a scalar)."""
        return jnp.exp(self.log_sigma(params))


def mode_and_value(value: float | str, name: str) -> tuple[str, float | None]:
    """A builder's positive number, "learned" or "inferred" as (mode, number), e.g. ("known", 0.1)."""
    if isinstance(value, str):
        if value not in ("learned", "inferred"):
            raise InputError(f'{name} must be a positive number, "learned" or "inferred", got {value!r}.')
        return value, None
    return "known", positive(value, f"A known {name}")


def checked_offset(offset: float) -> float:
    """A builder's offset of a log rate."""
    if not math.isfinite(offset):
        raise InputError(f"The offset of a log rate must be a finite number, got {offset}.")
    return float(offset)


def finite_number(value: float, name: str) -> float:
    """A builder's finite number."""
    if not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def log_normal_parameters(prior_loc: float, prior_scale: float) -> tuple[float, float]:
    """The checked mean and standard deviation of a log-normal prior."""
    loc = finite_number(prior_loc, "prior_loc")
    if not isinstance(prior_scale, int | float | np.number) or not 0 < prior_scale < math.inf:
        raise InputError(
            f"A prior needs a finite prior_loc and a positive prior_scale, got {prior_loc}, {prior_scale}."
        )
    return loc, float(prior_scale)


def real_targets(targets: np.ndarray, name: str) -> np.ndarray:
    """Finite numbers of shape [n, k]."""
    if np.asarray(targets).dtype.kind not in "fiubOc":
        raise InputError(f"The {name} likelihood needs numeric targets, got dtype {np.asarray(targets).dtype}.")
    array = np.asarray(host_array(targets, "Targets")).astype(np.float32)
    if array.ndim not in (1, 2):
        raise InputError(f"Targets must have shape [rows] or [rows, outputs], got {list(array.shape)}.")
    return array[:, None] if array.ndim == 1 else array


def count_targets(targets: np.ndarray, name: str) -> np.ndarray:
    """Whole numbers of at least 0, of shape [n, k]."""
    array = real_targets(targets, name)
    bad = array[(array < 0) | (array != np.floor(array))]
    if bad.size:
        raise InputError(f"The {name} likelihood needs counts 0, 1, 2, …, got {bad[0]:g}.")
    return array


def class_targets(targets: np.ndarray, num_classes: int, name: str) -> np.ndarray:
    """Class indices 0 … num_classes − 1 of shape [n]."""
    if np.asarray(targets).dtype.kind not in "fiubO":
        raise InputError(
            f"The {name} likelihood needs classes as whole numbers, got dtype {np.asarray(targets).dtype}; "
            f"encode the labels as 0 to {num_classes - 1}."
        )
    array = np.asarray(host_array(targets, "Targets", finite=False))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"Class targets must have shape [rows] or [rows, 1], got {list(array.shape)}.")
    valid = (array >= 0) & (array < num_classes) & (np.floor(array) == array)
    if not valid.all():
        raise InputError(
            f"Classes must be whole numbers from 0 to {num_classes - 1}, got {array[~valid][0]}; "
            "encode the labels, or correct the number of classes."
        )
    return array.astype(np.int32)


def weighted_moments(targets: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of each column [k] over rows that count, centred before squaring."""
    total = jnp.maximum(weight.sum(), 1e-6)
    mean = (weight[:, None] * targets).sum(0) / total
    return mean, (weight[:, None] * (targets - mean) ** 2).sum(0) / total


def weighted_std(targets: jax.Array, weight: jax.Array) -> jax.Array:
    """Standard deviation of each column [k] over rows that count."""
    return jnp.sqrt(weighted_moments(targets, weight)[1])


def like_outputs(value: Any, outputs: jax.Array) -> jax.Array:
    """One number for each column, as an array like the outputs [n, k]."""
    return jnp.broadcast_to(jnp.asarray(value, outputs.dtype), outputs.shape)


def diagonal(values: jax.Array) -> jax.Array:
    """Rows [n, k] as diagonal matrices [n, k, k]."""
    return values[..., None] * jnp.eye(values.shape[-1], dtype=values.dtype)
