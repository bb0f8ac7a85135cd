"""Opening a run that was made from a table."""

from pathlib import Path

from credo.errors import ArtifactError
from credo.runs import Run, open_run


def open_table_run(folder: Path) -> Run:
    """The run, or a sentence where it has no encoder and hence cannot read tables."""
    run = open_run(folder)
    if run.encoder is None:
        raise ArtifactError(
            f"The run {folder} was made from arrays, not from a table; use credo.load and credo.predict in Python."
        )
    return run
