"""Progress on stderr: a bar on a terminal, nothing elsewhere."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
_LABEL = ContextVar("label", default="")


@contextlib.contextmanager
def labelled(label: str) -> Iterator[None]:
    """Bars of fits inside begin with this: which one of many it is."""
    token = _LABEL.set(f"{label}: ")
    try:
        yield
    finally:
        _LABEL.reset(token)


class Progress:
    """A bar with steps per second, the main metric and the time left; quiet when stderr is not a terminal."""

    def __init__(self, shown: bool | None = None):
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "Progress":
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeRemainingColumn  # isort: skip

            self._bar = Bar(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[metric]}"), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def phase(self, name: str, done: int, total: int) -> None:
        """Start the bar of a phase."""
        if self._bar is None:
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(
            f"{_LABEL.get()}{name}", total=total, completed=done, rate="compiling", metric=""
        )

    def update(self, done: int, total: int, rate: float, metrics: dict[str, float]) -> None:
        """Move the bar."""
        if self._bar is None:
            return
        name = next((n for n in ("loss", "acceptance") if n in metrics), None)
        metric = f"{name} {metrics[name]:.4g}" if name else ""
        speed = f"{rate:,.0f} steps/s" if rate >= 10 else f"{rate:.2g} steps/s"
        self._bar.update(self._task, completed=done, total=total, rate=speed, metric=metric)


def tracked(items: Iterable[T], name: str, total: int, size: Callable[[T], int]) -> Iterator[T]:
    """The items, with a bar on a terminal that advances by the size of each item after its use.

    Example:
        >>> list(tracked([slice(0, 2), slice(2, 3)], "rows", 3, lambda rows: rows.stop - rows.start))
        [slice(0, 2, None), slice(2, 3, None)]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn, Progress as Bar  # isort: skip

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        for item in items:
            yield item
            bar.advance(task, size(item))
