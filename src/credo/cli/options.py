"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

# Keys have 32 bits where JAX computes in single precision: a larger seed would give the numbers of a smaller one.
MOST_SEED = 2**32 - 1

Run = Annotated[Path, typer.Argument(help="Run directory of a fit.", show_default=False)]
Inputs = Annotated[Path, typer.Argument(help="Table with the input columns.", show_default=False)]
Table = Annotated[Path, typer.Argument(help="CSV (also .gz), TSV, Parquet, Feather or Excel.", show_default=False)]
Target = Annotated[
    list[str],
    typer.Option(help="Column to predict; repeat it for several numbers at once.", show_default=False, metavar="COL"),
]
Task = Annotated[str, typer.Option(help="auto, regression, classification or count.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column that is no input; may be repeated.", metavar="COL")]
Missing = Annotated[
    str, typer.Option(help="Missing cells: auto (learns what a gap means), error, drop (leaves rows out) or impute.")
]
SplitBy = Annotated[str | None, typer.Option(help="Hold out whole groups of this column.", metavar="COL")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.", min=0, max=MOST_SEED)]
TableOut = Annotated[
    Path | None, typer.Option(help="File to write (CSV, Parquet, Feather).", show_default="CSV on stdout")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print all scores, notes and alarms.")]
