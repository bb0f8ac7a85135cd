"""`credo audit`: the command, its numbers and its pictures."""

import json

from PIL import Image


def size(path):
    with Image.open(path) as picture:
        return picture.size


def test_audit_writes_numbers_and_pictures(credo, tmp_path):
    done = credo("audit", "--methods", "map", "--problems", "linear,gap", "--json", "--out", tmp_path / "audit")
    assert done.exit_code == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [(r["method"], r["problem"]) for r in rows] == [("map", "linear"), ("map", "gap")]
    assert rows[0]["met"] is True
    assert {"mean_error", "std_ratio", "w1", "coverage_90", "seconds"} <= set(rows[0])
    assert {p.name for p in (tmp_path / "audit").iterdir()} == {"audit.json", "audit.md", "audit.png", "audit_gap.png"}
    page = (tmp_path / "audit" / "audit.md").read_text(encoding="utf-8")
    assert "| `map` | 0.00 · 0.00 ✓ |" in page
    assert "- `map`: Claims to be the mode" in page
    assert json.loads((tmp_path / "audit" / "audit.json").read_text())["rows"] == rows
    assert min(size(tmp_path / "audit" / "audit.png")) > 200


def test_audit_prints_a_table_and_a_sentence(credo):
    done = credo("audit", "--methods", "map", "--problems", "linear")
    assert done.exit_code == 0, done.stderr
    assert "0.00 · 0.00 ✓" in done.stdout
    assert "map: Claims to be the mode" in done.stdout


def test_a_calibration_that_fails_exits_with_1(credo, tmp_path):
    done = credo("audit", "--sbc", "map", "--simulations", 20, "--out", tmp_path)
    assert done.exit_code == 1
    assert "not uniform" in done.stdout
    assert json.loads((tmp_path / "sbc_map.json").read_text())["passed"] is False
    assert min(size(tmp_path / "sbc_map.png")) > 200


def test_wrong_names_are_sentences(credo):
    for args, words in (
        (("--methods", "mapp"), "Did you mean 'map'?"),
        (("--problems", "gapp", "--methods", "map"), "Did you mean 'gap'?"),
        (("--sbc", "mapp"), "Did you mean 'map'?"),
        (("--sbc", "map", "--setting", "nothing"), "Unknown setting"),
        (("--remake",), "--out"),
        (("--remake", "--problems", "linear", "--out", "x"), "no stored reference"),
    ):
        done = credo("audit", *args)
        assert done.exit_code == 2, args
        assert words in done.stderr
