"""Users' arrays for JAX: converted on the host, where overflow is noticed."""

import numbers
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from credo.core.pieces import release
from credo.core.short import is_array
from credo.core.typing import PyTree
from credo.errors import InputError

PIECE_BYTES = 2**26  # of a memory map, looked at in one go
LARGEST = float(np.finfo(np.float32).max)
NATIVE_TYPES = tuple(np.dtype(name) for name in ("float32", "int8", "int16", "int32", "uint8", "uint16", "uint32"))


class Mapped:
    """A memory map whose rows are converted when they are read.

    Example:
        >>> rows = Mapped(np.array([[1.5], [2.5]]), np.dtype("float32"))
        >>> rows[:1].dtype, len(rows)
        (dtype('float32'), 2)
    """

    def __init__(self, array: np.ndarray, dtype: np.dtype):
        self.array, self.dtype = array, dtype
        self.shape, self.ndim = array.shape, array.ndim
        self.nbytes = array.size * dtype.itemsize
        self.filename = array.filename if isinstance(array, np.memmap) else None

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.array[index]).astype(self.dtype)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self[:] if dtype is None else self[:].astype(dtype)


def is_mapped(x: Any) -> bool:
    """Does the array lie on disk?"""
    return isinstance(x, Mapped) or (isinstance(x, np.memmap) and x.filename is not None)


def host_arrays(tree: PyTree, what: str = "Inputs") -> PyTree:
    """`host_array` of every array of a tree; a list of numbers, or of such lists, is one array."""
    arrays = jax.tree.map(lambda x: host_array(x, what), tree, is_leaf=_is_rows)
    if not jax.tree.leaves(arrays):
        raise InputError(f"{what} hold no arrays, got {type(tree).__name__}; give an array or a tree of them.")
    return arrays


def host_array(x: Any, what: str = "Inputs", *, finite: bool = True) -> Any:
    """Numbers as JAX holds them in single precision, or a sentence; JAX itself would let them overflow silently.

    Integers (tokens, pixels) keep their type, and are int32 where they have 64 bits and fit; all else is float32.
    Arrays that are of such a type already are not copied, and memory maps are converted when they are read.

    Args:
        x: an array of any library, a memory map, a number or nested lists of numbers.
        what: what it is, for the sentence.
        finite: refuse NaN and infinite values.

    Example:
        >>> host_array([5_000_000_000]).dtype, host_array([7]).dtype
        (dtype('float32'), dtype('int32'))
    """
    if isinstance(x, Mapped):
        return x
    array = _as_numeric(x, what)
    target = _target(array, what, finite)
    if array.dtype == target:
        return array
    return Mapped(array, target) if is_mapped(array) else np.asarray(array).astype(target)


def operand(x: Any, what: str) -> Any:
    """An argument of a function of JAX arrays: those pass, all else becomes numbers that JAX does not let wrap around.

    Integers of 64 bits are int32 where they fit, else doubles; doubles stay, so that NumPy computes in them what it
    computes, and so do Python's own numbers, which take the precision of what they meet. NaN and infinite values stay.

    Example:
        >>> operand([5_000_000_000], "Values").tolist(), operand([True], "Labels").dtype
        ([5000000000.0], dtype('bool'))
    """
    if isinstance(x, jax.Array):
        if jax.dtypes.issubdtype(x.dtype, np.number) and not jax.dtypes.issubdtype(x.dtype, np.complexfloating):
            return x
        return x if x.dtype == bool else _as_numeric(x, what)
    array = np.asarray(_as_numeric(x, what))
    if type(x) in (int, float):
        return x if abs(x) < 2**31 else float(x)
    if array.dtype.kind == "f":
        if jax.dtypes.canonicalize_dtype(np.float64) == np.float32:
            _target(array, what, finite=False)
        return array if array.dtype in (np.float16, np.float32) else array.astype(np.float64, copy=False)
    if array.dtype.kind == "b":
        return array
    target = _target(array, what, finite=False)
    return array.astype(np.float64 if target == np.float32 else target, copy=False)


def host_floats(x: Any, what: str) -> np.ndarray:
    """Finite numbers as an array of doubles, or a sentence.

    Example:
        >>> host_floats([1, 2**40], "Weights").tolist()
        [1.0, 1099511627776.0]
    """
    array = host_doubles(x, what)
    if not np.isfinite(array).all():
        raise InputError(f"{what} contain NaN or infinite values; remove or replace those rows.")
    return array


def host_targets(likelihood: Any, targets: Any) -> np.ndarray:
    """Targets as the likelihood wants them, in a type of JAX; the likelihood decides whether NaN is allowed."""
    return np.asarray(host_array(likelihood.prepare(_as_array(targets, "Targets")), "Targets", finite=False))


def refuse_masked(x: Any, what: str) -> None:
    """A sentence where an array hides some of its entries: NumPy's functions would show them again."""
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{what} came as a masked array; fill the masked entries, or drop those rows.")


