"""Memory that does not suffice, as a sentence with what to do."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from credo.errors import OutOfMemory

ADVICE = "take a smaller network or minibatch, fewer chains, members or draws, or fewer rows at once"


@contextmanager
def memory_explained() -> Iterator[None]:
    """Turn what NumPy, JAX and Python raise where memory is short into OutOfMemory; also a decorator.

    Example:
        >>> import numpy as np
        >>> try:
        ...     with memory_explained():
        ...         np.zeros((10**7, 10**7))
        ... except OutOfMemory as error:
        ...     print(str(error)[:51])
        Memory is short (Unable to allocate 728. TiB for an
    """
    try:
        yield
    except Exception as error:
        if (sentence := short_of_memory(error)) is None:
            raise
        raise OutOfMemory(sentence) from error


def short_of_memory(error: BaseException) -> str | None:
    """The sentence for an error that says that memory is short; None for any other."""
    lines = str(error).splitlines()
    # By name: whoever only wants a sentence need not import JAX.
    from_jax = type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError") and "RESOURCE_EXHAUSTED" in str(error)
    if isinstance(error, OutOfMemory) or not (from_jax or isinstance(error, MemoryError)):
        return None
    reason = lines[0].removeprefix("RESOURCE_EXHAUSTED: ").rstrip(".") if lines else ""
    return f"Memory is short{f' ({reason})' if reason else ''}: {ADVICE}."


def check_room(size: float, left: float) -> None:
    """OutOfMemory where so many bytes are needed at least and fewer are left.

    Example:
        >>> try:
        ...     check_room(2e15, 4e9)
        ... except OutOfMemory as error:
        ...     print(str(error)[:66])
        Memory is short (at least 1862645.1 GiB are needed, 3.7 are left):
    """
    if size > left:
        raise OutOfMemory(
            f"Memory is short (at least {size / 2**30:.1f} GiB are needed, {left / 2**30:.1f} are left): {ADVICE}."
        )


def memory_left(table: Path = Path("/proc/meminfo")) -> float:
    """Bytes that a process can still have, swap included; where the system does not say, all that the machine has."""
    try:
        lines = dict(line.split(":", 1) for line in table.read_text(encoding="ascii").splitlines())
        return float(sum(1024 * int(lines[name].split()[0]) for name in ("MemAvailable", "SwapFree")))
    except (OSError, KeyError, ValueError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
