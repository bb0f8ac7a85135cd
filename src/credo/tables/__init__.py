"""Tables: fits on them, from a file or a data frame to predictions on the table's own scale.

`fit` learns from a table and gives a `Run`; `load` reads the run directory that it or `credo fit` wrote, and `resume`
finishes one that was stopped.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credo.tables.fitting import fit as fit
    from credo.tables.fitting import resume as resume
    from credo.tables.run import Run as Run
    from credo.tables.run import load as load

# Loaded when first used: parts of this package are needed where JAX is not.
_NAMES = {"Run": "run", "fit": "fitting", "load": "run", "resume": "fitting"}


def __getattr__(name: str) -> Any:
    from credo.registry import load

    if name not in _NAMES:
        raise AttributeError(f"module 'credo.tables' has no attribute {name!r}")
    return load(f"credo.tables.{_NAMES[name]}:{name}")


def __dir__() -> list[str]:
    return sorted([*_NAMES, *(name for name in globals() if not name.startswith("_"))])
