"""Imports point one way: what is below never knows what is above."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "credo"

# Each layer may import those before it, never its own neighbours.
LAYERS = [
    {"core"},
    {"storage"},
    {"priors", "likelihoods", "posteriors"},
    {"methods"},
    {"training"},
    {"evaluation.metrics", "evaluation.baselines"},
    {"evaluation.recalibration", "evaluation.diagnostics"},
    {"evaluation.audit", "applications"},
    {"storage.run_directory"},
    {"tables"},
    {"evaluation.comparison"},
    {"estimators", "report", "storage.export"},
    {"cli"},
]
EVERYWHERE = {"errors", "memory", "registry", "renamed", "runtime"}
# Parts of a package that stand elsewhere than the rest of it: the longest name that fits counts.
PARTS = {
    "storage.serialisation": "storage.run_directory",
    **dict.fromkeys(("tables.read", "tables.columns", "tables.rows"), "tables.encode"),
}
# Packages beside the layers: they know core and files alone. Who may use them: the first layer that may, and all above.
BESIDE = {"tables.encode": "evaluation.audit", "networks": "evaluation.audit", "adapters": "evaluation.audit"}
EXCEPTIONS = {
    ("adapters/density.py", "likelihoods"): "from_density is a whole model: its likelihood is the density itself",
    ("adapters/density.py", "priors"): "likewise, under a flat prior",
    ("applications/active/result.py", "report"): "ActiveLearning.plot: as Continual.plot",
    ("applications/forecasting/backtest.py", "report"): "Backtest.plot: likewise",
    ("applications/decisions/chosen.py", "report"): "Decisions.plot: likewise",
    ("applications/detection/detect.py", "report"): "Detection.plot: likewise",
    ("applications/optimise/optimizer.py", "report"): "Optimizer.plot: likewise",
    ("evaluation/comparison/result.py", "report"): "Comparison.plot: likewise",
    ("applications/continual/result.py", "report"): "Continual.plot: users call it; imported when called",
    ("priors/as_prior.py", "posteriors"): "a posterior over weights is the next prior",
    ("tables/run.py", "report"): "Run.report: users call it; imported when called",
    ("tables/run.py", "storage.export"): "Run.export: likewise",
    ("training/fit.py", "tables"): 'method="auto": who has no method gets one; imported when asked for',
    ("training/fit.py", "storage.run_directory"): "Fit.save: users call it; imported when called",
    ("training/fit.py", "report"): "Fit.plot: likewise",
    ("training/fit.py", "evaluation.diagnostics"): "Fit.diagnostics, summary, to_arviz: likewise",
}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
ROOMS = sorted(set(RANK) | set(BESIDE) | EVERYWHERE | set(PARTS), key=len, reverse=True)


def room(name: str) -> str:
    """The room of a module below credo, by its dotted name; "" is credo itself."""
    found = next((r for r in ROOMS if name == r or name.startswith(f"{r}.")), name)
    return PARTS.get(found, found)


def room_of(path: Path) -> str:
    return room(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"))


def imported(path: Path) -> list[tuple[str, int, bool]]:
    """(room, line, at the top of the module) for every import of credo."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        top = node in tree.body
        found += [(_below(name), node.lineno, top) for name in names if name.split(".")[0] == "credo"]
    return found


def _below(name: str) -> str:
    below = name.partition(".")[2]
    return "" if below == "__version__" else room(below)


def allowed(source: str, target: str) -> bool:
    if source == target or target in EVERYWHERE:
        return True
    if target == "":  # the public surface: only for what stands on top of it
        return RANK.get(source, -1) >= RANK["storage.run_directory"]
    if source in BESIDE:
        return target in ("core", "storage")
    if target in BESIDE:
        return RANK.get(source, -1) >= RANK[BESIDE[target]]
    return source in RANK and target in RANK and RANK[target] < RANK[source]


FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    name = str(path.relative_to(SOURCE))
    wrong = [
        f"{name}:{line} imports credo.{target}"
        for target, line, _ in imported(path)
        if not allowed(room_of(path), target) and (name, target) not in EXCEPTIONS
    ]
    assert not wrong


def test_every_package_has_a_place():
    assert {room_of(path) for path in FILES} <= set(RANK) | set(BESIDE) | EVERYWHERE | {"evaluation"}


def test_exceptions_are_needed_and_lazy_where_they_point_up():
    for name, target in EXCEPTIONS:
        found = [top for to, _, top in imported(SOURCE / name) if to == target]
        assert found, f"{name} no longer imports {target}: remove the exception"
        if RANK[target] > RANK.get(room_of(SOURCE / name), RANK[target]):
            assert not any(found), f"{name} imports {target} when it is loaded"


def test_errors_and_registry_stand_alone():
    for path in FILES:
        if room_of(path) in EVERYWHERE:
            assert {target for target, _, _ in imported(path)} <= EVERYWHERE
