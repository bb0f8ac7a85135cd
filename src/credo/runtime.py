"""Set-up of JAX that must happen before its first use: one virtual device per core, and a compilation cache."""

import os
from functools import cache
from pathlib import Path


def cache_folder() -> Path:
    """Where compiled programs are kept between processes."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("CREDO_CACHE", user_cache_dir("credo"))) / "programs"


@cache
def configure() -> None:
    """Give the CPU one device per core and keep compiled programs, unless the user has decided otherwise.

    Whatever part of credo is imported first calls it; only the first call acts.
    """
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    flags = os.environ.get("XLA_FLAGS", "")
    if cores > 1 and getattr(jax.config, "jax_num_cpu_devices", -1) < 1 and "device_count" not in flags:
        try:
            jax.config.update("jax_num_cpu_devices", cores)
        except RuntimeError:
            # JAX is already running: members share the devices there are.
            import warnings

            if jax.default_backend() == "cpu":
                warnings.warn(
                    "JAX was used before credo was imported, so chains and members share one CPU device; import credo "
                    "first to spread them over the cores.",
                    stacklevel=4,
                )
    if not getattr(jax.config, "jax_compilation_cache_dir", None):
        jax.config.update("jax_compilation_cache_dir", str(cache_folder()))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
