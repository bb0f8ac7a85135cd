"""Opening a run that was made from a table."""

from pathlib import Path
from typing import Any

from credo.errors import ArtifactError
from credo.storage.run_directory.read import Run, open_run


def open_table_run(folder: Path) -> Run:
    """The run, or a sentence where it has no encoder and hence cannot read tables."""
    run = open_run(folder)
    if run.encoder is None:
        raise ArtifactError(
            f"The run {folder} was made from arrays, not from a table; use credo.load and credo.predict in Python."
        )
    return run


def read_rows(opened: Run, path: Path) -> Any:
    """The table in a file, read as the run's own was, having said what is unusual about the file."""
    from credo.cli.console import say
    from credo.tables.read.files import read_with_notes

    frame, notes = read_with_notes(path, opened.encoder.text_columns)
    say(*notes)
    return frame


def inputs_of(opened: Any, frame: Any) -> Any:
    """Encoded inputs, having said where categories are new."""
    from credo.cli.console import say
    from credo.tables.encode.unseen import unseen_notes

    inputs = opened.encoder.inputs(frame, unseen="zeros")
    say(*unseen_notes(opened.encoder, inputs))
    return inputs


def usable_rows(opened: Any, frame: Any, name: Path, fate: str) -> Any:
    """Numbers of the rows that can be predicted, having said how many cannot and what becomes of them."""
    import numpy as np

    from credo.cli.console import say
    from credo.errors import InputError

    rows = np.asarray(opened.encoder.keep(frame, target=False))
    if len(rows) == 0:
        raise InputError(f"Every row of {name} has a missing cell, and this run leaves such rows out.")
    if len(rows) < len(frame):
        say(f"{len(frame) - len(rows)} of {len(frame)} rows have missing cells{fate}.")
    return rows
