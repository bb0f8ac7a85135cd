"""How a stochastic-gradient sampler tunes its step: curvature and gradient noise at one point, from minibatches.

Near a mode a sampler is a linear filter of its noise, so the error of every variance can be written down. Take a
direction whose curvature (in the preconditioned metric) is λ, and in which a minibatch gradient has the variance V =
ρλ. For a well-specified model ρ ≈ N/M = n. Batches are drawn without replacement, so the noise of an epoch of n steps
adds up to nothing, and a slow sampler hardly feels it: its power at the frequency ω is at most V min(1, n²ω²/12).

Relative errors of a variance, with x = ηλ (SGLD) and a = h√λ, γ the friction (SGHMC):

    SGLD    x/2 / (1 − x/2)    from the step,    xρ/2 · min(1, xn/3)          from the gradient noise;
    SGHMC   none (BAOAB),                        aρ√λ/2γ · min(1, n²a²/12)    from the gradient noise.

The step is the largest for which each stays below a tolerance at the largest curvature.

The metric is diagonal, P = D², and D makes the rows of the Hessian equally long, Σ_j (D_i H_ij D_j)² = 1: |curvature|
with its couplings, positive also where the posterior is not concave, and the same whatever units the parameters have.
(D = diag(H²)^{-¼}, one round of this, is not: a column of small numbers would be held back by its coupling to large
ones.) With random signs z the mean of (HDz)² is Σ_j H_ij² D_j², and D ← √(D / √·) is the damped iteration of Ruiz
(2001), A scaling algorithm to equilibrate both rows and columns norms in matrices.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.noise import normal
from credo.core.tree import leaf, size, struct
from credo.core.typing import PyTree

TINY = 1e-20
MOST_CONDITION = 100.0  # of the condition number that the friction is fitted to: beyond that curvature is not constant
LARGEST_STEP = 0.5  # h√λ of a Hamiltonian step; 2 is unstable where curvature is constant, and it never quite is
GIVEN, BY_CURVATURE, BY_NOISE = 0, 1, 2  # what the step was limited by
CURVATURE_MEMORY = 0.9  # of the running means of Rayleigh quotients


class StepChoice(NamedTuple):
    """A step size, a friction, and what limited the step."""

    step_size: jax.Array
    friction: jax.Array
    limit: jax.Array


class Landscape(NamedTuple):
    """The estimates of a pilot, in the preconditioned metric.

    largest, smallest, mean: curvatures; noise: ρ, gradient variance for each unit of curvature; epoch: n = N/M.
    """

    largest: jax.Array
    smallest: jax.Array
    mean: jax.Array
    noise: jax.Array
    epoch: jax.Array


@struct
class Pilot:
    """Running estimates at one point. The first third of the steps probes each parameter's own curvature; the others
    look along the directions of largest and of smallest curvature in turn."""

    count: jax.Array = leaf()
    scale: PyTree = leaf()  # P^½ of the rounds before this one, by which probes are scaled
    probes: jax.Array = leaf()  # of this round
    square: PyTree = leaf()  # mean, over this round, of the squares behind the preconditioner
    diagonal: PyTree = leaf()  # mean of z ⊙ HDz / D, whose expectation is the diagonal of H
    signs: PyTree = leaf()  # the last probe: a typical point is one standard deviation off in every parameter
    top: PyTree = leaf()
    bottom: PyTree = leaf()
    mean: PyTree = leaf()  # of the gradients
    largest: jax.Array = leaf()
    smallest: jax.Array = leaf()
    along: jax.Array = leaf()  # variance of gradients along `top`
    across: jax.Array = leaf()  # sum of the variances of all preconditioned gradients


def start_pilot(key: jax.Array, position: PyTree) -> Pilot:
    """A pilot before its first step, with random directions."""
    zeros = jax.tree.map(jnp.zeros_like, position)
    keys = jax.random.split(key)
    top, bottom = (_unit(normal_like(k, position)) for k in keys)
    zero, one = jnp.zeros(()), jnp.ones(())
    ones = jax.tree.map(jnp.ones_like, position)
    none = jnp.zeros((), jnp.int32)
    return Pilot(none, ones, none, zeros, zeros, ones, top, bottom, zeros, one, one, zero, zero)


def probing(pilot: Pilot, steps: Any) -> jax.Array:
    """Is this step in the first third?"""
    return pilot.count < jnp.maximum(steps // 3, 1)


def ends_round(pilot: Pilot, steps: Any) -> jax.Array:
    """Does a round of probes end with this step? Three short ones bring D near, and half of the probes fix it."""
    probes = jnp.maximum(steps // 3, 1)
    return jnp.any(pilot.count + 1 == jnp.stack([probes // 6, probes // 3, probes // 2]))


def direction(pilot: Pilot, probe: PyTree, root: PyTree, steps: Any) -> PyTree:
    """Where to look at this step: the scaled probe, then P^½ times the top or the bottom direction."""
    first, even = probing(pilot, steps), pilot.count % 2 == 0
    return jax.tree.map(
        lambda z, d, r, t, b: jnp.where(first, d * z, r * jnp.where(even, t, b)),
        probe, pilot.scale, root, pilot.top, pilot.bottom,
    )  # fmt: skip


def observe(
    pilot: Pilot, probe: PyTree, root: PyTree, gradient: PyTree, product: PyTree, square: PyTree, steps: Any
) -> Pilot:
    """The pilot with one minibatch more.

    Args:
        probe: random signs z.
        root: P^½.
        gradient: the sampler's own estimate of ∇U.
        product: the minibatch's Hessian times `direction`.
        square: the squares behind the preconditioner, from this minibatch.
        steps: steps of the pilot.
    """
    first, even = probing(pilot, steps), pilot.count % 2 == 0
    age = pilot.count - jnp.maximum(steps // 3, 1)  # steps since the preconditioner was fixed
    share = jnp.where(first, 1.0 / (pilot.probes + 1.0), 0.0)
    scaled = jax.tree.map(jnp.multiply, root, product)
    vector = jax.tree.map(lambda t, b: jnp.where(even, t, b), pilot.top, pilot.bottom)
    quotient = dot(vector, scaled)
    memory = jnp.where(age < 2, 0.0, CURVATURE_MEMORY)
    update = ~first
    largest = jnp.where(update & even, memory * pilot.largest + (1 - memory) * quotient, pilot.largest)
    smallest = jnp.where(update & ~even, memory * pilot.smallest + (1 - memory) * quotient, pilot.smallest)
    # Half of the old direction stays: minibatches differ, and their products alone would turn it at random.
    size_now = jnp.maximum(jnp.abs(largest), TINY)
    to_top = _unit(jax.tree.map(lambda u, w: u + w / size_now, vector, scaled))
    to_bottom = _unit(jax.tree.map(lambda u, w: 2 * u - w / size_now, vector, scaled))
    top, bottom = (
        jax.tree.map(lambda o, n, u=use: jnp.where(u, n, o), old, new)
        for old, new, use in ((pilot.top, to_top, update & even), (pilot.bottom, to_bottom, update & ~even))
    )
    rate = jnp.where(first, 0.0, 1.0 / jnp.maximum(age + 1, 1))
    mean = jax.tree.map(lambda m, g: m + rate * (g - m), pilot.mean, gradient)
    # Deviations from the mean before and after: their product has the variance as its mean (Welford).
    before, after = (jax.tree.map(lambda r, g, m: r * (g - m), root, gradient, m) for m in (pilot.mean, mean))
    late = jnp.maximum(pilot.count - 2 * steps // 3 + 1, 0)
    fresh = jnp.where(late > 0, 1.0 / jnp.maximum(late, 1), 0.0)
    along = pilot.along + fresh * (dot(top, before) * dot(top, after) - pilot.along)
    across = pilot.across + fresh * (dot(before, after) - pilot.across)
    return Pilot(
        pilot.count + 1,
        pilot.scale,
        pilot.probes + 1,
        jax.tree.map(lambda s, new: s + share * (new - s), pilot.square, square),
        jax.tree.map(lambda d, z, w, r: d + share * (z * w / r - d), pilot.diagonal, probe, product, pilot.scale),
        jax.tree.map(lambda s, z: jnp.where(first, z, s), pilot.signs, probe),
        top, bottom, mean, largest, smallest, along, across,
    )  # fmt: skip


def next_round(pilot: Pilot, root: PyTree, ends: jax.Array) -> Pilot:
    """The pilot, with its probes scaled by the result of a round that ends."""
    scale = jax.tree.map(lambda old, new: jnp.where(ends, new, old), pilot.scale, root)
    return dataclasses.replace(pilot, scale=scale, probes=jnp.where(ends, 0, pilot.probes))


def landscape(pilot: Pilot, root: PyTree, batch: Batch) -> Landscape:
    """The pilot's estimates. Along the top direction and on average the noise may differ: the larger one counts."""
    largest = jnp.maximum(pilot.largest, TINY)
    trace = jnp.maximum(dot(jax.tree.map(jnp.square, root), jax.tree.map(jnp.abs, pilot.diagonal)), TINY)
    noise = jnp.maximum(pilot.along / largest, pilot.across / trace)
    epoch = batch.num_data / jnp.maximum(batch.num_rows, 1)
    return Landscape(largest, pilot.smallest, trace / size(root), jnp.maximum(noise, TINY), epoch)


