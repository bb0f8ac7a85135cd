"""Joint draws of a Gaussian process at many rows, over several calls.

The values at some rows, the anchors, are drawn at once: f_a = m_a + L z with LL' their covariance. All other values
follow given those, f = m + S S_a⁻¹ (f_a − m_a) + a part independent of f_a (conditional simulation; Rasmussen and
Williams, 2006, appendix A.2; Wilson et al., 2021, Pathwise conditioning of Gaussian processes). Anchors are chosen by
pivoted Cholesky, always the value of largest variance given those before (Harbrecht, Peters and Schneider, 2012).
"""

from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from credo.methods.function_space.infinite.process import Process, Values

TOGETHER = 4096  # values whose covariance is factored at once (128 MB): a draw of so many is exact
ANCHORS = 2048  # values on which others are conditioned, at most
BLOCK = 512  # values that are drawn together given the anchors
CLOSE = 1e-10  # of the prior's variance: smaller residuals count as 0
JITTER = (1e-12, 1e-10, 1e-8)  # of the prior's variance, tried one after another


def distinct(blocks: Iterable[Any], most: int) -> np.ndarray:
    """At most `most` different rows [m, d] of blocks of rows, spread evenly over them in their order."""
    samples = []
    for block in blocks:
        rows = np.unique(np.asarray(block, np.float64) + 0.0, axis=0)  # −0 is 0
        samples.append(_spread(rows, most))
    return _spread(np.unique(np.concatenate(samples), axis=0), most)


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


class Normals(NamedTuple):
    """Standard normals keyed by rows: a row has the same ones in every call."""

    key: bytes
    draws: int
    outputs: int

    def at(self, rows: np.ndarray) -> np.ndarray:
        """[draw, n, out]; centred over draws, and of variance 1 again."""
        z = np.stack([self._one(row) for row in rows], 1)
        return z if len(z) == 1 else (z - z.mean(0)) * np.sqrt(len(z) / (len(z) - 1))

    def _one(self, row: np.ndarray) -> np.ndarray:
        name = blake2b(row.tobytes(), key=self.key[:64], digest_size=16).digest()
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(name, "little")))
        return generator.standard_normal((self.draws, self.outputs))


class Anchors:
    """Values at some rows that are drawn at once, and others given those."""

    def __init__(self, process: Process, rows: np.ndarray, normals: Normals):
        self.process, self.normals = process, normals
        self.values = process.at(rows)
        self.scale = float(process.kernel.diagonal(rows).mean())
        factors = [_pivoted(s, CLOSE * self.scale) for s in process.covariances(self.values)]
        self.roots, self.pivots, self.residuals = zip(*factors)
        self.index = {row.tobytes(): i for i, row in enumerate(rows)}

    @cached_property
    def noise(self) -> list[np.ndarray]:
        """z of every group [draw, m · outputs of the group]."""
        return self._by_group(self.normals.at(self.values.rows))

    def draw(self) -> np.ndarray:
        """f at the rows of the anchors [draw, m, out]."""
        parts = zip(self.noise, self.roots, self.pivots, self.residuals)
        return self._join(self.values, [z[:, pivots] @ root.T + z * std for z, root, pivots, std in parts])

    def draw_at(self, rows: np.ndarray) -> np.ndarray:
        """f at other rows [draw, n, out]."""
        from scipy.linalg import solve_triangular

        at = self.process.at(rows)
        covariances, fresh, draws = self.process.covariances(at), self._by_group(self.normals.at(rows)), []
        for i, (root, pivots, z) in enumerate(zip(self.roots, self.pivots, self.noise)):
            first = pivots[:ANCHORS]
            shared = self.process.between(i, first, self.values, at)
            cross = solve_triangular(root[first, : len(first)], shared, lower=True, check_finite=False)
            draws.append(z[:, first] @ cross + fresh[i] @ _root(covariances[i] - cross.T @ cross, self.scale).T)
        return self._join(at, draws)

    def _by_group(self, z: np.ndarray) -> list[np.ndarray]:
        """[draw, n, out] as [draw, n · outputs of the group] of every group."""
        sizes = [v.shape[1] // len(self.values.rows) for v in self.values.cross]
        return [x.reshape(len(z), -1) for x in np.split(z, np.cumsum(sizes)[:-1], axis=2)]

    def _join(self, at: Values, draws: list[np.ndarray]) -> np.ndarray:
        return at.mean + np.concatenate([x.reshape(len(x), len(at.rows), -1) for x in draws], 2)


def draw(process: Process, rows: np.ndarray, anchors: np.ndarray, key: bytes, draws: int) -> np.ndarray:
    """f at the rows [draw, n, out]: joint for all of them, and for those of other calls with the same anchors and key.

    Args:
        process: what is drawn from.
        rows: inputs [n, d]; f is the same wherever a row repeats.
        anchors: rows whose values are drawn at once [m, d], from `distinct`.
        key: of the draws.
        draws: how many.
    """
    sampler = Anchors(process, anchors, Normals(key, draws, process.outputs))
    rows = rows + 0.0
    at = np.array([sampler.index.get(row.tobytes(), -1) for row in rows])
    values = np.empty((draws, len(rows), process.outputs), np.float32)
    values[:, at >= 0] = sampler.draw()[:, at[at >= 0]]
    others = np.flatnonzero(at < 0)
    step = max(1, BLOCK // process.outputs)
    for start in range(0, len(others), step):
        block = others[start : start + step]
        # Each distinct row once: the covariance stays regular, and f is the same wherever a row repeats.
        unique, inverse = np.unique(rows[block], axis=0, return_inverse=True)
        values[:, block] = sampler.draw_at(unique)[:, inverse.ravel()]
    return values


def _pivoted(matrix: np.ndarray, close: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L [n, r] with LL' the covariance up to `close`; the r pivots, in the order in which L is lower triangular;
    and the residual standard deviations of the other values [n]."""
    from scipy.linalg import lapack

    lower, order, rank, _ = lapack.dpstrf(matrix, tol=close, lower=1)
    order = order - 1
    root = np.empty((len(matrix), rank))
    root[order] = np.tril(lower)[:, :rank]
    residual = np.maximum(np.diagonal(matrix) - (root * root).sum(1), 0.0)
    residual[order[:rank]] = 0.0
    return root, order[:rank], np.sqrt(residual)


def _root(matrix: np.ndarray, scale: float) -> np.ndarray:
    """A square root of a covariance that may be singular to rounding."""
    for share in JITTER:
        try:
            return np.linalg.cholesky(matrix + share * scale * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0))
