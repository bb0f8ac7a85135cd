"""Set-up of JAX that must happen before its first use: one virtual device per core, and a compilation cache.

`import credo` must not import JAX, and settings in the environment would reach every process that the user starts. So
JAX is set up at once if it is there, and otherwise by an import hook as soon as it is.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

TOO_LATE = -1


def cache_folder() -> Path:
    """Where compiled programs are kept between processes."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("CREDO_CACHE", user_cache_dir("credo"))) / "programs"


@cache
def prepare() -> None:
    """Set JAX up now, or when it is imported; `import credo` calls it."""
    if hasattr(sys.modules.get("jax"), "config"):
        set_up()
    else:
        sys.meta_path.insert(0, AfterImport("jax", set_up))


class AfterImport:
    """A finder that finds a module where the others do, and calls a function once when the module has been executed."""

    def __init__(self, name: str, then: Callable[[], Any]):
        self.name, self.then = name, then

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name:
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((one for one in specs if one is not None), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.then()

        loader.exec_module = exec_module


@cache
def set_up() -> int:
    """Keep compiled programs, and give the CPU one device per core, unless the user has decided otherwise.

    Only the first call acts. Returns the number of devices, 0 where the user has decided or there is one core, and
    `TOO_LATE` where JAX has been used, so that it keeps the devices that it has.
    """
    from jax import config

    if not getattr(config, "jax_compilation_cache_dir", None):
        config.update("jax_compilation_cache_dir", str(cache_folder()))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2 or _devices() >= 1 or _flags_set_devices():
        return 0
    return cores if _set_devices(cores) else TOO_LATE


def _flags_set_devices() -> bool:
    return "device_count" in os.environ.get("XLA_FLAGS", "")


def _devices() -> int:
    from jax import config

    return getattr(config, "jax_num_cpu_devices", -1)


def _set_devices(number: int) -> bool:
    """Set the number of CPU devices; False where JAX has been used."""
    from jax import config

    try:
        config.update("jax_num_cpu_devices", number)
    except RuntimeError:
        return False
    return True


@cache
def configure() -> None:
    """Have JAX set up before a part of credo is imported that uses it; say so where that is too late."""
    import jax

    devices = set_up()
    if devices > 0 and _flags_set_devices() and _devices() == devices:
        _set_devices(-1)  # XLA's flags were set after JAX was imported: the user's word counts
    if devices == TOO_LATE and jax.default_backend() == "cpu":
        import warnings

        warnings.warn(
            "JAX was used before credo was imported, so chains and members share one CPU device; import credo first to "
            "spread them over the cores.",
            stacklevel=stack_depth(),
        )


def stack_depth() -> int:
    """The stacklevel of the first frame that is neither credo's nor the import system's, for warnings of the caller."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("credo", "importlib"):
        frame, depth = frame.f_back, depth + 1
    return depth
