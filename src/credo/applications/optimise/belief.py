"""What a surrogate believes about the objective: a function of unit-cube rows that JAX can differentiate."""

import dataclasses
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import mixture
from credo.core.tree import leaf, struct


@struct
class DrawBelief:
    """K draws of the network's function, always the same K: the acquisition is a fixed function of x.

    Attributes:
        posterior, model: of the fit.
        key: of the draws.
        noise: variance of an observation around f.
        num: how many draws; None: what is natural to the posterior.
    """

    posterior: Any = leaf()
    model: Any = leaf()
    key: Any = leaf()
    noise: Any = leaf()
    num: int | None = None

    double = False
    normal = False  # draws are all there is

    def draws(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """f_k(x) [K, n] and the weights of the draws [K]; x lies in the unit cube."""
        key = jax.random.wrap_key_data(self.key)
        flat = mixture.flatten(self.posterior.outputs(key, self.model, 2 * x - 1, self.num))
        means = jax.vmap(self.model.likelihood.mean)(flat.params, flat.outputs)
        return means[..., 0], jax.nn.softmax(flat.log_weights)

    def joint(self, x: jax.Array, others: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Mean [n] and variance [n] at x, covariance of x with `given` [n, q], and of `given` [q, q].

        Var = Σ_k w_k (f_k − m)² / (1 − Σ_k w_k²): without bias where draws are independent, which matters to ensembles
        of few members.
        """
        values, weights = self.draws(jnp.concatenate([x, others]))
        mean = weights @ values
        rest = (values - mean) * jnp.sqrt(weights / jnp.maximum(1 - (weights**2).sum(), 1e-6))[:, None]
        at_x, at_others = rest[:, : len(x)], rest[:, len(x) :]
        return mean[: len(x)], (at_x**2).sum(0), at_x.T @ at_others, at_others.T @ at_others


@struct
class NormalBelief:
    """A Gaussian process given rows: mean c + k(x)'α, covariance k(x, x') − V(x)'V(x') with V = W k(X, x).

    W = L⁻¹ R, with the factor L of RKR' + σ²I. Held as a matrix, because it is applied at every step of a climb and XLA
    solves triangular systems on a CPU much more slowly than it multiplies. Rows that are there to fill up have 0 in W
    and α.

    Attributes:
        kernel: a function of two sets of rows, with `diagonal` of one.
        rows: X [n, columns], as the kernel wants them.
        coefficients: α [n].
        whiten: W [n, n].
        constant: c.
        noise: variance of an observation around f.
        shift, scale: rows of the kernel are shift + scale · x of the unit cube.
    """

    kernel: Any = leaf()
    rows: Any = leaf()
    coefficients: Any = leaf()
    whiten: Any = leaf()
    constant: Any = leaf()
    noise: Any = leaf()
    shift: float = 0.0
    scale: float = 1.0

    double = True
    normal = True

    def joint(self, x: jax.Array, others: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Mean [n] and variance [n] at x, covariance of x with `given` [n, q], and of `given` [q, q]."""
        x, others = (self.shift + self.scale * a for a in (x, others))
        cross_x = self.kernel(self.rows, x)
        v, w = self.whiten @ cross_x, self.whiten @ self.kernel(self.rows, others)
        variance = self.kernel.diagonal(x) - (v * v).sum(0)
        cross = self.kernel(x, others) - v.T @ w
        return self.constant + cross_x.T @ self.coefficients, variance, cross, self.kernel(others, others) - w.T @ w

    def part(self, which: int) -> "NormalBelief":
        """Itself: there is one."""
        return self


