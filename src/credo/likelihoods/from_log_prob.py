"""A likelihood from its log density: moments, quantiles and draws are computed from that."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import one_of, whole_number
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import ClassLikelihood, NoParameters, class_targets, count_targets, real_targets

LogProb = Callable[[jax.Array, jax.Array], jax.Array]
Closed = Callable[..., jax.Array] | None
POINTS = 401  # of the quadrature rule; they move to where the density is
STEPS = 8  # of that move: each resolves mass that is ten times as narrow
STRETCH = 6.0  # standard deviations inside of which half of the points lie
KINDS = ("real", "counts", "classes")


@struct
class FromLogProb(NoParameters):
    """p(y | f) from the user's function, for one number or count y a row; see `from_log_prob`."""

    density: LogProb
    outputs: int = 1
    kind: str = "real"
    support: tuple[float, float] = (-np.inf, np.inf)
    mean_of: Closed = None
    variance_of: Closed = None
    cdf_of: Closed = None
    sample_of: Closed = None

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Numbers inside the support, or whole numbers [n, 1]."""
        array = (count_targets if self.kind == "counts" else real_targets)(targets, "FromLogProb")
        low, high = self.support
        bad = array[(array < low) | (array > high)]
        if bad.size or array.shape[1] != 1:
            got = f"{bad[0]:g}" if bad.size else f"{array.shape[1]} a row"
            raise InputError(f"from_log_prob takes one target a row, from {low:g} to {high:g}, got {got}.")
        return array

    def num_outputs(self, targets: Any) -> int:
        """As the user set it."""
        return self.outputs

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log p(y | f) [n]."""
        return self.density(outputs, targets[..., 0])

    def _transform(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """y(z) for any real z, rising through the support, and log dy/dz."""
        low, high = self.support
        if np.isfinite(low) and np.isfinite(high):
            slope = jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z) + np.log(high - low)
            return low + (high - low) * jax.nn.sigmoid(z), slope
        if np.isfinite(low) or np.isfinite(high):
            z = jnp.clip(z, -80.0, 80.0)
            return (low + jnp.exp(z), z) if np.isfinite(low) else (high - jnp.exp(-z), -z)
        return z, jnp.zeros_like(z)

    def _rule(self, outputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Nodes y [J, n] and their masses: z = m + 6 s t/(1 − t²) at even t, with m and s the mean and the spread of
        the mass in z, iterated from a rule that covers the whole line."""
        if self.kind == "counts":
            y = jnp.broadcast_to(jnp.arange(self.support[1] + 1.0)[:, None], (int(self.support[1]) + 1, len(outputs)))
            return y, self._masses(outputs, y, 0.0)
        t = jnp.linspace(-1.0, 1.0, POINTS + 2, dtype=outputs.dtype)[1:-1, None]
        curve = STRETCH * t / (1 - t * t)
        slope = STRETCH * (1 + t * t) / (1 - t * t) ** 2

        def points(centre: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            z = centre + scale * curve
            y, log_slope = self._transform(z)
            return z, y, self._masses(outputs, y, log_slope + jnp.log(slope))

        def refine(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            z, _y, mass = points(*state)
            centre = _sum(mass, z)
            gaps = state[1] * _sum(mass, slope) * (2 / POINTS)  # between the points that have the mass
            return centre, jnp.maximum(jnp.sqrt(_sum(mass, (z - centre) ** 2)), gaps)

        start = jnp.zeros(len(outputs), outputs.dtype), jnp.full(len(outputs), 10.0, outputs.dtype)
        return points(*jax.lax.fori_loop(0, STEPS, refine, start))[1:]

    def _masses(self, outputs: jax.Array, y: jax.Array, log_weights: Any) -> jax.Array:
        """The mass of each node [J, n], in sum 1."""
        values = jax.lax.map(lambda nodes: self.density(outputs, nodes), y) + log_weights
        return jax.nn.softmax(jnp.where(jnp.isfinite(values), values, -jnp.inf), 0)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """E[y | f], in closed form or ∫ y p(y | f) dy."""
        if self.mean_of is not None:
            return self.mean_of(outputs)[:, None]
        y, mass = self._rule(outputs)
        return _sum(mass, y)[:, None]

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Var[y | f], in closed form or by the same rule."""
        if self.variance_of is not None:
            return self.variance_of(outputs)[:, None]
        y, mass = self._rule(outputs)
        return _sum(mass, (y - _sum(mass, y)) ** 2)[:, None]

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """P(Y ≤ y | f), in closed form or by the same rule, linear between its points."""
        if self.cdf_of is not None:
            return self.cdf_of(outputs, targets[:, 0])[:, None]
        y, mass = self._rule(outputs)
        if self.kind == "counts":
            return jnp.where(y <= targets[:, 0], mass, 0).sum(0)[:, None]
        levels = jax.vmap(jnp.interp, (0, 1, 1))(targets[:, 0], y, jnp.cumsum(mass, 0) - 0.5 * mass)
        return levels[:, None]

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One y for every row, in closed form or by the inverse of the distribution function."""
        if self.sample_of is not None:
            return self.sample_of(key, outputs)[:, None]
        y, mass = self._rule(outputs)
        level, total = jax.random.uniform(key, (len(outputs),), outputs.dtype), jnp.cumsum(mass, 0)
        if self.kind == "counts":
            return (total < level).sum(0).astype(outputs.dtype)[:, None]
        return jax.vmap(jnp.interp, (0, 1, 1))(level, total - 0.5 * mass, y)[:, None]


def _sum(mass: jax.Array, values: jax.Array) -> jax.Array:
    """Σ_j mass_j values_j [n], where far points may be infinite."""
    return jnp.where(mass > 0, mass * values, 0).sum(0)


@struct
class ClassesFromLogProb(ClassLikelihood):
    """p(y = c | f) from the user's function; see `from_log_prob`."""

    density: LogProb
    num_classes: int
    outputs: int

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Class indices 0 … C − 1 [n]."""
        return class_targets(targets, self.num_classes, "FromLogProb")

    def num_outputs(self, targets: Any) -> int:
        """As the user set it."""
        return self.outputs

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log p(y | f) [n]."""
        return self.density(outputs, targets)

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """The function at every class [n, C]."""
        labels = jnp.arange(self.num_classes)
        return jax.vmap(lambda c: self.density(outputs, jnp.full(len(outputs), c)), out_axes=-1)(labels)


def from_log_prob(
    log_prob: LogProb, num_outputs: int, kind: str = "real", *, support: tuple[float, float] | None = None,
    num_classes: int | None = None, mean: Closed = None, variance: Closed = None, cdf: Closed = None,
    sample: Closed = None,
) -> FromLogProb | ClassesFromLogProb:  # fmt: skip
    """A likelihood from its log density; curvature comes by autodiff, all else from the density by quadrature.

    Pass what has a closed form: quadrature with some hundred points is slower and good to about 10⁻⁴. A function is no
    data, so such a fit cannot be saved; that of a class of your own can.

    Args:
        log_prob: log p(y | f) [n] of outputs f [n, num_outputs] and targets y [n], normalised in y, in JAX operations.
        num_outputs: how many outputs the network has.
        kind: "real", "counts" or "classes".
        support: the smallest and largest y; of counts from 0 to one that none exceeds (where None, 1000).
        num_classes: of "classes": y is 0 … num_classes − 1.
        mean, variance: functions of f, giving [n].
        cdf: P(Y ≤ y | f) [n], a function of f and y.
        sample: a draw of y [n], a function of a key and f.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import from_log_prob
        >>> def exponential(f, y):
        ...     return f[:, 0] - y * jnp.exp(f[:, 0])
        >>> likelihood = from_log_prob(exponential, 1, support=(0.0, float("inf")))
        >>> round(float(likelihood.mean({}, jnp.zeros((1, 1)))[0, 0]), 3)
        1.0
    """
    one_of(kind, KINDS, "kind")
    num_outputs = whole_number(num_outputs, "num_outputs")
    if kind == "classes":
        return ClassesFromLogProb(log_prob, whole_number(num_classes, "num_classes", 2), num_outputs)
    low, high = support or ((0.0, 1000.0) if kind == "counts" else (-np.inf, np.inf))
    if not low < high or (kind == "counts" and (low != 0 or not high < 2**20)):
        raise InputError(f"support is (smallest, largest), for counts (0, largest below 2²⁰), got ({low:g}, {high:g}).")
    closed_forms = (mean, variance, cdf, sample)
    return FromLogProb(log_prob, num_outputs, kind, (float(low), float(high)), *closed_forms)
