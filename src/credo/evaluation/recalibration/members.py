"""How much the members of a mixture disagree at rows that none of them has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from credo.core.batch import bucket, pad_rows
from credo.core.mixture import draw_moments
from credo.core.precision import single
from credo.core.predict import member_outputs

ROWS, NEAR = 256, 512  # points that are looked at, and rows among which the nearest one is sought


def disagreement(fits: Sequence[Any], weights: Sequence[float] | np.ndarray) -> float:
    """2 Σ_c w_c² (1 − 1/M_c) v_c / s²: by how much less noise a mixture needs than its members one by one.

    Rows that were left out were predicted by one member of each part c, the mixture averages M_c of them. Its mean errs
    by w_c² (1 − 1/M_c) v_c less, v_c the variance between the means of members, and it spreads by as much more, so that
    noise of s² that suits single members is too large by twice this. Members agree at rows that they have seen: v_c is
    taken halfway between rows and the nearest of some others. The median over these points counts.

    Args:
        fits: the parts, results of `credo.fit`; those without folds have one member, and are passed over.
        weights: w of the parts.

    Returns:
        At least 0, a share of s².
    """
    shares = np.asarray(weights, np.float64) / np.sum(weights)
    several = [(share, fit) for share, fit in zip(shares, fits) if fit.loop.left_out is not None]
    if not several:
        return 0.0
    inputs = points_between(fits[0].loop.source)
    spread, noise = np.zeros(len(inputs)), np.zeros(len(inputs))
    for share, fit in several:
        means, variances = _by_member(fit, inputs)
        noise += share * variances.mean(0)
        spread += share**2 * (1 - 1 / len(means)) * means.var(0, ddof=1)
    noise /= sum(share for share, _ in several)
    usable = np.isfinite(noise) & (noise > 0) & np.isfinite(spread)
    return float(2 * np.median(spread[usable] / noise[usable])) if usable.any() else 0.0


def points_between(source: Any) -> np.ndarray:
    """Points halfway between rows and their nearest neighbour among up to `NEAR` others that differ from it."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(source.num_rows)[:NEAR])
    inputs = np.asarray(source.inputs[rows], np.float32)
    distance = np.square(inputs[:ROWS, None] - inputs[None]).sum(-1)
    distance[distance == 0] = np.inf
    between = 0.5 * (inputs[:ROWS] + inputs[distance.argmin(1)])
    kinds = (inputs == np.round(inputs)).all(0)  # codes and indicators have no half
    return np.where(kinds, inputs[:ROWS], between)


def _by_member(fit: Any, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the noise [member, n] of the first output, over the draws of each member."""
    padded = pad_rows(inputs, bucket(len(inputs)))
    with single():
        draws = member_outputs(jax.random.key(0), fit.posterior, fit.model, padded, None)
        means, noise = draw_moments(fit.model.likelihood, draws)
    means, noise = (np.asarray(x, np.float64)[:, :, : len(inputs)] for x in (means, noise))
    return means.reshape(*means.shape[:3], -1)[..., 0].mean(1), noise.reshape(*noise.shape[:3], -1)[..., 0].mean(1)
