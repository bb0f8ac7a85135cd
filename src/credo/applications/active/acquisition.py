"""What a label would tell: scores of unlabelled rows, one by one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.checks import one_of
from credo.core.mixture import values_of
from credo.core.numeric import host_arrays
from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.core.typing import PyTree
from credo.errors import Refusal

ONE_BY_ONE = ("bald", "variance", "entropy", "epig", "random")
TOGETHER = ("batch_bald", "power_bald")  # they choose batches; see `batches`
ACQUISITIONS = (*ONE_BY_ONE, *TOGETHER)
CHUNK = 64  # rows whose joint tables with all target rows are held at once
TARGET_ROWS = 100  # drawn from the pool for "epig" where no target rows are given


def acquisition_scores(
    key: jax.Array,
    fit: Any,
    pool: PyTree,
    acquisition: str = "bald",
    *,
    num_samples: int | None = None,
    targets: PyTree = None,
) -> np.ndarray:
    """How much the label of each row of the pool is worth [n]; more is better.

    - "bald": I[y; θ | x] = H[y] − E_θ H[y|θ], what the label tells about the weights (Houlsby et al., 2011). Noise does
      not count.
    - "variance": the epistemic variance of the mean: Var_θ[f], or Σ_c Var_θ[p(c)] for classes (Gal et al., 2017).
    - "entropy": H[y], noise included.
    - "epig": E_x*[I[y; y* | x, x*]], what the label tells about labels at the target rows x*, rather than about weights
      that may not matter there (Bickford Smith et al., 2023). For real targets the two labels are taken to be jointly
      normal with the predictive's variances and covariance: −½ log(1 − ρ²).
    - "random": the same chance for all.

    Args:
        key: a JAX key for drawing from the posterior.
        fit: the result of `credo.fit`.
        pool: inputs of the rows that have no label.
        acquisition: one of the above; "batch_bald" and "power_bald" score one row at a time as "bald" does.
        num_samples: draws of θ.
        targets: for "epig", inputs like those that predictions are wanted for; some rows of the pool where not given.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None].astype("float32")
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "laplace", steps=300)
        >>> scores = credo.applications.active.acquisition_scores(jax.random.key(1), fit, np.array([[0.0], [3.0]]))
        >>> bool(scores[1] > scores[0])  # far from the data the line is less certain
        True
    """
    one_of(acquisition, ACQUISITIONS, "acquisition")
    key_draws, key_random = jax.random.split(key)
    pool = host_arrays(pool, "The pool's inputs")
    targets = None if targets is None else host_arrays(targets, "The target rows")
    rows = len(jax.tree.leaves(pool)[0])
    if acquisition == "random":
        return np.asarray(jax.random.uniform(key_random, (rows,)))
    if acquisition == "epig":
        return _epig(key_draws, key_random, fit, pool, targets, num_samples)
    predictive = predict(key_draws, fit, pool, num_samples=num_samples)
    if acquisition == "variance":
        return _variance(predictive)
    return predictive.entropy() if acquisition == "entropy" else predictive.mutual_information()


def _variance(predictive: Predictive) -> np.ndarray:
    if predictive.kind == "classes":
        return (predictive.probs_std**2).sum(-1)
    return predictive.epistemic.reshape(len(predictive), -1).sum(-1)


def class_draws(predictive: Predictive) -> tuple[np.ndarray, np.ndarray]:
    """p(c | x, θ_k) [K, n, C] and the weights of the draws [K]."""
    parts, weights = [], np.zeros(0)
    for rows, draws in predictive.chunks():
        parts.append(np.asarray(values_of(predictive.likelihood, draws))[:, : rows.stop - rows.start])
        weights = np.asarray(jax.nn.softmax(draws.log_weights))
    return np.concatenate(parts, 1), weights


def mean_draws(predictive: Predictive) -> tuple[np.ndarray, np.ndarray]:
    """E[y | x, θ_k] [K, n] and the weights of the draws [K]."""
    means, weights = class_draws(predictive)
    if means.shape[-1] != 1:
        raise Refusal("What two labels tell about each other is a number for one output: ask for one target.")
    shift, scale = predictive.affine
    weights = weights.astype(np.float64)
    return shift[:, 0] + scale[:, 0] * means[..., 0].astype(np.float64), weights / weights.sum()


def _epig(
    key: jax.Array, key_rows: jax.Array, fit: Any, pool: PyTree, targets: PyTree, num_samples: int | None
) -> np.ndarray:
    """Both predictives take one key, so that draw k of both is the same θ."""
    if targets is None:
        total = len(jax.tree.leaves(pool)[0])
        index = np.asarray(jax.random.permutation(key_rows, total)[:TARGET_ROWS])
        targets = jax.tree.map(lambda x: x[index], pool)
    total, count = (len(jax.tree.leaves(tree)[0]) for tree in (pool, targets))
    both = jax.tree.map(lambda a, b: np.concatenate([np.asarray(a), np.asarray(b)]), pool, targets)
    predictive = predict(key, fit, both, num_samples=num_samples)
    if predictive.kind == "classes":
        probs, weights = class_draws(predictive)
        parts = np.array_split(np.arange(total), max(1, total // CHUNK))
        width = max(len(part) for part in parts)
        table = jnp.asarray(probs[:, total:])
        return np.concatenate(
            [np.asarray(_joint_information(_pad(probs[:, p], width), table, weights))[: len(p)] for p in parts]
        )
    means, weights = mean_draws(predictive)
    variance = np.asarray(predictive.variance, np.float64).reshape(total + count)
    centred = means - weights @ means
    covariance = np.einsum("k,ki,kj->ij", weights, centred[:, :total], centred[:, total:], optimize=True)
    share = covariance**2 / (variance[:total, None] * variance[None, total:])
    return -0.5 * np.log1p(-np.minimum(share, 1 - 1e-12)).mean(1)


def _pad(probs: np.ndarray, width: int) -> np.ndarray:
    missing = width - probs.shape[1]
    return probs if not missing else np.concatenate([probs, np.repeat(probs[:, -1:], missing, axis=1)], 1)


@jax.jit
def _joint_information(probs: jax.Array, targets: jax.Array, weights: jax.Array) -> jax.Array:
    """(1/m) Σ_j KL[p(y, y*_j) ‖ p(y) p(y*_j)] for every row [n]."""
    joint = jnp.einsum("k,kic,kjd->ijcd", weights, probs, targets)
    one, other = (jnp.tensordot(weights, p, 1) for p in (probs, targets))
    apart = one[:, None, :, None] * other[None, :, None, :]
    tiny = jnp.finfo(joint.dtype).tiny
    log_ratio = jnp.log(jnp.maximum(joint, tiny)) - jnp.log(jnp.maximum(apart, tiny))
    return jnp.maximum((joint * log_ratio).sum((2, 3)), 0.0).mean(1)
