"""One model on one fold: fit to the training rows, score every row of the rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import EvidencePosterior, ask
from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.errors import InputError, Refusal
from credo.evaluation.baselines import BASELINES, fit_baseline
from credo.evaluation.comparison.folds import encode_fold
from credo.evaluation.comparison.result import OVERRUN
from credo.evaluation.diagnostics.model_choice import loo
from credo.evaluation.metrics.arrays import brier_terms
from credo.evaluation.metrics.distances import crps
from credo.tables.auto.case import of_table
from credo.tables.auto.resolution import resolve
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.scale import on_scale, true_targets
from credo.tables.encode.unseen import fill_gaps, predict_unseen
from credo.tables.vectors import takes_codes
from credo.training.clock import COMPILING
from credo.training.interrupt import part_of_more
from credo.training.warn import unwarned

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.9
BAD_ROWS = 0.05  # share of rows with an unreliable k̂ from which on leave-one-out is not told
MOST_FOR_LOO = 20_000  # rows; the log density of every row under every draw is held in memory


def run_cell(
    name: str, frame: pd.DataFrame, rows: tuple[np.ndarray, np.ndarray], how: dict[str, Any]
) -> dict[str, Any]:
    """Scores of every held-out row and facts about the fit; where a model refuses, its sentence.

    Args:
        name: a method of the registry, or a baseline.
        frame: the whole table.
        rows: indices of the training rows and of the held-out rows.
        how: "target", "task", "missing", "network", "settings", "steps", "budget" and "seed"; "loo" False leaves out
            what leave-one-out says; "announce" is called with the seconds that "auto" plans; "groups", a number for
            each row, keeps the pilot of "auto" and the baselines' own cross-validation from cutting groups; "progress"
            None shows that of the fit on a terminal.
    """
    began = time.perf_counter()
    begun = began, COMPILING.seconds
    codes = name not in BASELINES and takes_codes(name, how["network"])
    encoder, train, held_out = encode_fold(frame, rows, how, codes)
    groups = None if how.get("groups") is None else how["groups"][rows[0]][train.rows]
    try:
        if name in BASELINES:
            predictive, facts = _baseline(name, encoder, train, held_out, how, groups)
        else:
            predictive, facts = _network(name, encoder, train, held_out, how, groups, begun)
        rowwise = row_scores(predictive, true_targets(encoder, held_out.targets))
    except (Refusal, InputError) as error:
        return {"refused": str(error), "seconds": time.perf_counter() - began, "rows": {}}
    rowwise["place"] = rows[1][held_out.rows]
    return {"refused": None, "seconds": time.perf_counter() - began, "rows": rowwise} | facts


def _baseline(
    name: str, encoder: Any, train: Any, held_out: Any, how: dict[str, Any], groups: np.ndarray | None
) -> tuple[Predictive, dict[str, Any]]:
    began, classes = time.perf_counter(), len(encoder.classes or ())
    model = fit_baseline(
        name, encoder.task, train.inputs, train.targets, num_classes=classes, seed=how["seed"], groups=groups
    )
    spent = time.perf_counter() - began
    facts = {"ok": True, "alarms": {}, "status": "The fit finished.", "seconds_fit": spent}
    return on_scale(model.predict(fill_gaps(encoder, held_out.inputs)), encoder), facts | {
        "over": _over(spent, how["budget"])
    }


def _network(
    name: str, encoder: Any, train: Any, held_out: Any, how: dict[str, Any], groups: np.ndarray | None,
    begun: tuple[float, float],
) -> tuple[Predictive, dict[str, Any]]:  # fmt: skip
    resolved = resolve(
        of_table(encoder, train), method=name, network=how["network"], settings=how["settings"], steps=how["steps"],
        budget=how["budget"], seed=how["seed"], groups=groups, begun=begun, announce=how.get("announce"),
    )  # fmt: skip
    key_fit, key_draws = jax.random.split(jax.random.key(how["seed"]))
    with unwarned(), part_of_more():
        fitted = resolved.fit(key_fit, train[:3], progress=how.get("progress", False))
    began, compiled = begun
    spent, compiling = time.perf_counter() - began, COMPILING.seconds - compiled
    alarms = alarms_of(fitted)
    facts = {
        "ok": not alarms, "alarms": alarms, "status": str(fitted.status), "seconds_fit": spent,
        "over": _over(spent - compiling, how["budget"]),
        "loo": _on_table(_loo(fitted, train) if how.get("loo", True) else None, encoder), "why": resolved.why,
        "evidence": _on_table(_evidence(fitted, len(train.rows)), encoder),
    }  # fmt: skip
    predictive = predict_unseen(lambda rows: predict(key_draws, fitted, rows), encoder, held_out.inputs)
    return on_scale(predictive, encoder), facts


def alarms_of(fitted: Any) -> dict[str, str]:
    """What speaks against a fit, a word → a sentence: its alarms and, where it failed, why."""
    failed = {} if fitted.status.ok else {"failed": str(fitted.status)}
    return failed or {alarm.id: str(alarm) for alarm in fitted.diagnostics.alarms}


def _over(seconds: float, budget: float | None) -> bool:
    return budget is not None and seconds > OVERRUN * budget


def _loo(fitted: Any, train: Any) -> float | None:
    """PSIS leave-one-out log density for each training row; None where there is none, or where too many rows fail."""
    if len(train.rows) > MOST_FOR_LOO or not fitted.status.ok:
        return None
    try:
        estimate = loo(fitted, (train.inputs, train.targets))
    except (Refusal, InputError):
        return None
    bad = np.mean(np.asarray(estimate.pareto_k) > np.asarray(estimate.good_k))
    return estimate.elpd / len(train.rows) if bad < BAD_ROWS and np.isfinite(estimate.elpd) else None


def _evidence(fitted: Any, rows: int) -> float | None:
    """log p(D) for each training row, the mean over members; None where the method has no estimate."""
    value = ask(fitted.posterior, EvidencePosterior).log_evidence
    if value is None:
        return None
    number = float(np.mean(np.asarray(value)))
    return number / rows if np.isfinite(number) else None


def _on_table(value: float | None, encoder: TableEncoder) -> float | None:
    """A log density of standardised targets as one of the table's own, which held-out scores are too."""
    return None if value is None else value - float(np.log(encoder.target_scale).sum())


def row_scores(predictive: Predictive, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of every row [n]: log density, and squared error, CRPS and whether the 90 % interval holds the truth
    (numbers), or whether the most probable class is right and the Brier score (classes)."""
    scores = {"log_likelihood": np.asarray(predictive.log_prob(truth), np.float64)}
    if predictive.kind == "classes":
        truth = truth.reshape(len(truth)).astype(int)
        probs = predictive.probs
        scores["accuracy"] = (probs.argmax(1) == truth).astype(np.float64)
        scores["brier"] = np.asarray(brier_terms(jnp.asarray(probs), jnp.asarray(truth)), np.float64)
        return scores
    mean, (low, high) = predictive.mean, predictive.interval(LEVEL)
    wide = lambda a: np.asarray(a, np.float64).reshape(len(truth), -1)  # noqa: E731
    y = wide(truth)
    scores["squared_error"] = ((wide(mean) - y) ** 2).mean(1)
    if predictive.kind != "counts":
        scores["crps"] = wide(crps(predictive, truth, 1000, 0)).mean(1)
    scores["coverage_90"] = ((wide(low) <= y) & (y <= wide(high))).mean(1)
    scores["width_90"] = (wide(high) - wide(low)).mean(1)
    return scores
