"""What "auto" chooses, and that everything that takes a method takes it (I1)."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import credo
from credo.cli.fit import free_folder
from credo.cli.main import app
from credo.errors import InputError
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.tables import auto
from credo.tables.auto import pilots
from credo.tables.encode.encoder import TableEncoder
from credo.tables.job import job_file, read_job
from credo.tables.model import build, parse_likelihood, parse_network
from small_tables import regression_frame

QUICK = {"warmup": 5, "num_steps": 3, "size": 2, "longest": 50}
WORDS = [word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")]


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass", "count"])
@pytest.mark.parametrize("rows", [1, 100, 5_000, 40_000, 1_000_000, 10_000_000])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_choice_can_be_built(task, rows, device):
    choice = auto.choose(task, rows, 12, outputs=3, device=device)
    method, options = build(choice.method, choice.settings)
    assert parse_network(choice.network).widths
    assert choice.steps >= 1
    assert 1 <= choice.batch_size <= rows
    assert choice.method in choice.why
    assert f"{rows:,}" in choice.why
    if task == "regression":
        parse_likelihood(options["likelihood"])
    else:
        assert set(options) <= {"prior"}  # of an ensemble for more inputs than rows
    assert method is not None


def test_more_time_gives_longer_chains_and_more_rows_shorter_ones():
    lengths = [auto.choose("regression", 2_000, 8, seconds=s, device="cpu").steps for s in (60, 120, 300)]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    sizes = [auto.choose("regression", n, 8, device="cpu") for n in (1_000, 4_000, 1_000_000)]
    assert sizes[0].steps > sizes[1].steps
    assert [c.method for c in sizes] == ["ensemble_chains", "ensemble_chains", "deep_ensemble"]


def test_a_choice_does_not_depend_on_anything_else():
    assert auto.choose("count", 700, 4, device="cpu") == auto.choose("count", 700, 4, device="cpu")


def test_no_rows():
    with pytest.raises(InputError, match="no rows"):
        auto.choose("regression", 0, 3)


@pytest.mark.parametrize("words", ["mlp:7", "mlp:5,4:tanh", "mlp:"])
@pytest.mark.parametrize("task", ["regression", "multiclass", "binary"])
def test_parameters_are_counted(words, task):
    heads = {"regression": 2, "multiclass": 3, "binary": 1}[task]
    made = parse_network(words).init(jax.random.key(0), np.zeros((1, 6), np.float32), heads).params
    size = sum(x.size for x in jax.tree.leaves(made))
    assert auto.count(words, task, 6, 3 if task == "multiclass" else 1) == size


def test_what_the_user_says_stays():
    choice = auto.choose("regression", 400, 10, device="cpu")
    said = choice.words("mlp:9", {"noise": 0.5, "warmup": 7}, 20, 32, None)
    assert said["network"] == "mlp:9"
    assert said["steps"] == 20
    assert said["batch_size"] == 32
    assert said["settings"]["warmup"] == 7
    assert "likelihood" not in said["settings"]
    assert choice.words(None, {}, None, None, "5s")["steps"] is None


def test_the_command_line_chooses_and_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    regression_frame().to_csv("houses.csv", index=False)
    first = CliRunner().invoke(app, ["fit", "houses.csv", "--target", "price", "--steps", "4", "--verbose", *WORDS])
    assert first.exit_code == 0, first.output
    assert "Method: ensemble_chains, because 54 rows" in first.stderr
    run = tmp_path / "runs" / "houses"
    config = credo.load(run).config
    assert config["method"] == "ensemble_chains"
    assert free_folder(Path("houses.csv")) == Path("runs/houses-2")
    assert free_folder(Path("there/cars.csv.gz")) == Path("runs/cars")


def test_an_unfinished_run_knows_its_method(tmp_path):
    from credo.tables.job import Job
    from credo.tables.prepare import prepare

    table = tmp_path / "houses.csv"
    regression_frame().to_csv(table, index=False)
    job = Job(table=str(table), target=["price"], steps=4)
    chosen = prepare(job, None, print).job
    chosen.write(tmp_path / "run")
    assert job_file(tmp_path / "run").is_file()
    read = read_job(tmp_path / "run")
    assert read == chosen
    assert prepare(read, None, print).job == chosen
    assert read.method == "ensemble_chains"
    assert read.network == credo.tables.auto.choice.DEEP


def test_a_setting_that_the_chosen_method_lacks(tmp_path):
    regression_frame().to_csv(tmp_path / "houses.csv", index=False)
    command = [
        "fit",
        str(tmp_path / "houses.csv"),
        "--target",
        "price",
        "--set",
        "rank=3",
        "--out",
        str(tmp_path / "r"),
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "ensemble_chains has no setting 'rank'" in result.stderr
    assert not (tmp_path / "r").exists()


@pytest.fixture
def quick(monkeypatch):
    """Choices that are fitted at once: what is asked here is whether they are heeded."""

    def choose(task, rows, features, **facts):
        options = {"likelihood": "heteroscedastic_t:0.05"} if task == "regression" else {}
        return auto.Choice(
            "map", "mlp:3", {"learning_rate": 0.01} | options, 20, 16, f"map, because {rows} rows, {facts}"
        )

    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    monkeypatch.setattr(credo.tables.auto.choice, "choose", choose)


def test_estimators_choose(quick):
    x = np.random.default_rng(0).normal(size=(60, 2))
    model = BayesianRegressor(random_state=0).fit(x, x[:, 0])
    assert model.why_.startswith("map, because 60 rows")
    assert model.fit_.config["steps"] == 20
    assert model.fit_.config["batch_size"] == 16
    assert type(model.fit_.model.likelihood).__name__ == "HeteroscedasticT"
    labels = np.where(x[:, 0] > 0, "up", "down")
    classes = BayesianClassifier(network=credo.networks.mlp([4]), steps=9, random_state=0).fit(x, labels)
    assert "'parameters': 17" in classes.why_
    assert classes.fit_.config["steps"] == 9
    assert classes.predict_proba(x).shape == (60, 2)
    again = BayesianRegressor("map", "mlp:3", steps=5, random_state=0).fit(x, x[:, 0])
    assert not hasattr(again, "why_")


def test_a_model_of_ones_own():
    x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    likelihood = credo.likelihoods.gaussian(noise=0.1)
    model = credo.Model(credo.networks.mlp([3]), credo.priors.normal(1.0), likelihood)
    case = auto.of_model(model, (x, x[:, 0]))
    resolved = auto.resolve(case, settings={"prior": model.prior, "likelihood": likelihood})
    assert resolved.words["method"] == "ensemble_chains"
    assert resolved.model is model
    assert "13 parameters" in resolved.why


def test_auto_in_a_comparison(quick):
    frame = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": np.linspace(0, 3, 40)})
    found = credo.compare(frame, "y", methods="auto", baselines="linear", folds=2)
    assert {row["model"] for row in found.table} == {"auto", "linear"}


def test_auto_on_the_command_line_of_a_comparison(quick, tmp_path):
    regression_frame().to_csv(tmp_path / "houses.csv", index=False)
    words = ["--target", "price", "--methods", "auto,map", "--baselines", "linear", "--folds", "2", "--steps", "20"]
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "houses.csv"), *words])
    assert result.exit_code == 0, result.output
    assert "fold 2: auto" in result.stderr


# ---------------------------------------------------------------------- the pilot
RIVALS = ({"prior": "fan_in_normal:1"}, {"prior": "fan_in_normal:3"})
CHOICE = auto.Choice("ensemble_chains", "mlp:4", {}, 10, 16, "Because.", RIVALS)
ROWS = (np.zeros((90, 2), np.float32), np.zeros(90, np.float32), np.ones(90, np.float32))


def with_prior(rival):
    return credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))


def scored(monkeypatch, *scores):
    """Pilots that come to these scores, one for each rival."""
    left = list(scores)
    monkeypatch.setattr(pilots, "_scores", lambda *_: [(left.pop(0), None)])
    return auto.pilot(CHOICE, with_prior, [ROWS], [0])[0]


def test_a_pilot_that_comes_to_nothing_chooses_nothing(monkeypatch):
    taken = scored(monkeypatch, -np.inf, -np.inf)
    assert taken.settings == {}
    assert taken.rivals == ()
    assert "came to nothing, so the prior is the usual one" in taken.why
    assert "inf" not in taken.why


def test_a_rival_that_fails_loses(monkeypatch):
    taken = scored(monkeypatch, -np.inf, -1.5)
    assert taken.settings == RIVALS[1]
    assert "fan_in_normal:1 failed, fan_in_normal:3 -1.500" in taken.why


def last_wins(monkeypatch):
    """Pilots in which every rival is better than those before it; the rivals that were tried."""
    tried = []

    def scores(choice, model_of, *_):
        tried.append(model_of)
        return [(float(len(tried)), None)]

    monkeypatch.setattr(pilots, "_scores", scores)
    return tried


@pytest.mark.parametrize("names", [("no", "yes"), pytest.param(("a", "b", "c"), marks=pytest.mark.full)])
def test_labels_may_be_wrong_unless_a_likelihood_is_named(names, monkeypatch):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(90, 2)), np.array(names)[rng.integers(len(names), size=90)]
    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    quick = {"steps": 3, "settings": {"warmup": 5, "num_steps": 2, "size": 2, "longest": 20}}
    tried = last_wins(monkeypatch)
    model = BayesianClassifier(random_state=0, **quick).fit(x, labels)
    assert len(tried) == 3
    assert isinstance(model.fit_.model.likelihood, credo.likelihoods.Mislabelled)
    assert "Of 3 models fan_in_normal:4 mislabelled predicts best" in model.why_
    assert model.predict_proba(x).shape == (90, len(names))
    frame = pd.DataFrame(x, columns=["u", "v"]).assign(label=labels)
    encoder = TableEncoder.learn(frame, "label")
    case = auto.of_table(encoder, encoder.arrays(frame))
    assert auto.resolve(case).words["settings"]["likelihood"] == "mislabelled"
    tried.clear()
    named = BayesianClassifier(likelihood="categorical", random_state=0, **quick).fit(x, labels)
    assert isinstance(named.fit_.model.likelihood, credo.likelihoods.Categorical)
    assert len(tried) == 2
    model = auto.resolve(case, settings={"likelihood": "categorical"}).model
    assert isinstance(model.likelihood, credo.likelihoods.Categorical)


@pytest.mark.parametrize("network", [credo.networks.mlp([4]), "mlp:4", [4], None])
def test_a_network_of_ones_own_keeps_the_number_of_its_outputs(network, monkeypatch):
    data = (
        np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32),
        np.arange(90) % 3,
        np.ones(90, np.float32),
    )
    own, tried = isinstance(network, credo.networks.mlp([4]).__class__), []
    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    monkeypatch.setattr(credo.tables.auto.resolution, "pilot", lambda choice, *_: [tried.append(choice) or choice])
    for task, wrong in (("binary", not own), ("multiclass", True)):
        model = BayesianClassifier(network=network)
        model.classes_ = np.arange(2 if task == "binary" else 3)
        auto.resolve(model._case(task, data, len(model.classes_)), network=network)
        assert any("likelihood" in rival for rival in tried[-1].rivals) == wrong


@pytest.mark.full
def test_wrong_labels_are_found_by_the_pilot():
    """A fifth of the labels of a sharp rule is wrong: that many labels contradict their neighbours, and without a
    share of wrong labels a network must be unsure everywhere."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)).astype(np.float32)
    y = np.where(rng.random(400) < 0.2, rng.integers(2, size=400), x[:, 0] + x[:, 1] > 0).astype(np.int32)
    choice = auto.choose("binary", 400, 2, outputs=2, device="cpu")

    def model(rival):
        likelihood = credo.likelihoods.mislabelled(2) if "likelihood" in rival else credo.likelihoods.categorical(2)
        return credo.Model(credo.networks.mlp([4], "tanh"), credo.priors.normal(3.0), likelihood)

    taken = auto.pilot(choice, model, [(x, y, np.ones(400, np.float32))], [0])[0]
    assert taken.settings["likelihood"] == "mislabelled"


