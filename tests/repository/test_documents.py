"""Every block of the README and of docs/ is done as it says, or is on a list with the reason why not."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from documents import ROOT, blocks, do, pages, parse, script_of, shape, unfenced
from small_tables import regression_frame

DIABETES = "src/credo/tables/bundled/diabetes.csv"
PAGES = [page for page in pages() if blocks(page)]
LANGUAGES = {"python", "sh", "toml", "csv", "text"}
DATA = "needs data that the repository does not ship"
MAKE = "a target of the Makefile, which test_readme.py looks for"

# Commands that no test can run. `credo` and `python` among them must at least understand their arguments.
NOT_RUN = {
    ("README.md", "pip install ."): "test_wheel.py builds and installs the wheel",
    ("README.md", "credo demo --out demo"): "tests/cli runs it",
    ("README.md", "make demo"): "installs an environment",
    ("README.md", "make test"): "this is it",
    ("docs/index.md", "make docs"): f"{MAKE}; test_site.py builds the site where mkdocs is installed",
    ("docs/index.md", "make gallery"): f"{MAKE}; test_gallery.py runs the examples in their smoke mode",
    ("docs/continual.md", "python -m benchmarks.continual --data-dir DIR --problem split --seeds 3"): DATA,
    (
        "docs/continual.md",
        "python -m benchmarks.continual --data-dir DIR --problem split --seeds 3 --coreset 40 --coreset-steps 300",
    ): DATA,
    ("docs/continual.md", "python -m benchmarks.continual --data-dir DIR --problem permuted --seeds 3"): DATA,
    (
        "docs/continual.md",
        "python -m benchmarks.continual --data-dir DIR --problem permuted --seeds 3 --coreset 200",
    ): DATA,
    (
        "docs/optimisation.md",
        "python -m benchmarks.optimisation --folder runs/optimisation --jobs 2 --peers .venv-peers/bin/python "
        "--plot regret.png",
    ): "hours, and needs the peers' environment",
}

# Pages that judge their own numbers get all their work, all others a few steps for each fit.
AS_WRITTEN = {"docs/developer/truth.md": "its z-test must pass"}
# Commands that need all their work, so they run where pages run as written, and are parsed here.
LONG = {
    "credo audit --methods map,bayes_by_backprop --problems linear,linear_orthogonal": "fails where a claim is missed"
}


def patients() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 3)), columns=["dose", "age", "weight"])
    return frame.assign(progression=frame["dose"].abs() + 0.1 * rng.normal(size=150))


def ill(rows: int) -> pd.DataFrame:
    frame = patients().head(rows)
    return frame.drop(columns="progression").assign(state=np.where(frame["dose"] > 0.5, "ill", "well"))


def sales(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    size = rng.uniform(50, 200, rows)
    return pd.DataFrame({"size": size, "sold": size + rng.normal(0, 20, rows)})


def iris() -> pd.DataFrame:
    found = load_iris(as_frame=True)
    return found.data.assign(species=found.target_names[found.target])


# Files that a page takes for granted: a reader has them, or a table of the same kind.
FILES = {
    "docs/decisions.md": {
        "patients.csv": lambda: ill(100),
        "new.csv": lambda: ill(20),
        "sales.csv": lambda: sales(100),
        "shops.csv": lambda: sales(20),
    },
    "docs/detection.md": {"new.csv": lambda: pd.read_csv(ROOT / DIABETES).head(30), "iris.csv": iris},
    "docs/developer/own_method.md": {"own_method.py": ROOT / "examples" / "own_method.py"},
    "docs/export.md": {"houses.csv": lambda: regression_frame()[["size", "rooms", "town", "sold", "price"]]},
    "docs/shallow.md": {"patients.csv": patients},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in which the bundled table lies as in a clone."""
    (tmp_path / DIABETES).parent.mkdir(parents=True)
    shutil.copy(ROOT / DIABETES, tmp_path / DIABETES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def provide(page: str) -> None:
    for name, source in FILES.get(page, {}).items():
        if isinstance(source, Path):
            shutil.copy(source, name)
        else:
            source().to_csv(name, index=False)


def check_output(page: str, printed: dict[int, str]) -> None:
    """Text that a page shows as printed has been printed by the block before it, up to the numbers."""
    before = ""
    for block in blocks(page):
        if block.language == "text":
            assert not set(shape(block.text)) - set(shape(before)), f"{page}:{block.line} was not printed"
        before = printed.get(block.line, before)


def left_out(page: str) -> list[str]:
    return [line for name, line in NOT_RUN if name == page]


def first_read(page: str) -> bool:
    """Pages that everybody begins with run whenever tests run; the others are in `make test-full`."""
    return page in ("README.md", "docs/index.md", "docs/quickstart/index.md")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if first_read(page) else [pytest.mark.full]) for page in PAGES]
)
def test_pages_run(page, folder):
    """From top to bottom, in one folder and one session of Python; fits take a few steps each."""
    provide(page)
    check_output(page, do(page, [*left_out(page), *LONG], AS_WRITTEN))


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES)
def test_pages_run_as_written(page, folder):
    """With all their work."""
    provide(page)
    check_output(page, do(page, left_out(page), [page]))


@pytest.mark.parametrize(("page", "line"), [key for key in NOT_RUN if not key[1].startswith(("make ", "pip "))])
def test_what_cannot_be_run_understands_its_arguments(page, line):
    parse(line)


@pytest.mark.parametrize("line", LONG)
def test_what_takes_long_understands_its_arguments(line):
    parse(line)


def scripts() -> list[str]:
    """`python FILE …` in texts, and what the pages about benchmarks and examples say, which nothing else runs."""
    found = [
        span for page in pages() for span in re.findall(r"`(python (?:[\w/]+\.py|-m benchmarks)[^`]*)`", unfenced(page))
    ]
    for page in ("benchmarks/README.md", "examples/README.md"):
        found += [line for block in blocks(page) for line in block.commands]
    lines = {line.removeprefix(".venv/bin/") for line in found}
    return sorted(line for line in lines if line.startswith(("python ", "credo ")))


@pytest.mark.parametrize("line", scripts())
def test_scripts_exist_and_understand_their_arguments(line):
    assert line.startswith("credo ") or script_of(line).exists()
    if " --" in line:
        parse(line)


def test_the_lists_have_no_stale_entries():
    shell = [block for page in PAGES for block in blocks(page) if block.language == "sh"]
    lines = {(block.page, line) for block in shell for line in block.commands}
    assert set(NOT_RUN) <= lines
    assert set(LONG) <= {line for _, line in lines}
    assert set(AS_WRITTEN) <= set(PAGES)
    for page, files in FILES.items():
        text = "".join(block.text for block in blocks(page))
        assert not [name for name in files if Path(name).stem not in text], page


@pytest.mark.parametrize("page", pages())
def test_all_code_is_in_blocks_that_a_test_can_find(page):
    rest = unfenced(page)
    assert not re.findall(r"^ *(?:```|~~~).*", rest, re.M)
    assert not re.findall(r"^ {4,}.*\b(?:import|credo|python|make)\b.*", rest, re.M)
    assert {block.language for block in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_shows_are_named_in_its_text(page):
    """A reader sees the title on the site only."""
    for block in blocks(page):
        assert block.language not in ("toml", "csv") or block.title, f"{page}:{block.line} has no title"
        assert block.title is None or f"`{block.title}`" in unfenced(page)
