"""What a study has done so far, in a folder: scores of each model and attack, and the settings they belong to."""

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from credo.errors import ArtifactError, InputError
from credo.storage.archives import read_arrays, read_json
from credo.storage.atomic_write import write_file

FILE = "study.json"


class Record:
    """Arrays by model and attack, each file written whole or not at all; without a folder nothing is kept.

    Args:
        folder: where, or None.
        settings: what the scores depend on; a folder with others is refused.
    """

    def __init__(self, folder: Path | None, settings: dict[str, Any]):
        self.folder, self.settings = folder, settings
        if folder is None:
            return
        place = folder / FILE
        if place.exists():
            try:
                before = read_json(place)["settings"]
                changed = sorted(k for k in before.keys() | settings.keys() if before.get(k) != settings.get(k))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise ArtifactError(f"{place} is not a record of a study: remove it or name another folder.") from error
            if changed:
                raise InputError(
                    f"{folder} holds a study with other settings ({', '.join(changed)}): name another folder or "
                    "repeat them."
                )
        else:
            self.finish({})

    def _place(self, model: str, name: str) -> Path:
        assert self.folder is not None
        return self.folder / (re.sub(r"[^\w.=-]+", "_", f"{model}--{name or 'clean'}") + ".npz")

    def read(self, model: str, name: str) -> dict[str, np.ndarray] | None:
        """What was kept, or None."""
        if self.folder is None or not self._place(model, name).exists():
            return None
        try:
            return read_arrays(self._place(model, name))
        except (ValueError, OSError) as error:
            raise ArtifactError(f"{self._place(model, name)} is damaged: remove it to compute it again.") from error

    def same(self, model: str, clean: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Clean scores are computed each time: where they differ from those kept, the model is another one."""
        before = self.read(model, "")
        if before is None:
            self.write(model, "", clean)
            return clean
        if any(not np.allclose(before.get(k, np.nan), v, rtol=1e-3, atol=1e-4) for k, v in clean.items()):
            raise InputError(f"{self.folder} holds scores of another model named {model!r}: name another folder.")
        return before

    def write(self, model: str, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Keep arrays."""
        if self.folder is None:
            return
        packed = io.BytesIO()
        np.savez_compressed(packed, allow_pickle=False, **arrays)
        write_file(self._place(model, name), packed.getvalue())

    def finish(self, table: dict[str, Any]) -> None:
        """Write the settings, and the table once it is there."""
        if self.folder is None:
            return
        write_file(self.folder / FILE, json.dumps({"settings": self.settings, **table}, indent=1) + "\n")
