"""What a fit on a table was asked to do, kept beside its checkpoint so that it can be resumed."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from credo.errors import ArtifactError, InputError
from credo.storage.archives import read_json
from credo.storage.atomic_write import write_file
from credo.tables.auto.choice import AUTO

CHECKPOINT = "checkpoint"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Every option of `credo.tables.fit`, the table by its path (empty for a data frame) and its digest."""

    table: str
    digest: str = ""
    target: list[str]
    task: str = "auto"
    method: str = AUTO
    network: str | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: int | None = None
    budget: str | float | None = None
    batch_size: int | None = None
    seed: int = 0
    holdout: float = 0.1
    missing: str = "auto"
    weights: str | None = None
    split_by: str | None = None
    time: str | None = None
    every: float = 30.0
    why: str = ""  # of a method that nobody named
    correction: dict[str, Any] | None = None  # of its likelihood, by the rows that its pilot had not seen
    planned: float | None = None  # seconds that were announced
    effort: str = "normal"
    drop: list[str] = dataclasses.field(default_factory=list)  # columns that are no inputs

    def write(self, run: Path) -> None:
        """Put the job into the run's checkpoint folder, whole or not at all."""
        plain = dataclasses.asdict(self)
        write_file(job_file(run), json.dumps(plain | {"seal": _seal(plain)}, indent=1))

    def check_table(self, table: Any) -> None:
        """Raise a sentence where the table is gone or is another one."""
        if not self.table and table is None:
            raise InputError(
                "This run learns from a data frame, which is in no file; pass it: credo.tables.resume(run, frame)."
            )
        if table is None and not Path(self.table).is_file():
            raise InputError(f"The table {self.table} that this run learns from is gone; put it back to resume.")
        if digest(self.table if table is None else table) != self.digest:
            raise InputError(
                f"The table {self.table or 'given'} has changed since this run began; put the old one back, or fit "
                "again."
            )


def job_file(run: Path) -> Path:
    """Where a run keeps its job while it is not finished."""
    return run / CHECKPOINT / "job.json"


def read_job(run: Path) -> Job:
    """The job of an unfinished run, or a sentence."""
    try:
        plain = read_json(job_file(run))
        seal = plain.pop("seal")
        job = Job(**plain)
        if seal != _seal(plain):
            raise ValueError("not what was written")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
        raise ArtifactError(f"The file {job_file(run)} is damaged; remove the run and fit again.") from error
    return job


def _seal(plain: dict[str, Any]) -> str:
    """A digest of all that a job says: a run must not go on with another seed or another number of steps."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def digest(table: Any) -> str:
    """The SHA-256 of a file, or of the cells of a data frame."""
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        with open(table, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    hashed = hashlib.sha256(repr([(str(name), str(kind)) for name, kind in table.dtypes.items()]).encode())
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        column = column.map(repr) if column.dtype == object else column  # lists have no hash
        hashed.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
    return hashed.hexdigest()
