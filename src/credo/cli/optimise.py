"""`credo optimise`: the smallest value of a function in the user's own script."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, prints_on_stderr, say
from credo.cli.options import Seed


def optimise(
    objective: Annotated[
        str, typer.Argument(help="Your script and a function in it, as script.py:function.", show_default=False)
    ],
    space: Annotated[
        Path, typer.Option(help="TOML file with a table for each setting: its type and range.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder of the record and the picture.", show_default=False)],
    evaluations: Annotated[int, typer.Option(min=1, help="Evaluations in all, those of earlier calls included.")] = 50,
    batch: Annotated[int, typer.Option(min=1, help="Points that are chosen together.")] = 1,
    surrogate: Annotated[
        str, typer.Option(help="gp, random, or a method such as deep_ensemble, hmc or infinite_width.")
    ] = "gp",
    acquisition: Annotated[str, typer.Option(help="log_ei, ei, ucb or thompson.")] = "log_ei",
    initial: Annotated[
        int | None, typer.Option(min=1, help="Points that fill the space first.", show_default="2 (settings + 1)")
    ] = None,
    maximise: Annotated[bool, typer.Option("--maximise", help="Look for the largest value.")] = False,
    noisy: Annotated[bool, typer.Option("--noisy", help="Values of one point differ: it may be asked again.")] = False,
    seed: Seed = 0,
) -> None:
    """Find the settings at which a function that is dear to evaluate is smallest.

    The function takes the settings by name, or one dictionary of them, and gives a number. What it raises is recorded
    as a failed evaluation, and the search goes on. The record is written after each evaluation; the same command goes
    on where it stopped, and with more --evaluations further. The best point is printed as JSON.
    """
    from credo.applications.optimise import Optimizer, Space
    from credo.cli.output import write_picture
    from credo.errors import InputError
    from credo.storage.locks import locked

    search = Optimizer(
        Space.from_toml(space), surrogate, acquisition, batch, initial, maximise=maximise, noisy=noisy, seed=seed
    )
    with locked(out), prints_on_stderr():
        function = load_objective(objective, list(search.space.dimensions))
        search = _resumed(search, out)
        search.minimise(function, evaluations, out, _progress(evaluations), failures="record")
    if len(search.history) < evaluations:
        say(f"All {len(search.history)} points of the space have been evaluated.")
    if all(e.failed for e in search.history):
        last = search.history[-1].message
        raise InputError(f"All {len(search.history)} evaluations failed, the last with {last or 'no number'}.")
    say(f"{len(search.history)} evaluations; their record is in {out}.")
    write_picture(search.plot(), out / "optimise.png")
    emit({"best": search.best.value, "point": search.best.point})


def _resumed(search: Any, out: Path) -> Any:
    """The search that the folder holds, if its settings are those of the command."""
    from credo.applications.optimise import Optimizer
    from credo.applications.optimise.record import FILE
    from credo.errors import InputError

    if not (out / FILE).exists():
        return search
    saved = Optimizer.load(out)
    changed = sorted(k for k, v in search.settings.items() if saved.settings.get(k) != v)
    if changed:
        raise InputError(
            f"{out} holds a search with other settings ({', '.join(changed)}): name another folder or repeat them."
        )
    say(f"Going on after {len(saved.history)} evaluations.")
    return saved


def _progress(total: int) -> Callable[[Any], None]:
    """A line for each evaluation: how many of all there are, as a bar too, the value, the best one and the settings.

    No bar that moves: the objective may print, and have bars of its own.
    """

    def report(search: Any) -> None:
        done = len(search.history)
        full = round(10 * min(done / total, 1.0))
        _show(search, f"{'━' * full}{'─' * (10 - full)} {done:>{len(str(total))}}/{total}")

    return report


def _show(search: Any, bar: str) -> None:
    last = search.history[-1]
    settings = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in last.point.items())
    if last.failed:
        say(f"{bar}  failed ({last.message or 'no finite number'})  {settings}")
        return
    values = [e.value for e in search.history if not e.failed]
    best = max(values) if search.maximise else min(values)
    say(f"{bar}  {last.value:.6g}  best {best:.6g}  {settings}")


def load_objective(text: str, settings: list[str]) -> Callable[[dict[str, Any]], float]:
    """The function that `script.py:name` says, as a function of a point."""
    import importlib.util
    import inspect
    import sys

    from credo.applications.optimise.optimizer import in_words
    from credo.errors import InputError

    path, colon, name = text.rpartition(":")
    if not colon or not path or not name.isidentifier():
        raise InputError(f"The objective is written script.py:function, got {text!r}.")
    script = Path(path)
    if not script.is_file():
        raise InputError(f"There is no script {script}.")
    spec = importlib.util.spec_from_file_location("credo_objective", script)
    if spec is None or spec.loader is None:
        raise InputError(f"{script} is not a Python script: its name ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["credo_objective"] = module  # dataclasses of the script look their module up
    sys.path.insert(0, str(script.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a script that ends in sys.exit(), too
        raise InputError(f"{script} cannot be run: {in_words(error)}.") from error
    function = vars(module).get(name)
    if not callable(function):
        functions = [k for k, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == "credo_objective"]
        raise InputError(f"{script} has no function {name!r}; it has {', '.join(functions) or 'none'}.")
    if _by_name(function, settings):
        return lambda point: _number(function(**point))
    return lambda point: _number(function(point))


def _by_name(function: Any, settings: list[str]) -> bool:
    """Does it take the settings by name, rather than one dictionary?"""
    import inspect

    try:
        inspect.signature(function).bind(**dict.fromkeys(settings))
    except (TypeError, ValueError):
        return False
    return True


def _number(value: Any) -> float:
    from credo.errors import InputError

    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"the objective gave {value!r}, which is not a number") from error
    except OverflowError:
        return math.inf  # a failed evaluation, like every number that is not finite