@struct
class MixedBelief:
    """Gaussian processes at several hyper-parameters, all of one weight, as one normal belief with their moments.

    m = mean of m_k; cov(x, x') = mean of cov_k(x, x') + covariance of the m_k: what each does not know, and what they
    do not agree on.

    Attributes:
        parts: a `NormalBelief` with a leading axis in every array.
        noise: variance of an observation around f.
    """

    parts: Any = leaf()
    noise: Any = leaf()

    double = True
    normal = True

    def joint(self, x: jax.Array, others: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """Mean [n] and variance [n] at x, covariance of x with `given` [n, q], and of `given` [q, q]."""
        both = jnp.concatenate([x, others])
        mean, variance, cross = jax.vmap(lambda part: part.joint(both, others)[:3])(self.parts)
        centre = mean.mean(0)
        rest = mean - centre
        cross = cross.mean(0) + rest.T @ rest[:, len(x) :] / len(rest)
        variance = variance.mean(0) + (rest**2).mean(0)
        return centre[: len(x)], variance[: len(x)], cross[: len(x)], cross[len(x) :]

    def part(self, which: int) -> NormalBelief:
        """One of the processes; `which` may be any whole number."""
        return jax.tree.map(lambda a: a[which % len(a)], self.parts)


Belief = DrawBelief | NormalBelief | MixedBelief


def precision(belief: Belief) -> Any:
    """The context in which a belief computes."""
    return jax.enable_x64(True) if belief.double else nullcontext()


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A belief on the scale of the gains that the surrogate saw: gain = shift + scale · f, larger is better.

    Attributes:
        belief: of f.
        shift, scale: of the standardisation.
        width: columns of the code.
    """

    belief: Any
    shift: float = 0.0
    scale: float = 1.0
    width: int = 1

    def moments(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the gain at unit-cube rows [n]."""
        mean, std = moments(self.belief, x, np.zeros((0, self.width)))
        return self.shift + self.scale * mean, self.scale * std

    def draws(self, x: Any) -> np.ndarray:
        """Draws of the gain [K, n], where the belief is draws."""
        return self.shift + self.scale * np.asarray(_draws(self.belief, jnp.asarray(x, jnp.float32)))


def moments(belief: Belief, x: Any, observed: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of f at rows, as if the mean had been observed at the rows `observed` too."""
    with precision(belief):
        kind = jnp.float64 if belief.double else jnp.float32
        mask = jnp.ones(len(observed), kind) if len(observed) else jnp.zeros(1, kind)
        rows = jnp.asarray(observed, kind) if len(observed) else jnp.zeros((1, np.shape(x)[1]), kind)
        mean, variance = _moments(belief, jnp.asarray(x, kind), rows, mask)
        return np.asarray(mean, np.float64), np.sqrt(np.asarray(variance, np.float64))


def condition(belief: Belief, x: jax.Array, observed: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """m(x) and s²(x) − c(x)'(C + σ²I)⁻¹c(x): the Schur complement after observations at `observed`.

    These values are not there yet; taken to be the mean, they leave the mean as it is. Desautels et al. (2014). Rows
    with mask 0 do not count.
    """
    mean, variance, cross, covariance = belief.joint(x, observed)
    cross = cross * mask
    scale = jnp.maximum(jnp.diagonal(covariance), 1e-12)
    tiny = jnp.finfo(mean.dtype).eps ** 0.75
    covariance = covariance * mask * mask[:, None] + jnp.diag(jnp.where(mask > 0, belief.noise + tiny * scale, 1.0))
    remaining = variance - (cross * jnp.linalg.solve(covariance, cross.T).T).sum(1)
    return mean, jnp.maximum(remaining, jnp.finfo(mean.dtype).eps ** 2)


_moments = jax.jit(condition)


@jax.jit
def _draws(belief: DrawBelief, x: jax.Array) -> jax.Array:
    return belief.draws(x)[0]


def posterior_covariance(belief: NormalBelief | MixedBelief, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean [n] and covariance [n, n] at rows, as NumPy arrays."""
    with precision(belief):
        mean, covariance = _covariance(belief, jnp.asarray(x, jnp.float64))
        return np.asarray(mean), np.asarray(covariance)


@jax.jit
def _covariance(belief: NormalBelief | MixedBelief, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    mean, _, covariance, _ = belief.joint(x, x)
    return mean, covariance


def as_numpy(belief: Belief) -> Belief:
    """With NumPy arrays for leaves: outside of its context JAX would round double precision."""
    return jax.tree.map(np.asarray, belief)
