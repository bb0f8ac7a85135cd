"""The developer pages are true to the code: files that they name exist, and the capability list is complete."""

import re
from pathlib import Path

import pytest

from credo.registry import ROWS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "developer").glob("*.md"))
LIST = (ROOT / "docs" / "developer" / "capabilities.md").read_text(encoding="utf-8")
COUNTS = {"A": 4, "B": 6, "C": 5, "D": 7, "E": 3, "F": 4, "G": 4, "H": 6, "I": 5}
ITEM = re.compile(r"^- \*\*([A-I]\d) [^*]+\*\*[^·]*· (here|in part|not yet)\b(.*?)(?=^- \*\*|^## |\Z)", re.M | re.S)


def exists(name: str) -> bool:
    return any((base / name).exists() for base in (ROOT, ROOT / "src" / "credo"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    """Anything in backticks that ends in .py or / is a path; so is what begins with tests/."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+(?:\.py|\.md|/))`", text) + re.findall(r"\b(tests/[\w/.]*\w)", text)
    future = {"utils.py"}
    assert not [name for name in named if name not in future and not exists(name)]


def test_sizes_in_the_design_are_those_of_the_code():
    from credo.core.predict import CHUNK_BYTES
    from credo.core.tree import FLAT_LIMIT
    from credo.training.block import BLOCK_STEPS, BULK_BYTES
    from credo.training.loop import BLOCK_SECONDS

    text = (ROOT / "docs" / "developer" / "design.md").read_text(encoding="utf-8")
    sizes = [f"{BLOCK_STEPS} steps", f"{BLOCK_SECONDS} s", f"{FLAT_LIMIT:,} numbers"]
    sizes += [f"{BULK_BYTES // 2**20} MB", f"{CHUNK_BYTES // 2**20} MB"]
    assert not [size for size in sizes if size not in " ".join(text.split())]


def test_capability_list_is_complete():
    ids = [match[1] for match in ITEM.finditer(LIST)]
    assert ids == [f"{letter}{i}" for letter, count in COUNTS.items() for i in range(1, count + 1)]


def test_marks_say_where_and_what_is_missing():
    for match in ITEM.finditer(LIST):
        name, mark, text = match.groups()
        assert ("*Where:*" in text) == (mark != "not yet"), name
        assert ("*Missing" in text) == (mark == "in part"), name


def test_registered_capabilities_are_marked():
    marks = {match[1]: match[2] for match in ITEM.finditer(LIST)}
    for row in ROWS:
        for name in row.capability.split(", "):
            assert marks[name] != "not yet", f"{row.name} claims {name}"
