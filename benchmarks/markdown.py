"""Numbers as Markdown, for the pages of benchmarks."""

import math
from collections.abc import Callable, Sequence

import numpy as np


def mean_and_error(values: Sequence[float] | np.ndarray) -> tuple[float, float | None]:
    """The mean and its standard error s/√n; None for the error of one value.

    Example:
        >>> mean_and_error([1.0, 3.0])
        (2.0, 1.0)
    """
    array = np.asarray(values, np.float64)
    error = float(array.std(ddof=1) / len(array) ** 0.5) if len(array) > 1 else None
    return float(array.mean()), error


def decimals(value: float) -> int:
    """Places that show two digits of a small number, and no fewer than two.

    Example:
        >>> decimals(4.83), decimals(0.079), decimals(0.0007)
        (2, 3, 5)
    """
    return 2 if not value or not math.isfinite(value) else max(2, 1 - math.floor(math.log10(abs(value))))


def number(value: float | None, places: int = 2) -> str:
    """A number with a true minus sign; a dash for nothing.

    Example:
        >>> number(-1.234), number(None), number(float("nan"))
        ('−1.23', '–', 'failed')
    """
    if value is None:
        return "–"
    return f"{value:.{places}f}".replace("-", "−") if math.isfinite(value) else "failed"


def with_error(mean: float | None, error: float | None, places: int = 2) -> str:
    """mean ± standard error.

    Example:
        >>> with_error(-1.234, 0.056), with_error(2.0, None)
        ('−1.23 ± 0.06', '2.00')
    """
    shown = number(mean, places)
    finite = error is not None and math.isfinite(error) and shown not in ("–", "failed")
    return f"{shown} ± {error:.{places}f}" if finite else shown


def seconds(value: float | None) -> str:
    """Seconds with about two digits.

    Example:
        >>> seconds(0.123), seconds(3.21), seconds(1234.5)
        ('0.12', '3.2', '1,234')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value < 0.01:
        return "< 0.01"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def first_paragraph(function: Callable[..., object]) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((function.__doc__ or "").partition("\n\n")[0].split())


def bold(text: str) -> str:
    """Text in bold."""
    return f"**{text}**"
