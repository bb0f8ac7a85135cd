"""`credo methods`: the table of methods."""

from typing import Annotated

import typer

from credo.cli.console import emit


def methods(as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False) -> None:
    """List the inference methods."""
    from credo.registry import ROWS

    if as_json:
        emit([{name: getattr(row, name) for name in ("name", "summary", "capability", "exact_on")} for row in ROWS])
        return
    width = max(len(row.name) for row in ROWS)
    for row in ROWS:
        print(f"{row.name:<{width}}  {row.summary}")
