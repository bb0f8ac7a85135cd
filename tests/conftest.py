"""One compilation cache for all workers, rare garbage collection, and few compiled programs at a time."""

import gc
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("CREDO_CACHE", str(ROOT / ".pytest_cache" / "credo"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import credo  # noqa: E402

credo.Model  # noqa: B018  configures JAX before any test touches it

from credo.core.programs import tidy  # noqa: E402


def pytest_collection_finish():
    """Tracing makes many objects that live on: looking for garbage among them all the time costs 6 % of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(autouse=True)
def few_programs():
    """Tests compile more than fits do: let go of programs as the library does after a fit."""
    yield
    tidy()


@pytest.fixture(autouse=True, scope="session")
def unwarned_fits():
    """Most fits here are too short to converge, and each would be looked at; tests of the warning undo this."""
    from credo.training.warn import unwarned

    with unwarned():
        yield
