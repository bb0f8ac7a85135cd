"""What a table has that no model learns from: sentences of the notes, and all of them in one."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHOWN = 3  # names for each reason
LONGEST = 40  # letters of a name
# How a reason begins → what it is in a list.
REASONS = {
    "numbers the rows": "row numbers",
    "looks like an id or free text": "id or free text",
    "has one value": "always the same",
    "has no values": "empty",
    "says the same as": "copy of another",
    "holds": "cannot be read",
}
COLUMN = re.compile(f"Column '(.*)' ({'|'.join(REASONS)})\\b.* and is left out\\.", re.DOTALL)
ROWS = re.compile(r"([\d,]+ of [\d,]+) (?:training )?rows have (.*) and are left out\.", re.DOTALL)


def left_out(name: object, reason: str) -> str:
    """The note on a column that is no input; its reason begins as one of `REASONS`."""
    return f"Column '{name}' {reason} and is left out."


def in_one_sentence(notes: Iterable[str]) -> str:
    """Everything that the notes say is left out; empty where nothing is.

    Example:
        >>> in_one_sentence([left_out("id", "numbers the rows"), left_out("mile", "says the same as 'km'")])
        'Left out: id (row numbers), mile (copy of another).'
    """
    rows: list[str] = []
    names: dict[str, list[str]] = {}
    for note in notes:
        if (found := COLUMN.fullmatch(note)) is not None:
            names.setdefault(REASONS[found[2]], []).append(short(found[1]))
        elif (found := ROWS.fullmatch(note)) is not None:
            rows.append(f"{found[1]} rows ({found[2]})")
    listed = [f"{_some(columns)} ({reason})" for reason, columns in names.items()]
    return f"Left out: {', '.join([*rows, *listed])}." if rows or listed else ""


def short(name: object) -> str:
    """A name in few letters."""
    text = str(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:SHOWN])} and {more} more"
