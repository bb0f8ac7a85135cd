"""XLA's flags for quick compilation, those that the installed XLA knows: an unknown one ends the process that sets it.

    XLA_FLAGS="$(python tools/xla_flags.py)" python -m pytest

No table of versions tells which those are: XLA itself is asked.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

QUICK = (
    "--xla_cpu_use_fusion_emitters=false",  # the older code generator needs 60 % of the time; gone in jaxlib 0.11.1
    "--xla_cpu_parallel_codegen_split_count=1",
)


def supported(flags: Sequence[str]) -> list[str]:
    """The flags with which JAX starts."""
    if not flags or _starts(flags):
        return list(flags)
    return [flag for flag in flags if _starts([flag])]


def _starts(flags: Sequence[str]) -> bool:
    env = os.environ | {"XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(command, env=env, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    print(" ".join(supported(QUICK)))
