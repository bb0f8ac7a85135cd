"""The gallery: every example runs in its smoke mode, has a page, and its pictures are small."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("[0-9]*.py"))
PICTURES = ROOT / "docs" / "images" / "gallery"
QUICK = ("01_bayes_by_hand", "05_elbo", "16_optimisation")
sys.path.append(str(ROOT / "tools"))

from gallery import MOST_BYTES, cells, run  # noqa: E402

by_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def marked(script):
    return pytest.param(script, id=script.stem, marks=[] if script.stem in QUICK else [pytest.mark.full])


@pytest.mark.parametrize("script", [marked(script) for script in SCRIPTS])
def test_examples_run(script, tmp_path, monkeypatch):
    monkeypatch.setenv("CREDO_SMOKE", "1")
    monkeypatch.setenv("CREDO_GALLERY_OUT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "look", raising=False)  # reads the environment when it is imported
    run(script)
    del sys.modules["look"]
    assert {path.stem for path in tmp_path.glob("*.png")} == names(script)


def names(script: Path) -> set[str]:
    return set(re.findall(r'^save\(figure, "(\w+)"\)', script.read_text(encoding="utf-8"), re.M))


@by_script
def test_pictures_are_there_and_small(script):
    for name in names(script):
        assert (PICTURES / f"{name}.png").stat().st_size <= MOST_BYTES
        assert name in (ROOT / "docs" / "gallery" / f"{script.stem}.md").read_text(encoding="utf-8")


@by_script
def test_examples_are_short_and_explain_themselves(script):
    text = script.read_text(encoding="utf-8")
    assert 40 <= len(text.splitlines()) <= 130
    kinds = [kind for kind, _ in cells(text)]
    assert kinds[0] == kinds[-1] == "markdown"


def test_no_picture_is_left_over():
    assert {path.stem for path in PICTURES.glob("*.png")} == {name for script in SCRIPTS for name in names(script)}
