"""The record of a running fit: metrics of every step and the stored draws."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.core.draw_file import DrawFile, Stretch
from credo.core.tree import num_bytes
from credo.core.typing import PyTree
from credo.errors import ArtifactError

SPILL_BYTES = 2**28  # draws in memory; beyond that they go to a file


class Record:
    """Metrics [member, step] and draws [member, draw, ...] of one phase, in pieces as blocks deliver them.

    Args:
        path: the name of the file for draws that are too many for memory; None is a nameless file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.metrics: list[dict[str, np.ndarray]] = []
        self.draws: list[list[np.ndarray]] = []  # empty once there is a file
        self.treedef: Any = None
        self.stretch: Stretch | None = None  # the bytes of the file that the last `unsaved` counts on
        self.trouble = ""  # why the last draws could not be kept
        self._stem = path
        self._file: DrawFile | None = None
        self._bytes = 0
        self._cleared = 0
        self._saved = 0

    def add(self, metrics: dict[str, Any], draws: PyTree, num: int, num_draws: int, members: int) -> bool:
        """Take `num` steps and `num_draws` draws of the first `members` members from a block's buffers.

        False where draws cannot be written: `trouble` says why, and the record is unchanged.
        """
        leaves, self.treedef = jax.tree.flatten(draws)
        try:
            # Slicing on the host: a slice on the device would compile a program for every length.
            self._keep([np.asarray(x)[:members, :num_draws] for x in leaves])
        except ArtifactError as error:
            self.trouble = str(error)
            return False
        self.metrics.append({k: np.asarray(v)[:members, :num] for k, v in metrics.items()})
        return True

    def _keep(self, draws: list[np.ndarray]) -> None:
        self._bytes += num_bytes(draws)
        if self._file is None and self._bytes <= SPILL_BYTES:
            self.draws.append([np.array(x) for x in draws])
            return
        file = self._file or DrawFile(draws, self._path())
        for piece in [*self.draws, draws]:
            file.append(piece)
        self._file, self.draws = file, []

    @property
    def file(self) -> str:
        """The name of the file of draws."""
        path = self._path()
        return "" if path is None else path.name

    def _path(self) -> Path | None:
        """A phase that starts again writes another file: the last checkpoint still counts on the one before."""
        return self._stem and self._stem.with_name(f"{self._stem.name}-{self._cleared}.bin")

    def end_at(self, name: str) -> int:
        """Forget the metrics of the last block after the first step at which `name` was above 0 for every member.

        The number of steps from that one on, 0 where there was none. The length of blocks depends on the machine:
        without the cut so would the length of the trace.
        """
        last = self.metrics[-1]
        reached = np.all(last[name] > 0, axis=0)
        if not reached.any():
            return 0
        first = int(reached.argmax())
        self.metrics[-1] = {k: v[:, : first + 1] for k, v in last.items()}
        return last[name].shape[1] - first

    def clear(self) -> None:
        """Forget everything: the phase starts again."""
        self.metrics, self.draws, self._file, self._bytes, self._saved = [], [], None, 0, 0
        self._cleared += 1

    def trace(self) -> dict[str, np.ndarray]:
        """Metrics over all steps so far [member, step]."""
        if not self.metrics:
            return {}
        return {k: np.concatenate([m[k] for m in self.metrics], axis=1) for k in self.metrics[0]}

    def all_draws(self) -> PyTree:
        """Draws so far, memory maps where they lie in a file, or None where none are kept."""
        if self._file is not None:
            return jax.tree.unflatten(self.treedef, self._file.draws())
        if not self.draws or not self.draws[0]:
            return None
        return jax.tree.unflatten(self.treedef, [np.concatenate(x, axis=1) for x in zip(*self.draws)])

    @property
    def steps(self) -> int:
        """How many steps have been recorded."""
        return sum(next(iter(block.values())).shape[1] for block in self.metrics if block)

    def unsaved(self) -> dict[str, np.ndarray]:
        """The arrays since the last call, under names that `restore` reads.

        Draws in a file are safe there: only their number is given, and `stretch` says which bytes of `file` are new.
        """
        new = slice(self._saved, len(self.metrics))
        metrics, draws = self.metrics[new], self.draws[new]
        self._saved = len(self.metrics)
        if not metrics:
            return {}
        arrays = {f"metric/{k}": np.concatenate([m[k] for m in metrics], axis=1) for k in metrics[0]}
        if self._file is not None:
            self.stretch = self._file.sync()
            arrays["file"] = np.array([self._cleared, self._file.count])
            return arrays | {f"draw/{i}": x for i, x in enumerate(self._file.like())}
        return arrays | {f"draw/{i}": np.concatenate(x, axis=1) for i, x in enumerate(zip(*draws))}

    def forget_saved(self) -> None:
        """Make the next `unsaved` give everything, because the saved files were removed."""
        self._saved = 0
        if self._file is not None:
            self._file.rewind_sync()

    def restore(self, arrays: dict[str, np.ndarray], treedef: Any) -> None:
        """Take back a stretch that `unsaved` gave."""
        count = sum(k.startswith("draw/") for k in arrays)
        draws = [arrays[f"draw/{i}"] for i in range(count)]
        if "file" in arrays:
            self._cleared, written = map(int, arrays["file"])
            self._file, self.draws = DrawFile(draws, self._path(), written), []
        else:
            self._keep(draws)
        self.metrics.append({k.removeprefix("metric/"): v for k, v in arrays.items() if k.startswith("metric/")})
        self.treedef = treedef
        self._saved = len(self.metrics)
