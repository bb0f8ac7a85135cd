"""Several classes, where some of the labels are wrong."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import share as between
from credo.core.checks import whole_number
from credo.core.densities import mislabelled_log_probs
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.likelihoods.base import ClassLikelihood, OneParameter, class_targets, log_normal_parameters

START = 0.02  # where ε is learned from


@struct
class Mislabelled(OneParameter, ClassLikelihood):
    """p(y = c | f) = (1 − ε) exp(f_c)/Σ_j exp(f_j) + ε/C with one output per class; see `mislabelled`.

    share: "known" (ε = value), "learned" (a point) or "inferred" (logit ε ~ N(prior_loc, prior_scale²)).
    """

    num_classes: int
    share: str = "learned"
    value: Any = leaf(default=None)
    prior_loc: Any = leaf(default=-4.0)
    prior_scale: Any = leaf(default=2.0)

    learns = "share of wrong labels"
    path = "logit_share"
    field = "share"

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Class indices 0 … C − 1 [n]."""
        return class_targets(targets, self.num_classes, "Mislabelled")

    def num_outputs(self, targets: Any) -> int:
        """One logit for each class."""
        return self.num_classes

    def start(self, targets: jax.Array, weight: jax.Array) -> jax.Array:
        """logit ε at two labels in a hundred."""
        return jnp.full((1,), _logit(START), weight.dtype)

    def logit(self, params: PyTree) -> jax.Array:
        """log ε − log(1 − ε) [1] (or a scalar)."""
        return params["logit_share"] if "logit_share" in params else _logit(self.value)

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """log of (1 − ε) softmax(f)_c + ε/C [n, C]."""
        return mislabelled_log_probs(outputs, self.logit(params))

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """logit ε, for the NumPy predictor."""
        return {}, {"logit_share": self.logit(params)}

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Σ_c (∂p_c/∂f)(∂p_c/∂f)ᵀ / p_c [n, C, C]."""
        columns = self.curvature_columns(params, outputs)
        return jnp.einsum("cni,cnj->nij", columns, columns)

    def curvature_columns(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s_c = (1 − ε) π_c (e_c − π)/√p_c with π = softmax(f), whose squares sum to the Fisher information
        [C, n, C]."""
        log_right = jax.nn.log_softmax(outputs)
        # (1 − ε)π_c/√p_c from logs: p_c ≥ (1 − ε)π_c, so the quotient is at most √π_c however small both are
        log_size = jax.nn.log_sigmoid(-self.logit(params)) + log_right - 0.5 * self.log_probs(params, outputs)
        difference = jnp.eye(self.num_classes, dtype=outputs.dtype)[:, None] - jnp.exp(log_right)
        return jnp.exp(log_size).T[..., None] * difference


def mislabelled(
    num_classes: int, share: float | str = "learned", *, prior_loc: float = -4.0, prior_scale: float = 2.0
) -> Mislabelled:
    """Classification where a share ε of the labels was drawn at random: y ~ (1 − ε) Categorical(softmax(f)) + ε/C.

    A label that contradicts its neighbours costs log(ε/C) at most and then pulls at the network no more: what a
    Student-t is for numbers this is for classes. Hernández-Lobato, Hernández-Lobato and Dupont (2011), Robust
    multi-class Gaussian process classification. Class probabilities are those of labels, wrong ones included.

    Args:
        num_classes: how many classes C there are, at least 2; targets are 0 … C − 1.
        share: ε, a number between 0 and 1 (known), "learned" (a point for methods that optimise; samplers put it under
            its prior) or "inferred" (its own posterior under logit ε ~ N(prior_loc, prior_scale²)).
        prior_loc: mean of logit ε under its prior; −4 is a median of 1.8 %.
        prior_scale: standard deviation of logit ε under its prior.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import mislabelled
        >>> mislabelled(2, share=0.5).mean({}, jnp.array([[100.0, 0.0]])).tolist()
        [[0.75, 0.25]]
    """
    num_classes = whole_number(num_classes, "num_classes", 2)
    prior = log_normal_parameters(prior_loc, prior_scale)
    if isinstance(share, str):
        if share not in ("learned", "inferred"):
            raise InputError(f'share must be a number between 0 and 1, "learned" or "inferred", got {share!r}.')
        return Mislabelled(int(num_classes), share, None, *prior)
    value = between(share, "A known share of wrong labels")
    return Mislabelled(int(num_classes), "known", value, *prior)


def _logit(share: Any) -> jax.Array:
    return jnp.log(share) - jnp.log1p(-share)
