"""The largest acquisition: many candidates, the best of them climb, and what they reach is a point of the space."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.optimise.acquisition import AcquisitionSetting, acquisition_values, score, typed
from credo.applications.optimise.belief import Belief, MixedBelief, NormalBelief, posterior_covariance, precision
from credo.applications.optimise.space import Space

CANDIDATES = 1024
NEAR = 256  # candidates close to the best points so far
CLIMBERS = 8
STEPS = 100
STEP, LAST = 0.05, 0.0001  # sides of the cube that a step moves, at first and at last
DRAWN = 400  # candidates at which a Gaussian process is drawn from at once
ENUMERATED = 4096  # points of a space that are all looked at
Allowed = Callable[[np.ndarray], np.ndarray]  # which rows may be proposed


def candidates(space: Space, best: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows to look at: all points of a small space; else points that fill it evenly, and some near the best ones.

    Args:
        space: what is searched.
        best: codes of the best points so far [b, columns].
        rng: of NumPy.
    """
    if space.count is not None and space.count <= ENUMERATED:
        return space.every()
    rows = space.sample(CANDIDATES, int(rng.integers(2**31)))
    if not len(best):
        return rows
    return np.concatenate([rows, perturb(space, best, NEAR, rng, (0.2, 0.05, 0.01, 0.002))])


def perturb(
    space: Space, rows: np.ndarray, num: int, rng: np.random.Generator, scales: tuple[float, ...]
) -> np.ndarray:
    """`num` points near rows: numbers moved by normal steps of these sizes, choices now and then by others."""
    start = rows[np.arange(num) % len(rows)]
    size = np.asarray(scales)[rng.integers(len(scales), size=(num, 1))]
    # In many columns some stay: a good point often differs from a better one in few settings.
    moves = rng.random(start.shape) < max(0.5, min(1.0, 4 / start.shape[1]))
    moved = np.where(space.moving & moves, np.clip(start + size * rng.normal(size=start.shape), 0, 1), start)
    if not space.moving.all():
        other = space.sample(num, int(rng.integers(2**31)))
        moved = np.where(~space.moving & (rng.random((num, 1)) < 0.3), other, moved)
    return space.snap(moved)


