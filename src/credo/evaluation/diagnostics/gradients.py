"""Checks of stochastic-gradient samplers before they run: how noisy minibatch gradients are, and what step they allow.

U(θ) = −log p(θ, D) is the potential; a minibatch of M of N rows estimates ∇U with noise of covariance V. SGLD moves by
θ ← θ − η ∇Û + √(2η) ξ. Welling and Teh (2011); Nagapetyan et al. (2017); Baker et al. (2019), Control variates for
stochastic gradient MCMC.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.numeric import host_arrays, host_floats, host_targets
from credo.core.tree import Layout, size
from credo.errors import InputError
from credo.evaluation.diagnostics.data import rows_of

MOST_ROWS = 8192  # rows that stand for all in the curvature
NOISE_SHARE = 0.1  # injected noise should be ten times the gradients'


@dataclasses.dataclass(frozen=True)
class GradientNoise:
    """Noise of the minibatch gradient of the potential.

    Attributes:
        trace: tr V.
        largest: the largest eigenvalue of V.
        per_row: tr V / (N²/M (1 − M/N)): the variance of one row's gradient, which does not depend on M.
        gradient_norm: ‖∇U‖ on all rows.
        signal_to_noise: ‖∇U‖² / tr V.
        batch_size, num_data: M and N.
    """

    trace: float
    largest: float
    per_row: float
    gradient_norm: float
    signal_to_noise: float
    batch_size: int
    num_data: int

    def __str__(self) -> str:
        return (
            f"A gradient from {self.batch_size} of {self.num_data} rows has noise of variance {self.trace:.3g} in all "
            f"and signal-to-noise ratio {self.signal_to_noise:.3g}; the variance falls as N²/M."
        )


@dataclasses.dataclass(frozen=True)
class StepSize:
    """A step size of SGLD held against the noise of gradients and the curvature.

    Attributes:
        step_size: η.
        noise_ratio: η V/2, the gradients' noise η²V over the injected 2η, in the direction where it is largest.
        curvature: λ_max, the largest eigenvalue of the Hessian of U.
        stability: η λ_max; an explicit step diverges at 2.
        largest: the largest step that passes both checks.
    """

    step_size: float
    noise_ratio: float
    curvature: float
    stability: float
    largest: float

    @property
    def ok(self) -> bool:
        """Does the step pass both checks?"""
        return self.noise_ratio <= NOISE_SHARE and self.stability < 1.0

    def __str__(self) -> str:
        noise = (
            f"minibatch noise adds {100 * self.noise_ratio:.3g} % to the injected noise"
            + (" and widens the posterior" if self.noise_ratio > NOISE_SHARE else "")
        )  # fmt: skip
        curve = f"step size times curvature is {self.stability:.3g}, " + (
            "beyond 2, so it diverges" if self.stability >= 2 else
            "near 2, so it is biased" if self.stability >= 1 else "well below 2"
        )  # fmt: skip
        rest = "." if self.ok else f"; steps up to {self.largest:.3g} are safe, or use larger batches."
        return f"At step size {self.step_size:.3g} {noise}; {curve}{rest}"


def gradient_noise(
    key: jax.Array, model: Model, variables: Variables, data: Any, batch_size: int, num: int = 100
) -> GradientNoise:
    """The covariance of minibatch gradients of U at one θ, from `num` random minibatches without replacement.

    V = N²/M (1 − M/N) S with S the covariance of the rows' gradients (Cochran, 1977), so its trace over N²/M (1 − M/N)
    is a property of model and data alone.

    Args:
        key: which minibatches.
        model: network, prior and likelihood.
        variables: where, such as a member of `fit.point()`.
        data: (inputs, targets) or with weights.
        batch_size: M.
        num: minibatches.

    Example:
        >>> import jax, credo, numpy as np
        >>> from credo.core.network import Variables
        >>> x = np.linspace(-1, 1, 100)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> zero = {"output": {"kernel": np.zeros((1, 1), "f4"), "bias": np.zeros(1, "f4")}}
        >>> start = Variables({"network": zero, "likelihood": {}, "prior": {}}, {})
        >>> noise = credo.diagnostics.gradient_noise(jax.random.key(0), model, start, (x, x[:, 0]), 10)
        >>> noise.num_data, noise.signal_to_noise > 1
        (100, True)
    """
    batch = _batch(model, data)
    rows = len(batch.targets)
    if not 0 < batch_size <= rows:
        raise InputError(f"batch_size must lie between 1 and the {rows} rows, got {batch_size}.")
    if num < 2:
        raise InputError(f"A variance needs at least 2 minibatches, got num={num}.")
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    index = np.stack([rng.choice(rows, batch_size, replace=False) for _ in range(num)])
    full, sampled = _gradients(model, variables, batch, index)
    full, sampled = np.asarray(full, np.float64), np.asarray(sampled, np.float64)
    # The mean is known (the gradient on all rows), so no degree of freedom is lost.
    noise = sampled - full
    trace = float((noise**2).sum() / num)
    # The smaller one of two matrices with the same eigenvalues.
    gram = noise.T @ noise if noise.shape[1] < num else noise @ noise.T
    largest = float(np.linalg.eigvalsh(gram / num)[-1])
    scale = rows**2 / batch_size * (1 - batch_size / rows)
    norm = float(np.linalg.norm(full))
    return GradientNoise(
        trace, largest, trace / scale if scale > 0 else 0.0, norm, norm**2 / trace if trace > 0 else np.inf, batch_size,
        rows,
    )  # fmt: skip


def step_size_check(
    key: jax.Array, model: Model, variables: Variables, data: Any, step_size: float, batch_size: int, num: int = 100
) -> StepSize:
    """Is the step size η of SGLD small enough? Two checks at one θ.

    Noise: gradients add η²V to the injected 2η I, so η V/2 must be far below 1 (we ask for a tenth). Stability: an
    explicit step on a quadratic with curvature λ multiplies errors by 1 − ηλ, so η λ_max must stay below 2; the
    variance it leaves is 1/(λ(1 − ηλ/2)), hence we ask for 1.

    Args:
        key, model, variables, data, batch_size, num: as in `gradient_noise`.
        step_size: η of θ ← θ − η ∇Û + √(2η) ξ.
    """
    if not step_size > 0:
        raise InputError(f"step_size must be positive, got {step_size}.")
    noise = gradient_noise(key, model, variables, data, batch_size, num)
    batch = _batch(model, data, MOST_ROWS)
    start = np.random.default_rng(0).normal(size=size(variables.params)).astype(np.float32)
    curvature = float(_largest_eigenvalue(model, variables, batch, start, 0.0))
    if curvature < 0:  # the eigenvalue of largest size; the largest one lies at the other end
        curvature += float(_largest_eigenvalue(model, variables, batch, start, -curvature))
    bounds = [2 * NOISE_SHARE / noise.largest if noise.largest > 0 else np.inf, 1 / max(curvature, 1e-30)]
    return StepSize(
        float(step_size), 0.5 * step_size * noise.largest, curvature, step_size * curvature, float(min(bounds))
    )


def _batch(model: Model, data: Any, most: int | None = None) -> Batch:
    """All rows, or an even selection that stands for them."""
    inputs, targets, weight = rows_of(data)
    y = host_targets(model.likelihood, targets)
    rows = len(y)
    weights = np.ones(rows, np.float32) if weight is None else host_floats(weight, "Weights").astype(np.float32)
    inputs = jax.tree.map(np.asarray, host_arrays(inputs))
    batch = Batch(inputs, y, weights, np.float32(rows))
    if most is None or rows <= most:
        return batch
    selected = np.linspace(0, rows - 1, most).round().astype(int)
    return Batch(jax.tree.map(lambda x: x[selected], inputs), y[selected], weights[selected], np.float32(rows))


def _potential(model: Model, variables: Variables, layout: Layout, batch: Batch) -> Any:
    def potential(theta: jax.Array) -> jax.Array:
        return -model.log_joint(Variables(layout.unravel(theta), variables.state), batch)[0]

    return potential


@jax.jit
def _gradients(model: Model, variables: Variables, batch: Batch, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """∇U on all rows [P] and on minibatches [num, P]."""
    layout = Layout.of(variables.params, limit=2**62)
    theta = layout.ravel(variables.params)
    full = jax.grad(_potential(model, variables, layout, batch))(theta)

    def one(rows: jax.Array) -> jax.Array:
        inputs, targets, weight = jax.tree.map(lambda x: x[rows], (batch.inputs, batch.targets, batch.weight))
        part = Batch(inputs, targets, weight, batch.num_data)
        return jax.grad(_potential(model, variables, layout, part))(theta)

    return full, jax.lax.map(one, index)


@partial(jax.jit, static_argnames="steps")
def _largest_eigenvalue(
    model: Model, variables: Variables, batch: Batch, start: jax.Array, shift: Any, steps: int = 100
) -> jax.Array:
    """The eigenvalue of ∇²U + shift·I of largest size, by power iteration with Hessian-vector products."""
    layout = Layout.of(variables.params, limit=2**62)
    theta = layout.ravel(variables.params)
    gradient = jax.grad(_potential(model, variables, layout, batch))

    def apply(v: jax.Array) -> jax.Array:
        return jax.jvp(gradient, (theta,), (v,))[1] + shift * v

    def step(_: int, v: jax.Array) -> jax.Array:
        new = apply(v)
        return new / jnp.maximum(jnp.linalg.norm(new), 1e-30)

    v = jax.lax.fori_loop(0, steps, step, start / jnp.linalg.norm(start))
    return v @ apply(v)
