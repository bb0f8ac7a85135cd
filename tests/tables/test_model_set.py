"""Sets of models: several on the same folds, mixed by what they say of rows that they had not seen."""

import dataclasses
import shutil

import jax
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import credo
from credo.cli.main import app
from credo.core.folds import even_folds
from credo.errors import InputError, Refusal
from credo.estimators import BayesianRegressor
from credo.tables.auto import model_set as rules
from credo.tables.auto.case import of_table
from credo.tables.auto.choice import EFFORTS
from credo.tables.auto.fit_set import fit_set
from credo.tables.auto.model_set import FOLDS, ModelPlan, model_set
from credo.tables.auto.plan_set import built
from credo.tables.auto.resolution import resolve
from credo.tables.auto.speed import Speed
from credo.tables.auto.stack import Candidate, joined, log_densities
from credo.tables.encode.encoder import TableEncoder
from credo.tables.model import build, parse_network
from credo.training.stacked import stacked

ENSEMBLE = {"size": FOLDS, "held_out": 0.2, "aside": 0.0}
LINE = ModelPlan("line", "deep_ensemble", "mlp:", ENSEMBLE, 1_500, 32, 1.0)
CURVE = ModelPlan("curve", "deep_ensemble", "mlp:8:tanh", ENSEMBLE, 60, 32, 1.0)
PROCESS = ModelPlan("process", "infinite_width", "mlp:8:erf", {"prior_scale": "evidence"}, None, None, 1.0)
REFUSED = ModelPlan("refused", "infinite_width", "residual_mlp:4:1:tanh", {}, None, None, 1.0)


def line_frame(rows=64):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    return frame.assign(y=3 * frame["a"] - frame["b"] + 0.3 * rng.normal(size=rows))


@pytest.fixture(scope="module")
def case_of_lines():
    frame = line_frame()
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    return of_table(encoder, encoder.arrays(frame))


# ------------------------------------------------------------------------------------------------------ the set
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass", "count"])
@pytest.mark.parametrize("rows", [30, 3_000, 20_000, 1_000_000])
def test_every_model_of_every_set_can_be_built(task, rows):
    parts = model_set(task, rows, 12, outputs=3, device="cpu")
    assert len({part.name for part in parts}) == len(parts) >= 2
    for part in parts:
        method, _ = build(part.method, part.settings)
        assert parse_network(part.network)
        assert part.method == "infinite_width" or method.members == FOLDS
        assert part.steps is None or part.steps >= 1


def test_chains_and_processes_are_for_small_tables():
    methods = {rows: {part.method for part in model_set("regression", rows, 12, device="cpu")} for rows in (500, 9_000)}
    assert methods[500] == {"deep_ensemble", "infinite_width", "ensemble_chains"}
    assert methods[9_000] == {"deep_ensemble"}
    wide = {part.method for part in model_set("regression", 200, 2_000, device="cpu")}
    assert wide == {"deep_ensemble"}


def test_more_time_admits_more_models_and_longer_ones():
    sets = [model_set("regression", 1_000, 8, seconds=s, device="cpu") for s in (2, 20, 200)]
    assert len(sets[0]) < len(sets[2])
    steps = [sum(part.steps or 0 for part in parts) for parts in sets]
    assert steps == sorted(steps)


def test_the_target_suggests_likelihoods():
    frame = line_frame().assign(y=lambda f: np.exp(f["y"] / 3))
    encoder = TableEncoder.learn(frame, "y", missing="auto")
    assert of_table(encoder, encoder.arrays(frame)).likelihoods == ("log_normal",)
    names = [part.name for part in model_set("regression", 500, 3, likelihoods=("log_normal",), device="cpu")]
    assert "log_normal ensemble".replace("_", "-") in names


# -------------------------------------------------------------------------------------------------------- a fit
@pytest.fixture(scope="module")
def mixed(case_of_lines):
    models = built(case_of_lines, [LINE, CURVE, REFUSED, PROCESS])
    return fit_set(jax.random.key(0), case_of_lines.data, models, seed=3, progress=False)


def test_what_is_refused_is_left_out_in_a_note(mixed):
    assert mixed.outcome == "finished"
    assert any(note.startswith("Left out: refused.") for note in mixed.notes)
    weights = mixed.config["settings"]["weights"]
    assert set(weights) <= {"line", "curve", "process"}
    assert sum(weights.values()) == pytest.approx(1)


