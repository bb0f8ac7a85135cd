"""`credo audit`: methods against posteriors that are known."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, say
from credo.cli.options import AsJson, Seed


def audit(
    methods: Annotated[str, typer.Option(help='Names with commas between, or "all".', metavar="NAMES")] = "all",
    problems: Annotated[
        str | None, typer.Option(help="Problems with commas between.", metavar="NAMES", show_default="all")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, and only problems that are quick.")] = False,
    sbc: Annotated[
        str | None, typer.Option(help="Simulation-based calibration of this method instead.", metavar="METHOD")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(help="Model of the calibration: network or linear.", show_default="by the method's claim"),
    ] = None,
    simulations: Annotated[int, typer.Option(help="Simulations of the calibration.", min=20)] = 500,
    thin: Annotated[int, typer.Option(help="Steps between ranked draws of a chain.", min=1)] = 5,
    seed: Seed = 0,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Folder for pictures and numbers.", metavar="DIR")] = None,
    remake: Annotated[
        bool, typer.Option("--remake", help="Run the long chains of stored references again, into --out.")
    ] = False,
) -> None:
    """Measure how far methods are from posteriors that are known; exit code 1 where one misses its own claim."""
    names = None if problems is None else problems.split(",")
    if remake:
        _remake(names, out)
    elif sbc is not None:
        _calibrate(sbc, setting, simulations, thin, seed, as_json, out)
    else:
        _audit(methods, names, quick, seed, as_json, out)


def _audit(methods: str, names: list[str] | None, quick: bool, seed: int, as_json: bool, out: Path | None) -> None:
    from credo.registry import find

    selected: Any = "all" if methods == "all" else methods.split(",")
    for name in [] if selected == "all" else selected:
        find(name)  # before anything slow is imported
    import credo
    from credo.cli.output import print_table

    run = credo.audit.audit
    from credo.evaluation.audit.words import LEGEND, sentences, table

    def show(row: dict[str, Any]) -> None:
        spent = "refused" if row["seconds"] is None else f"{row['seconds']:.1f} s"
        say(f"  {row['problem']}: {row['method']} {spent}")

    result = run(selected, names, quick=quick, seed=seed, tell=show)
    texts = sentences(result)
    document = {"rows": result.rows, "sentences": texts}
    if out is not None:
        from credo.report.audit import write_audit

        for path in write_audit(result, document, out):
            say(f"Written: {path}")
    if as_json:
        emit(document)
    else:
        print_table(*table(result))
        print(LEGEND, *(f"{name}: {words}" for name, words in texts.items()), sep="\n")
    if result.broken:
        for row in result.broken:
            say(f"{row['method']} misses its claim on {row['problem']}.")
        raise typer.Exit(1)


def _calibrate(
    method: str, setting: str | None, simulations: int, thin: int, seed: int, as_json: bool, out: Path | None
) -> None:
    from credo.registry import find

    find(method)
    import credo

    result = credo.audit.calibrate(method, setting, simulations=simulations, thin=thin, seed=seed)
    if out is not None:
        from credo.report.audit import write_calibration

        for path in write_calibration(result, out):
            say(f"Written: {path}")
    if as_json:
        emit(result.plain())
    else:
        print(result)
    if not result.passed:
        raise typer.Exit(1)


def _remake(names: list[str] | None, out: Path | None) -> None:
    from credo.errors import InputError

    if out is None:
        raise InputError("Say with --out where the references shall go.")
    import credo

    stored = {name: problem for name, problem in credo.audit.problems().items() if problem.stored}
    from credo.evaluation.audit.reference import write_reference

    for name in names or stored:
        if name not in stored:
            raise InputError(f"{name!r} has no stored reference; those with one are {', '.join(stored)}.")
        emit({"problem": name} | write_reference(stored[name], out))
