"""What the script of a page is told about figures, and the script itself where Node.js is there to run it."""

import datetime
import json
import re
import shutil
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from credo.report import RunData, Section
from credo.report.html import SCRIPTS
from credo.report.interactive import safe_json
from credo.report.readout import add_readout, spans
from credo.report.style import INK, axes
from credo.report.svg import inline_svg
from credo.report.write import render

from .conftest import EVIL
from .test_page import MOST, check
from .test_plots import make_predictions

X = np.linspace(1, 10, 5)


def told(figure: Figure) -> list[dict]:
    """The axes as the script reads them."""
    found = re.search(r'<script type="application/json">(.*?)</script>', inline_svg(figure, "a"), re.DOTALL)
    return [] if found is None else json.loads(found[1])["axes"]


def test_lines_points_and_bars_can_be_read() -> None:
    figure, area = axes("title", "across", "up")
    area.plot(X, X**2, label="curve", color=INK)
    add_readout(area.scatter(X, X, label="dots", color="#ff0000"), about={"interval": spans(X, X + 1)})
    area.hist([1, 2, 2], bins=2, label="bars")
    bars, line, dots = told(figure)[0]["series"]
    assert [s["kind"] for s in (bars, line, dots)] == ["bars", "line", "points"]
    assert [s["name"] for s in (bars, line, dots)] == ["bars", "curve", "dots"]
    assert bars["y"] == [1, 2]
    assert line["y"] == pytest.approx(X**2)
    assert line["colour"] == "currentColor"
    assert dots["x"] == 1  # that of the second series
    assert dots["about"] == [["interval", spans(X, X + 1)]]
    assert told(figure)[0]["zoom"] == "x"  # a bar keeps its foot


def test_reference_lines_and_silent_lines_are_not_read() -> None:
    figure, area = axes("title", "across", "up")
    area.axhline(1)
    area.plot([0, 1], [0, 1])
    add_readout(area.plot(X, X)[0], silent=True)
    assert told(figure) == []
    assert "<script" not in inline_svg(figure, "a")


@pytest.mark.parametrize(("scale", "ends"), [("linear", [1, 100]), ("log", [0, 2])])
def test_ends_are_on_the_scale_of_the_axis(scale, ends) -> None:
    figure, area = axes("title", "across", "up")
    area.plot(X, X)
    area.set_xscale(scale)
    area.set_xlim(1, 100)
    found = told(figure)[0]["x"]
    assert found["kind"] == scale
    assert found["ends"] == pytest.approx(ends)


def test_names_dates_and_shares_on_axes() -> None:
    figure, area = axes("title", "across", "up")
    day = datetime.datetime(2026, 1, 1)
    area.plot([day + datetime.timedelta(i) for i in range(5)], X)
    area.set_yticks([2, 4], ["low $", "high"])
    found = told(figure)[0]
    assert found["x"]["kind"] == "date"
    assert found["y"]["names"] == [[2, "low $"], [4, "high"]]
    assert found["zoom"] == "x"
    figure, area = axes("title", "across", "up")
    area.plot(X, X)
    area.set_xticks([2, 4], ["200 %", "400 %"])
    assert told(figure)[0]["x"]["percent"]


def test_marks_say_which_way_they_follow_the_data() -> None:
    figure, area = axes("title", "across", "up")
    area.plot(X, X)
    area.axvline(2)
    area.axhspan(2, 3)
    area.fill_between(X, X, X + 1)
    area.text(0.5, 0.5, "fixed", transform=area.transAxes)
    text = inline_svg(figure, "a")
    assert [text.count(f'<g class="{name}"') for name in ("axes", "xy", "x", "y", "xy shape")] == [1, 1, 1, 1, 1]
    assert "xtick" in text
    assert "font-family" not in text


def test_panels_that_share_an_axis_move_together() -> None:
    figure = Figure(layout="constrained")
    areas = figure.subplots(2, 2, sharey=True)
    for area in areas.flat[:3]:
        area.plot(X, X)
    areas[0, 0].set_ylabel("up")
    areas[1, 1].set_visible(False)
    found = told(figure)
    assert [axis["groups"] for axis in found] == [[0, 0], [1, 0], [2, 0]]
    assert found[1]["y"]["label"] == "up"


