"""Imports point one way: what is below never knows what is above."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "credo"

# Each layer may import those before it, never its own neighbours.
LAYERS = [
    {"core"},
    {"priors", "likelihoods", "posteriors", "curvature"},
    {"refinement", "function_space"},
    {"methods", "shallow", "infinite"},
    {"training"},
    {"metrics", "baselines"},
    {"recalibration", "diagnostics"},
    {"audit", "applications", "continual"},
    {"artifacts", "recipes"},
    {"auto"},
    {"comparison"},
    {"estimators", "report", "interchange"},
    {"benchmarks"},
    {"cli"},
]
EVERYWHERE = {"archives", "errors", "locks", "memory", "programs", "registry", "runtime"}
# Saving a run is one idea in four files.
FAMILY = {"runs": "artifacts", "codec": "artifacts", "folders": "artifacts"}
# Packages beside the layers: they know core alone. Who may use them: the first layer that may, and all above it.
BESIDE = {"data": "training", "tensors": "training", "networks": "audit", "adapters": "audit"}
EXCEPTIONS = {
    ("adapters/density.py", "likelihoods"): "from_density is a whole model: its likelihood is the density itself",
    ("adapters/density.py", "priors"): "likewise, under a flat prior",
    ("applications/active/result.py", "report"): "ActiveLearning.plot: likewise",
    ("applications/backtest.py", "report"): "Backtest.plot: likewise",
    ("applications/decisions/chosen.py", "report"): "Decisions.plot: likewise",
    ("applications/detection/detect.py", "report"): "Detection.plot: likewise",
    ("applications/optimise/optimizer.py", "report"): "Optimizer.plot: likewise",
    ("comparison/result.py", "report"): "Comparison.plot: likewise",
    ("continual/result.py", "report"): "Continual.plot: what users call lives on the result; imported when called",
    ("methods/__init__.py", "infinite"): "names for type checkers, as of the next line",
    ("methods/__init__.py", "shallow"): "names for type checkers: every registered method is `credo.methods.Name`",
    ("priors/as_prior.py", "posteriors"): "a posterior over weights is the next prior",
    ("training/fit.py", "auto"): 'method="auto": who has no method gets one; imported when asked for',
    ("training/fit.py", "artifacts"): "Fit.save: what users call lives on the result; imported when called",
    ("training/fit.py", "report"): "Fit.plot: likewise",
    ("training/fit.py", "diagnostics"): "Fit.diagnostics, summary, to_arviz: likewise; imported when asked for",
}
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def package(path: Path) -> str:
    name = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return FAMILY.get(name, name)


def imported(path: Path) -> list[tuple[str, int, bool]]:
    """(package of credo, line, at the top of the module) for every import; "" is `import credo` itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            names = [f"credo.{a.name}" for a in node.names] if node.module == "credo" else [str(node.module)]
        else:
            continue
        top = node in tree.body
        found += [(_short(name), node.lineno, top) for name in names if name.split(".")[0] == "credo"]
    return found


def _short(name: str) -> str:
    part = name.split(".")[1] if "." in name else ""
    return "" if part == "__version__" else FAMILY.get(part, part)


def allowed(source: str, target: str) -> bool:
    if source == target or target in EVERYWHERE:
        return True
    if target == "":  # the public surface: only for what stands on top of it
        return RANK.get(source, -1) >= RANK["artifacts"]
    if source in BESIDE:
        return target == "core"
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
        if not allowed(package(path), target) and (name, target) not in EXCEPTIONS
    ]
    assert not wrong


def test_every_package_has_a_place():
    known = set(RANK) | set(BESIDE) | EVERYWHERE
    assert {package(path) for path in FILES} <= known


def test_exceptions_are_needed_and_lazy_where_they_point_up():
    for name, target in EXCEPTIONS:
        found = [top for to, _, top in imported(SOURCE / name) if to == target]
        assert found, f"{name} no longer imports {target}: remove the exception"
        if RANK[target] > RANK.get(package(SOURCE / name), RANK[target]):
            assert not any(found), f"{name} imports {target} when it is loaded"


def test_errors_and_registry_stand_alone():
    for name in EVERYWHERE:
        assert {target for target, _, _ in imported(SOURCE / f"{name}.py")} <= EVERYWHERE
