"""The flags of `make test` are those that the installed XLA knows."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tools" / "xla_flags.py"
spec = importlib.util.spec_from_file_location("xla_flags", PATH)
xla_flags = importlib.util.module_from_spec(spec)
spec.loader.exec_module(xla_flags)


def test_what_the_tool_prints_starts_jax():
    found = subprocess.run([sys.executable, str(PATH)], capture_output=True, text=True, check=True, timeout=300)
    flags = found.stdout.strip()
    assert set(flags.split()) <= set(xla_flags.QUICK)
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; print(jax.devices()[0].platform)"]
    assert subprocess.run(command, env=env, capture_output=True, text=True, timeout=300).stdout.strip() == "cpu"


def test_a_flag_that_xla_does_not_know_is_left_out():
    """`--xla_no_such_flag` alone would end the process."""
    right = "--xla_cpu_enable_fast_math=false"
    assert xla_flags.supported([right, "--xla_no_such_flag=1"]) == [right]


def test_the_makefile_names_no_flag_itself():
    assert "--xla" not in (ROOT / "Makefile").read_text(encoding="utf-8")
