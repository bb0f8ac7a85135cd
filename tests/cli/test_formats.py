"""`credo predict` reads and writes Parquet and Feather."""

import pandas as pd
import pytest


@pytest.mark.parametrize(("ending", "read"), [("parquet", pd.read_parquet), ("feather", pd.read_feather)])
def test_binary_tables_in_and_out(ending, read, credo, runs, tables, tmp_path):
    run = runs["labels"][0]
    frame = pd.read_csv(tables / "labels.csv")
    getattr(frame, f"to_{ending}")(tmp_path / f"rows.{ending}")
    for source, out in ((tables / "labels.csv", "one"), (tmp_path / f"rows.{ending}", "two")):
        result = credo("predict", run, source, "--out", tmp_path / f"{out}.{ending}")
        assert result.exit_code == 0, result.stderr
    pd.testing.assert_frame_equal(read(tmp_path / f"one.{ending}"), read(tmp_path / f"two.{ending}"))
