"""What runs outside of the tests runs what they test: continuous integration, hooks, and one version everywhere."""

import re
import tomllib
from pathlib import Path

import yaml

import credo

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def read_yaml(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_version_is_written_once():
    """The package says it; the build and the import read it, and two pages for people repeat it."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "credo.__version__"}
    assert read_yaml("CITATION.cff")["version"] == credo.__version__
    assert f"Version {credo.__version__}," in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"## [{credo.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# Packages that nothing in src/ imports by name.
NEEDED = {
    "flatbuffers": "jax.export writes and reads programs with it",
    "h5netcdf": "ArviZ and xarray write netCDF files with it",
    "h5py": "h5netcdf needs it",
    "zarr": "xarray writes stores with it",
    "openpyxl": "pandas reads workbooks with it",
    "mkdocs-material": "the site", "mkdocstrings": "the site",
    "pytest-xdist": "make test", "ruff": "make lint", "mypy": "make lint", "setuptools": "builds the wheel",
}  # fmt: skip
IMPORTED = {"scikit-learn": "sklearn"}


def test_every_dependency_is_used():
    """What users install is imported by the package, what developers install by the tests, or a line says who needs
    it."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [line for lines in extras.values() for line in lines]
    names = {re.match(r"[\w-]+", line)[0] for line in wanted} - {"credo"}
    texts = {part: [f.read_text(encoding="utf-8") for f in (ROOT / part).rglob("*.py")] for part in ("src", "tests")}
    development = {re.match(r"[\w-]+", line)[0] for line in extras["dev"]}

    def used(name: str) -> bool:
        module = IMPORTED.get(name, name)
        call = rf"^\s*(?:import|from) {module}\b|(?:require|import_module)\(\"{module}\b"
        return any(re.search(call, text, re.M) for text in texts["tests" if name in development else "src"])

    assert {name for name in names if not used(name)} == set(NEEDED)


def test_continuous_integration_runs_every_python_and_what_make_has():
    jobs = read_yaml(".github/workflows/check.yml")["jobs"]
    assert {"lint", "test", "docs", "wheel"} <= set(jobs)
    matrix = jobs["test"]["strategy"]["matrix"]["include"]
    classifiers = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert [row["python"] for row in matrix] == classifiers
    assert PROJECT["project"]["requires-python"] == f">={classifiers[0]}"
    steps = [step.get("run", "") for job in jobs.values() for step in job["steps"]] + [row["command"] for row in matrix]
    targets = {name for line in steps for name in re.findall(r"^make ([\w-]+)", line)}
    assert targets == {"lint", "test", "test-newest", "docs"} <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.M))


def test_hooks_run_what_make_lint_runs():
    lint = re.search(r"^lint:.*\n((?:\t.+\n)+)", MAKEFILE, re.M)
    hooks = [hook["entry"] for repo in read_yaml(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [line.strip().replace("$(BIN)", ".venv/bin") for line in lint[1].splitlines()] == hooks