def langevin_choice(land: Landscape, tolerance: Any) -> StepChoice:
    """η of an overdamped step."""
    by_curvature = 2 * tolerance / (1 + tolerance)
    by_noise = jnp.maximum(2 * tolerance / land.noise, jnp.sqrt(6 * tolerance / (land.noise * land.epoch)))
    limit = jnp.where(by_noise < by_curvature, BY_NOISE, BY_CURVATURE)
    return StepChoice(jnp.minimum(by_curvature, by_noise) / land.largest, jnp.zeros(()), limit)


def hamiltonian_choice(land: Landscape, tolerance: Any, friction: Any = None, thermostat: bool = False) -> StepChoice:
    """h and γ of an underdamped step.

    γ = √(2λ_min) minimises the slowest direction's relaxation time max(2/γ, γ/λ_min) at the step that γ allows. A
    thermostat also sees the noise of the velocities, of variance h²Vn/6 within an epoch, and must not cool it away.
    """
    root = jnp.sqrt(land.largest)
    condition = jnp.clip(land.largest / jnp.maximum(land.smallest, TINY), 1.0, MOST_CONDITION)
    ratio = jnp.sqrt(2 / condition) if friction is None else friction / root
    cubic = jnp.cbrt(24 * ratio * tolerance / (land.noise * land.epoch**2))
    by_noise = jnp.maximum(2 * ratio * tolerance / land.noise, cubic)
    if thermostat:
        share = jnp.minimum(land.mean / land.largest, 1.0)
        by_noise = jnp.minimum(by_noise, jnp.sqrt(6 * tolerance / (land.noise * land.epoch * share)))
    limit = jnp.where(by_noise < LARGEST_STEP, BY_NOISE, BY_CURVATURE)
    return StepChoice(jnp.minimum(by_noise, LARGEST_STEP) / root, ratio * root, limit)


def dot(a: PyTree, b: PyTree) -> jax.Array:
    """⟨a, b⟩ over all leaves."""
    return sum((jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b))), jnp.zeros(()))


def normal_like(key: jax.Array, tree: PyTree) -> PyTree:
    """Standard normals in the shape of a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = [key] if len(leaves) == 1 else list(jax.random.split(key, max(len(leaves), 1)))
    return jax.tree.unflatten(treedef, [normal(k, x.shape, x.dtype) for k, x in zip(keys, leaves)])


def signs_like(key: jax.Array, tree: PyTree) -> PyTree:
    """Random signs in the shape of a tree."""
    leaves, treedef = jax.tree.flatten(tree)
    keys = jax.random.split(key, max(len(leaves), 1))
    return jax.tree.unflatten(treedef, [jax.random.rademacher(k, x.shape, x.dtype) for k, x in zip(keys, leaves)])


def _unit(tree: PyTree) -> PyTree:
    norm = jnp.sqrt(jnp.maximum(dot(tree, tree), TINY))
    return jax.tree.map(lambda x: x / norm, tree)
