"""Two classes: the logistic of one output."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.densities import bernoulli_entropy, bernoulli_log_probs
from credo.core.special import log_sigmoid
from credo.core.tree import struct
from credo.core.typing import PyTree
from credo.likelihoods.base import ClassLikelihood, class_targets


@struct
class Bernoulli(ClassLikelihood):
    """p(y = 1 | f) = 1/(1 + exp(−f)) with one output; see `bernoulli`."""

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Class indices 0 and 1 [n]."""
        return class_targets(targets, 2, "Bernoulli")

    def num_outputs(self, targets: Any) -> int:
        """One logit."""
        return 1

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """(log s(−f), log s(f)) [n, 2] with s the logistic function."""
        return bernoulli_log_probs(outputs)

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log s(±f)."""
        logit = outputs[..., 0]
        return log_sigmoid(jnp.where(targets == 1, logit, -logit))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s(f) s(−f), the same for both classes [n, 2]."""
        return jnp.concatenate(2 * [_variance(outputs)], -1)

    def entropy(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """H[p] = log(1 + e^−|f|) + |f| s(−|f|) in nats [n]: a sum of terms that are ≥ 0."""
        return bernoulli_entropy(outputs)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One class for every row [n]."""
        return jax.random.bernoulli(key, jax.nn.sigmoid(outputs[..., 0])).astype(jnp.int32)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s(f) s(−f) [n, 1, 1]."""
        return _variance(outputs)[..., None]


def bernoulli() -> Bernoulli:
    """Classification into two classes: y ~ Bernoulli(s(f)) with s(f) = 1/(1 + exp(−f)); targets are 0 and 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import bernoulli
        >>> bernoulli().mean({}, jnp.zeros((1, 1))).tolist()
        [[0.5, 0.5]]
    """
    return Bernoulli()


def _variance(outputs: jax.Array) -> jax.Array:
    return jax.nn.sigmoid(outputs) * jax.nn.sigmoid(-outputs)  # 1 − s(f) has no digits left for large f
