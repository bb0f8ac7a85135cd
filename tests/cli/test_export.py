"""`credo export`: what it writes predicts as `credo predict` does, from rows of the table."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import credo as library


@pytest.fixture(scope="module")
def predicted(credo, runs, tables, tmp_path_factory):
    """What `credo predict` says about each table."""
    folder = tmp_path_factory.mktemp("predicted")
    for name, (run, _) in runs.items():
        credo("predict", run, tables / f"{name}.csv", "--out", folder / f"{name}.feather")
    return {name: pd.read_feather(folder / f"{name}.feather") for name in runs}


def compare(columns, wanted):
    assert list(columns) == list(wanted.columns)
    for name, values in columns.items():
        if name == "label":
            assert list(values) == list(wanted[name])
        else:
            np.testing.assert_allclose(values, wanted[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["houses", "labels"])
def test_numpy_alone_predicts_rows_of_the_table(name, credo, runs, tables, predicted, tmp_path):
    result = credo("export", runs[name][0], "--out", tmp_path / "p", "--form", "numpy")
    assert result.exit_code == 0, result.stderr
    assert "Wrote the predictor" in result.stderr
    assert sorted(file.name for file in (tmp_path / "p").iterdir()) == [
        "portable.py",
        "predictor.json",
        "predictor.npz",
    ]
    code = (
        "import sys, json, csv\n"
        "for name in ('jax', 'credo', 'pandas', 'pyarrow'): sys.modules[name] = None\n"
        f"sys.path.insert(0, {str(tmp_path / 'p')!r})\n"
        "import portable\n"
        f"rows = list(csv.DictReader(open({str(tables / f'{name}.csv')!r})))\n"
        f"found = portable.load({str(tmp_path / 'p')!r}).predict(rows)\n"
        "print(json.dumps({k: v.tolist() for k, v in found.columns().items()}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    compare(json.loads(done.stdout), predicted[name])


def test_a_program_predicts_rows_of_the_table(credo, runs, tables, predicted, tmp_path):
    result = credo("export", runs["houses"][0], "--out", tmp_path / "p", "--form", "stablehlo")
    assert result.exit_code == 0, result.stderr
    frame = pd.read_csv(tables / "houses.csv")
    compare(library.load_exported(tmp_path / "p").predict(frame).columns(), predicted["houses"])


def test_everything_wrong_is_one_sentence(credo, runs, tables, tmp_path):
    run = runs["houses"][0]
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for args, words in [
        ([run, "--out", tmp_path / "taken"], "exists"),
        ([tmp_path / "nothing", "--out", tmp_path / "p"], "There is no run"),
        ([tmp_path / "taken", "--out", tmp_path / "p"], "is not a credo run"),
        ([tables / "houses.csv", "--out", tmp_path / "p"], "is a file"),
        ([run, "--out", tmp_path / "p", "--form", "onnx"], "numpy"),
        ([run, "--out", tmp_path / "p", "--samples", "0"], "--samples"),
        ([run, "--out", tmp_path / "p", "--levels", "many"], "--levels"),
        ([run, "--out", tmp_path / "p", "--form", "stablehlo", "--levels", "2"], "between 0 and 1"),
        ([run], "--out"),
    ]:
        result = credo("export", *args)
        assert result.exit_code == 2, args
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "p").exists()
