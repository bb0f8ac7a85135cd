"""Every example in a docstring runs and gives what it shows."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def examples():
    """Modules with examples; where many fit something or compile large networks they are in `make test-full`."""
    for path in sorted([*(ROOT / "src" / "credo").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]):
        text = path.read_text(encoding="utf-8")
        if ">>>" in text:
            parts = path.relative_to(ROOT).with_suffix("").parts
            slow = bool(SLOW & set(parts)) and ("fit(" in text or "steps=" in text or "networks" in parts)
            name = ".".join(parts).removeprefix("src.").removesuffix(".__init__")
            yield pytest.param(name, id=name, marks=[pytest.mark.full] if slow else [])


SLOW = {"methods", "applications", "audit", "diagnostics", "comparison", "networks"}
SLOW |= {"recalibration", "metrics", "export", "effects", "stacked"}
MODULES = list(examples())


def test_there_are_examples():
    assert len(MODULES) > 20


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(importlib.import_module(name), report=True)
    assert tried > 0
    assert failed == 0
