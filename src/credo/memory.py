"""Memory that does not suffice, as a sentence with what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

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
