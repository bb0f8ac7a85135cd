"""One compilation cache for all workers, warnings about devices silenced, and the repository's root for everyone."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("CREDO_CACHE", str(ROOT / ".pytest_cache" / "credo"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import credo  # noqa: E402

credo.Model  # noqa: B018  configures JAX before any test touches it
