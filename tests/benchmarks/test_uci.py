"""The UCI study: the published protocol, records that resume, and a leaderboard with the right numbers."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge

from benchmarks import published, uci, uci_auto, uci_board
from benchmarks.records import Records
from benchmarks.uci_data import folds, load, outside
from credo.errors import ArtifactError

MODELS = "auto,linear,gp"


@pytest.fixture(scope="module")
def study(benchmark, data_dir, tiny, tmp_path_factory):
    """Both sets with two splits: the folder that the command wrote."""
    out = tmp_path_factory.mktemp("study")
    arguments = ["uci", "--data-dir", data_dir, "--sets", "yacht,energy", "--models", MODELS, "--splits", 2, *tiny]
    assert benchmark(*arguments, "--one-fit", "--out", out).exit_code == 0
    return out, arguments


def records(out):
    return Records(out / "records").all("uci")


def cells(out, heading, name):
    """The cells of a set in the first table under a heading, by column."""
    rest = (out / "uci.md").read_text(encoding="utf-8").partition(f"## {heading}")[2]
    lines = [line.strip("| ").split(" | ") for line in rest.splitlines() if line.startswith("| ")]
    return dict(zip(lines[0], next(line for line in lines if line[0] == name)))


def by_hand(data_dir, name, split):
    """Log-likelihood and RMSE of the linear baseline without a line of credo."""
    with np.load(data_dir / "uci_regression" / f"{name}.npz") as file:
        x, y, train, test = (file[key] for key in ("X", "y", "train_idx", "test_idx"))
    rows, new = train[split], test[split]
    scaled = (x - x[rows].mean(0)) / x[rows].std(0)
    model = BayesianRidge().fit(scaled[rows], (y[rows] - y[rows].mean()) / y[rows].std())
    mean, std = model.predict(scaled[new], return_std=True)
    mean, std = y[rows].mean() + y[rows].std() * mean, y[rows].std() * std
    return norm.logpdf(y[new], mean, std).mean(), np.sqrt(((mean - y[new]) ** 2).mean())


@pytest.mark.parametrize("name", ["yacht", "energy"])
def test_the_table_has_the_numbers_of_a_direct_computation(study, data_dir, name):
    found = np.array([by_hand(data_dir, name, split) for split in range(2)])
    mean, error = found.mean(0), found.std(0, ddof=1) / 2**0.5
    for column, (heading, places) in enumerate((("Test log-likelihood", 2), ("RMSE", 2))):
        cell = cells(study[0], heading, name)["`linear`"].strip("*").replace("−", "-")
        shown = [float(word) for word in cell.split(" ± ")]
        assert np.allclose(shown, [mean[column], error[column]], atol=0.6 * 10.0**-places, rtol=1e-3)


def test_the_table_has_the_means_of_the_records_and_the_published_rows(study):
    for record in records(study[0]):
        values = [row["log_likelihood"] for row in record["rows"]]
        if values:
            shown = cells(study[0], "Test log-likelihood", record["set"])[f"`{record['model']}`"].strip("*")
            wanted = f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / 2**0.5:.2f}"
            assert shown == wanted.replace("-", "−", 1) if wanted.startswith("-") else wanted
    line = cells(study[0], "Test log-likelihood", "energy")
    assert (line["VI"], line["deep ensemble"], line["other"].strip("*")) == (
        "−2.39",
        "−1.38",
        "−0.61 (ensemble of ten)",
    )


def test_scores_are_on_the_original_scale(study):
    """The two sets are the same rows in other units."""
    found = {(r["set"], r["model"]): r["rows"] for r in records(study[0]) if r["rows"]}
    for model in MODELS.split(","):
        for one, other in zip(found["yacht", model], found["energy", model]):
            assert np.isclose(one["log_likelihood"] - other["log_likelihood"], np.log(1000), atol=2e-2)
            assert np.isclose(1000 * one["rmse"], other["rmse"], rtol=2e-2)


def test_what_is_on_record_is_not_run_again(study, benchmark, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("a fit was run")

    out, arguments = study
    before = (out / "uci.md").read_text(encoding="utf-8")
    for name in ("scores", "fit_baseline", "alone"):
        monkeypatch.setattr(uci, name, never)
    again = benchmark(*arguments, "--one-fit", "--out", out)
    assert again.exit_code == 0
    assert "on record" in again.stderr
    assert "done" not in again.stderr
    assert (out / "uci.md").read_text(encoding="utf-8") == before
    with pytest.raises(AssertionError, match="a fit was run"):
        benchmark(*arguments[:-2], "--set", "longest=21", "--out", out)


def test_splits_that_are_missing_are_added(study, benchmark, data_dir, tmp_path):
    out, _ = study
    for record in (out / "records").glob("uci-yacht-linear-*"):
        (tmp_path / "records").mkdir(exist_ok=True)
        (tmp_path / "records" / record.name).write_text(record.read_text())
    done = ["uci", "--data-dir", data_dir, "--sets", "yacht", "--models", "linear", "--out", tmp_path]
    assert benchmark(*done, "--splits", 3).exit_code == 0
    added = [[row["split"] for row in record["rows"]] for record in records(tmp_path)]
    assert sorted(added) == [[0, 1], [2]]
    assert set(uci_board.gather(records(tmp_path))["yacht", "linear"].rows) == {0, 1, 2}


def test_the_page_says_what_made_it(study):
    text = (study[0] / "uci.md").read_text(encoding="utf-8")
    command = f"python -m benchmarks uci --data-dir DIR --sets yacht,energy --models {MODELS} --splits 2 --steps 2"
    assert f"- `{command} --set size=2" in text
    why = next(record["why"] for record in records(study[0]) if record["model"] == "auto" and record["rows"])
    assert why.startswith("ensemble_chains, because 36 rows")
    assert f"yacht: {why}" in text
    assert "JAX" in text
    assert "`auto` is better than every published row" in text
    assert str(study[0]) not in text
    assert "(" in cells(study[0], "Seconds of a fit", "yacht")["`auto`"]  # one fit alone
    assert (study[0] / "uci.png").stat().st_size > 10_000
    assert not [line for line in text.splitlines() if line.startswith("    ")]


def test_splits_run_with_the_settings_that_their_pilot_took(data_dir, monkeypatch):
    data, ran = load(data_dir, "yacht"), []
    rivals = ({"prior": "fan_in_normal:1"}, {"prior": "fan_in_normal:3"})
    choice = uci_auto.choice_of(data)._replace(rivals=rivals)

    def pilots(choice, model_with, tables, seeds):
        assert [float(model_with(rival).prior.scale) for rival in rivals] == [1, 3]
        assert all(np.allclose(table[0], outside(data, seed).x) for table, seed in zip(tables, seeds, strict=True))
        return [choice._replace(settings=choice.settings | rivals[seed % 2], rivals=()) for seed in seeds]

    def scores(key, built, tasks):
        ran.append((float(built.model.prior.scale), len(tasks)))
        return np.full((len(tasks), 2), ran[-1][0])

    monkeypatch.setattr(uci, "choice_of", lambda *_: choice)
    monkeypatch.setattr(uci_auto, "pilot", pilots)
    monkeypatch.setattr(uci, "scores", scores)
    found = uci.automatic(data, [0, 1, 2], uci.Options())
    assert [row["log_likelihood"] for row in found["rows"]] == [1, 3, 1]
    assert ran == [(1, 2), (3, 1)]
    pilots = [row["pilot"] for row in found["rows"]]
    assert uci_auto.describe("Why.", pilots).endswith("took fan_in_normal:1 on 2 splits, fan_in_normal:3 on 1.")
    assert len(uci.automatic(data, [0], uci.Options(settings={"prior": "normal:2"}))["rows"]) == 1  # no pilot


def test_the_grid_chooses_on_training_rows_alone(data_dir):
    data = load(data_dir, "yacht")
    for split in range(2):
        inside = np.concatenate([one.new_y[:, 0] * one.spread for one in folds(data, split)])
        assert len(inside) == 35  # five folds of seven rows
    poisoned = data | {"y": np.where(np.isin(np.arange(40), data["test_idx"][0]), np.nan, data["y"])}
    rows = uci.tuned("map", poisoned, [0], 2, lambda line: None, test=False)
    assert np.isfinite(rows[0]["cross_validated"])
    assert "log_likelihood" not in rows[0]
    rows = uci.tuned("map", data, [0, 1], 2, lambda line: None)
    assert [row["split"] for row in rows] == [0, 1]
    assert all(np.isfinite(row["log_likelihood"]) and 0 <= row["choice"] < 4 for row in rows)


def test_what_a_baseline_refuses_is_left_out_with_a_word(data_dir, benchmark, tmp_path, monkeypatch):
    from credo.evaluation.baselines import regression

    monkeypatch.setattr(regression, "MOST_GP", 10)
    done = ["uci", "--data-dir", data_dir, "--sets", "yacht", "--models", "linear,gp", "--splits", 1, "--out", tmp_path]
    assert benchmark(*done).exit_code == 0
    assert "`gp` was left out on yacht" in (tmp_path / "uci.md").read_text(encoding="utf-8")
    assert cells(tmp_path, "Test log-likelihood", "yacht")["`gp`"] == "–"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "atuo"], "Did you mean 'auto'"),
        (["--sets", "yatch"], "Did you mean 'yacht'"),
        (["--sets", "wine"], "There is no"),
        (["--sets", "yacht", "--models", "linear", "--choose-only"], "no settings to choose"),
    ],
)
def test_what_is_wrong_is_one_sentence(benchmark, data_dir, tmp_path, arguments, words):
    result = benchmark("uci", "--data-dir", data_dir, "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr


# ---------------------------------------------------------------------- the leaderboard, from records made by hand
def made(name, model, values, mark="a", splits=None, **more):
    rows = [{"split": s, "log_likelihood": v, "rmse": 1.0, "seconds": 2.0} for s, v in zip(splits or range(99), values)]
    record = {"set": name, "model": model, "fingerprint": mark, "rows": rows, "seconds": 10.0, "machine": "here"}
    return record | {"refused": None, "why": None, "num_data": 9, "side_by_side": model == "auto"} | more


def test_counts_are_those_of_sets_on_which_auto_is_better():
    board = uci_board.gather([
        made("yacht", "auto", [-0.5, -0.7, -0.6]), made("yacht", "boosting", [-0.6, -0.8, -0.7]),
        made("boston", "auto", [-2.354, -2.348, -2.346]), made("boston", "boosting", [-2.2, -2.2, -2.2]),
    ])  # fmt: skip
    gaps = uci_board.ahead_of_published(board)
    assert np.isclose(gaps["yacht"][0], 0.73 - 0.6)
    assert gaps["boston"][0] == 0  # −2.349 is −2.35 in the decimals that are printed
    assert uci_board.counted(gaps, "all") == (
        "`auto` is better than all on 1 of 2 sets, on 1 of them by more than two standard errors; not on boston."
    )
    paired = uci_board.ahead_of(board, "boosting")
    assert np.allclose(paired["yacht"], (0.1, 0.0), atol=1e-9)
    assert paired["boston"][0] < 0


def test_of_several_settings_the_one_with_most_splits_is_shown():
    few = made("yacht", "auto", [0.0], "few", written="2")
    parts = [made("yacht", "auto", [1.0], "many", [0]), made("yacht", "auto", [3.0], "many", [1], written="1")]
    cell = uci_board.gather([few, *parts])["yacht", "auto"]
    assert cell.values("log_likelihood").tolist() == [1.0, 3.0]
    assert cell.others == 1
    assert cell.seconds == 20
    assert cell.each() == 10


def test_rounded_numbers_tie():
    printed = {"MC-dropout": "0.0007", "deep ensemble": "0.00"}
    assert uci_board.leaders({"auto": 0.0004}, printed, -1) == {"auto", "deep ensemble"}
    assert uci_board.leaders({"auto": 0.0104}, printed, -1) == {"MC-dropout", "deep ensemble"}


def test_the_published_rows_are_whole():
    for row in published.WHOLE:
        assert set(row.log_likelihood) == set(uci_board.SETS)
        assert not row.rmse or set(row.rmse) == set(uci_board.SETS)
    for row in published.BEST:
        assert all(published.best(name) == (row.name, text) for name, text in row.log_likelihood.items())
    assert all(row.source for row in published.UCI)


def test_a_task_is_standardised_on_its_training_rows(data_dir):
    one = outside(load(data_dir, "yacht"), 0)
    assert np.allclose(one.x.mean(0), 0, atol=1e-6)
    assert np.allclose([*one.x.std(0), one.y.std()], 1, atol=1e-5)


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "uci-yacht-map.json").write_text("{")
    with pytest.raises(ArtifactError, match="damaged"):
        Records(tmp_path).all("uci")
