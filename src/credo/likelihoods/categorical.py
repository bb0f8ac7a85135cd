"""Several classes: softmax of the outputs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import whole_number
from credo.core.densities import categorical_entropy, categorical_log_probs
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.likelihoods.base import ClassLikelihood, class_targets, diagonal


@struct
class Categorical(ClassLikelihood):
    """p(y = c | f) = exp(f_c) / Σ_j exp(f_j) with one output per class; see `categorical`."""

    num_classes: int

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Class indices 0 … C − 1 [n]."""
        return class_targets(targets, self.num_classes, "Categorical")

    def num_outputs(self, targets: Any) -> int:
        """One logit for each class."""
        return self.num_classes

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """f_c − log Σ_j exp(f_j) [n, C]."""
        return categorical_log_probs(outputs)

    def entropy(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """H[p] = log Σ_j exp(d_j) − Σ_j p_j d_j in nats [n], with d = f − max f: terms ≥ 0 only."""
        return categorical_entropy(outputs)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One class for every row [n]."""
        return jax.random.categorical(key, outputs).astype(jnp.int32)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """diag(p) − p pᵀ."""
        probs = self.mean(params, outputs)
        return diagonal(probs) - probs[..., :, None] * probs[..., None, :]

    def curvature_columns(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s_c = √p_c (e_c − p), whose squares Σ_c s_c s_c' = diag(p) − p pᵀ [C, n, C]."""
        probs = self.mean(params, outputs)
        difference = jnp.eye(self.num_classes, dtype=probs.dtype)[:, None] - probs
        return jnp.sqrt(probs).T[..., None] * difference


def categorical(num_classes: int) -> Categorical:
    """Classification into several classes: y ~ Categorical(softmax(f)).

    Args:
        num_classes: how many classes C there are, at least 2; targets are 0 … C − 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import categorical
        >>> categorical(4).mean({}, jnp.zeros((1, 4))).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """
    return Categorical(whole_number(num_classes, "num_classes", 2))
