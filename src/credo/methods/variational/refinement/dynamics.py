"""T differentiable steps of a sampler from θ_0 ~ q_0, and what they add to the bound.

Let π be an unnormalised density with Z = ∫ π. Whatever the steps are, as long as their path has a density,

    log Z ≥ E[log π(θ_T) − log q_0(θ_0) + Δ],

where Δ is log r/f, the density of going back over the density of going forth (Salimans, Kingma and Welling, 2015), or
log |det ∂θ_T/∂θ_0| for a map. Both sides of every bound here are estimated at the draws themselves, never at a mean.

- "langevin", "hamiltonian" and "leapfrog": before each leapfrog step the momentum r is renewed, r ← γ r + √(1 − γ²) ε.
  The leapfrog step keeps volume and the renewal keeps N(0, I), hence Δ = Σ_t log N(r_t⁺) − log N(r_t⁻), the momentum
  after and before the t-th leapfrog step. The bound is one of whole paths: its gap is the divergence of the path
  from its reversal. γ = 0 is unadjusted Langevin with its own reversal, γ = 1 Hamiltonian variational inference, γ in
  between is learned (Geffner and Domke, 2021; Zhang et al., 2021).
- "gradient": θ ← θ + ½ s² ∇ log π(θ), a map without noise; Δ = Σ_t log |det(I + ½ S² ∇² log π)|. It is the evidence
  bound of the law of θ_T itself, as long as no step folds (I + ½ S² ∇² log π positive definite wherever q_t lives);
  `Refined.folds` counts the steps of a path where it was not. Without Δ, the entropy of q_0 alone would be that of q_T
  only if steps kept volume; where they contract, as uphill steps do, it claims too much.

With bridges the t-th step follows q_0^{1−β_t} π^{β_t} with learned 0 < β_1 < … < β_T = 1: Δ is as before, and the
change from q_0 to π is gradual.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.core.noise import normals
from credo.core.typing import PyTree

SAMPLERS = ("langevin", "hamiltonian", "leapfrog", "gradient")
LogDensity = Callable[[PyTree], jax.Array]


class Refined(NamedTuple):
    """The end of a path, Δ, and how many of its steps folded ("gradient" alone)."""

    position: PyTree
    log_ratio: jax.Array
    folds: jax.Array


def first_learned(sampler: str, steps: int, position: PyTree, step: Any) -> dict[str, Any]:
    """The sampler's parameters before learning: the log of each coordinate's step, damping and bridges."""
    learned: dict[str, Any] = {"log_step": jax.tree.map(lambda x: jnp.full_like(x, jnp.log(step)), position)}
    if sampler == "hamiltonian":
        # γ is its logistic function: most of the momentum stays at first.
        learned["damping"] = jnp.asarray(2.0, jnp.float32)
    if steps > 1:
        learned["bridges"] = jnp.zeros(steps)
    return learned


def momenta(key: jax.Array, sampler: str, steps: int, position: PyTree) -> PyTree:
    """The noise of one path: [T, …] for samplers that renew the momentum, [1, …] for one that does not."""
    count = {"gradient": 0, "leapfrog": 1}.get(sampler, steps)
    return normals(key, position, count)


def bridges(learned: dict[str, Any], steps: int, bridged: bool) -> jax.Array:
    """β_1 … β_T."""
    if not bridged or steps == 1:
        return jnp.ones(steps)
    shares = jnp.cumsum(jax.nn.softmax(learned["bridges"]))
    return shares.at[-1].set(1.0)


def refine(
    sampler: str,
    learned: dict[str, Any],
    noise: PyTree,
    position: PyTree,
    log_start: LogDensity,
    log_target: LogDensity,
    steps: int,
    bridged: bool = True,
) -> Refined:
    """T steps from `position`, a draw of q_0.

    Args:
        sampler: one of SAMPLERS.
        learned: its parameters, like `first_learned`.
        noise: of this path, from `momenta`.
        position: θ_0: an array or a tree of them; one vector for "gradient".
        log_start: log q_0, normalised or not.
        log_target: log π.
        steps: T.
        bridged: whether steps follow bridges, or π from the first.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from credo.methods.variational.refinement import first_learned, momenta, refine
        >>> normal = lambda x: -0.5 * (x**2).sum()
        >>> start, learned = jnp.ones(2), first_learned("langevin", 3, jnp.ones(2), 0.1)
        >>> noise = momenta(jax.random.key(0), "langevin", 3, start)
        >>> refine("langevin", learned, noise, start, normal, normal, 3).position.shape
        (2,)
    """
    if steps == 0:
        return Refined(position, jnp.zeros(()), jnp.zeros(()))
    shares = bridges(learned, steps, bridged)
    if sampler == "gradient":
        return _climb(learned, position, log_start, log_target, shares)
    damping = {"langevin": 0.0, "leapfrog": 1.0}.get(sampler)
    gamma = jax.nn.sigmoid(learned["damping"]) if damping is None else damping
    # No momentum precedes the first step: it is drawn afresh.
    gammas = jnp.full(steps, gamma).at[0].set(0.0)
    return _follow(learned, noise, position, log_start, log_target, shares, gammas)


def _follow(
    learned: dict[str, Any], noise: PyTree, position: PyTree, log_start: Any, log_target: Any, shares: jax.Array,
    gammas: jax.Array,
) -> Refined:  # fmt: skip
    """Leapfrog steps (kick, drift, kick), with the momentum renewed before each.

    The t-th of T + 1 rounds ends step t and begins step t + 1, which both need the gradient at θ_t: one gradient for
    each step and one more, in one body, so that a network is compiled once.
    """
    step = jax.tree.map(jnp.exp, learned["log_step"])
    gradient = lambda x: (jax.grad(log_target)(x), jax.grad(log_start)(x))  # noqa: E731

    def kick(momentum: PyTree, share: jax.Array, slopes: tuple[PyTree, PyTree]) -> PyTree:
        half = lambda r, s, up, back: r + 0.5 * s * (share * up + (1 - share) * back)  # noqa: E731
        return jax.tree.map(half, momentum, step, *slopes)

    def round_(carry: tuple[PyTree, PyTree, PyTree, jax.Array], current: Any) -> tuple[Any, None]:
        theta, before, half, ratio = carry
        (ends, share), (begins, next_share, gamma, fresh) = current
        slopes = gradient(theta)
        after = kick(half, share, slopes)
        ratio = ratio + ends * 0.5 * (_square(before) - _square(after))
        before = jax.tree.map(lambda r, e: gamma * r + jnp.sqrt(1 - gamma**2) * e, after, fresh)
        half = kick(before, next_share, slopes)
        theta = jax.tree.map(lambda x, s, r: x + begins * s * r, theta, step, half)
        return (theta, before, half, ratio), None

    count = len(shares)
    missing = count + 1 - jax.tree.leaves(noise)[0].shape[0]
    fresh = jax.tree.map(lambda e: jnp.pad(e, [(0, missing)] + [(0, 0)] * (e.ndim - 1)), noise)
    after, ahead = (1, 0), (0, 1)
    ends = (jnp.pad(jnp.ones(count), after), jnp.pad(shares, after))
    begins = (jnp.pad(jnp.ones(count), ahead), jnp.pad(shares, ahead), jnp.pad(gammas, ahead), fresh)
    rest = jax.tree.map(jnp.zeros_like, position)
    (theta, _, _, ratio), _ = jax.lax.scan(round_, (position, rest, rest, jnp.zeros(())), (ends, begins))
    return Refined(theta, ratio, jnp.zeros(()))


def _climb(learned: dict[str, Any], position: jax.Array, log_start: Any, log_target: Any, shares: jax.Array) -> Refined:
    """Steps uphill and their Jacobians, in the metric S = diag(s): I + ½ S² ∇²log π has the determinant of the
    symmetric I + ½ S ∇²log π S."""
    scale = jnp.exp(learned["log_step"])

    def climb_step(carry: tuple[jax.Array, jax.Array, jax.Array], share: jax.Array) -> tuple[Any, None]:
        theta, ratio, folds = carry
        climb = jax.grad(lambda x: share * log_target(x) + (1 - share) * log_start(x))
        jacobian = jnp.eye(len(theta)) + 0.5 * scale[:, None] * jax.jacfwd(climb)(theta) * scale
        value, folded = _log_det(jacobian)
        return (theta + 0.5 * scale**2 * climb(theta), ratio + value, folds + folded), None

    (theta, ratio, folds), _ = jax.lax.scan(climb_step, (position, jnp.zeros(()), jnp.zeros(())), shares)
    return Refined(theta, ratio, folds)


def _log_det(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """log det of a symmetric matrix and whether it is not positive definite: each eigenvalue λ ≤ 0 then counts as
    λ/ε + log ε − 1, a slope back to where the map does not fold. The derivative is that of the exact value for λ ≥ ε.
    """
    floor = 0.05
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(matrix))
    logs = jnp.where(values > 0, jnp.log(jnp.abs(values)), values / floor + jnp.log(floor) - 1)
    slope = (vectors / jnp.maximum(values, floor)) @ vectors.T
    linear = (slope * matrix).sum()
    return linear + jax.lax.stop_gradient(logs.sum() - linear), (values[0] <= 0).astype(matrix.dtype)


def _square(tree: PyTree) -> jax.Array:
    return sum(((x**2).sum() for x in jax.tree.leaves(tree)), jnp.zeros(()))