def test_a_shallow_network_keeps_its_own_prior(monkeypatch):
    monkeypatch.setattr(pilots, "_scores", lambda *_: pytest.fail("a pilot was run"))
    frame = regression_frame(80)
    encoder = TableEncoder.learn(frame, "price")
    resolved = auto.resolve(auto.of_table(encoder, encoder.arrays(frame)), network="shallow:8")
    assert resolved.correction is None
    assert "prior" not in resolved.words["settings"]
    own = credo.Model(credo.networks.shallow(3), credo.priors.node_hierarchy(), credo.likelihoods.gaussian())
    assert auto.pilot(CHOICE, lambda _: own, [ROWS], [0]) == [CHOICE._replace(rivals=())]


@pytest.mark.parametrize("sizes", [(30, 30, 30), (50, 9, 1, 10, 20), (85, 5)])
def test_a_pilot_keeps_groups_whole(sizes):
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(len(sizes)), sizes))
    folds = pilots._folds(90, 0, groups)
    assert len(folds) == min(3, len(sizes))
    assert sorted(np.concatenate(folds)) == list(range(90))
    assert sum(len(set(groups[fold])) for fold in folds) == len(sizes)
    columns = (np.arange(90)[:, None], np.arange(90), np.ones(90))
    given, held = pilots._cut(with_prior({}), columns, folds)
    for i, fold in enumerate(folds):
        real = [side[0][i, side[2][i] > 0, 0] for side in (given, held)]
        assert sorted(real[0]) == sorted(set(range(90)) - set(fold))
        assert sorted(real[1]) == sorted(fold)


