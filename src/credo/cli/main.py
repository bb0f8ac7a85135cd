"""`credo`: the commands, and the one place where an error becomes a sentence and an exit code."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from credo import __version__
from credo.cli import (
    audit,
    compare,
    decide,
    demo,
    detect,
    effects,
    evaluate,
    export,
    fit,
    methods,
    optimise,
    predict,
    report,
    resume,
    suggest,
)
from credo.cli.console import readable, say
from credo.cli.start import main as main
from credo.errors import CredoError, InputError
from credo.memory import short_of_memory
from credo.registry import did_you_mean
from credo.tables.summary import one_line
from credo.training.warn import unwarned

USAGE, INTERRUPTED = 2, 130


class Commands(TyperGroup):
    """Turns what went wrong into one sentence on stderr: 2 for what the user can put right, 130 for Ctrl-C."""

    begun = False

    def invoke(self, context: Any) -> Any:
        """Run the command, and say so where it is stopped: Typer would only keep the exit code."""
        self.begun = True
        try:
            return super().invoke(context)
        except KeyboardInterrupt as error:
            say(str(error) or "Stopped.")
            raise typer.Exit(INTERRUPTED) from error

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command and leave with its exit code."""
        options["standalone_mode"] = False
        readable(sys.stdout, sys.stderr)
        try:
            code = super().main(*args, **options)
            if code == INTERRUPTED and not self.begun:
                say("Stopped.")
        except CredoError as error:
            code = _fail(str(error))
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            code = _fail(f"{error.strerror or error}{where}.")
        except Exception as error:
            short = short_of_memory(error)
            if short is None and not hasattr(error, "format_message"):
                raise
            code = _fail(short or _usage(error))
        sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> int:
    # A sentence may quote a cell, whose line breaks and control characters are shown, not done.
    say(f"Error: {one_line(sentence)}")
    return USAGE


def _usage(error: Any) -> str:
    """A sentence for a wrong command line."""
    context = vars(error).get("ctx")
    path = context.command_path if context is not None else "credo"
    option = vars(error).get("option_name")
    if type(error).__name__ == "NoSuchOption" and context is not None:
        options = [name for parameter in context.command.params for name in parameter.opts]
        return f"{path} has no option {option}.{did_you_mean(str(option), options)} See `{path} --help`."
    message = error.format_message()
    return f"{message} See `{path} --help`." if message[-1:] in ".?" else f"{message}; see `{path} --help`."


app = typer.Typer(
    cls=Commands,
    name="credo",
    help="Bayesian neural networks that say how much they know.",
    no_args_is_help=False,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _entry(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    context.with_resource(unwarned())  # commands print the status of what they fit
    if version:
        print(__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


COMMANDS = (
    demo.demo, fit.fit, compare.compare, predict.predict, evaluate.evaluate, effects.effects, decide.decide,
    suggest.suggest, detect.detect, optimise.optimise, report.report, resume.resume, export.export,
    methods.methods, audit.audit,
)  # fmt: skip
for command in COMMANDS:
    app.command()(command)


@app.command(hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def benchmark() -> None:
    """Say where the benchmarks are: they are no part of the installed package."""
    raise InputError(
        "Benchmarks are no part of the package: run `python -m benchmarks …` in a clone of the repository."
    )
