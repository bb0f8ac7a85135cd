"""`python -m benchmarks`: quality and speed on public sets, beside published rows and baselines."""

from pathlib import Path
from typing import Annotated, Any

import typer

from credo.cli.console import emit, say
from credo.cli.main import Commands
from credo.cli.options import MOST_SEED

app = typer.Typer(
    cls=Commands,
    help="Measure credo on public sets, beside published rows, baselines and other libraries.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DataDir = Annotated[Path, typer.Option(help="Folder with the sets.", metavar="DIR", show_default=False)]
Out = Annotated[Path, typer.Option(help="Folder for the page, its picture and its numbers.", metavar="DIR")]
Folder = Annotated[
    Path | None,
    typer.Option(
        help="Records of what is done: the same command goes on, and several processes may fill it.",
        metavar="DIR",
        show_default="records/ in --out",
    ),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of auto instead of its own.", metavar="KEY=VALUE")
]
Table = Annotated[bool, typer.Option("--table", help="Run nothing: make the page from the records.")]
OUT = Path("benchmark")
# Methods of every kind, but for exact chains, which take many minutes here; and baselines.
TRADED = (
    "auto,ensemble_chains,deep_ensemble,multi_swag,swag,laplace,last_layer,bayes_by_backprop,ivon,mc_dropout,sghmc,"
    "infinite_width,map,linear,forest,boosting,gp"
)


@app.command()
def uci(
    context: typer.Context,
    data_dir: DataDir,
    sets: Annotated[
        str | None, typer.Option(help="Names with commas between.", metavar="NAMES", show_default="all nine")
    ] = None,
    models: Annotated[
        str, typer.Option(help="auto, methods of the grid and baselines, with commas between.", metavar="NAMES")
    ] = "auto,linear,forest,boosting,gp",
    splits: Annotated[int, typer.Option(help="Splits, at most.", min=1)] = 20,
    first: Annotated[int, typer.Option(help="The first split, to share work between processes.", min=0)] = 0,
    steps: Annotated[int | None, typer.Option(help="Steps of each fit of a network instead of its own.", min=1)] = None,
    budget: Annotated[
        str | None, typer.Option(help='Time that auto plans with: "60s", "5m".', metavar="TIME", show_default="60s")
    ] = None,
    settings: Settings = None,
    one_fit: Annotated[bool, typer.Option("--one-fit", help="Also time one split alone through credo.fit.")] = False,
    choose_only: Annotated[
        bool, typer.Option("--choose-only", help="Cross-validate settings of the grid; read no test row.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes for baselines.", min=1)] = 1,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """Test log-likelihood and RMSE on the UCI regression sets, in the published protocol."""
    from benchmarks import pictures, uci_board, uci_page
    from benchmarks import uci as study
    from benchmarks.uci_data import SETS, load
    from credo.tables.model import parse_settings
    from credo.training.fit import seconds

    names, selected = list(SETS) if sets is None else _words(sets), _words(models)
    study.check(selected, names)
    store = _store(study, folder, out)
    plan_seconds = None if budget is None else seconds(budget)
    options = study.Options(steps, plan_seconds, parse_settings(settings or []), jobs)
    for name in names if not table else []:
        data = load(data_dir, name)
        part = range(first, min(first + splits, len(data["train_idx"])))
        if not part:
            say(f"{name} has {len(data['train_idx'])} splits: none is left after the first {first}.")
            continue
        for model in selected:
            if choose_only:
                _choose(study, name, model, data, list(part), steps)
                continue
            ran = study.study(model, name, data, part, options, store, say)
            ran |= one_fit and study.one_fit(model, name, data, options, store)
            say(f"{name} {model}: {'done' if ran else 'on record'}")
    board = uci_board.gather(store.all(study.NAME))
    if choose_only or not board:
        return
    _publish(study, store, out, uci_page.markdown(board, _command(context)))
    say(f"Written: {pictures.save(pictures.uci(board), out / 'uci.png')}")
    print("\n".join([uci_board.score_table(board, "log_likelihood"), *uci_page.sentences(board)]))


def _choose(study: Any, name: str, model: str, data: Any, splits: list[int], steps: int | None) -> None:
    from benchmarks.grid import GRID
    from credo.errors import InputError

    if model not in GRID:
        raise InputError(f"{model} has no settings to choose; --choose-only is for {', '.join(GRID)}.")
    say(f"{name} {model}:")
    study.tuned(model, data, splits, steps, say, test=False)


@app.command()
def airfoil(
    context: typer.Context,
    data_dir: DataDir,
    models: Annotated[
        str, typer.Option(help="auto, methods and baselines, with commas between.", metavar="NAMES", show_default=False)
    ] = TRADED,
    lengths: Annotated[str, typer.Option(help="Warm-up steps and draws of a chain.", metavar="NUMBERS")] = "25,50,100",
    splits: Annotated[int, typer.Option(help="Splits.", min=1)] = 5,
    size: Annotated[int, typer.Option(help="Chains.", min=1)] = 8,
    path: Annotated[int, typer.Option(help="Integrator steps of a draw, at most.", min=1)] = 100,
    steps: Annotated[int | None, typer.Option(help="Steps of auto and of methods instead of their own.", min=1)] = None,
    settings: Settings = None,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """Quality against seconds on the airfoil set."""
    from benchmarks import airfoil as study
    from benchmarks import pictures
    from credo.tables.model import parse_settings

    selected = _words(models)
    _check_names(selected, study.MODELS, "model")
    store = _store(study, folder, out)
    options = study.Options(size, path, tuple(parse_settings(settings or []).items()), steps)
    if not table:
        study.study(study.load(data_dir), selected, _numbers(lengths), splits, options, store, say)
    entries = store.all(study.NAME)
    if entries:
        _publish(study, store, out, study.markdown(entries, _command(context)))
        say(f"Written: {pictures.save(pictures.airfoil(study.summary(entries)), out / 'airfoil.png')}")


@app.command()
def images(
    context: typer.Context,
    data_dir: DataDir,
    data: Annotated[str, typer.Option(help="Sets with commas between.", metavar="NAMES")] = "mnist,fashion_mnist",
    methods: Annotated[str, typer.Option(help="Names with commas between.", metavar="NAMES")] = "mfvi,deep_ensemble",
    seeds: Annotated[int, typer.Option(help="Fits of each, with seeds 0, 1, …", min=1)] = 1,
    epochs: Annotated[float | None, typer.Option(help="Instead of each method's own.", min=1e-3)] = None,
    batch_size: Annotated[int, typer.Option(help="Rows of a step.", min=1)] = 128,
    samples: Annotated[int, typer.Option(help="Draws of the weights under mfvi.", min=1)] = 100,
    members: Annotated[int, typer.Option(help="Networks of the ensemble.", min=1)] = 10,
    validation: Annotated[bool, typer.Option("--validation", help="Score on held-out training rows.")] = False,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """LeNet-5 on digits and clothes: accuracy and log-likelihood."""
    from benchmarks import images as study

    names, selected = _words(data), _words(methods)
    _check_names(names, study.DATA, "set")
    _check_names(selected, study.METHODS, "method")
    store = _store(study, folder, out)
    options = study.Options(epochs, batch_size, samples, members, validation)
    if not table:
        study.study(data_dir, names, selected, seeds, options, store, say)
    entries = store.all(study.NAME)
    if entries:
        _publish(study, store, out, study.markdown(entries, _command(context)))


@app.command()
def speed(
    context: typer.Context,
    peers: Annotated[
        str | None, typer.Option(help="Interpreter that has the peers (`make bench-peers`).", metavar="PYTHON")
    ] = None,
    cases: Annotated[str, typer.Option(help="Prefixes of cases, such as mfvi,hmc/credo.", show_default="all")] = "",
    passes: Annotated[int, typer.Option(help="Rounds through all cases.", min=1)] = 1,
    limit: Annotated[float, typer.Option(help="Seconds that one case may take.", min=1.0)] = 900.0,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes: do the cases run?")] = False,
    names: Annotated[bool, typer.Option("--list", help="Print the names of the cases and stop.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Keep what is done here; the same command goes on.", metavar="DIR")
    ] = None,
    out: Out = OUT,
    as_json: Annotated[bool, typer.Option("--json", help="Print all rows and ratios as JSON.")] = False,
) -> None:
    """Speed beside NumPyro, BlackJAX, Pyro, posteriors and torch; exit code 1 when a case failed."""
    from benchmarks.speed import plan

    selected = plan.select(cases)
    if names:
        print("\n".join(case.key for case in selected))
        return
    from benchmarks.records import Records, without_accelerator
    from benchmarks.speed import run, table

    python = run.usable(peers)
    if python is None and any(case.is_peer for case in selected):
        reason = f"no interpreter at {peers}" if peers else "no --peers interpreter given"
        say(f"Peers are skipped: {reason}; `make bench-peers` makes one.")
        selected = [case for case in selected if not case.is_peer]
    rows = run.run_all(selected, python, passes, limit, quick, Records(folder), say)
    where = without_accelerator(*sorted({f"JAX {row['versions']['jax']}" for row in rows if _jax(row)}))
    _write(out / "speed.md", table.page(rows, _command(context), where, quick))
    if as_json:
        emit(run.document(rows, passes, quick))
    else:
        print(table.markdown(table.lines(rows)))
    if any("failed" in row for row in rows):
        raise typer.Exit(1)


@app.command()
def tables(
    context: typer.Context,
    names: Annotated[
        str | None, typer.Option("--tables", help="Names with commas between.", metavar="NAMES", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the tables, folds and fits.", min=0, max=MOST_SEED)] = 0,
    rows: Annotated[int | None, typer.Option(help="Rows of each table instead of its own number.", min=20)] = None,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """What `credo fit` does with nothing said, on tables of six kinds and on counts; no data are needed."""
    from benchmarks import front_door as study
    from benchmarks.tables import TABLES

    selected = list(TABLES) if names is None else _words(names)
    _check_names(selected, tuple(TABLES), "table")
    store = _store(study, folder, out)
    if not table:
        study.study(selected, seed, rows, store, say)
    lines = study.summary(study.current(store.all(study.NAME), seed, rows))
    if lines:
        print(_publish(study, store, out, study.markdown(lines, _command(context))))


@app.command()
def budgets(
    context: typer.Context,
    names: Annotated[
        str | None, typer.Option("--tables", help="Names with commas between.", metavar="NAMES", show_default="all")
    ] = None,
    times: Annotated[
        str, typer.Option("--budgets", help="Seconds with commas between, and default.", metavar="TIMES")
    ] = "3,5,10,30,default",
    seed: Annotated[int, typer.Option(help="Of the tables, folds and fits.", min=0, max=MOST_SEED)] = 0,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """Are short budgets honest, and kept? On four tables; no data are needed."""
    from benchmarks import budgets as study
    from benchmarks.budget_tables import TABLES
    from credo.training.budget import seconds

    selected = list(TABLES) if names is None else _words(names)
    _check_names(selected, tuple(TABLES), "table")
    limits = [None if word == "default" else seconds(word) for word in _words(times)]
    store = _store(study, folder, out)
    if not table:
        study.study(selected, limits, seed, store, say)
    lines = study.summary(study.current(store.all(study.NAME), seed))
    if lines:
        print(_publish(study, store, out, study.markdown(lines, _command(context))))


@app.command()
def portfolio(
    context: typer.Context,
    data_dir: DataDir,
    sets: Annotated[
        str | None, typer.Option(help="Names with commas between.", metavar="NAMES", show_default="all")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="auto and rivals, with commas between.", metavar="NAMES", show_default="all")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Numbers from 0 on, with commas between.", metavar="NUMBERS", show_default="all")
    ] = None,
    peers: Annotated[
        str | None, typer.Option(help="Interpreter that has the rivals (`make bench-peers`).", metavar="PYTHON")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds that one process may take.", min=1.0)] = 1800.0,
    folder: Folder = None,
    out: Out = OUT,
    table: Table = False,
) -> None:
    """auto beside boosted trees, forests, Gaussian processes and networks, on many tables."""
    from benchmarks.pictures import save
    from benchmarks.portfolio import page, picture, run
    from benchmarks.portfolio.rivals import CREDO, MODELS
    from benchmarks.portfolio.sets import SETS
    from benchmarks.speed.run import usable

    python = usable(peers)
    names, selected = list(SETS) if sets is None else _words(sets), list(MODELS) if models is None else _words(models)
    _check_names(names, tuple(SETS), "set")
    _check_names(selected, MODELS, "model")
    if python is None and not table and not set(selected) <= set(CREDO):
        say("Rivals are skipped: --peers names no interpreter; `make bench-peers` makes one.")
        selected = [model for model in selected if model in CREDO]
    store = _store(run, folder, out)
    if not table:
        parts = None if splits is None else [int(word) for word in _words(splits) if word.isdigit()]
        run.study(names, selected, parts, data_dir, python, limit, store, say)
    entries = store.all(run.NAME)
    if entries:
        _publish(run, store, out, page.markdown(entries, _command(context)))
        say(f"Written: {save(picture.draw(entries), out / f'{run.NAME}.png')}")


def _store(study: Any, folder: Path | None, out: Path) -> Any:
    """The records of a study: those of the folder, and those beside its page."""
    from benchmarks.records import Records

    return Records(folder or out / "records", out / f"{study.NAME}.json")


def _publish(study: Any, store: Any, out: Path, page: str) -> str:
    """Write the page of a study, and its records beside it; the page."""
    store.pack(study.NAME, out / f"{study.NAME}.json")
    _write(out / f"{study.NAME}.md", page)
    return page


def _jax(row: dict[str, Any]) -> bool:
    return row["library"] == "credo" and "jax" in row.get("versions", {})


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[int]:
    from credo.errors import InputError

    words = _words(text)
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise InputError(f"Write whole numbers with commas between, such as 25,50, got {text!r}.")
    return [int(word) for word in words]


def _check_names(names: list[str], allowed: tuple[str, ...], what: str) -> None:
    from credo.errors import InputError
    from credo.registry import did_you_mean

    for name in names:
        if name not in allowed:
            raise InputError(f"Unknown {what} {name!r}.{did_you_mean(name, allowed)} There are {', '.join(allowed)}.")


def _command(context: typer.Context) -> str:
    """The command line that makes a page again, without places of this machine."""
    words = ["python", "-m", "benchmarks", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in ("folder", "out", "table", "as_json", "jobs") or value == parameter.default or not value:
            continue
        option = parameter.opts[-1]
        for one in value if isinstance(value, list | tuple) else [value]:
            text = {"data_dir": "DIR", "peers": "PYTHON"}.get(str(parameter.name), str(one))
            words += [option] if one is True else [option, text]
    return " ".join(words)


def _write(path: Path, text: str) -> None:
    from credo.storage.atomic_write import write_file

    write_file(path, text)
    say(f"Written: {path}")


if __name__ == "__main__":
    app()