def test_models_that_know_the_truth_weigh_most(mixed):
    """The truth is a line: 60 steps of a network are far from it, and the other two are not."""
    weights = mixed.config["settings"]["weights"]
    assert weights.get("curve", 0.0) < 0.2
    rows = line_frame(500).tail(400)
    encoder = TableEncoder.learn(line_frame(), "y", missing="auto")
    pred = credo.predict(jax.random.key(1), mixed, encoder.inputs(rows))
    error = np.asarray(pred.mean).ravel() * encoder.target_scale + encoder.target_shift - rows["y"]
    assert np.sqrt(np.mean(error**2)) < 0.36  # noise of 0.3, and 64 rows


def test_the_mixture_says_of_unseen_rows_what_its_parts_say(case_of_lines, mixed):
    """log Σ w p at the rows of all folds, by hand from the parts, is that of the joined draws."""

    folds = even_folds(len(case_of_lines.data[1]), FOLDS, 3)
    parts = [Candidate.of(share.name, share.fit, folds) for share in mixed.parts]
    weights = np.array([share.weight for share in mixed.parts])
    by_hand = np.log((weights[:, None] * np.exp([part.density for part in parts])).sum(0))
    plain = dataclasses.replace(mixed, model=_uncorrected(mixed))
    together = [joined(plain, list(own)) for own in zip(*(part.unseen for part in parts))]
    np.testing.assert_allclose(log_densities(together), by_hand, atol=0.02)  # weights are in sixteenths of draws


def _uncorrected(fit):
    shares = fit.parts
    return stacked([s.fit for s in shares], [s.weight for s in shares], [s.name for s in shares]).model


def test_no_model_at_all_is_a_refusal(case_of_lines):
    with pytest.raises(Refusal, match="None of 1 models"):
        fit_set(jax.random.key(0), case_of_lines.data, built(case_of_lines, [REFUSED]), progress=False)


def test_a_ctrl_c_leaves_the_models_that_were_finished(case_of_lines, monkeypatch):
    from credo.tables.auto import fit_set as module

    fits, original = [], module._fit_one

    def one(*args):
        if len(fits) == 1:
            raise KeyboardInterrupt
        fits.append(args[1].part.name)
        return original(*args)

    monkeypatch.setattr(module, "_fit_one", one)
    fit = fit_set(jax.random.key(0), case_of_lines.data, built(case_of_lines, [LINE, CURVE]), progress=False)
    assert fits == ["line"]
    assert fit.outcome == "interrupted"
    assert "interrupted" in str(fit.status)
    fits.clear()
    fits.append("none is finished")
    with pytest.raises(KeyboardInterrupt):
        fit_set(jax.random.key(0), case_of_lines.data, built(case_of_lines, [LINE, CURVE]), progress=False)


def test_copies_and_groups_stay_in_one_fold(case_of_lines, monkeypatch):
    from credo.tables.auto import fit_set as module

    seen = []
    monkeypatch.setattr(module, "_fit_one", lambda *args: seen.append(args[3]) or (_ for _ in ()).throw(Refusal("no")))
    groups = np.repeat(np.arange(16), 4)
    with pytest.raises(Refusal):
        fit_set(jax.random.key(0), case_of_lines.data, built(case_of_lines, [LINE]), groups=groups, progress=False)
    folds = seen[0]
    assert len(folds) == FOLDS
    assert sorted(np.concatenate(folds)) == list(range(64))
    assert not any(set(groups[fold]) & set(np.delete(groups, fold)) for fold in folds)


# ------------------------------------------------------------------------------------------------------ a table
@pytest.fixture
def short(monkeypatch):
    """A linear model and a small ensemble: what is tested is the way from a table to a run."""
    monkeypatch.setattr(rules, "ENSEMBLE_STEPS", dict.fromkeys(EFFORTS, 1_500))
    monkeypatch.setattr(rules, "CHAIN_ROWS", dict.fromkeys(EFFORTS, 10))
    monkeypatch.setattr(rules, "LEAST_STEPS", 10)
    monkeypatch.setattr(rules, "RESIDUAL", "mlp:4:tanh")
    monkeypatch.setattr(rules, "PROCESS_ROWS", dict.fromkeys(EFFORTS, 10))
    monkeypatch.setattr(rules, "PIECES_INPUTS", 0)


