"""Tables as Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> str:
    """A Markdown table; the first columns are text, the others are numbers.

    Example:
        >>> print(table(["set", "score"], [["yacht", "1.0"]]))
        | set | score |
        |---|---:|
        | yacht | 1.0 |
    """
    shown = ["| " + " | ".join(head) + " |", "|" + "---|" * text + "---:|" * (len(head) - text)]
    return "\n".join([*shown, *("| " + " | ".join(row) + " |" for row in rows)])
