"""Tables: fits on them, from a file or a data frame to predictions on the table's own scale.

`fit` learns from a table and gives a `Run`; `load` reads the run directory that it or `credo fit` wrote, and `resume`
finishes one that was stopped.
"""

from typing import TYPE_CHECKING

from credo.registry import lazy

if TYPE_CHECKING:
    from credo.tables.fitting import fit as fit
    from credo.tables.fitting import resume as resume
    from credo.tables.run import Run as Run
    from credo.tables.run import load as load

# Loaded when first used: parts of this package are needed where JAX is not.
__getattr__, __dir__ = lazy(__name__, {
    "Run": "tables.run:Run", "fit": "tables.fitting:fit", "load": "tables.run:load", "resume": "tables.fitting:resume",
})  # fmt: skip
