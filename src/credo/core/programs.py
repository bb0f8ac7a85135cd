"""Compiled programs in this process: counted, and released before a limit of the system is reached.

On a CPU every compiled program is some fifty memory mappings. Linux allows a process `vm.max_map_count` of them, 65,530
by default, and the compiler aborts the process where it gets no more. Nothing is lost with a program that is released:
the next call traces it again and finds the compiled code in the cache on disk.
"""

import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.extend

MAPS, MAX_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
SHARE = 0.4  # of what is allowed: from here on programs are let go
LEFT = 0.5  # of that share: below it no more are let go
MAPPINGS_OF_ONE = 200  # no program has been seen with more
MOST_PROGRAMS = 1000  # where the system does not show its mappings
CODE_SHARE = 0.1  # of a device's memory that compiled code may take, where both are known


class Load(NamedTuple):
    """What compiled programs take up: their number, mappings of the process and bytes of code (0: not known)."""

    programs: int
    mappings: int
    code_bytes: int

    def over(self, share: float) -> bool:
        """Is this more than that share of what is allowed?"""
        if self.mappings:
            full = self.mappings > share * allowed_mappings()
        else:
            full = self.programs > share / SHARE * MOST_PROGRAMS
        memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit", 0)
        return full or (memory > 0 and self.code_bytes > share / SHARE * CODE_SHARE * memory)


def mappings() -> int:
    """Memory mappings of this process; 0 where the system does not show them."""
    try:
        with MAPS.open("rb") as file:
            return sum(piece.count(b"\n") for piece in iter(lambda: file.read(2**16), b""))
    except OSError:
        return 0


def allowed_mappings() -> int:
    """Mappings that the system allows a process."""
    try:
        return int(MAX_MAPS.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 65_530


def load() -> Load:
    """What the programs of this process take up now."""
    programs = jax.extend.backend.get_backend().live_executables()
    return Load(len(programs), mappings(), sum(p.size_of_generated_code_in_bytes() for p in programs))


_last = Load(0, 0, 0)  # what was counted last


def tidy(share: float = SHARE) -> bool:
    """Let go of compiled programs where they take more than this share of what is allowed; True where it did.

    credo's own programs go first, those with most variants before others, until half of the share is left; then all of
    JAX's. Functions that the user compiled work as before, and so do fits: what is called again is compiled again.
    """
    global _last
    live = len(jax.extend.backend.get_backend().live_executables())
    # Reading 30,000 mappings takes 20 ms: they are counted only once there are enough programs to matter.
    room = (share * allowed_mappings() - _last.mappings) / MAPPINGS_OF_ONE if _last.mappings else 0
    if abs(live - _last.programs) < room:
        return False
    _last = load()
    if not _last.over(share):
        return False
    for function in _credo_functions():
        function.clear_cache()
        _last = load()
        if not _last.over(LEFT * share):
            return True
    jax.clear_caches()
    _last = load()
    return True


def _credo_functions() -> list[Any]:
    """credo's compiled functions that hold programs, those with most of them first."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "credo" and module]
    values = {id(v): v for module in modules for v in list(vars(module).values()) if hasattr(v, "clear_cache")}
    functions = [v for v in values.values() if hasattr(v, "_cache_size") and v._cache_size() > 0]
    return sorted(functions, key=lambda v: -v._cache_size())
