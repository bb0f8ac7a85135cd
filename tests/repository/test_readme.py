"""What the written pages say in passing is true: commands and options, `make` targets, links, the table of methods.

Blocks are run by test_documents.py.
"""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

import arviz_numbers
import credo
from credo import registry
from oracles import coefficients, linear

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
TABLE = "src/credo/tables/bundled/diabetes.csv"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """Inline code, outside of blocks."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


SHELL = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]
NAMED = [span for page in PAGES for span in spans(page) if re.match(r"credo (-|[a-z])", span)]


def commands():
    """The tree of `credo` commands."""
    main = pytest.importorskip("credo.cli.main", reason="the command line is not there yet")
    from typer.main import get_command

    return get_command(main.app)


def test_quickstart_is_short_and_says_what_the_text_says():
    code = blocks(PAGES[0], "python")[0]
    assert len(code.splitlines()) <= 15
    found = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, found)
    near, far = found["pred"].epistemic
    assert far > 5 * near
    np.testing.assert_allclose(*found["pred"].aleatoric, rtol=1e-3)
    assert found["fit"].status.ok


@pytest.mark.parametrize("span", sorted(set(NAMED)))
def test_named_commands_and_options_exist(span):
    tree = commands()
    name, *arguments = shlex.split(span)[1:]
    command = tree if name.startswith("-") else tree.commands.get(name)
    if hasattr(command, "commands") and arguments:  # a command of commands
        command = command if command is tree else command.commands.get(arguments[0])
    assert command is not None, f"credo has no command {span}"
    known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
    assert {word for word in [name, *arguments] if word.startswith("--")} <= known


@pytest.mark.full
def test_shell_lines_run(tmp_path):
    """The README's own lines, each in a process of its own, where the bundled table lies as in a clone."""
    commands()
    lines = [line for block in blocks(PAGES[0], "sh") for line in block.splitlines() if line.startswith("credo ")]
    assert len(lines) >= 3
    (tmp_path / TABLE).parent.mkdir(parents=True)
    shutil.copy(ROOT / TABLE, tmp_path / TABLE)
    for line in lines:
        run = "from credo.cli.main import main; main()"
        command = [sys.executable, "-c", run, *shlex.split(line, comments=True)[1:]]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, f"{line}\n{result.stderr}"
    assert (tmp_path / "runs" / "diabetes.html").stat().st_size > 10_000
    assert len((tmp_path / "runs" / "predictions.csv").read_text().splitlines()) == 443


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*)\s*:(?!=)", makefile, re.MULTILINE))
    texts = SHELL + [span for page in PAGES for span in spans(page)]
    named = {name for text in texts for name in re.findall(r"^make ([a-z][\w-]*)", text)}
    assert {"demo", "test"} <= named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_picture_names_its_command():
    script = re.search(r"`python (examples/\S+\.py)`", README)
    assert script is not None
    assert (ROOT / script[1]).is_file()


@pytest.fixture
def skeleton(tmp_path, monkeypatch):
    """The example of CONTRIBUTING as what it says it is: one file and one row."""
    code, row = blocks(ROOT / "CONTRIBUTING.md", "python")
    found = {}
    exec(row.replace("\nRow(", "\nrow = Row("), found)
    row = found["row"]
    module = row.builder.partition(":")[0].rpartition(".")[2]
    assert module == row.name
    (tmp_path / f"{module}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    local = registry.Row(row.name, f"{module}:{row.builder.partition(':')[2]}", *_rest(row))
    monkeypatch.setitem(registry.METHODS, row.name, local)
    monkeypatch.setitem(registry.CLASSES, row.builder.partition(":")[2], local)
    yield local
    sys.modules.pop(module, None)


def _rest(row):
    return row.summary, row.capability, row.exact_on, row.quick


def test_the_skeleton_is_a_method(skeleton, tmp_path):
    """By name, repeatable, saved and loaded, and exact: z-scores of all means and variances below the Bonferroni bound
    for a false-alarm rate of 1e-3."""
    problem = linear(num_rows=64, dims=2)
    data, model = (problem.inputs, problem.targets), problem.model()
    method = registry.build_method(skeleton.name, **skeleton.quick_settings())
    fit = credo.fit(jax.random.key(0), model, data, method, steps=5000)
    again = credo.fit(jax.random.key(0), model, data, skeleton.name, steps=5000)
    assert fit.config["method"] == skeleton.name
    chains = coefficients(fit.posterior.params["network"]).astype(np.float64)
    np.testing.assert_array_equal(chains, coefficients(again.posterior.params["network"]))
    values = np.concatenate([chains, (chains - problem.mean) ** 2], axis=-1)
    truth = np.concatenate([problem.mean, np.diag(problem.covariance)])
    error = arviz_numbers.mcse(values)
    scores = (values.mean((0, 1)) - truth) / error
    assert np.abs(scores).max() < stats.norm.isf(1e-3 / 2 / scores.size)
    fit.save(tmp_path / "run")
    before, after = (
        credo.predict(jax.random.key(1), f, problem.inputs[:5]).mean for f in (fit, credo.load(tmp_path / "run"))
    )
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("code", blocks(ROOT / "CONTRIBUTING.md", "python")[:1], ids=["skeleton"])
def test_the_skeleton_has_our_style(code, tmp_path):
    (tmp_path / "random_walk.py").write_text(code, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    settings = ["--config", str(ROOT / "pyproject.toml"), str(tmp_path / "random_walk.py")]
    for command in (["check", "--ignore", "D102"], ["format", "--check"]):
        result = subprocess.run([*ruff, *command, *settings], capture_output=True, text=True)
        assert result.returncode == 0, result.stdout
