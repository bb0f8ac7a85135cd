"""Batches: points one after another, each knowing of those before it."""

import numpy as np

from credo.applications.optimise.acquisition import AcquisitionSetting, acquisition_values
from credo.applications.optimise.belief import Belief, Fitted, moments
from credo.applications.optimise.maximise import Allowed, candidates, largest, thompson_normal
from credo.applications.optimise.space import Space
from credo.applications.optimise.targets import room

BEST = 5  # points so far around which candidates are drawn


def incumbent(belief: Belief, x: np.ndarray) -> tuple[float, np.ndarray]:
    """The largest posterior mean at evaluated rows, and the rows by their means, best first.

    With noise the largest *value* is luck in part; without noise the two are the same to the surrogate's error.
    """
    filled = np.concatenate([x, np.repeat(x[-1:], room(len(x)) - len(x), axis=0)])  # few shapes, few programs
    mean = moments(belief, filled, x[:0])[0][: len(x)]
    return float(mean.max()), x[np.argsort(-mean, kind="stable")]


def propose(
    rng: np.random.Generator,
    fitted: Fitted,
    space: Space,
    x: np.ndarray,
    pending: np.ndarray,
    count: int,
    acquisition: str,
    beta: float,
    allowed: Allowed,
) -> np.ndarray:
    """Codes of up to `count` points to evaluate next; fewer where the space has no more that are allowed.

    "ucb" and Gaussian beliefs are conditioned on the points before (Desautels et al., 2014); on draws, expected
    improvement is that of the whole batch, greedily; "thompson" takes another draw for each point.

    Args:
        rng: of NumPy.
        fitted: what is believed.
        space: what is searched.
        x: codes of evaluated points [n, columns].
        pending: codes of points whose values are not there yet.
        count: how many to propose.
        acquisition, beta: see `score`.
        allowed: which rows may be proposed.
    """
    belief = fitted.belief
    best, order = incumbent(belief, x)
    rows = candidates(space, order[:BEST], rng)
    points: list[np.ndarray] = []
    # Room for all of the batch at once: one program whatever the number of points so far.
    size = max(1, 1 << (len(pending) + count - 1).bit_length())
    draws = rng.permutation(_num_draws(fitted)) if acquisition == "thompson" and not belief.normal else None
    for i in range(count):
        earlier = np.concatenate([pending, np.reshape(points, (len(points), x.shape[1]))])
        mask = (np.arange(size) < len(earlier)).astype(float)
        full = np.concatenate([earlier, np.zeros((size - len(earlier), x.shape[1]))])
        which = 0 if draws is None else int(draws[i % len(draws)])
        setting = AcquisitionSetting(best, beta, full, mask, which)

        def free(candidate: np.ndarray) -> np.ndarray:
            distinct = allowed(candidate)
            for row in earlier:  # noqa: B023  used before `held` changes
                distinct = distinct & (np.abs(candidate - row).max(1) > 1e-9)
            return distinct

        if acquisition == "thompson" and belief.normal:
            row = thompson_normal(belief, space, rows, free, rng)
        else:
            row = largest(acquisition, belief, setting, space, rows, free)
        if row is None:
            break
        points.append(row)
    return np.reshape(points, (len(points), x.shape[1]))


def _num_draws(fitted: Fitted) -> int:
    members, each = fitted.belief.posterior.num_draws(fitted.belief.num)
    return members * each


def values_at(fitted: Fitted, x: np.ndarray, rows: np.ndarray, acquisition: str, beta: float) -> np.ndarray:
    """The acquisition at rows where nothing is pending, for pictures [n]; "thompson" shows its first draw."""
    best, _ = incumbent(fitted.belief, x)
    setting = AcquisitionSetting(best, beta, np.zeros((1, x.shape[1])), np.zeros(1), 0)
    name = "ucb" if acquisition == "thompson" and fitted.belief.normal else acquisition
    return acquisition_values(name, fitted.belief, rows, setting)
