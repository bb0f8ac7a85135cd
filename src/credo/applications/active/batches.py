"""Batches of rows: the best ones apart, or chosen for what they tell together."""

from typing import Any

import jax
import numpy as np

from credo.applications.active.acquisition import acquisition_scores, class_draws, mean_draws
from credo.applications.active.outcomes import extend, in_pieces, joint_entropies, no_outcomes
from credo.core.checks import whole_number
from credo.core.numeric import host_arrays
from credo.core.predict import predict
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.training.progress import tracked


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
    drawn ones beyond, each of which gets one more label with every row; for real targets it is ½ log det(I + Σ/σ²),
    with Σ the covariance of the means and σ² the noise: exact for normal posteriors of functions. "power_bald" is a
    cheap stand-in: rows drawn with chances proportional to (mutual information)^power (Kirsch et al., 2023). A bar on
    a terminal shows how many rows are chosen.

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
    size = whole_number(size, "size")
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
    residual = (roots**2).sum(0)
    selected: list[int] = []
    directions = np.zeros((size, len(residual)))
    for b in tracked(range(size), "rows chosen", size, lambda _: 1):
        gain = np.log1p(np.maximum(residual, 0) / noise)
        gain[selected] = -np.inf
        best = int(gain.argmax())
        shared = roots.T @ roots[:, best] - directions[:b].T @ directions[:b, best]
        directions[b] = shared / np.sqrt(max(residual[best], 0.0) + noise[best])
        residual = residual - directions[b] ** 2
        selected.append(best)
    return np.array(selected)


def _classes_together(key: jax.Array, probs: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Greedy I[y_1 … y_b; θ] = H[y_1 … y_b] − Σ_i E_θ H[y_i | θ]."""
    draws, rows, _ = probs.shape
    tiny = np.finfo(np.float32).tiny
    each = np.zeros(rows)
    for k in range(draws):  # one draw at a time: the logarithms of all would be another copy of the table
        each -= weights[k] * (probs[k] * np.log(np.maximum(probs[k], tiny))).sum(-1)
    pieces, outcomes = in_pieces(probs), no_outcomes(draws)
    selected: list[int] = []
    for _ in tracked(range(size), "rows chosen", size, lambda _: 1):
        score = joint_entropies(pieces, outcomes, weights, rows) - each
        score[selected] = -np.inf
        selected.append(int(score.argmax()))
        if len(selected) < size:
            outcomes = extend(key, outcomes, [probs[:, row] for row in selected], weights)
    return np.array(selected)
