"""What fits say of rows that they did not see: members of a cross-fit, and Gaussian processes without a row."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp, ndtri

from credo.core.batch import bucket, pad_rows
from credo.core.precision import single
from credo.core.predict import flat_outputs
from credo.errors import InputError
from credo.evaluation.recalibration.unseen import Unseen
from credo.methods.function_space.infinite.left_out import leave_one_out
from credo.training.left_out import folds_of

MOST = 20_000  # rows that are looked at
DRAWS = 100  # of a Gaussian process at each row


def unseen_by_fold(fit: Any) -> list[Unseen]:
    """Draws of a fit with `folds` at the rows of each fold, from the members that left it out.

    Args:
        fit: the result of `credo.fit(…, folds=K)`, not of a file: its rows are those of its loop.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> method = credo.methods.DeepEnsemble(size=4)
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), method, steps=100, folds=2)
        >>> [part.outputs.shape for part in unseen_by_fold(fit)]
        [(2, 20, 1), (2, 20, 1)]
    """
    loop = fit.loop
    if loop is None or loop.left_out is None:
        raise InputError("Only a fit with folds, as credo.fit gave it, has rows that some members did not see.")
    source, parts = loop.source, []
    folds = folds_of(loop.left_out)
    folds = [(members, rows[:: math.ceil(len(rows) * len(folds) / MOST)]) for members, rows in folds]
    width = bucket(max(len(rows) for _, rows in folds))  # of all folds, so that they share one program
    posterior = jax.tree.map(np.asarray, fit.posterior)
    for members, rows in folds:
        inputs = jax.tree.map(lambda x, r=rows: np.asarray(x[r]), source.inputs)
        params, outputs, log_weights = _at(fit, jax.tree.map(lambda x, m=members: x[m], posterior), inputs, width)
        shared = np.broadcast_to(log_weights[:, None], outputs.shape[:2])
        points = len(outputs) == len(members)  # one draw is one member
        targets, weight = source.targets[rows], source.weight[rows]
        mixture_members = len(loop.left_out) if points else 0
        parts.append(Unseen(fit.model.likelihood, params, outputs, shared, targets, weight, mixture_members))
    return parts


def unseen_alone(fit: Any, folds: Sequence[np.ndarray]) -> list[Unseen]:
    """Draws of a Gaussian process at the rows of each fold, each row given all others: `leave_one_out`.

    Args:
        fit: the result of `credo.fit` with `infinite_width`, not of a file: its rows are those of its loop.
        folds: places of rows, as `credo.fit(folds=…)` has them.
    """
    source, posterior = fit.loop.source, fit.posterior
    mean, covariance = leave_one_out(posterior, source.num_rows)
    # The same normals in every row: quantiles, in an order of its own for each output.
    rng, outputs = np.random.default_rng(0), mean.shape[1]
    normals = np.stack([rng.permutation(ndtri((np.arange(DRAWS) + 0.5) / DRAWS)) for _ in range(outputs)], 1)
    size, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(size, 0.0))[:, None]
    values = (mean + np.einsum("nsr,kr->kns", root, normals)).astype(np.float32)
    params = jax.tree.map(
        lambda x: np.broadcast_to(np.asarray(x, np.float32), (DRAWS, *x.shape[1:])), posterior.likelihood
    )
    parts = []
    for rows in folds:
        log_weights = np.full((DRAWS, len(rows)), -math.log(DRAWS))
        targets, weight = source.targets[rows], source.weight[rows]
        parts.append(Unseen(fit.model.likelihood, params, values[:, rows], log_weights, targets, weight))
    return parts


def _at(fit: Any, posterior: Any, inputs: Any, width: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Likelihood's parameters, outputs [draw, n, out] and log weights [draw] of these members."""
    rows = len(jax.tree.leaves(inputs)[0])
    padded = jax.tree.map(lambda x: pad_rows(x, width), inputs)
    with single():
        draws = jax.tree.map(np.asarray, flat_outputs(jax.random.key(0), posterior, fit.model, padded, None))
    return draws.params, draws.outputs[:, :rows], draws.log_weights - logsumexp(draws.log_weights)


def log_densities(parts: list[Unseen]) -> np.ndarray:
    """log p(y) of every row of every part, under the mixture of the draws that had not seen it."""
    densities = []
    width = bucket(max(len(part.targets) for part in parts))  # one program for all parts
    for part in parts:
        rows = len(part.targets)
        outputs = pad_rows(part.outputs.swapaxes(0, 1), width).swapaxes(0, 1)
        each = np.asarray(_log_probs(part.likelihood, part.params, outputs, pad_rows(part.targets, width)), np.float64)
        densities.append(logsumexp(each[:, :rows] + part.log_weights, axis=0))
    return np.concatenate(densities)


@jax.jit
def _log_probs(likelihood: Any, params: Any, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    return jax.vmap(likelihood.log_prob, (0, 0, None))(params, outputs, targets)
