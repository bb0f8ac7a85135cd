"""Draws on disk: memory maps instead of arrays, read in pieces of bounded memory."""

import mmap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.typing import PyTree

PIECE_BYTES = 2**27  # draws that are in memory at once


def mapping(x: Any) -> mmap.mmap | None:
    """The memory map that an array is a view of; None where the array lies in memory."""
    while isinstance(x, np.ndarray):
        x = x.base
    return x if isinstance(x, mmap.mmap) else None


def release(*trees: PyTree) -> None:
    """Give the pages of read memory maps back: the kernel counts them as memory until then."""
    leaves = [x for x in jax.tree.leaves(trees) if isinstance(x, np.ndarray) and not x.flags.writeable]
    maps = {id(m): m for m in map(mapping, leaves) if m is not None}
    if hasattr(mmap, "MADV_DONTNEED"):
        for memory_map in maps.values():
            memory_map.madvise(mmap.MADV_DONTNEED)


def read(tree: PyTree, *index: Sequence[int] | np.ndarray) -> PyTree:
    """Copies of the entries at these indices of the leading axes, one list for each axis."""
    copies = jax.tree.map(lambda x: np.asarray(x)[np.ix_(*index)], tree)
    release(tree)
    return copies


def extent(x: np.ndarray) -> int:
    """Bytes from the first number of an array to its last: all that may become resident when a part of a file is read.

    Example:
        >>> extent(np.zeros((10, 100))[:, :2])
        7216
    """
    return x.itemsize + sum((n - 1) * abs(stride) for n, stride in zip(x.shape, x.strides)) if x.size else 0


def columns(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    """x[:, :, index] of an array [member, draw, number] that may lie on disk."""
    if mapping(x) is None or not x.size:
        return x[:, :, index]
    step = max(1, PIECE_BYTES // max(1, x[:, :1].nbytes, abs(x.strides[1])))
    parts = []
    for start in range(0, x.shape[1], step):
        parts.append(np.asarray(x[:, start : start + step])[:, :, index])
        release(x)
    return np.concatenate(parts, 1)


class Piece(NamedTuple):
    """Some members and draws of a posterior, in memory, and their position among those that were asked for.

    The posterior may be longer than its slices: all pieces have one shape, so that they share one program.
    """

    posterior: Any
    members: slice
    draws: slice


def pieces(posterior: Any, num: int | None) -> Iterator[Piece]:
    """About `num` stored draws of a posterior on disk: several whole members at a time, or parts of one."""
    members, draws = posterior.num_draws(num)
    index = posterior.chosen(num)
    draw_bytes = max(1, posterior.draw_bytes)
    side_by_side = _even(members, PIECE_BYTES // (draw_bytes * draws))
    step = _even(draws, PIECE_BYTES // draw_bytes)
    for m in range(0, members, side_by_side):
        member_index = np.minimum(np.arange(m, m + side_by_side), members - 1)
        for d in range(0, draws, step):
            draw_index = np.minimum(np.arange(d, d + step), draws - 1)
            part = posterior.part(member_index, index[draw_index])
            yield Piece(part, slice(m, min(m + side_by_side, members)), slice(d, min(d + step, draws)))


def _even(total: int, most: int) -> int:
    """The length of the fewest equal parts of `total` that are no longer than `most`."""
    parts = -(-total // max(1, most))
    return -(-total // parts)


def in_pieces(
    function: Callable[[Any, Any], PyTree], posterior: Any, num: int | None, blocks: Sequence[Any]
) -> list[PyTree]:
    """`function(posterior, block)`, leaves [member, draw, ...], for every block; each draw is read once for all."""
    shape = posterior.num_draws(num)
    results: list[PyTree] = [None] * len(blocks)
    for piece in pieces(posterior, num):
        part = jax.device_put(piece.posterior)
        index = (piece.members, piece.draws)
        for i, block in enumerate(blocks):
            values = jax.tree.map(np.asarray, function(part, block))
            if results[i] is None:
                results[i] = jax.tree.map(lambda x: np.empty((*shape, *x.shape[2:]), x.dtype), values)
            jax.tree.map(partial(_put, index), results[i], values)
    return results


def _put(index: tuple[slice, slice], target: np.ndarray, part: np.ndarray) -> None:
    members, draws = (s.stop - s.start for s in index)
    target[index] = part[:members, :draws]
