"""One compilation cache for all workers, rare garbage collection, and few compiled programs at a time."""

import gc
import itertools
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("CREDO_CACHE", str(ROOT / ".pytest_cache" / "credo"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import credo  # noqa: E402

credo.Model  # noqa: B018  configures JAX before any test touches it


COUNT = itertools.count(1)


def pytest_collection_finish():
    """Tracing makes many objects that live on: looking for garbage among them all the time costs 6 % of a run."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(autouse=True)
def few_programs():
    """Forget compiled programs before their memory maps reach the system's limit (65,530), where a compiler crashes."""
    yield
    maps = Path("/proc/self/maps")
    if next(COUNT) % 16 == 0 and maps.exists() and maps.read_text().count("\n") > 25_000:
        import jax

        jax.clear_caches()
