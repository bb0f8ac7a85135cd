"""Ways to spoil a folder of files, drawn from a seeded generator: what disks, networks and ill will do to them."""

import json
import os
import shutil
from pathlib import Path

import numpy as np

VALUES = (
    None, True, -1, 0, 10**30, -(10**30), 1e308, float("nan"), float("inf"), "", "x", "NaN", "../..", [], {}, [[]],
    {"$type": "core.Model", "fields": {}}, {"$array": "nothing"}, {"$float": "x"}, {"$tuple": 3}, {"$dict": [[[], 1]]},
)  # fmt: skip


def copied(source: Path, place: Path) -> Path:
    """The folder again, in the place of whatever stood there."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place, symlinks=True)
    return place


def files_of(folder: Path) -> list[Path]:
    """All files of a folder, in a fixed order."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def spoil_bytes(rng: np.random.Generator, path: Path) -> str:
    """Flip bits, cut off, append, overwrite."""
    content = bytearray(path.read_bytes())
    how = rng.choice(["flip", "flip", "flip", "cut", "empty", "append", "zeros", "noise", "swap"])
    place = int(rng.integers(max(1, len(content))))
    if how == "flip" and content:
        for at in rng.integers(len(content), size=rng.integers(1, 4)):
            content[at] ^= 1 << int(rng.integers(8))
    elif how == "cut":
        content = content[:place]
    elif how == "empty":
        content = bytearray()
    elif how == "append":
        content += rng.bytes(int(rng.integers(1, 64)))
    elif how == "zeros":
        content[place : place + 16] = bytes(len(content[place : place + 16]))
    elif how == "noise":
        content[place : place + 16] = rng.bytes(len(content[place : place + 16]))
    elif how == "swap":
        content = content[place:] + content[:place]
    path.write_bytes(bytes(content))
    return str(how)


def spoil_place(rng: np.random.Generator, path: Path) -> str:
    """Another kind of thing where the file was."""
    how = str(rng.choice(["gone", "folder", "endless", "pipe", "loop", "dangling", "outside", "locked"]))
    content = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "loop":
        path.symlink_to(path.name)
    elif how == "dangling":
        path.symlink_to("nowhere")
    elif how == "outside":
        other = path.parents[1] / f"outside-{path.name}"
        other.write_bytes(content)
        path.symlink_to(other)
    elif how == "locked":
        path.write_bytes(content)
        path.chmod(0)
    return how


def spoil_document(rng: np.random.Generator, path: Path) -> str:
    """JSON that is JSON, but not what was written: other values, lacking and strange keys, and depth."""
    how = str(rng.choice(["value", "value", "value", "value", "lacks", "renamed", "deep", "deep list", "whole"]))
    if how.startswith("deep"):
        ends = ('{"a":', "}") if how == "deep" else ("[", "]")
        depth = int(rng.choice([150, 5_000, 200_000]))
        path.write_text(ends[0] * depth + "1" + ends[1] * depth, encoding="utf-8")
        return how
    document = json.loads(path.read_text(encoding="utf-8"))
    value = VALUES[int(rng.integers(len(VALUES)))]
    holders = _holders(document)
    if how == "whole" or not holders:
        document = value
    else:
        holder = holders[int(rng.integers(len(holders)))]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = keys[int(rng.integers(len(keys)))]
        if how == "value":
            holder[key] = value
        else:
            old = holder.pop(key)
            if how == "renamed" and isinstance(holder, dict):
                holder[f"{key}x"] = old
    path.write_text(json.dumps(document), encoding="utf-8")
    return how


def _holders(document: object) -> list:
    """Every list and table inside a document that holds something."""
    found, left = [], [document]
    while left:
        item = left.pop()
        if isinstance(item, dict | list) and item:
            found.append(item)
            left += list(item.values()) if isinstance(item, dict) else item
    return found
