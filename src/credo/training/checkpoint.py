"""Checkpoints: Orbax for the state, one safetensors file for each stretch of trace and draws.

Draws that are too many for memory lie in files of their own, to which a fit appends; see `credo.training.record`.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.core.tree import paths
from credo.errors import ArtifactError, InputError

PyTree = Any


class Checkpoint:
    """A folder to save to and resume from.

    Args:
        folder: where; made when first needed.
        every: seconds between two saves.
    """

    def __init__(self, folder: str | os.PathLike, every: float = 30.0):
        self.folder = Path(folder).absolute()
        self.every = every
        self._manager: Any = None

    @staticmethod
    def of(value: Any) -> "Checkpoint | None":
        """A checkpoint from a path, from itself, or none."""
        return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)

    def _open(self) -> Any:
        if self._manager is None:
            import orbax.checkpoint as ocp

            options = ocp.CheckpointManagerOptions(max_to_keep=2, create=True, enable_async_checkpointing=False)
            self._manager = ocp.CheckpointManager(self.folder / "state", options=options)
        return self._manager

    def save(self, number: int, carry: PyTree, host: dict[str, Any], segments: dict[str, Any]) -> None:
        """Write what is new since the last save, then the state that refers to it; a kill in between loses nothing.

        `host["segments"]` lists the segments that belong to this state, the new ones included.
        """
        import orbax.checkpoint as ocp

        for name, segment in segments.items():
            write_arrays(self.folder / "segments" / name, segment)
        leaves = {str(i): np.asarray(x) for i, x in enumerate(jax.tree.leaves(carry))}
        items = ocp.args.Composite(carry=ocp.args.StandardSave(leaves), host=ocp.args.JsonSave(host))
        self._open().save(number, args=items, force=True)
        self._open().wait_until_finished()

    def newest(self) -> int | None:
        """The number of the last whole checkpoint."""
        return self._open().latest_step() if (self.folder / "state").exists() else None

    def host(self) -> dict[str, Any]:
        """The host's part of the last checkpoint."""
        import orbax.checkpoint as ocp

        try:
            return self._open().restore(self.newest(), args=ocp.args.Composite(host=ocp.args.JsonRestore()))["host"]
        except (ValueError, OSError, KeyError) as error:
            raise ArtifactError(f"The checkpoint in {self.folder} is damaged: {error}.") from error

    def restore(self, like: PyTree) -> PyTree:
        """The saved carry, with the structure, shapes and types of `like`."""
        import orbax.checkpoint as ocp

        leaves, treedef = jax.tree.flatten(like)
        target = {str(i): np.zeros(x.shape, x.dtype) for i, x in enumerate(leaves)}
        args = ocp.args.Composite(carry=ocp.args.StandardRestore(target))
        saved = self._open().restore(self.newest(), args=args)["carry"]
        return jax.tree.unflatten(treedef, [saved[str(i)] for i in range(len(leaves))])

    def save_start(self, stage: int, phase: int, carry: PyTree) -> None:
        """Keep the carry of a phase's first step: a phase that turns non-finite after a resume goes back there."""
        leaves = [np.ascontiguousarray(np.asarray(x)) for x in jax.tree.leaves(carry)]
        # As bytes: safetensors does not know every type of JAX.
        write_arrays(self._start(stage, phase), {str(i): x.reshape(-1).view(np.uint8) for i, x in enumerate(leaves)})

    def phase_start(self, stage: int, phase: int, like: PyTree) -> PyTree:
        """What `save_start` kept, with the structure, shapes and types of `like`."""
        from safetensors.numpy import load_file

        leaves, treedef = jax.tree.flatten(like)
        kept = load_file(self._start(stage, phase))
        return jax.tree.unflatten(treedef, [kept[str(i)].view(x.dtype).reshape(x.shape) for i, x in enumerate(leaves)])

    def _start(self, stage: int, phase: int) -> Path:
        return self.folder / "starts" / f"{stage}-{phase}.safetensors"

    def segment(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of one stretch."""
        from safetensors.numpy import load_file

        return load_file(self.folder / "segments" / name)

    def draws(self, stage: int, phase: int) -> Path:
        """The name of the files for draws that are too many for memory."""
        return self.folder / "draws" / f"{stage}-{phase}"

    def clear(self) -> None:
        """Remove the folder: the run is finished and saved elsewhere."""
        if self._manager is not None:
            self._manager.close()
            self._manager = None
        shutil.rmtree(self.folder, ignore_errors=True)


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a safetensors file whole or not at all."""
    from safetensors.numpy import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        save_file({k: np.asarray(v, order="C") for k, v in arrays.items()}, temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_fingerprint(saved: str, expected: str, folder: Path) -> None:
    """Refuse to continue another run."""
    if saved != expected:
        raise InputError(
            f"The checkpoint in {folder} belongs to a run with other data or settings; remove it or choose another."
        )


def pack(prefix: str, tree: PyTree) -> dict[str, np.ndarray]:
    """The arrays of a tree under string names."""
    return {f"{prefix}/{path}": np.asarray(x) for path, x in zip(paths(tree), jax.tree.leaves(tree))}
