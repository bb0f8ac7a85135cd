"""ArviZ, imported when it is first needed: it takes longer than most fits."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any


def arviz() -> Any:
    """The package, without its note of the day about version 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as package

    return package


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """ArviZ warns in its own words; what it found is said in sentences of the result instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
