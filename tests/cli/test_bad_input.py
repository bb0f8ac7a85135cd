"""Whatever is wrong with what a person gives: one sentence, exit code 2, and no run left behind."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credo.report.load import load_run_data
from credo.tables.rows.splits import split_rows
from small_tables import QUICK, class_frame, regression_frame


def no_file(folder):
    return folder / "nowhere.csv"


def written(frame):
    def make(folder):
        frame.to_csv(folder / "bad.csv", index=False)
        return folder / "bad.csv"

    return make


def text(content, name="bad.csv"):
    def make(folder):
        (folder / name).write_text(content)
        return folder / name

    return make


def changed(column, value, frame=None):
    frame = regression_frame() if frame is None else frame
    frame[column] = frame[column].astype(object)
    frame.loc[4, column] = value
    return written(frame)


BAD_TABLES = {
    "missing file": (no_file, "There is no file"),
    "empty file": (text(""), "is empty"),
    "no rows": (text("size,price\n"), "no rows"),
    "one row": (text("size,price\n1,2\n"), "too few"),
    "unknown ending": (text("size,price\n1,2\n", "bad.ods"), "save as CSV"),
    "missing column": (written(regression_frame().rename(columns={"price": "prize"})), "did you mean 'prize'"),
    "infinity": (changed("size", np.inf), "size"),
    "infinite target": (changed("price", -np.inf), "price"),
    "text where numbers were": (changed("price", "a lot"), "price"),
    "constant target": (written(regression_frame().assign(price=7.0)), "nothing to learn"),
    "no inputs": (written(regression_frame()[["price"]]), "No column is left"),
    "lonely class": (changed("price", "unique", class_frame()), "only one training row"),
    "numbers as names": (text("1.5,2.5\n1,2\n3,4\n5,6\n"), "column names"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(case, credo, tmp_path):
    make, words = BAD_TABLES[case]
    task = ("--task", "regression") if case == "text where numbers were" else ()
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    check(credo("fit", path, "--target", "price", *task, *QUICK, "--out", tmp_path / "run"), words)
    assert sorted(tmp_path.iterdir()) == before


BAD_OPTIONS = {
    "method": (["--method", "bayes_by_bakprop"], "Did you mean 'bayes_by_backprop'"),
    "setting": (["--set", "learnin_rate=1"], "Did you mean 'learning_rate'"),
    "setting form": (["--set", "learning_rate"], "key=value"),
    "setting value": (["--set", "learning_rate=fast"], "takes a number"),
    "word setting": (["--set", "optimiser=adamm"], "adam"),
    "network": (["--network", "cnn:3"], "mlp:50,50"),
    "activation": (["--network", "mlp:3:rellu"], "relu"),
    "task": (["--task", "clasification"], "did you mean"),
    "missing": (["--missing", "ignore"], "impute"),
    "holdout": (["--holdout", "1.5"], "--holdout"),
    "everything held out": (["--holdout", "0.99"], "--holdout"),
    "budget": (["--budget", "soon"], "budget"),
    "steps and budget": (["--steps", "5", "--budget", "5s"], "not both"),
    "weights": (["--weights", "wieght"], "did you mean 'weight'"),
    "split-by": (["--split-by", "twon"], "did you mean 'town'"),
    "time": (["--time", "town"], "town"),
    "split-by and time": (["--split-by", "town", "--time", "sold"], "not both"),
    "prior": (["--set", "prior=norml:1"], "Did you mean 'normal'"),
    "likelihood": (["--set", "likelihood=poisson"], "A regression target"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options(case, credo, tables, tmp_path):
    options, words = BAD_OPTIONS[case]
    quick = () if case in ("method", "budget", "steps and budget") else QUICK
    result = credo("fit", tables / "houses.csv", "--target", "price", *quick, *options, "--out", tmp_path / "run")
    check(result, words)
    assert not list(tmp_path.iterdir())


def test_a_refusal_in_the_fit_leaves_nothing(credo, tables, tmp_path):
    options = ("--method", "nuts", "--set", "warmup=0", "--network", "mlp:2", "--steps", "3")
    result = credo("fit", tables / "houses.csv", "--target", "price", *options, "--out", tmp_path / "run")
    check(result, "step_size")
    assert not list(tmp_path.iterdir())


def test_a_fit_that_cannot_start_is_one_sentence(credo, tables, tmp_path):
    options = (*QUICK, "--set", "learning_rate=1e30")
    result = credo("fit", tables / "houses.csv", "--target", "price", *options, "--out", tmp_path / "run")
    check(result, "non-finite")
    assert not list(tmp_path.iterdir())


def test_a_bad_fit_leaves_the_earlier_run(credo, runs, tables, tmp_path):
    shutil.copytree(runs["houses"][0], tmp_path / "run")
    options = ("--method", "nuts", "--set", "warmup=0", "--network", "mlp:2", "--steps", "3")
    result = credo("fit", tables / "houses.csv", "--target", "price", *options, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert credo("evaluate", tmp_path / "run", tables / "houses.csv").exit_code == 0
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_places_that_are_taken(credo, tables, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("…")
    for out in (tmp_path / "mine", tmp_path / "mine" / "thesis.tex"):
        check(credo("fit", tables / "houses.csv", "--target", "price", *QUICK, "--out", out), "choose another")


# ---------------------------------------------------------------------- predict and evaluate
BAD_NEW_TABLES = {
    "missing column": (written(regression_frame().drop(columns="size")), "size"),
    "text": (changed("size", "big"), "size"),
    "far away": (changed("size", 1e300), "size"),
    "no file": (no_file, "There is no file"),
}


@pytest.mark.parametrize("case", BAD_NEW_TABLES)
def test_bad_tables_to_predict(case, credo, runs, tmp_path):
    make, words = BAD_NEW_TABLES[case]
    path = make(tmp_path)
    out = tmp_path / "p.csv"
    check(credo("predict", runs["houses"][0], path, "--out", out), words)
    check(credo("evaluate", runs["houses"][0], path), words)
    assert not out.exists()


def test_bad_places_and_intervals(credo, runs, tables, tmp_path):
    run, table = runs["houses"][0], tables / "houses.csv"
    check(credo("predict", run, table, "--interval", "1.5"), "--interval")
    check(credo("predict", run, table, "--out", tmp_path / "p.docx"), "ending")
    check(credo("predict", run, table, "--out", tmp_path / "no" / "p.csv"), "no folder")
    check(credo("evaluate", runs["labels"][0], table), "class")
    table = regression_frame().drop(columns="price")
    table.to_csv(tmp_path / "t.csv", index=False)
    check(credo("evaluate", run, tmp_path / "t.csv"), "price")


def test_runs_that_are_none(credo, runs, tables, tmp_path):
    table = tables / "houses.csv"
    for command in (("predict", tmp_path, table), ("evaluate", tmp_path, table), ("resume", tmp_path)):
        check(credo(*command), "is not a credo run")
    check(credo("predict", tmp_path / "nowhere", table), "There is no run")
    check(credo("report", tmp_path / "nowhere", "--out", tmp_path / "r.html"), "There is no run")
    shutil.copytree(runs["houses"][0], tmp_path / "run")
    found = json.loads((tmp_path / "run" / "versions.json").read_text())
    (tmp_path / "run" / "versions.json").write_text(json.dumps(found | {"format": 12}))
    check(credo("predict", tmp_path / "run", table), "install a newer credo")
    (tmp_path / "run" / "versions.json").write_text(json.dumps(found))
    (tmp_path / "run" / "encoder.json").write_bytes((tmp_path / "run" / "encoder.json").read_bytes()[:-5])
    check(credo("predict", tmp_path / "run", table), "damaged")


def test_a_run_on_arrays_has_no_columns(credo, tables, tmp_path):
    import jax

    import credo as library

    x = np.linspace(-1, 1, 20)[:, None]
    parts = library.networks.mlp([2]), library.priors.normal(), library.likelihoods.gaussian()
    library.fit(jax.random.key(0), library.Model(*parts), (x, x[:, 0]), "map", steps=3).save(tmp_path / "run")
    check(credo("predict", tmp_path / "run", tables / "houses.csv"), "made from arrays")


def check(result, words):
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert errors[0] == result.stderr.splitlines()[-1]
    assert errors[0].endswith((".", "?"))
    assert "Traceback" not in result.stderr


# ---------------------------------------------------------------------- odd files and numbers
ODD_OPTIONS = {
    "steps": (["--steps", "99999999999999999999999"], "steps must be at most 2,147,483,647"),
    "seed": (["--seed", "99999999999999999999999"], "4294967295"),
    "batch size": (["--batch-size", "99999999999999999999999"], "batch_size must be at most"),
    "superscript": (["--network", "mlp:5²"], "mlp:50,50"),
    "wide": (["--network", "mlp:99999999999"], "Hidden widths must be at most 1,000,000"),
    "wide pair": (["--network", "mlp:100000,100000"], "weights between two of them"),
    "wide and shallow": (["--network", "shallow:99999999999"], "The number of nodes must be at most 1,000,000"),
    "whole setting": (["--set", "batch=1", "--method", "hmc", "--set", "warmup=99999999999"], "has no setting"),
    "long setting": (["--method", "hmc", "--set", "warmup=99999999999"], "a whole number below 2³¹"),
    "infinite setting": (["--method", "hmc", "--set", "warmup=inf"], "a whole number below 2³¹"),
    "endless setting": (["--set", "learning_rate=" + "9" * 400], "takes a number"),
}


@pytest.mark.parametrize("case", ODD_OPTIONS)
def test_numbers_beyond_what_is_counted(case, credo, tables, tmp_path):
    options, words = ODD_OPTIONS[case]
    result = credo("fit", tables / "houses.csv", "--target", "price", *QUICK, *options, "--out", tmp_path / "run")
    check(result, words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["hmc", "deep_ensemble"])
def test_more_than_any_memory_holds_is_told_before_it_is_taken(method, credo, tables, tmp_path):
    """Two billion members: an allocator that cannot have them ends the process, so that none is asked."""
    name = {"hmc": "chains", "deep_ensemble": "size"}[method]
    begun = ["fit", tables / "houses.csv", "--target", "price", "--method", method, "--out", tmp_path / "run"]
    check(credo(*begun, "--set", f"{name}=2000000000"), "Memory is short (at least")
    smaller = ["--set", f"{name}=2", *(["--set", "warmup=2"] if method == "hmc" else []), "--steps", "2"]
    assert credo(*begun, *smaller).exit_code == 0


def test_seeds_of_other_commands(credo, tables, tmp_path):
    check(credo("compare", tables / "houses.csv", "--target", "price", "--seed", str(2**32)), "4294967295")
    check(credo("optimise", tmp_path / "f.py", "--space", "x=0:1", "--seed", "-1"), "--seed")


def nested(frame, cells):
    def make(folder):
        frame.assign(odd=cells).to_parquet(folder / "bad.parquet")
        return folder / "bad.parquet"

    return make


def loop(folder):
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    return folder / "loop.csv"


def far_dates(folder):
    pq.write_table(pa.table({"when": pa.array([2**40] * 40, pa.timestamp("s")), "price": range(40)}), folder / "d.pq")
    return folder / "d.pq"


ODD_TABLES = {
    "all-null target": (written(regression_frame().assign(price=None)), "price", "has no values"),
    "a list as target": (nested(regression_frame(), [[1, 2]] * 60), "odd", "holds lists"),
    "bytes as target": (nested(regression_frame(), [b"a", b"b"] * 30), "odd", "holds bytes"),
    "a structure as target": (nested(regression_frame(), [{"a": 1}] * 60), "odd", "holds structures"),
    "links in a circle": (loop, "price", "cannot be opened"),
    "years beyond 9999": (far_dates, "price", "dates lie between the years 1 and 9999"),
}


@pytest.mark.parametrize("case", ODD_TABLES)
def test_odd_tables(case, credo, tmp_path):
    make, target, words = ODD_TABLES[case]
    path = make(tmp_path)
    for missing in ("error", "drop", "impute"):
        options = ("--missing", missing, "--out", tmp_path / "run")
        check(credo("fit", path, "--target", target, *QUICK, *options), words)
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cells", [[[1, 2]] * 60, [b"a", None] * 30, [{"a": 1}, None] * 30])
def test_columns_of_lists_and_bytes_are_left_out_in_a_note(cells, credo, tmp_path):
    path = nested(regression_frame(), cells)(tmp_path)
    result = credo("fit", path, "--target", "price", *QUICK, "--steps", "2", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert "Left out: odd (cannot be read)." in result.stdout
    check(credo("fit", path, "--target", "price", *QUICK, "--split-by", "odd", "--out", tmp_path / "two"), "odd")


def test_names_that_are_not_utf8(credo, tables, tmp_path):
    name = os.fsdecode(b"caf\xe9")
    shutil.copy(tables / "houses.csv", tmp_path / f"{name}.csv")
    run, table = tmp_path / name, tmp_path / f"{name}.csv"
    assert credo("fit", table, "--target", "price", *QUICK, "--out", run, "--json").exit_code == 0
    assert credo("predict", run, table, "--out", tmp_path / f"{name}2.csv").exit_code == 0
    assert credo("report", run, "--out", tmp_path / "r.html").exit_code == 0
    assert credo("effects", run, "--rows", table).exit_code == 0
    check(credo("fit", table, "--target", name, *QUICK, "--out", tmp_path / "two"), "has no column")


# ---------------------------------------------------------------------- categories that training did not have
def test_an_unseen_category_is_predicted_with_a_note(credo, runs, tmp_path):
    run, frame = runs["houses"][0], regression_frame()
    frame.loc[[4, 7], "town"] = ["Oxford", "Derby"]
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = credo("predict", run, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.stderr
    said = "Column 'town' has categories that training did not have in 2 of 60 rows;"
    assert result.stderr.count(said) == 1
    found = pd.read_csv(tmp_path / "p.csv")
    assert found.notna().all(axis=None)
    # The fit is a point, whose own predictions know no doubt: all of it is between towns.
    assert (found["epistemic_std"] > 0).to_numpy().nonzero()[0].tolist() == [4, 7]
    for command in (("evaluate", run), ("effects", run, "--out", tmp_path / "effects", "--rows")):
        result = credo(*command, tmp_path / "new.csv")
        assert result.exit_code == 0, result.stderr
        assert result.stderr.count(said) == 1


def test_a_category_of_held_out_rows_alone_does_not_stop_predictions(credo, tmp_path):
    frame = regression_frame()
    held = split_rows(frame, 0.1, 0)[1]
    frame.loc[held[0], "town"] = "Oxford"
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = credo("fit", tmp_path / "t.csv", "--target", "price", *QUICK, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    result = credo("predict", tmp_path / "run", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.stderr
    assert len(pd.read_csv(tmp_path / "p.csv")) == 60
    # The report predicts that row as the scores of the fit do: as a mixture.
    shown, stored = load_run_data(tmp_path / "run"), json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert shown.predictive.epistemic.max() > 0
    rmse = np.sqrt(np.mean((shown.predictive.mean - shown.targets) ** 2))
    assert rmse == pytest.approx(stored["test_rmse"], rel=1e-4)


def test_a_sentence_stays_one_line_whatever_it_quotes(credo, tmp_path):
    frame = regression_frame().astype({"price": object})
    frame["price"] = ["two\nlines", "\x1b[2J\x1b[31mred"] * 29 + ["a\nb", "fine"]
    path = written(frame)(tmp_path)
    result = credo("fit", path, "--target", "price", *QUICK, "--holdout", "0", "--out", tmp_path / "run")
    check(result, "only one training row")
    assert "\x1b" not in result.stderr
