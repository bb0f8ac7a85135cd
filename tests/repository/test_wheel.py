"""The wheel, built from the folder and installed into an empty environment, is all of credo and nothing else."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import credo

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "credo"
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "CREDO_", "JAX_", "XLA_", "OMP_"))
}


def run(*command, folder: Path) -> str:
    """What a command prints, in that folder and without this process's path of modules."""
    env = CLEAN | {"HOME": str(folder)}
    result = subprocess.run([str(word) for word in command], cwd=folder, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel from a copy of the folder, so that no earlier build is in it and none is left behind."""
    if int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("setuptools is older than 77: `make test` installs a newer one")
    folder = tmp_path_factory.mktemp("build")
    for name in ("src", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", ".", *offline, "--wheel-dir", "dist", folder=folder)
    (found,) = (folder / "dist").iterdir()
    return found


@pytest.fixture(scope="module")
def home(wheel, tmp_path_factory):
    """An environment with the wheel; the packages that credo needs are those of this environment."""
    folder = tmp_path_factory.mktemp("home")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip())
    others = [path for path in sys.path if path.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet")
    run(*pip, "--ignore-installed", wheel, folder=folder)
    return folder


def test_it_has_every_file_of_the_package_and_no_other(wheel):
    """Tables, references and templates, too; no benchmarks and no tests."""
    files = {path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == {path.relative_to(SOURCE.parent).as_posix() for path in files}


def test_it_is_installed_and_says_its_version(home):
    bin = home / "venv" / "bin"
    assert run(bin / "credo", "--version", folder=home).strip() == credo.__version__
    code = (
        "import importlib.metadata, importlib.util, credo; "
        "print(credo.__file__, importlib.metadata.version('credo'), importlib.util.find_spec('benchmarks'))"
    )
    place, number, benchmarks = run(bin / "python", "-c", code, folder=home).split()
    assert Path(place).is_relative_to(home)
    assert (number, benchmarks) == (credo.__version__, "None")


@pytest.mark.full
def test_the_demo_runs_where_nothing_else_of_the_repository_is(home):
    run(home / "venv" / "bin" / "credo", "demo", "--out", "demo", folder=home)
    assert {"run", "predictions.csv", "report.html"} <= {path.name for path in (home / "demo").iterdir()}
