"""`credo resume`: finish a run that was killed or stopped."""

from pathlib import Path
from typing import Annotated

import typer

from credo.cli.console import say
from credo.cli.options import AsJson, Verbose


def resume(
    run: Annotated[Path, typer.Argument(help="Run directory of an unfinished fit.", show_default=False)],
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Continue RUN from its last checkpoint; the result is that of a run that was never stopped."""
    from credo.cli.fit import finish
    from credo.tables.job import job_file

    if not job_file(run).is_file():
        from credo.storage.run_directory.read import read_versions

        read_versions(run)
        say(f"The run {run} is finished; there is nothing to resume.")
        return
    from credo import tables

    finish(tables.resume(run, tell=say), as_json, verbose)
