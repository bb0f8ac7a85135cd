"""The site: every page has a place, generated pages are fresh, what is built needs no network and has no dead link."""

import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.append(str(ROOT / "tools"))

import generate  # noqa: E402
from site_stars import escaped  # noqa: E402

GENERATED = ("gallery", "api")  # tools/site_hooks.py puts the pages that their index names into the navigation


def planned() -> set[str]:
    """Pages that the navigation names."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = set(re.findall(r"[\w./]+\.md$", text.partition("\nnav:")[2], re.M))
    for folder in GENERATED:
        index = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        pages |= {f"{folder}/{name}" for name in re.findall(r"\]\(([\w.-]+\.md)\)", index)}
    return pages


def test_every_page_has_a_place_and_every_place_a_page():
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert planned() == {page for page in pages if not page.startswith("measured/")}


SOUGHT = (
    "Bayesian optimisation",
    "out-of-distribution detection",
    "continual learning",
    "active learning",
    "Laplace approximation",
    "MCMC",
    "SG-MCMC",
    "deep ensembles",
    "MC dropout",
    "conformal prediction",
)


@pytest.mark.parametrize("words", SOUGHT)
def test_what_readers_look_for_is_in_the_navigation_and_in_the_title_of_that_page(words):
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = re.findall(rf"^ +- [^:]*\b{words}\b.*: ([\w/]+\.md)$", nav, re.M | re.I)
    assert named
    assert any(
        re.search(rf"\b{words}\b", (DOCS / page).read_text(encoding="utf-8").partition("\n")[0], re.I) for page in named
    )


def test_generated_pages_are_fresh():
    assert not [str(path.relative_to(ROOT)) for path in generate.stale()], "these are stale: run `make generate`"


def test_stale_pages_are_seen_and_written(monkeypatch, tmp_path, capsys):
    old, left_over = tmp_path / "old.md", tmp_path / "left_over.md"
    for path in (old, left_over):
        path.write_text("what was", encoding="utf-8")
    maker = types.SimpleNamespace(pages=lambda: {old: "what is", tmp_path / "new.md": "new"})
    for name, value in {"ROOT": tmp_path, "MAKERS": (maker,), "FOLDERS": (tmp_path,)}.items():
        monkeypatch.setattr(generate, name, value)
    assert generate.main(["--check"]) == 1
    assert old.read_text(encoding="utf-8") == "what was"
    assert generate.main([]) == 0
    assert sorted(capsys.readouterr().out.split()) == sorted(2 * ["old.md", "left_over.md", "new.md"])
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        "old.md": "what is",
        "new.md": "new",
    }


@pytest.mark.parametrize("path", sorted((DOCS / "quickstart").glob("*.md")), ids=lambda path: path.name)
def test_quickstarts_are_short(path):
    assert len(path.read_text(encoding="utf-8").split()) < 900


def test_stars_of_formulas_are_no_emphasis():
    text = "v x*² is *not* **known** at (*this*) a*(x), `b*c`, θ*.\n\n    x*y*z\n\n```\nx*y*\n```"
    wanted = text.replace("x*²", r"x\*²").replace("a*(x)", r"a\*(x)").replace("θ*", r"θ\*")
    assert escaped(text) == wanted


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it; strict, so a dead link, a missing picture or a page without a place fails."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: `make docs` installs it")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: `make docs` installs it")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


@pytest.mark.full
def test_the_site_builds_strictly(site):
    assert len(list(site.rglob("*.html"))) >= len(planned())


@pytest.mark.full
def test_the_site_needs_no_network(site):
    """No script, style, font or picture from elsewhere; links that a reader may follow are fine."""
    loads = re.compile(
        r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*href=\"?(?:https?:)?//[^>]*stylesheet"
    )
    styles = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")
    wrong = [path.name for path in site.rglob("*.html") if loads.search(path.read_text(encoding="utf-8"))]
    wrong += [path.name for path in site.rglob("*.css") if styles.search(path.read_text(encoding="utf-8"))]
    assert not wrong


@pytest.mark.full
def test_links_inside_the_site_lead_somewhere(site):
    """What strict building does not see: links and pictures that were rewritten, and anchors of the API."""
    dead = []
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for link in re.findall(r"(?:href|src)=\"?([^\"\s>#?]+)", text):
            inside = "://" not in link and not link.startswith(("data:", "mailto:", "/"))
            if inside and not (path.parent / link).resolve().exists():
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


@pytest.mark.full
def test_the_search_works_from_a_folder(site):
    """There pages may read scripts, but no data, and start no worker."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert json.loads(index.removeprefix("var __index = ").rstrip(";\n"))["docs"]
    assert "assets/offline.js" in (site / "index.html").read_text(encoding="utf-8")
    assert "window.Worker" in (site / "assets" / "offline.js").read_text(encoding="utf-8")
