"""What to try next, in sentences, each for a reason that can be seen in the run."""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from credo.report.run import RunData
from credo.report.views import ClassView, RealView
from credo.report.words import confidence, count, coverage, inner_coverage

POINTS = ("map", "maximum_likelihood")
SAMPLERS = ("hmc", "nuts")
ENOUGH = 30  # rows that can show a trend
SURE = 0.01  # the false-alarm rate of a trend in the errors


def advice(run: RunData) -> list[str]:
    """Sentences of advice; empty where nothing stands out."""
    method = "" if run.fit is None else str(run.fit.config.get("method", ""))
    tips: list[str] = []
    sure = False
    if run.targets is not None:
        for view in run.views:
            more, low = _classes(view, method) if isinstance(view, ClassView) else _numbers(run, view, method)
            tips += more
            sure = sure or low
        rows = len(run.targets)
        if 0 < rows < 30:
            tips.append(f"{count(rows, run.rows)} can tell little about calibration: score on more rows.")
        if run.rows == "training":
            tips.append("These scores are on the rows it learned from and flatter it: hold rows out to know.")
    if run.fit is not None:
        tips += _training(run.fit, sure)
    return list(dict.fromkeys(tips))


def _wider(method: str) -> str:
    """What makes a method less sure of itself."""
    if method in SAMPLERS:
        return "the sampler has little left to add, so change the model: a tighter prior or another network"
    if method == "stacked":
        return "weigh its parts by rows that none of them has seen, or put one beside them that is less sure"
    if method in POINTS:
        return "one set of weights cannot say what it does not know; try deep_ensemble, bayes_by_backprop or nuts"
    return "try an ensemble (deep_ensemble) or a sampler (nuts)"


def _numbers(run: RunData, view: RealView, method: str) -> tuple[list[str], bool]:
    """Advice about numbers, and whether the intervals are too narrow."""
    assert view.target is not None
    outer, inner = coverage(run, view).verdict, inner_coverage(view).verdict
    verdict = inner if outer == "right" else outer
    error = view.target - view.mean
    tips = []
    if verdict == "low" and _by_heart(run, view, error):
        ratio = np.sqrt((error**2).mean()) / np.median(view.aleatoric)
        tips.append(
            f"Errors are {ratio:.1f} times the noise that it learned: it knows the training rows by heart. Tighten the "
            f"prior, use a smaller network or train for less long; {_wider(method)}."
        )
        return tips, True
    if verdict == "low":
        tips.append(f"Intervals are too narrow: {_wider(method)}, or a heteroscedastic or student_t likelihood.")
    if verdict == "high":
        tips.append(
            'Intervals are too wide: train for longer, learn the noise (noise="learned"), let it vary between rows '
            "(heteroscedastic), or tighten the prior."
        )
    if len(error) >= ENOUGH and float((error**2).mean()) >= float(view.target.var()):
        tips.append("It does no better than the average: check that the inputs tell about the target.")
    if len(error) >= ENOUGH and np.ptp(view.mean) > 0:
        tips += _trends(view, error)
    return tips, verdict == "low"


def _by_heart(run: RunData, view: RealView, error: np.ndarray) -> bool:
    """Is the noise that training left far below the errors on other rows? A noise that was given tells nothing."""
    if run.fit is None or run.rows == "training":
        return False
    fixed = run.fit.config.get("model", {}).get("likelihood", {}).get("noise") == "known"
    return not fixed and float(np.sqrt((error**2).mean())) > 1.5 * float(np.median(view.aleatoric))


def _trends(view: RealView, error: np.ndarray) -> list[str]:
    size = np.abs(error) / np.maximum(view.std, np.finfo(float).tiny)
    funnel, straight = spearmanr(size, view.mean), spearmanr(error, view.mean)
    tips = []
    if funnel.pvalue < SURE:
        tips.append(
            f"Errors {'grow' if funnel.statistic > 0 else 'shrink'} with the prediction more than the model expects: "
            "try a heteroscedastic likelihood, or the logarithm of the target."
        )
    if straight.pvalue < SURE and straight.statistic > 0:
        tips.append("Predictions are too timid (large values come out too low): train for longer or loosen the prior.")
    if straight.pvalue < SURE and straight.statistic < 0:
        tips.append("Predictions are too extreme: tighten the prior, use a smaller network or average more draws.")
    return tips


def _classes(view: ClassView, method: str) -> tuple[list[str], bool]:
    """Advice about classes, and whether they are named too surely."""
    verdict = confidence(view).verdict
    if verdict == "low":
        return [f"It is more sure than right: {_wider(method)}; or tighten the prior."], True
    if verdict == "high":
        return ["It is right more often than it says: train for longer, or loosen the prior."], False
    return [], False


def _training(fit: Any, sure: bool) -> list[str]:
    """Advice about the fit; more steps would make a model that is too sure of itself worse."""
    tips = []
    if not sure and "loss" in fit.trace and _still_falling(np.asarray(fit.trace["loss"], float)):
        tips.append("The loss was still falling at the end: train for more steps.")
    tips += [f"{alarm.advice[:1].upper()}{alarm.advice[1:]}." for alarm in fit.diagnostics.alarms]
    return tips


def _still_falling(loss: np.ndarray) -> bool:
    """Is the last tenth clearly below the tenth before it, by more than a hundredth of the loss's range?"""
    tenth = loss.shape[1] // 10
    if tenth < 20 or not np.isfinite(loss).all():
        return False
    before, last = loss[:, -2 * tenth : -tenth], loss[:, -tenth:]
    drop = float(before.mean() - last.mean())
    error = float(np.sqrt(before.var() / before.size + last.var() / last.size))
    middle = np.median(loss[:, : 2 * tenth]) - last.mean()
    return drop > 4 * error and drop > 0.02 * max(float(middle), 1e-12)
