"""One compilation cache for all workers, rare garbage collection, and few compiled programs at a time."""

import gc
import os
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("CREDO_CACHE", str(ROOT / ".pytest_cache" / "credo"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import credo  # noqa: E402

credo.Model  # noqa: B018  configures JAX before any test touches it

import shapes  # noqa: E402
from credo.core.programs import tidy  # noqa: E402

shapes.install()

PROGRAMS_OF_A_CONTEXT = 200  # types and attributes stay in a context, so none lives for ever


def pytest_configure():
    """JAX makes an MLIR context for every program that it lowers, a tenth of a run: let many programs of a thread share
    one. Only for the quick run (the Makefile's QUICK): `make test-full` leaves JAX as it is."""
    from jax._src.interpreters import mlir

    make = getattr(mlir, "make_ir_context", None)
    if make is None or not os.environ.get("JAX_DISABLE_MOST_OPTIMIZATIONS"):
        return
    kept = threading.local()

    def shared():
        uses = getattr(kept, "uses", 0)
        if uses % PROGRAMS_OF_A_CONTEXT == 0:
            kept.context = make()
        kept.uses = uses + 1
        return kept.context

    mlir.make_ir_context = shared


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
