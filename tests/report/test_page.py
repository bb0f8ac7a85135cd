"""The page: whole, self-contained, and safe whatever the columns are called."""

import dataclasses
import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.report import RunData, Section, load_run_data, page, write_report
from credo.report.write import render

from .conftest import EVIL, make_run, numbers_table

EVERY = ["In words", "Status and advice", "Scores", "Predictions", "Calibration", "Noise and lack of knowledge"]
EVERY += ["What the inputs do", "Can this be believed?", "Training", "Configuration", "Versions"]
VOID = {"meta", "br", "path", "use", "rect", "image"}
MOST = 3_000_000  # bytes of a page


class Check(HTMLParser):
    """Collects tags and headings, and notes tags that close what was not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]
        self.ids += [v for k, v in attrs if k == "id"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag) -> None:
        if tag not in VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data) -> None:
        if self.stack and re.fullmatch("h[1-6]", self.stack[-1]):
            self.headings.append(data)


def check(text: str) -> Check:
    """A page that is well formed, needs nothing from outside and runs one script, our own."""
    found = Check(text)
    assert found.stack == []
    assert not re.search(r"https?:|@import|url\((?!#)|\bfetch\(|XMLHttpRequest|eval\(|innerHTML", text)
    assert not {"link", "iframe", "object"} & found.tags
    plots = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert all(json.loads(plot)["axes"] for plot in plots)
    own = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(own) == bool(plots)
    assert text.count("<script") == len(plots) + len(own)
    for script in own:  # the browser runs this one alone
        assert f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}" in text
    assert all(link.startswith(("#", "data:")) for link in found.links)
    assert len(found.ids) == len(set(found.ids))
    assert all(link[1:] in found.ids for link in found.links if link.startswith("#"))
    return found


@pytest.mark.parametrize("kind", ["regression", "classification", "sampler"])
def test_a_page_has_every_section(kind, request) -> None:
    found = check(render([request.getfixturevalue(kind)]))
    residuals = [] if kind == "classification" else ["Residuals"]
    assert set(found.headings[1:]) == {*EVERY, *residuals}


def test_summary_says_what_the_scores_say(regression) -> None:
    text = render([regression])
    assert "On 60 held-out rows the typical error of y is" in text
    assert "90 % intervals held" in text


def test_names_are_escaped(sampler) -> None:
    assert sampler.feature_names == (EVIL,)
    run = dataclasses.replace(sampler, name=EVIL, notes=[EVIL], versions={EVIL: EVIL})
    text = render([run, run])
    check(text)
    assert "alert" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert r"\u003cscript\u003e" in text  # in the data of the plots


@pytest.mark.full
def test_odd_targets_and_classes_do_not_break_figures() -> None:
    table = numbers_table().rename(columns={"y": EVIL})
    check(render([make_run("odd", table, EVIL, "map", 30, "regression")]))
    table[EVIL] = ["$\\frac" if v > 50 else "_" for v in table[EVIL]]
    check(render([make_run("odd", table, EVIL, "map", 30)]))


def test_several_runs_are_compared(regression, sampler) -> None:
    other = dataclasses.replace(regression, name="again")
    text = render([regression, other])
    found = check(text)
    assert found.headings[:2] == ["2 runs compared", "Comparison"]
    assert found.headings.count("Calibration") == 2
    assert "no more than chance could explain" in text
    assert "scored on different rows" not in text


@pytest.mark.full
def test_runs_on_different_rows_are_not_compared_row_by_row(regression, classification) -> None:
    text = render([regression, classification])
    check(text)
    assert "scored on different rows" in text


def test_a_run_without_scored_rows(regression) -> None:
    bare = RunData("bare", regression.fit, {"steps": 3})
    text = render([bare])
    assert "No rows were held out" in text
    assert "Training" in check(text).headings


@pytest.mark.full
def test_one_row_and_a_loss_that_failed(regression) -> None:
    frame = numbers_table().iloc[-1:]
    run = RunData.from_table("one", regression.fit, regression.encoder, frame)
    trace = {k: np.full_like(v, np.nan) for k, v in regression.fit.trace.items()}
    fit = dataclasses.replace(regression.fit, trace=trace, phases={"optimise": trace})
    text = render([run, dataclasses.replace(run, fit=fit)])
    assert "On 1 held-out row the" in text
    check(text)


@pytest.mark.full
def test_write_report_is_whole_or_not_at_all(regression, tmp_path: Path) -> None:
    out = write_report([regression], tmp_path / "deep" / "report.html")
    assert out.read_text(encoding="utf-8").endswith("</html>\n")
    assert [p.name for p in out.parent.iterdir()] == ["report.html"]
    with pytest.raises(InputError, match="at least one run"):
        write_report([], tmp_path / "none.html")
    with pytest.raises(InputError, match="cannot be written"):
        write_report([regression], out / "below-a-file.html")


def test_page_takes_any_sections() -> None:
    found = check(page("A & B", [Section("C", "<p>d</p>", 3, "e")], "f"))
    assert found.headings == ["A & B", "C"]
    assert found.ids == ["e"]


@pytest.mark.full
def test_a_saved_run_gives_the_same_page(regression, tmp_path: Path) -> None:
    from credo.storage.run_directory.write import save_fit

    arrays = regression.encoder.arrays(numbers_table().iloc[120:])
    held = {"inputs": arrays.inputs, "targets": arrays.targets}
    metrics = {k: v for k, v in regression.metrics.items() if k.startswith("test_")}
    save_fit(regression.fit, tmp_path / "run", encoder=regression.encoder, metrics=metrics, heldout=held)
    run = load_run_data(tmp_path / "run")
    assert run.name == "run"
    assert dict(run.metrics) == pytest.approx(dict(regression.metrics))
    again = load_run_data(tmp_path / "run", numbers_table().iloc[120:])
    assert again.rows == "new"
    assert again.metrics["test_rmse"] == pytest.approx(regression.metrics["test_rmse"])
    check(render([run, again]))


def test_a_saved_run_on_arrays_has_no_scores(regression, tmp_path: Path) -> None:
    regression.fit.save(tmp_path / "run")
    run = load_run_data(tmp_path / "run")
    assert run.predictive is None
    assert isinstance(run.fit, credo.Fit)
    with pytest.raises(InputError, match="not made from a table"):
        load_run_data(tmp_path / "run", numbers_table())
