"""Ordered classes: cut points on one latent number."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import positive, whole_number
from credo.core.densities import ordinal_edges, ordinal_log_probs, ordinal_spread
from credo.core.special import log_sigmoid
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import ClassLikelihood, OneParameter, class_targets

NARROW = 1e-4  # gap that cut points start with at least


@struct
class Ordinal(OneParameter, ClassLikelihood):
    """P(y ≤ c | f) = 1/(1 + exp(−(κ_c − f)/σ)) with κ_1 < κ_2 < … and one output f, or (f, g) that also say σ; see
    `ordinal`.

    ν is (κ_1, log(κ_2 − κ_1), log(κ_3 − κ_2), …). thresholds: "known" (ν = value), "learned" (a point) or "inferred"
    (each entry of ν normal around that of classes that are equally common, with standard deviation prior_scale).
    """

    num_classes: int
    thresholds: str = "learned"
    value: Any = leaf(default=None)
    prior_scale: Any = leaf(default=2.0)
    scaled: bool = False

    learns = "thresholds"
    logits = False
    path = "thresholds"
    field = "thresholds"

    @property
    def prior_loc(self) -> Any:
        """ν where f = 0 makes all classes equally probable."""
        even = np.arange(1.0, self.num_classes) / self.num_classes
        return np.array(unconstrained(np.log(even) - np.log1p(-even)), np.float32)

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Class indices 0 … C − 1 [n]."""
        return class_targets(targets, self.num_classes, "Ordinal")

    def num_outputs(self, targets: Any) -> int:
        """The location, and where `scaled` its spread."""
        return 2 if self.scaled else 1

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """ν at which f = 0 gives the frequencies of the classes, with half a row more of each."""
        rows = jnp.full(self.num_classes, 0.5, weight.dtype).at[targets].add(weight)
        below, above = jnp.cumsum(rows)[:-1], jnp.cumsum(rows[::-1])[::-1][1:]
        edges = jnp.log(below) - jnp.log(above)
        return jnp.concatenate([edges[:1], jnp.log(jnp.maximum(jnp.diff(edges), NARROW))])

    def _draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return super()._draw(key, (self.num_classes - 1,))

    def free(self, params: PyTree, dtype: Any = jnp.float32) -> jax.Array:
        """ν [C − 1]."""
        return params["thresholds"] if "thresholds" in params else jnp.asarray(self.value, dtype)

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """log(P(y ≤ c) − P(y ≤ c − 1)) [n, C]."""
        return ordinal_log_probs(outputs, self.free(params, outputs.dtype))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """P(Y ≤ y | f) [n, 1]: unlike other classes these have an order."""
        edges = ordinal_edges(self.free(params, outputs.dtype))
        below = jnp.exp(log_sigmoid((edges - outputs[..., :1]) / ordinal_spread(outputs)))
        below = jnp.concatenate([below, jnp.ones_like(below[..., :1])], -1)
        return jnp.take_along_axis(below, targets[..., None], -1, mode="clip")

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """ν, for the NumPy predictor."""
        return {}, {"thresholds": self.free(params)}

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Σ_c p_c ∇log p_c ∇log p_cᵀ [n, out, out]."""

        def log_probs(f: jax.Array) -> jax.Array:
            return self.log_probs(params, f)

        directions = jnp.eye(outputs.shape[-1], dtype=outputs.dtype)
        derivatives = [jax.jvp(log_probs, (outputs,), (jnp.broadcast_to(d, outputs.shape),))[1] for d in directions]
        slopes = jnp.exp(0.5 * log_probs(outputs))[..., None] * jnp.stack(derivatives, -1)
        return jnp.einsum("nci,ncj->nij", slopes, slopes)


def ordinal(
    num_classes: int,
    thresholds: Sequence[float] | str = "learned",
    *,
    scaled: bool = False,
    prior_scale: float = 2.0,
) -> Ordinal:
    """Ordered classes, such as grades: P(y ≤ c) = s((κ_c − f)/σ), with s the logistic function and κ_1 < κ_2 < ….

    One number f(x) moves all classes at once, so that neighbours share what is learned: what several outputs learn
    class by class, one learns from all rows. McCullagh (1980), Regression models for ordinal data.

    Args:
        num_classes: how many classes C there are, at least 2; targets are 0 … C − 1, in order.
        thresholds: κ, C − 1 rising numbers (known), "learned" (a point for methods that optimise; samplers put it
            under its prior) or "inferred" (its own posterior; κ_1 and the logarithms of the gaps are normal around
            those of classes that are equally common where f = 0).
        scaled: has the network a second output g, with σ = 0.01 + log(1 + (e − 1) eᵍ), which is 1 at g = 0? Else σ = 1.
        prior_scale: standard deviation of κ_1 and of the logarithms of the gaps under their prior.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import ordinal
        >>> [round(p, 3) for p in ordinal(3, thresholds=(-1.0, 1.0)).mean({}, jnp.zeros((1, 1)))[0].tolist()]
        [0.269, 0.462, 0.269]
    """
    num_classes = whole_number(num_classes, "num_classes", 2)
    scale = positive(prior_scale, "prior_scale")
    if isinstance(thresholds, str):
        if thresholds not in ("learned", "inferred"):
            raise InputError(f'thresholds must be rising numbers, "learned" or "inferred", got {thresholds!r}.')
        return Ordinal(num_classes, thresholds, None, scale, bool(scaled))
    edges = np.asarray(thresholds, np.float64)
    if edges.shape != (num_classes - 1,) or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise InputError(f"{num_classes} classes have {num_classes - 1} rising thresholds, got {thresholds!r}.")
    return Ordinal(num_classes, "known", tuple(unconstrained(edges)), scale, bool(scaled))


def unconstrained(edges: np.ndarray) -> list[float]:
    """κ_1 and the logarithms of the gaps between rising κ."""
    return [float(edges[0]), *np.log(np.diff(edges)).tolist()]
