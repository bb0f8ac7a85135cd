"""A conditioned Gaussian process on the host, in double precision whatever the precision around it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.methods.function_space.infinite.kernels import Kernel


def to_bits(x: jax.Array) -> jax.Array:
    """Numbers of 64 bits as pairs of 32 [..., 2]: predictions run in single precision, which would round them."""
    return jax.lax.bitcast_convert_type(x.astype(jnp.float64), jnp.uint32)


def host_bits(x: np.ndarray) -> np.ndarray:
    """`to_bits` of an array on the host."""
    return np.ascontiguousarray(x, np.float64)[..., None].view(np.uint32)


def from_bits(bits: Any) -> np.ndarray:
    """The inverse of `to_bits`, on the host."""
    return np.ascontiguousarray(np.asarray(bits, np.uint32)).view(np.float64)[..., 0]


class Values(NamedTuple):
    """Function values at some rows: their mean, and roots of the covariance that the data take away."""

    rows: np.ndarray  # [n, d]
    mean: np.ndarray  # [n, out]
    cross: list[np.ndarray]  # V = L⁻¹R'k(x) of every group [train · columns, n · outputs of the group]


class Process(NamedTuple):
    """Mean k(x)'α and covariance k(x, x') ⊗ I − V(x)'V(x'), in groups of outputs that are coupled."""

    numbers: dict[str, np.ndarray]  # as `FunctionPosterior.bits`, without the member axis
    kernel: Kernel

    @classmethod
    def of(cls, bits: dict[str, Any], activation: str) -> "Process":
        """The process of a posterior's numbers."""
        numbers = {name: from_bits(x)[0] for name, x in bits.items()}
        return cls(numbers, Kernel(numbers["weight"], numbers["bias"], activation, numbers.get("relevance")))

    @property
    def outputs(self) -> int:
        """Values of a row."""
        return self.numbers["coefficients"].shape[-1]

    def at(self, rows: np.ndarray) -> Values:
        """The values at rows."""
        from scipy.linalg import solve_triangular

        gram = self.kernel(self.numbers["inputs"], rows)
        cross = []
        for roots, lower in zip(self.numbers["roots"], self.numbers["factor"]):
            right = np.einsum("tm,toc->tcmo", gram, roots).reshape(len(lower), -1)
            cross.append(solve_triangular(lower, right, lower=True, check_finite=False))
        return Values(rows, gram.T @ self.numbers["coefficients"], cross)

    def variance(self, at: Values) -> np.ndarray:
        """Of each value [n, out]."""
        prior = self.kernel.diagonal(at.rows)[:, None]
        explained = [(v * v).sum(0).reshape(len(at.rows), -1) for v in at.cross]
        return np.concatenate([np.maximum(prior - v, 0.0) for v in explained], 1)

    def covariances(self, at: Values) -> list[np.ndarray]:
        """Of the values of every group [n · outputs of the group, n · outputs of the group]."""
        prior, blocks = self.kernel(at.rows), []
        for v in at.cross:
            size = v.shape[1] // len(prior)
            blocks.append((np.kron(prior, np.eye(size)) if size > 1 else prior) - v.T @ v)
        return blocks

    def between(self, group: int, index: np.ndarray, first: Values, second: Values) -> np.ndarray:
        """The covariance of some values of a group at the first rows [r] and all of it at the second [r, m · s]."""
        v, w = first.cross[group], second.cross[group]
        size = v.shape[1] // len(first.rows)
        prior = self.kernel(first.rows[index // size], second.rows)
        if size > 1:
            prior = (prior[:, :, None] * np.eye(size)[index % size, None]).reshape(len(index), -1)
        return prior - v[:, index].T @ w

    def covariance(self, at: Values) -> np.ndarray:
        """Of all values [n, out, n, out], 0 between groups."""
        full, start = np.zeros((len(at.rows), self.outputs) * 2), 0
        for matrix in self.covariances(at):
            size = len(matrix) // len(at.rows)
            group = slice(start, start + size)
            full[:, group, :, group] = matrix.reshape(len(at.rows), size, len(at.rows), size)
            start = group.stop
        return full
