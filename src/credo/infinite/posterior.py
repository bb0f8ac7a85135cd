"""A posterior over functions: a Gaussian process, conditioned on rows."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from credo.core.model import Model
from credo.core.posterior import Draws
from credo.core.tree import leaf, struct
from credo.errors import Refusal
from credo.infinite.kernels import Kernel

PyTree = Any
BLOCK = 512  # function values that are drawn together
JITTER = (1e-12, 1e-10, 1e-8)  # of the prior's variance, tried one after another


def to_bits(x: jax.Array) -> jax.Array:
    """Numbers of 64 bits as pairs of 32 [..., 2]: predictions run in single precision, which would round them."""
    return jax.lax.bitcast_convert_type(x.astype(jnp.float64), jnp.uint32)


def from_bits(bits: Any) -> np.ndarray:
    """The inverse of `to_bits`, on the host."""
    return np.ascontiguousarray(np.asarray(bits, np.uint32)).view(np.float64)[..., 0]


@struct
class FunctionPosterior:
    """f | D for an infinitely wide network: mean k(x)'α, covariance k(x, x') − k(x)'R B⁻¹ R'k(x').

    R R' are the precisions with which the rows know f, B = I + R'KR (see `credo.infinite.regression`). All of it is
    computed in double precision on the host, whatever the precision around it: the covariance is a small difference of
    large numbers. There are no weights, hence no `sample` and no `log_prob`.

    Draws of f are joint for the rows of one call, in blocks of 512 values: within a block each draw is one function.
    They are centred, so that the mean of all draws is the exact mean; each of them has the exact distribution.

    Attributes:
        likelihood: the likelihood's parameters ν, leaves [member, …].
        log_evidence: log p(D), approximate where the noise is not Gaussian [member].
        weight_scale, bias_scale: what the prior's variances were multiplied by [member]; 1 where they were kept.
        activation: of the hidden layers.
        bits: all else in double precision, see `to_bits`: "inputs" [member, n, d], "coefficients" α [member, n, out],
            "roots" R [member, group, n, out of the group, columns], "factor" of B [member, group, …], "weight" and
            "bias" variances of the layers [member, layers]. Outputs of one group are coupled.
    """

    likelihood: PyTree = leaf()
    log_evidence: Any = leaf()
    weight_scale: Any = leaf()
    bias_scale: Any = leaf()
    bits: dict[str, Any] = leaf()
    activation: str = "relu"

    available = None  # draws are made afresh
    members = 1

    @property
    def kernel(self) -> Kernel:
        """The covariance function of the prior, as NumPy arrays."""
        return _kernel(self.bits, self.activation)

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """One member; 200 draws where nobody says how many."""
        return 1, 200 if num is None else max(1, num)

    def view(self, mode: str) -> "FunctionPosterior":
        """There is one way to predict."""
        if mode == "sampled":
            return self
        raise Refusal(f'This posterior predicts with mode="sampled" only, got {mode!r}.')

    def moments(self, inputs: Any, *, covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The exact mean [n, out] and variance [n, out] of f, or with `covariance` its matrix [n, out, n, out].

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(
            ...     credo.networks.mlp([50]), credo.priors.fan_in_normal(1.5), credo.likelihoods.gaussian(noise=0.1)
            ... )
            >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "infinite_width")
            >>> mean, variance = fit.posterior.moments(x)
            >>> mean.shape, bool((variance < 0.01).all())
            ((40, 1), True)
        """
        x = np.asarray(inputs, np.float64)
        given = _numbers(self.bits)
        mean, cross = _cross(given, self.activation, x)
        return mean, (_covariance if covariance else _variance)(given, self.activation, x, cross)

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """Draws of f, computed on the host."""
        _, draws = self.num_draws(num)
        outputs = self.bits["coefficients"].shape[-2]
        shape = (draws, inputs.shape[0], outputs)
        normals = jax.random.normal(key, shape, jnp.float32)
        values = jax.pure_callback(
            partial(_draw, self.activation), jax.ShapeDtypeStruct(shape, jnp.float32), self.bits, inputs, normals,
            vmap_method="sequential",
        )  # fmt: skip
        spread = jax.tree.map(
            lambda x: jnp.broadcast_to(jnp.asarray(x)[:, None], (1, draws, *x.shape[1:])), self.likelihood
        )
        return Draws(values[None], spread, None)


def _numbers(bits: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: from_bits(x)[0] for name, x in bits.items()}


def _kernel(bits: dict[str, Any], activation: str) -> Kernel:
    return Kernel(from_bits(bits["weight"])[0], from_bits(bits["bias"])[0], activation)


def _cross(given: dict[str, np.ndarray], activation: str, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The mean [n, out], and V = L⁻¹R'k(x) of every group [train · columns, n · outputs of the group]."""
    known = Kernel(given["weight"], given["bias"], activation)(given["inputs"], x)
    cross = []
    for roots, lower in zip(given["roots"], given["factor"]):
        right = np.einsum("tm,toc->tcmo", known, roots).reshape(len(lower), -1)
        cross.append(solve_triangular(lower, right, lower=True, check_finite=False))
    return known.T @ given["coefficients"], cross


def _variance(given: dict[str, np.ndarray], activation: str, x: np.ndarray, cross: list[np.ndarray]) -> np.ndarray:
    prior = Kernel(given["weight"], given["bias"], activation).diagonal(x)[:, None]
    return np.concatenate([np.maximum(prior - (v * v).sum(0).reshape(len(x), -1), 0.0) for v in cross], 1)


def _covariance(given: dict[str, np.ndarray], activation: str, x: np.ndarray, cross: list[np.ndarray]) -> np.ndarray:
    """[n, out, n, out], 0 between groups."""
    outputs = given["coefficients"].shape[-1]
    prior = Kernel(given["weight"], given["bias"], activation)(x)
    whole, first = np.zeros((len(x), outputs, len(x), outputs)), 0
    for v in cross:
        some = slice(first, first + v.shape[1] // len(x))
        whole[:, some, :, some] = _group(prior, v)
        first = some.stop
    return whole


def _group(prior: np.ndarray, v: np.ndarray) -> np.ndarray:
    """k(x, x') ⊗ I − V'V [n, s, n, s] of one group."""
    size = v.shape[1] // len(prior)
    whole = prior[:, None, :, None] * np.eye(size)[:, None, :]
    return whole - (v.T @ v).reshape(whole.shape)


def _draw(activation: str, bits: dict[str, Any], inputs: Any, normals: Any) -> np.ndarray:
    """f at the inputs [draw, n, out] from standard normals of that shape."""
    x, z = np.asarray(inputs, np.float64), np.asarray(normals, np.float64)
    if len(z) > 1:  # centred, and of variance 1 again
        z = (z - z.mean(0)) * np.sqrt(len(z) / (len(z) - 1))
    given = _numbers(bits)
    found = np.empty(z.shape, np.float32)
    step = max(1, BLOCK // given["roots"].shape[2])
    for start in range(0, len(x), step):
        rows = slice(start, start + step)
        # Rows that repeat (padding does) are one place: the covariance stays regular, and f the same for both.
        places, back = np.unique(x[rows], axis=0, return_inverse=True)
        found[:, rows] = _draw_block(given, activation, places, z[:, start : start + len(places)])[:, back.ravel()]
    return found


def _draw_block(given: dict[str, np.ndarray], activation: str, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    mean, cross = _cross(given, activation, x)
    prior = Kernel(given["weight"], given["bias"], activation)(x)
    parts, first = [], 0
    for v in cross:
        size = v.shape[1] // len(x)
        root = _root(_group(prior, v).reshape(v.shape[1], -1), float(np.diagonal(prior).mean()))
        own = z[:, :, first : first + size].reshape(len(z), -1)
        parts.append((own @ root.T).reshape(len(z), len(x), size))
        first += size
    return mean + np.concatenate(parts, 2)


def _root(matrix: np.ndarray, scale: float) -> np.ndarray:
    """A square root of a covariance that may be singular to rounding."""
    for share in JITTER:
        try:
            return np.linalg.cholesky(matrix + share * scale * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))
