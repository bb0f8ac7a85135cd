"""Records of long runs: files that appear whole or not at all."""

import os
from pathlib import Path

from credo.errors import Unwritable


def write_whole(path: Path, content: str | bytes) -> None:
    """Put a text or bytes into a file, in place of what it held; its folder is made where there is none."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Unwritable(f"Cannot write {path}: {error.strerror or error}; make room first.") from error