def test_hostile_names_stay_data() -> None:
    figure, area = axes("title", EVIL.replace("$", r"\$"), "</script><b>")
    add_readout(area.plot(X, X)[0], EVIL, about={"</script>": [EVIL] * 5})
    text = inline_svg(figure, "a")
    assert text.count("</script") == 1
    (found,) = told(figure)
    assert found["x"]["label"] == EVIL
    assert found["series"][0]["about"] == [["</script>", [EVIL] * 5]]
    assert json.loads(safe_json({"a": "</ScRipt><!--&\u2028"})) == {"a": "</ScRipt><!--&\u2028"}
    assert not set("<>&") & set(safe_json("</ScRipt><!--&"))


def test_numbers_that_json_has_no_word_for() -> None:
    figure, area = axes("title", "across", "up")
    area.plot(X, [1, np.nan, 3, np.inf, 5])
    assert told(figure)[0]["series"][0]["y"] == [1, None, 3, None, 5]


def test_a_page_on_many_rows_is_small_and_says_what_it_leaves_out(regression) -> None:
    rows = 20_000
    inputs = np.resize(regression.inputs, (rows, regression.inputs.shape[1]))
    run = RunData.from_predictions(
        "many", None, make_predictions(regression, inputs), np.resize(regression.targets, rows), metrics={},
        row_numbers=np.arange(rows) + 7,
    )  # fmt: skip
    text = render([run])
    check(text)
    assert len(text.encode()) < MOST / 3
    assert "600 of 20,000 rows shown, evenly spaced" in text
    assert '["row of the table",["8",' in text


def test_many_runs_stay_small(regression, monkeypatch) -> None:
    large = [Section("Figures", "<p>" + "a" * (MOST // 4) + "</p>")]
    monkeypatch.setattr("credo.report.write.run_sections", lambda *_, **__: large)
    text = render([regression] * 5)
    assert len(text.encode()) < MOST
    assert text.count(">Figures<") == 3
    assert text.count("figures of this run are left out") == 2


def test_the_script_is_shipped() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert "report/assets/*" in project["tool"]["setuptools"]["package-data"]["credo"]
    assert {f"{name}.js" for name in SCRIPTS} == {f.name for f in files("credo.report").joinpath("assets").iterdir()}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_scales_and_ticks_of_the_script() -> None:
    code = files("credo.report").joinpath("assets/scale.js").read_text(encoding="utf-8")
    code += """
    const line = {kind: "linear", ends: [0, 10]}, log = {kind: "log", ends: [-3, 1]};
    const both = {kind: "symlog", ends: [-20, 20], threshold: 2}, day = {kind: "date", ends: [0, 100]};
    const share = {kind: "linear", ends: [0, 1], percent: true};
    const back = (axis, v) => valueAt(axis, fraction(axis, v));
    console.log(JSON.stringify({
      back: [back(line, 3), back(log, 0.02), back(both, -70), back(both, 1.5)],
      line: ticksOf(line, 0.2, 0.4, 4), log: ticksOf(log, 0, 1, 4), near: ticksOf(log, 0.5, 0.7, 6),
      day: ticksOf(day, 0, 0.1, 2), share: ticksOf(share, 0.4, 0.6, 2),
      zero: [textOfTick(-0.001, 1), textOfTick(-0.4, 0), written(-0)],
      down: ticksOf({kind: "linear", ends: [1, -1]}, 0, 1, 2),
      told: [told(line, 3.14159265), told(share, 0.123), told({kind: "linear", ends: [1000, 1001]}, 1000.123),
             told({kind: "labels", names: [[0, "a"], [1, "b"]]}, 0.8), written(12345678.9), written(-0.00001)],
    }));
    """
    run = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert found["back"] == pytest.approx([3, 0.02, -70, 1.5])
    assert [text for _, text in found["line"]] == ["2.0", "2.5", "3.0", "3.5", "4.0"]
    assert [text for _, text in found["log"]] == ["0.001", "0.1", "10"]
    assert [text for _, text in found["near"]] == ["0.1", "0.2", "0.5"]
    assert [text for _, text in found["day"]] == ["1970-01-01", "1970-01-06", "1970-01-11"]
    assert [text for _, text in found["share"]] == ["40 %", "50 %", "60 %"]
    assert found["zero"] == ["0.0", "0", "0"]
    assert [text for _, text in found["down"]] == ["−1", "0", "1"]
    assert found["told"] == ["3.142", "12.3 %", "1000.12", "b", "1.23e7", "−1.00e−5"]