@partial(jax.jit, static_argnames=("name", "batched", "steps"))
def climb(
    name: str,
    batched: bool,
    belief: Belief,
    setting: AcquisitionSetting,
    starts: jax.Array,
    free: jax.Array,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """Projected gradient ascent of all starts at once: the best rows on their ways and what they are worth.

    Steps are Adam's (Kingma and Ba, 2015), whose size does not depend on that of the gradient, and fade from STEP to
    LAST after the first third; every row is brought back into the cube.
    """

    def worth(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = score(name, batched, belief, setting, x)
        return values.sum(), values  # rows do not see each other: one gradient is that of all

    def step(i: jax.Array, carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        x, first, second, best, most = carry
        (_, values), slope = jax.value_and_grad(worth, has_aux=True)(x)
        outward = ((x <= 0) & (slope < 0)) | ((x >= 1) & (slope > 0))
        slope = jnp.where(jnp.isfinite(slope) & ~outward, slope, 0.0) * free
        better = values > most
        best, most = jnp.where(better[:, None], x, best), jnp.where(better, values, most)
        first, second = 0.8 * first + 0.2 * slope, 0.9 * second + 0.1 * slope**2
        count = i + 1.0
        # One size for all columns of a row: the direction stays that of the gradient's average.
        size = jnp.sqrt(second.max(1, keepdims=True) / (1 - 0.9**count)) + 1e-30
        # The first third goes far, the rest ever closer.
        rate = STEP * (LAST / STEP) ** jnp.maximum(1.5 * i / steps - 0.5, 0.0)
        x = jnp.clip(x + rate * first / (1 - 0.8**count) / size, 0.0, 1.0)
        return x, first, second, best, most

    zero = jnp.zeros_like(starts)
    carry = (starts, zero, zero, starts, jnp.full(len(starts), -jnp.inf, starts.dtype))
    x, _, _, best, most = jax.lax.fori_loop(0, steps, step, carry)
    values = score(name, batched, belief, setting, x)
    return jnp.where((values > most)[:, None], x, best), jnp.maximum(values, most)


def climb_rows(
    name: str, belief: Belief, setting: AcquisitionSetting, starts: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """Where `climb` ends, as NumPy rows."""
    with precision(belief):
        kind = jnp.float64 if belief.double else jnp.float32
        batched = not belief.normal and bool(np.any(setting.mask))
        rows, _ = climb(
            name, batched, belief, typed(setting, kind), jnp.asarray(starts, kind), jnp.asarray(free, kind), STEPS
        )
        return np.asarray(rows, np.float64)


def largest(
    name: str, belief: Belief, setting: AcquisitionSetting, space: Space, rows: np.ndarray, allowed: Allowed
) -> np.ndarray | None:
    """The allowed row with the largest acquisition [columns], after a climb from the best candidates; None if none is.

    Whole numbers and choices are rounded after the climb, and what that gives is judged anew.
    """
    # All shapes are those of the first call, so that no program is compiled again.
    values = np.where(allowed(rows), acquisition_values(name, belief, rows, setting), -np.inf)
    order = np.argsort(-values, kind="stable")
    if space.moving.any() and not (space.count is not None and space.count <= ENUMERATED):
        top = rows[_spread(rows, order, CLIMBERS)]
        ends = space.snap(climb_rows(name, belief, setting, top, space.moving))
        worth = acquisition_values(name, belief, _pad(ends, len(rows)), setting)[: len(ends)]
        worth = np.where(allowed(ends), worth, -np.inf)
        if worth.max() >= values[order[0]] and np.isfinite(worth.max()):
            return ends[int(worth.argmax())]
    return rows[order[0]] if np.isfinite(values[order[0]]) else None


def _pad(rows: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])


def _spread(rows: np.ndarray, order: np.ndarray, num: int) -> np.ndarray:
    """Indices of good rows that are not all close to the best one: half the best, half the best far from these."""
    selected = [int(i) for i in order[: num // 2]]
    for index in order[num // 2 :]:
        if len(selected) == num:
            break
        if np.abs(rows[selected] - rows[index]).max(1).min() > 0.1:
            selected.append(int(index))
    rest = [int(i) for i in order if int(i) not in selected][: num - len(selected)]
    return np.array((selected + rest + selected * num)[:num])


def thompson_normal(
    belief: NormalBelief | MixedBelief, space: Space, rows: np.ndarray, allowed: Allowed, rng: np.random.Generator
) -> np.ndarray | None:
    """The allowed row where one draw of a Gaussian process is largest.

    The draw is exact at the candidates, then at points around its maximum given what it was before, and again closer.
    Of several processes it is a draw of one of them.
    """
    belief = belief.part(int(rng.integers(2**31)))
    points = rows[rng.permutation(len(rows))[:DRAWN]]
    values = _conditional_draw(belief, points[:0], np.zeros(0), points, rng)
    for scale in () if space.count is not None and space.count <= ENUMERATED else (0.05, 0.01):
        near = perturb(space, points[[int(values.argmax())]], DRAWN // 4, rng, (scale, scale / 3))
        values = np.concatenate([values, _conditional_draw(belief, points, values, near, rng)])
        points = np.concatenate([points, near])
    values = np.where(allowed(points), values, -np.inf)
    return points[int(values.argmax())] if np.isfinite(values.max()) else None


def _conditional_draw(
    belief: NormalBelief, fixed: np.ndarray, values: np.ndarray, rows: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """f at rows [n] given its values at fixed ones."""
    mean, covariance = posterior_covariance(belief, np.concatenate([fixed, rows]))
    jitter = 1e-8 * max(float(np.diagonal(covariance).mean()), 1e-12)
    count = len(fixed)
    conditional = covariance[count:, count:]
    centre = mean[count:]
    if count:
        solved = np.linalg.solve(covariance[:count, :count] + jitter * np.eye(count), covariance[:count, count:])
        centre = centre + solved.T @ (values - mean[:count])
        conditional = conditional - covariance[count:, :count] @ solved
    weights, vectors = np.linalg.eigh(0.5 * (conditional + conditional.T))
    return centre + vectors @ (np.sqrt(np.maximum(weights, 0.0)) * rng.normal(size=len(rows)))
