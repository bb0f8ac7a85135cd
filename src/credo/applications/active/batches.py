"""Batches of rows: the best ones apart, or chosen for what they tell together."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.active.acquisition import acquisition_scores, class_draws, mean_draws
from credo.core.numeric import host_arrays
from credo.core.predict import predict
from credo.errors import InputError

PyTree = Any
TABLE = 4096  # outcomes of the rows chosen so far: all of them up to here, as many drawn ones beyond
ROWS_AT_ONCE = 2**26  # numbers of one table


def choose(
    key: jax.Array,
    fit: Any,
    pool: PyTree,
    size: int,
    acquisition: str = "bald",
    *,
    num_samples: int | None = None,
    targets: PyTree = None,
    power: float = 1.0,
) -> np.ndarray:
    """Row numbers of the pool to label next, best first.

    Scores of single rows (`acquisition_scores`) give the rows with the highest ones, which may all tell the same.
    "batch_bald" chooses row after row by the mutual information of *all labels of the batch* with θ: I[y_1 … y_b; θ]
    (Kirsch et al., 2019). For classes the joint entropy is a sum over all outcomes up to 4,096 of them and over as many
    drawn ones beyond; for real targets it is ½ log det(I + Σ/σ²), with Σ the covariance of the means and σ² the noise:
    exact for normal posteriors of functions. "power_bald" is a cheap stand-in: rows drawn with chances proportional to
    (mutual information)^power (Kirsch et al., 2023).

    Args:
        key: a JAX key.
        fit: the result of `credo.fit`.
        pool: inputs of the rows that have no label.
        size: of the batch.
        acquisition: see `acquisition_scores`; or "batch_bald", "power_bald".
        num_samples, targets: as there.
        power: of "power_bald".

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None].astype("float32")
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "laplace", steps=300)
        >>> pool = np.array([[0.0], [3.0], [3.0], [-3.0]])
        >>> sorted(credo.applications.active.choose(jax.random.key(1), fit, pool, 2, "batch_bald").tolist())[-1]
        3
    """
    pool = host_arrays(pool, "The pool's inputs")
    rows = len(jax.tree.leaves(pool)[0])
    if not 1 <= size <= rows:
        raise InputError(f"A batch has at least one row and at most those of the pool, {rows}; got {size}.")
    key_choice = jax.random.fold_in(key, 1)
    if acquisition == "batch_bald":
        return _batch_bald(jax.random.split(key)[0], key_choice, fit, pool, size, num_samples)
    # With the same key, so that whoever asks for the scores, too, sees those that decided.
    scores = acquisition_scores(key, fit, pool, acquisition, num_samples=num_samples, targets=targets)
    if acquisition == "power_bald":
        # The largest of log s + Gumbel noise are draws without replacement with chances proportional to s.
        scores = power * np.log(np.maximum(scores, 1e-30)) + np.asarray(jax.random.gumbel(key_choice, (rows,)))
    return np.argsort(-scores, kind="stable")[:size]


def _batch_bald(
    key: jax.Array, key_outcomes: jax.Array, fit: Any, pool: PyTree, size: int, num_samples: int | None
) -> np.ndarray:
    predictive = predict(key, fit, pool, num_samples=num_samples)
    if predictive.kind == "classes":
        return _classes_together(key_outcomes, *class_draws(predictive), size)
    means, weights = mean_draws(predictive)
    return _normals_together(means, weights, predictive.aleatoric.reshape(-1), size)


def _normals_together(means: np.ndarray, weights: np.ndarray, noise: np.ndarray, size: int) -> np.ndarray:
    """Greedy ½ log det(I + Σ/σ²): always the row whose variance given the labels so far is largest beside its noise."""
    roots = (means - weights @ means) * np.sqrt(weights)[:, None]  # Σ = roots' roots
    left = (roots**2).sum(0)
    taken: list[int] = []
    directions: list[np.ndarray] = []
    for _ in range(size):
        gain = np.log1p(np.maximum(left, 0) / noise)
        gain[taken] = -np.inf
        best = int(gain.argmax())
        shared = roots.T @ roots[:, best] - sum((d * d[best] for d in directions), np.zeros(len(left)))
        direction = shared / np.sqrt(max(left[best], 0.0) + noise[best])
        directions.append(direction)
        left = left - direction**2
        taken.append(best)
    return np.array(taken)


def _classes_together(key: jax.Array, probs: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Greedy I[y_1 … y_b; θ] = H[y_1 … y_b] − Σ_i E_θ H[y_i | θ]."""
    draws, rows, classes = probs.shape
    tiny = np.finfo(np.float32).tiny
    each = np.zeros(rows)
    for k in range(draws):  # one draw at a time: the logarithms of all would be another copy of the table
        each -= weights[k] * (probs[k] * np.log(np.maximum(probs[k], tiny))).sum(-1)
    outcomes = np.ones((draws, 1), np.float32)  # p(y_1 … y_b | θ_k) of every outcome in the table
    chance = np.ones(1, np.float32)  # by which each was taken into it
    taken: list[int] = []
    for step in range(size):
        joint = _joint_entropies(probs, outcomes, chance, weights)
        score = joint - each
        score[taken] = -np.inf
        best = int(score.argmax())
        taken.append(best)
        if outcomes.shape[1] * classes <= TABLE:
            outcomes = (outcomes[:, :, None] * probs[:, best, None, :]).reshape(draws, -1)
            chance = np.ones(outcomes.shape[1], np.float32)
        else:
            outcomes = _drawn_outcomes(jax.random.fold_in(key, step), probs[:, taken], weights)
            chance = TABLE * (weights @ outcomes)
    return np.array(taken)


def _joint_entropies(probs: np.ndarray, outcomes: np.ndarray, chance: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """H of the outcomes so far together with the label of each row: −Σ_s (1/chance_s) Σ_c p(s, c) log p(s, c)."""
    rows, classes = probs.shape[1:]
    width = int(np.clip(ROWS_AT_ONCE // (outcomes.shape[1] * classes), 1, rows))
    weighted = jnp.asarray(outcomes * weights[:, None])
    found = []
    for start in range(0, rows, width):
        piece = probs[:, start : start + width]
        if piece.shape[1] < width:
            piece = np.concatenate([piece, np.repeat(piece[:, -1:], width - piece.shape[1], axis=1)], 1)
        found.append(np.asarray(_entropies(weighted, piece, chance))[: rows - start])
    return np.concatenate(found)


@jax.jit
def _entropies(weighted: jax.Array, probs: jax.Array, chance: jax.Array) -> jax.Array:
    joint = jnp.einsum("ks,knc->snc", weighted, probs)
    terms = joint * jnp.log(jnp.maximum(joint, jnp.finfo(joint.dtype).tiny))
    return -(terms / chance[:, None, None]).sum((0, 2))


@jax.jit
def _drawn_outcomes(key: jax.Array, probs: jax.Array, weights: jax.Array) -> jax.Array:
    """p(y_1 … y_b | θ_k) [K, S] of outcomes that are drawn from the predictive: a θ, then labels given it."""
    key_draw, key_labels = jax.random.split(key)
    which = jax.random.categorical(key_draw, jnp.log(weights), shape=(TABLE,))
    log_probs = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    labels = jax.random.categorical(key_labels, log_probs[which], axis=-1)  # [S, b]
    picked = jnp.take_along_axis(log_probs[:, None], labels[None, :, :, None], axis=-1)[..., 0]
    return jnp.exp(picked.sum(-1))
