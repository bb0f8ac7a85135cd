"""`credo suggest`: rows that are worth a label, best first (H2)."""

import io

import pandas as pd
import pytest

FIT = ("--target", "price", "--method", "bayes_by_backprop", "--network", "mlp:3", "--steps", "200")


@pytest.fixture(scope="module")
def fitted(credo, tables, tmp_path_factory):
    """A run with a spread on each table."""
    made = {}
    for name in ("houses", "labels"):
        made[name] = tmp_path_factory.mktemp("spread") / name
        result = credo("fit", tables / f"{name}.csv", *FIT, "--out", made[name])
        assert result.exit_code == 0, result.stderr
    return made


@pytest.mark.parametrize(("name", "acquisition"), [("houses", "batch_bald"), ("labels", "bald")])
def test_rows_come_with_their_worth(name, acquisition, credo, fitted, tables, tmp_path):
    table = pd.read_csv(tables / f"{name}.csv")
    result = credo("suggest", fitted[name], tables / f"{name}.csv", "--rows", "4", "--acquisition", acquisition)
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(io.StringIO(result.stdout))
    assert found["rank"].tolist() == [1, 2, 3, 4]
    assert found["row"].is_unique
    assert found["size"].tolist() == pytest.approx(table["size"].iloc[found["row"] - 1].tolist(), nan_ok=True)
    assert (found["value"] > 0).all()
    assert acquisition != "bald" or found["value"].is_monotonic_decreasing
    credo("suggest", fitted[name], tables / f"{name}.csv", "--rows", "3", "--out", tmp_path / "next.csv")
    assert len(pd.read_csv(tmp_path / "next.csv")) == 3


def test_bad_requests_get_a_sentence(credo, fitted, runs, tables):
    run, table = fitted["houses"], tables / "houses.csv"
    point = credo("suggest", runs["houses"][0], table)
    assert point.exit_code == 2
    assert "is a point" in point.stderr
    assert "Unknown acquisition 'best'" in credo("suggest", run, table, "--acquisition", "best").stderr
    assert "--rows" in credo("suggest", run, table, "--rows", "0").stderr
    many = credo("suggest", run, table, "--rows", "100000", "--acquisition", "random")
    assert many.exit_code == 0
    assert "all are suggested" in many.stderr
