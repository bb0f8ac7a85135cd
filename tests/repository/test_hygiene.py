"""What must never be in the repository, and what every file must have."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = sorted((ROOT / "src" / "credo").rglob("*.py"))
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
UNSAFE_LOADS = {"yaml.load", "yaml.unsafe_load", "yaml.full_load", "torch.load", "pd.read_pickle", "pandas.read_pickle"}

by_file = pytest.mark.parametrize("path", SOURCE, ids=lambda path: str(path.relative_to(ROOT / "src")))


SIDE_BY_SIDE = {"Parallel", "delayed"}  # of joblib: processes of one's own, no file


def problems(tree: ast.AST) -> list[str]:
    """Everything in a module that could run what a file holds."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE_MODULES:
            if node.module != "joblib" or {a.name for a in node.names} - SIDE_BY_SIDE:
                found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            pickles = any(k.arg == "allow_pickle" and not _false(k.value) for k in node.keywords)
            if name in UNSAFE_CALLS | UNSAFE_LOADS or pickles:
                found.append(f"{name} in line {node.lineno}")
    return found


def _false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


@by_file
def test_nothing_in_a_file_is_ever_executed(path):
    assert not problems(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "code", ["import pickle", "from joblib import load", "eval('1')", "yaml.load(f)", "np.load(f, allow_pickle=True)"]
)
def test_the_search_finds_what_it_looks_for(code):
    assert problems(ast.parse(code))


def test_no_two_classes_have_one_name():
    """Who searches for a name finds one class."""
    places: dict[str, list[str]] = {}
    for path in SOURCE:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


TEXT_CALLS = {"open", "read_text", "write_text", "fdopen", "NamedTemporaryFile", "TextIOWrapper"}


def texts_without_encoding(tree: ast.AST) -> list[str]:
    """Calls that read or write text in whatever encoding the machine has."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        parts = [part for a in [*node.args, *(k.value for k in node.keywords)] for part in ast.walk(a)]
        words = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        binary = any("b" in word and len(word) <= 3 for word in words)
        bytes_of = ast.unparse(node.func).split(".")[0] in ("os", "gzip")
        method = isinstance(node.func, ast.Attribute) or name == "open"
        if name in TEXT_CALLS and method and not bytes_of and not binary:
            found += (
                [] if any(k.arg in ("encoding", None) for k in node.keywords) else [f"{name} in line {node.lineno}"]
            )
    return found


@by_file
def test_text_has_an_encoding(path):
    assert not texts_without_encoding(ast.parse(path.read_text(encoding="utf-8")))


def test_the_search_for_encodings_finds_what_it_looks_for():
    assert texts_without_encoding(ast.parse("open('x')"))
    assert texts_without_encoding(ast.parse("path.write_text(text)"))
    assert not texts_without_encoding(ast.parse("path.open('rb')"))


def imports(tree: ast.AST) -> set[str]:
    """The packages that a module imports, anywhere in it."""
    found = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    found += [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[0] for name in found}


def test_arviz_is_imported_behind_its_border_alone():
    """Its import is slow, and version 0 writes files that concurrent processes fight over."""
    border = ROOT / "src" / "credo" / "evaluation" / "diagnostics" / "arviz_border.py"
    others = [path for path in SOURCE if path != border]
    others += sorted(p for part in ("tests", "benchmarks", "examples", "tools") for p in (ROOT / part).rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in others}
    assert not [path for path, text in texts.items() if "arviz" in text and "arviz" in imports(ast.parse(text))]
    assert "arviz" in imports(ast.parse(border.read_text(encoding="utf-8")))


@by_file
def test_modules_are_short_and_say_what_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), "the module has no docstring"


@by_file
def test_nothing_is_left_for_later(path):
    words = "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"])
    assert not re.findall(rf"\b({words})\b", path.read_text(encoding="utf-8"))


CHECKS = (".github/workflows/check.yml", ".pre-commit-config.yaml")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "Makefile", ".ci/run", *CHECKS])
def test_no_package_index_is_named(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.findall(r"\w+://|--(?:extra-)?index\-url|--find\-links|--trusted-host", text)


def test_constraints_are_exact():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    assert lines
    assert not [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.+!]+", line)]


RUN = "import sys\nfrom credo.cli.main import main\nsys.argv = {}\ntry: main()\nexcept SystemExit: pass"
HEAVY = ("jax", "pandas", "matplotlib", "sklearn")


@pytest.mark.parametrize(
    "code",
    [
        "import credo, credo.errors, credo.registry, credo.runtime; dir(credo)",
        RUN.format(["credo", "--help"]),
        RUN.format(["credo", "methods"]),
    ],
    ids=["import credo", "credo --help", "credo methods"],
)
def test_jax_is_not_imported(code):
    code += f"\nimport sys; print('imported:', *[name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.rstrip().endswith("imported:"), result.stdout.splitlines()[-1]


# Where code may ask whether a name is there: what is asked is no part of credo, or reading names is the task itself.
PROBES = {
    "core/capabilities.py": "the place where parts are asked what they offer",
    "core/short.py": "arrays and functions of any library, for a repr",
    "core/tree.py": "the fields of any dataclass",
    "core/noise.py": "a cipher that JAX promises to nobody",
    "core/pieces.py": "a call that only some systems have",
    "core/programs.py": "compiled functions of JAX among the values of a module",
    "cli/main.py": "errors of click, which typer may bring along under another name",
    "registry/table.py": "the one place that loads a class by its address",
    "estimators/frames.py": "tables of any library",
    "runtime.py": "JAX's configuration and Python's importers",
    "storage/export/portable/cells.py": "tables of any library, in a file that travels alone",
    "training/fingerprint.py": "functions of any library, by their names",
}


def probes(tree: ast.AST) -> list[int]:
    """Lines that ask an object whether it has an attribute of some name."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [node.lineno for node in calls if node.func.id in ("hasattr", "getattr")]  # type: ignore[attr-defined]


def test_parts_are_asked_by_type_and_not_by_attribute():
    source = ROOT / "src" / "credo"
    found = {str(path.relative_to(source)): probes(ast.parse(path.read_text(encoding="utf-8"))) for path in SOURCE}
    found = {name: lines for name, lines in found.items() if lines and not name.startswith("adapters/")}
    assert found.keys() == PROBES.keys()
    assert probes(ast.parse("hasattr(network, 'apply_masked')"))