def test_one_group_cannot_be_cut():
    taken = auto.pilot(CHOICE, with_prior, [ROWS], [0], np.zeros(90, int))[0]
    assert taken.settings == {}
    assert "All rows are of one group" in taken.why


def test_a_fit_by_groups_tells_its_pilot(tmp_path, monkeypatch):
    from credo.tables import prepare
    from credo.tables.job import Job

    seen = []

    def chosen(case, network, settings, budget, seed, groups, *_):
        seen.append((len(case.data[1]), groups))
        return auto.Choice("map", "mlp:3", {}, 5, 16, "Because.")

    monkeypatch.setattr("credo.tables.auto.resolution.takes_many", lambda case: False)  # one model, not a set
    monkeypatch.setattr("credo.tables.auto.resolution._chosen", chosen)
    table = tmp_path / "houses.csv"
    regression_frame().to_csv(table, index=False)
    job = Job(table=str(table), target=["price"], holdout=0.3)
    prepare.prepare(job, None, print)
    prepare.prepare(dataclasses.replace(job, split_by="town"), None, print)
    assert seen[0][1] is None
    rows, groups = seen[1]
    assert len(groups) == rows
    assert len(set(groups)) == 2  # of three towns one is held out


def test_old_names_say_what_took_their_place():
    for name, new in {"choose_for": "resolve", "compete": "pilot", "settle": "Choice.words"}.items():
        with pytest.raises(AttributeError, match=f"use credo.tables.auto.{new}"):
            getattr(auto, name)