def host_doubles(x: Any, what: str) -> np.ndarray:
    """Numbers as an array of doubles, or a sentence; NaN stays."""
    return np.asarray(_as_numeric(x, what)).astype(np.float64)


def has_nan(tree: PyTree) -> bool:
    """Is any number of a tree of arrays, which may lie on disk, not a number?"""
    kinds = [(x, x.dtype if is_array(x) else type(x)) for x in jax.tree.leaves(tree)]
    floats = [x for x, kind in kinds if jax.dtypes.issubdtype(kind, np.floating)]
    result = any(bool(np.isnan(piece).any()) for x in floats for piece in _pieces(np.asarray(x)))
    release(tree)
    return result


def _is_rows(x: Any) -> bool:
    """Is a list or tuple one array written out, rather than a tree of arrays?"""
    while isinstance(x, list) or type(x) is tuple:
        if not x:
            return True
        x = x[0]
    return x is None or isinstance(x, numbers.Number | str | bytes | np.generic)


def _as_array(x: Any, what: str) -> np.ndarray:
    """An array of whatever type."""
    if x is None:
        raise InputError(f"{what} are missing: got None.")
    refuse_masked(x, what)
    try:
        return x if isinstance(x, np.ndarray) else np.asarray(x)
    except (ValueError, TypeError, RuntimeError):  # lists of unequal length; tensors that are elsewhere
        raise InputError(f"{what} do not make one array of numbers; give rows of equal length.") from None


def _as_numeric(x: Any, what: str) -> np.ndarray:
    """An array of a NumPy number type."""
    array = _as_array(x, what)
    if array.dtype.kind == "O":
        return _from_objects(array, what)
    if array.dtype.kind in "fiub":
        return array
    if jax.dtypes.issubdtype(array.dtype, np.floating):  # bfloat16 and its like, which NumPy does not know
        return array.astype(np.float32)
    advice = "take real and imaginary parts as columns" if array.dtype.kind == "c" else "encode them as numbers"
    raise InputError(f"{what} must be numeric, got dtype {array.dtype}; {advice}.")


def _from_objects(array: np.ndarray, what: str) -> np.ndarray:
    """Python's numbers (of any size, `Decimal`, `Fraction`) as doubles; missing ones are NaN."""
    for entry in array.flat:
        real = isinstance(entry, numbers.Number) and not isinstance(entry, complex | np.complexfloating)
        if not (real or isinstance(entry, np.bool_) or entry is None or type(entry).__name__ in ("NAType", "NaTType")):
            raise InputError(f"{what} must be numeric, got {_shown(entry)} among them; encode it as a number.")
    try:
        missing = [not isinstance(entry, numbers.Number | np.bool_) for entry in array.flat]
        values = [np.nan if is_missing else float(entry) for is_missing, entry in zip(missing, array.flat)]
    except (OverflowError, ValueError, ArithmeticError):
        raise InputError(f"{what} hold a number beyond double precision (1.8e308); divide that column.") from None
    return np.array(values, np.float64).reshape(array.shape)


def _shown(entry: Any) -> str:
    if isinstance(entry, str | bytes):
        text = repr(entry)
        return text if len(text) < 40 else text[:37] + "…"
    return f"a {type(entry).__name__}"


def _target(array: np.ndarray, what: str, finite: bool) -> np.dtype:
    """The type in which JAX takes the array; looks at every number where some might not do."""
    if array.dtype.kind in "iu":
        native = array.dtype.newbyteorder("=")
        if native in NATIVE_TYPES:
            return native
        return np.dtype(np.int32 if _fits(array) else np.float32)
    if array.dtype.kind == "f":
        for piece in _pieces(array):
            _check(piece, what, finite)
    return np.dtype(np.float32)


def _fits(array: np.ndarray) -> bool:
    ends = np.iinfo(np.int32)
    return all(not p.size or (p.min() >= ends.min and p.max() <= ends.max) for p in _pieces(array))


def _check(piece: np.ndarray, what: str, finite: bool) -> None:
    piece = piece if finite else piece[np.isfinite(piece)]
    if not piece.size:
        return
    ends = piece.min(), piece.max()  # NaN where there is one
    if not np.isfinite(ends).all():
        raise InputError(f"{what} contain NaN or infinite values; remove or replace those rows.")
    largest = max(abs(end) for end in ends)
    if piece.dtype.itemsize > 4 and largest > LARGEST:
        raise InputError(
            f"{what} hold {largest:.3g}, beyond the largest number of single precision ({LARGEST:.2g}); "
            "divide that column."
        )


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    """The array in parts that are small in memory."""
    if array.ndim == 0 or not array.size:
        yield np.asarray(array)
        return
    step = max(1, PIECE_BYTES * len(array) // max(1, array.nbytes))
    for start in range(0, len(array), step):
        yield np.asarray(array[start : start + step])
