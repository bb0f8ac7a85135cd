"""The sampler for Optuna (H1)."""

import pytest

from credo.applications.optimise.optuna_sampler import CredoSampler
from credo.errors import InputError


def test_without_optuna_there_is_a_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna.samplers", None)
    with pytest.raises(InputError, match="needs Optuna"):
        CredoSampler()


def test_a_study_finds_the_smallest_value():
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'credo[optuna]'")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        x = trial.suggest_float("x", -2.0, 2.0)
        n = trial.suggest_int("n", 1, 5)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        step = trial.suggest_float("step", 0, 1, step=0.25)
        if n == 5:
            raise optuna.TrialPruned
        return (x - 0.5) ** 2 + n + (kind == "b") + 0.01 * step

    study = optuna.create_study(sampler=CredoSampler("gp", initial=6))
    study.optimize(objective, n_trials=20)
    assert study.best_params["n"] == 1
    assert study.best_params["kind"] == "a"
    assert abs(study.best_params["x"] - 0.5) < 0.4
    largest = optuna.create_study(direction="maximize", sampler=CredoSampler("gp", initial=4))
    largest.optimize(lambda t: -((t.suggest_float("x", -2.0, 2.0) - 0.5) ** 2), n_trials=9)
    assert abs(largest.best_params["x"] - 0.5) < 0.3
