"""The fenced blocks of the written pages, and how to do what they say.

A page is done as a reader does it: from top to bottom, in one folder and one session of Python. Blocks with a title
(```toml title="space.toml") are files that the page shows: they are written before anything runs.
"""

import argparse
import contextlib
import dataclasses
import io
import re
import runpy
import shlex
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any
from unittest import mock

from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.__main__ import app as benchmarks
from credo.cli.main import app
from credo.training.loop import Loop
from credo.training.source import Source

ROOT = Path(__file__).resolve().parents[2]
MADE = ("docs/gallery/", "docs/api/")  # written by tools, with tests of their own
FENCED = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"[-−+]?(?:\d+(?:[.,]\d+)*(?:e[-+]?\d+)?|\b(?:nan|inf)\b)")
LITTLE = 8  # steps of every phase of a fit, under `little_work`
PATHS = {"max_doublings": 3, "max_steps": 4}  # likewise, of one step of a sampler
ROOM = 128  # rows that every fit makes room for, so that fits of different pages share their programs


@dataclasses.dataclass(frozen=True)
class Block:
    """What stands between two fences: in which language, under which title, from which line of its page on."""

    page: str
    line: int
    language: str
    title: str | None
    text: str

    @property
    def commands(self) -> list[str]:
        """The lines of a shell block, without comments."""
        return [" ".join(shlex.split(line, comments=True)) for line in self.text.splitlines() if line.strip()]


def pages() -> list[str]:
    """Pages that people write, as paths from the root."""
    names = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    return [name for name in names if not name.startswith(MADE)]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(page, text[: m.start(3)].count("\n") + 1, m[1], m[2], m[3]) for m in FENCED.finditer(text)]


def unfenced(page: str) -> str:
    """The page without its blocks."""
    return FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))


def _shorter(method: Any) -> Any:
    """The method with short paths: those of a sampler that has not warmed up are as long as they may be."""
    return dataclasses.replace(method, **{name: most for name, most in PATHS.items() if hasattr(method, name)})


@contextlib.contextmanager
def little_work():
    """Every phase of every fit ends after a few steps: all code of a page runs, and nothing converges."""
    phases, on_device, prepare = Loop.phases, Source.on_device, Loop.__post_init__

    def short_paths(loop: Loop) -> None:
        loop.stages = [(_shorter(method), model) for method, model in loop.stages]
        prepare(loop)

    def short(loop: Loop, stage: int):
        loop.budget = None  # a budget would count seconds instead
        return tuple(dataclasses.replace(p, steps=min(int(p.steps), LITTLE)) for p in phases(loop, stage))

    def roomy(source: Source, sharding=None):
        source.capacity = source.capacity or ROOM
        return on_device(source, sharding)

    with (
        mock.patch.object(Loop, "phases", short),
        mock.patch.object(Loop, "__post_init__", short_paths),
        mock.patch.object(Source, "on_device", roomy),
        mock.patch("credo.tables.auto.choice.LEAST_ROWS", 10**9),  # no pilot
    ):
        yield


def do(page: str, skipped: Collection[str], whole: Collection[str] = ()) -> dict[int, str]:
    """Do what a page says, in the current folder: what each of its blocks printed, by line of the page.

    Args:
        page: its path from the root.
        skipped: commands to leave out.
        whole: pages and commands that get all their work; others get little.
    """

    def work(name: str):
        return contextlib.nullcontext() if page in whole or name in whole else little_work()

    here, path, printed = Path.cwd(), list(sys.path), {}
    sys.path.insert(0, str(here))  # as for a Python that is started here
    scope: dict = {"__name__": "page"}
    try:
        for block in blocks(page):
            if block.title and block.language != "text":
                Path(block.title).write_text(block.text, encoding="utf-8")
        for block in blocks(page):
            if block.language == "python" and not block.title:
                with work(page):
                    printed[block.line] = _python(block, scope)
            elif block.language == "sh":
                printed[block.line] = ""
                for line in (line for line in block.commands if line not in skipped):
                    with work(line):
                        printed[block.line] += _credo(block, line)
    finally:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(here)):
                del sys.modules[name]
    return printed


def _python(block: Block, scope: dict) -> str:
    source = "\n" * (block.line - 1) + block.text  # so that a traceback names the line of the page
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, str(ROOT / block.page), "exec"), scope)
    return out.getvalue()


def _credo(block: Block, line: str) -> str:
    name, *arguments = shlex.split(line)
    assert name == "credo", f"{block.page}: `{line}` is neither run nor on the list of what cannot be"
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, f"{block.page}: `{line}` ended with {result.exit_code}:\n{result.output}"
    return result.output


def shape(text: str) -> list[str]:
    """Lines with # for every number: what printed text says, whatever the numbers are."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines() if line.strip()]


def script_of(line: str) -> Path:
    """The file that `python FILE …` or `python -m MODULE …` runs."""
    _, name, *arguments = shlex.split(line)
    path = ROOT / (arguments[0].replace(".", "/") if name == "-m" else name)
    return (
        path / "__main__.py" if path.is_dir() and name == "-m" else path if path.exists() else path.with_suffix(".py")
    )


class Parsed(Exception):
    """Raised in place of the work of a script, once it has understood its arguments."""


def parse(line: str) -> None:
    """Let `credo …`, `python FILE …` or `python -m MODULE …` read its arguments, and do nothing more."""
    program, name, *arguments = shlex.split(line)
    if program == "credo" or arguments[:1] == ["benchmarks"]:
        if program != "credo":
            _, name, *arguments = arguments
        command = get_command(app if program == "credo" else benchmarks).commands[name]
        command.make_context(name, arguments)
        return
    if name == "-m":
        name, *arguments = arguments
    script = script_of(line)
    read = argparse.ArgumentParser.parse_args

    def stop(parser, *args, **kwargs):
        read(parser, *args, **kwargs)
        raise Parsed

    folder = script if script.is_dir() else script.parent
    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", stop),
        mock.patch.object(sys, "argv", [str(script), *arguments]),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        mock.patch.dict(sys.modules),  # scripts have neighbours with common names
        contextlib.suppress(Parsed),
    ):
        runpy.run_path(str(script), run_name="__main__")
        raise AssertionError(f"{name} takes no arguments, so it ran")
