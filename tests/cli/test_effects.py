"""`credo effects`: a table, a picture and a page, for runs on tables."""

import re

import pytest

from credo.report.effects import input_section, run_effects
from credo.report.load import load_run_data
from small_tables import QUICK

COLUMNS = ["size", "rooms", "town", "garden", "sold", "weight"]


@pytest.mark.parametrize("name", ["houses", "labels"])
def test_every_column_has_its_effect(name, credo, runs, tables, tmp_path):
    result = credo("effects", runs[name][0], "--rows", tables / f"{name}.csv", "--out", tmp_path / "new")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert {line.split()[0] for line in lines[2:9] if ":" not in line} == set(COLUMNS)
    assert any(line.startswith("sold: day of week") for line in lines[2:9])
    assert "strength" in lines[0]
    assert "select_inputs=True" in lines[9]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"effects.png", "effects.html"}
    page = (tmp_path / "new" / "effects.html").read_text()
    assert all(column in page for column in COLUMNS)
    assert (tmp_path / "new" / "effects.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", ["houses", "labels"])
def test_a_report_has_the_same_numbers_in_the_same_order(name, credo, runs, tmp_path):
    printed = credo("effects", runs[name][0], "--out", tmp_path).stdout
    run = load_run_data(runs[name][0])
    assert printed == f"{run_effects(run)}\n"
    names = [line.strip() for line in re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", input_section(run, 2, "run")[0].body)]
    assert [n for n in names if n in run_effects(run).names] == run_effects(run).order


def test_held_out_rows_are_enough(credo, runs, tmp_path):
    first, again = (credo("effects", runs["houses"][0], "--out", tmp_path, "--level", "0.5") for _ in range(2))
    assert first.exit_code == 0, first.stderr
    assert first.stdout == again.stdout
    assert "50 % of the posterior" in (tmp_path / "effects.html").read_text()


def test_without_rows_one_sentence_says_what_to_do(credo, tables, tmp_path):
    table, run = tables / "houses.csv", tmp_path / "run"
    credo("fit", table, "--target", "price", *QUICK, "--holdout", "0", "--out", run)
    refused = credo("effects", run)
    assert refused.exit_code == 2
    assert "--rows FILE" in refused.stderr
    assert credo("effects", run, "--rows", table).exit_code == 0
    assert (run / "effects.png").is_file()
    assert credo("effects", run, "--rows", table, "--level", "2").exit_code == 2
    assert "choose another --out" in credo("effects", run, "--rows", table, "--out", table).stderr