def test_a_run_is_the_same_from_its_folder(short, tmp_path):
    frame = line_frame()
    run = credo.tables.fit(frame, "y", effort="best", out=tmp_path / "run", seed=2, progress=False)
    assert run.fit.config["method"] == "stacked"
    assert "mixed by how well" in run.why
    again = credo.tables.load(tmp_path / "run")
    pd.testing.assert_frame_equal(run.predict(frame), again.predict(frame), check_exact=True)
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_run_that_was_killed_between_models_resumes_to_the_same_bits(short, tmp_path, monkeypatch):
    from credo.tables.auto import fit_set as module

    frame = line_frame()
    whole = credo.tables.fit(frame, "y", effort="best", out=tmp_path / "whole", seed=2, progress=False)
    original, fits = module._fit_one, []

    def killed(*args):
        if len(fits) == 1:
            shutil.copytree(tmp_path / "run", tmp_path / "killed")  # what a SIGKILL would leave
            raise MemoryError("killed")
        fits.append(args[1].part.name)
        return original(*args)

    monkeypatch.setattr(module, "_fit_one", killed)
    with pytest.raises(MemoryError):
        credo.tables.fit(frame, "y", effort="best", out=tmp_path / "run", seed=2, progress=False, checkpoint_every=0.0)
    monkeypatch.setattr(module, "_fit_one", original)
    resumed = credo.tables.resume(tmp_path / "killed", frame, progress=False)
    pd.testing.assert_frame_equal(resumed.predict(frame), whole.predict(frame), check_exact=True)


@pytest.mark.parametrize(
    "named", [{"network": "mlp:3"}, {"settings": {"prior": "normal:1"}}, {"steps": 5}, {"method": "map"}]
)
def test_who_names_a_model_is_told_that_effort_does_nothing(case_of_lines, named):
    with pytest.raises(InputError, match="effort"):
        resolve(case_of_lines, effort="best", measure=False, **named)
    assert resolve(case_of_lines, effort="best", measure=False).models
    with pytest.raises(InputError, match="map is named"):
        BayesianRegressor("map", effort="best").fit(line_frame()[["a", "b"]], line_frame()["y"])


def test_efforts_differ_in_models_and_time(case_of_lines):
    resolved = {effort: resolve(case_of_lines, effort=effort, measure=False) for effort in EFFORTS}
    assert [len(one.models) for one in resolved.values()] == [2, 3, 6]
    planned = [one.planned for one in resolved.values()]
    assert planned == sorted(planned)
    assert all(one.budget is None for one in resolved.values())  # steps: the same numbers on every machine


def test_what_is_named_and_short_budgets_get_one_model(case_of_lines, monkeypatch):
    speed = Speed.by_rule(64, 2_000, "cpu", FOLDS)
    monkeypatch.setattr("credo.tables.auto.probe.measured", lambda *_: speed)
    monkeypatch.setattr("credo.tables.auto.resolution.pilot", lambda choice, *_: [choice])
    for named in ({"network": "mlp:3"}, {"settings": {"prior": "normal:1"}}, {"steps": 5}, {"budget": "3s"}):
        assert not resolve(case_of_lines, measure=False, **named).models
    assert len(resolve(case_of_lines, budget="15s", measure=False).models) >= 2


def test_a_wrong_effort_is_one_sentence(tmp_path):
    line_frame().to_csv(tmp_path / "t.csv", index=False)
    result = CliRunner().invoke(
        app, ["fit", str(tmp_path / "t.csv"), "--target", "y", "--effort", "much", "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 2
    assert "effort is one of quick, normal, best" in result.stderr
    with pytest.raises(InputError, match="effort is one of"):
        BayesianRegressor(effort="much").fit(line_frame()[["a", "b"]], line_frame()["y"])


def test_estimators_take_it(short):
    frame = line_frame()
    model = BayesianRegressor(effort="best", random_state=0).fit(frame[["a", "b"]], frame["y"])
    assert model.fit_.config["method"] == "stacked"
    assert model.score(frame[["a", "b"]], frame["y"]) > 0.8
