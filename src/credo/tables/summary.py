"""Scores and facts of a run as lines for a person."""

import math
from collections.abc import Sequence
from typing import Any

from credo.registry import METRICS

MOST_CLASSES, WIDTH = 8, 16  # classes whose confusions fit on a screen, and letters of their names


def in_words(scores: dict[str, Any], ends: dict[str, list[float]] | None = None) -> list[str]:
    """One line for each score, with or without the prefix `test_`, and its interval where that is known."""
    lines = []
    for name, value in scores.items():
        row = METRICS.get(name.removeprefix("test_"))
        if row and row.words and value is not None:
            low, high = (ends or {}).get(name, (None, None))
            between = "" if low is None else f"   ({low:.4g} to {high:.4g})"
            lines.append(f"  {row.words:<26}{value:.4g}{between}")
    return lines


def of_classes(scores: dict[str, Any], classes: Sequence[str], confusion: Any) -> list[str]:
    """Which class recall, precision and lift are about, and which class is named instead of which."""
    threshold = scores.get("threshold", scores.get("test_threshold"))
    lines = []
    if threshold is not None:
        lines.append(
            f"Recall, precision and lift are those of {classes[1]!r}; a row is picked out where its probability is at "
            f"least {threshold:.3g}, the threshold of best expected F1."
        )
    if confusion is None or len(classes) > MOST_CLASSES:
        return lines
    names = [f"{name[:WIDTH]}" for name in map(str, classes)]
    cells = [[f"{count:,.4g}" if count % 1 else f"{count:,.0f}" for count in row] for row in confusion]
    first = max(len("true \\ named"), *map(len, names))
    widths = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(names)]
    table = [["true \\ named", *names], *([name, *row] for name, row in zip(names, cells))]
    lines.append("Rows of each class, by the class that was named:")
    for head, *row in table:
        lines.append(f"  {head:<{first}}  " + "  ".join(f"{x:>{w}}" for x, w in zip(row, widths)))
    return lines


def summary_lines(facts: dict[str, Any]) -> list[str]:
    """What came of a fit, from the facts of `Run.facts`."""
    from credo.tables.duration import took  # brings JAX along

    metrics, target = facts["metrics"], facts["target"]
    name = target if isinstance(target, str) else ", ".join(target)
    lines = [
        f"{facts['method']} learned {name} ({facts['task']}) from {metrics['train_rows']} rows and "
        f"{facts['features']} features.",
    ]
    if "seconds_wall" in metrics:  # runs of older versions have none
        lines.append(took(metrics["seconds_wall"], metrics["seconds_wall_compile"], metrics.get("seconds_planned")))
    if metrics["test_rows"]:
        lines += [f"On {metrics['test_rows']} rows that it did not see:", *in_words(metrics)]
        lines += of_classes(metrics, facts["classes"] or (), metrics.get("test_confusion"))
    if facts["status"] != "The fit finished.":
        lines.append(facts["status"])
    return lines


def finite(value: Any) -> Any:
    """The value with null where a number is not finite: JSON has no word for that."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def one_line(text: str) -> str:
    """Text with control characters shown, not done; bytes of names that are no UTF-8 stay."""
    return "".join(c if c.isprintable() or "\ud800" <= c <= "\udfff" else repr(c)[1:-1] for c in text)
