"""A run in sentences: how good it is, and whether to believe its uncertainty."""

import numpy as np

from credo.evaluation.metrics.judge import Judgement, confidence_words, coverage_words, judge
from credo.report.run import RunData
from credo.report.views import ClassView, RealView

ALL_NOISE = (
    "All of its stated uncertainty is noise: this method keeps one set of weights and cannot say what it does not know."
)


def number(value: float) -> str:
    """A number with three digits that matter."""
    if not np.isfinite(value):
        return "not finite"
    value += 0.0  # a zero has no sign
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in per cent; never 100 % unless it is all."""
    if 0 < share < 0.005 or 0.995 < share < 1:
        return "under 0.5 %" if share < 0.5 else "over 99.5 %"
    return f"{round(100 * share) + 0:d} %"


def count(rows: int, kind: str) -> str:
    """ "45 held-out rows"."""
    return f"{rows:,} {kind} row{'s' * (rows != 1)}"


def summary(run: RunData) -> list[str]:
    """The few sentences that a reader needs first."""
    if not run.views or run.targets is None:
        return ["No rows were held out, so there are no scores; hold some out, or evaluate on another table."]
    first = run.views[0]
    if isinstance(first, ClassView):
        return _of_classes(run, first)
    sentences = [s for view in run.views if isinstance(view, RealView) for s in _of_numbers(run, view)]
    return list(dict.fromkeys(sentences))


def coverage(run: RunData, view: RealView) -> Judgement:
    """Do the 90 % intervals of an output hold as often as they should?"""
    stored = run.metrics.get("test_coverage_90") if len(run.views) == 1 else None
    observed = float(view.inside.mean()) if stored is None else float(stored)
    return judge(observed, len(view.mean), view.nominal)


def inner_coverage(view: RealView) -> Judgement:
    """Do the 50 % intervals hold as often as they should? They see a misfit that the wide ones may miss."""
    assert view.pit is not None
    return judge(float((np.abs(view.pit - 0.5) <= 0.25).mean()), len(view.pit), 0.5)


def confidence(view: ClassView) -> Judgement:
    """Is the named class right as often as its probability says?"""
    return judge(float(view.right.mean()), len(view.probs), float(view.confidence.mean()))


def _of_numbers(run: RunData, view: RealView) -> list[str]:
    assert view.target is not None
    error = view.target - view.mean
    stored = run.metrics.get("test_rmse") if len(run.views) == 1 else None
    rmse = float(np.sqrt(np.mean(error**2))) if stored is None else float(stored)
    spread = float(view.target.std())
    where = f"On {count(len(error), run.rows)}"
    what = f" of {view.name}" if len(run.views) > 1 or run.encoder is not None else ""
    size = f"{where} the typical error{what} is {number(rmse)} (RMSE)"
    if spread > 0 and len(error) > 1:
        share = rmse / spread
        size += f"; always guessing the average would err by {number(spread)}, so it "
        size += f"is {percent(1 - share)} better" if share < 1 else "is no better than that"
    judged = coverage(run, view)
    intervals = f"90 % intervals held {percent(judged.observed)} of the time"
    if view.nominal - 0.9 > 0.005:
        intervals += f" (for whole numbers they should hold {percent(view.nominal)})"
    intervals += f": {coverage_words(judged)}"
    inner = inner_coverage(view)
    if inner.verdict != judged.verdict and inner.verdict != "right":
        intervals += f"; but 50 % intervals held {percent(inner.observed)} of the time: {coverage_words(inner)}"
    return [f"{size}.", f"{intervals}.", _split_words(view)]


def _split_words(view: RealView) -> str:
    share = float(np.median(view.share))
    if view.epistemic.max() == 0:
        return ALL_NOISE
    rest = "more data would narrow the predictions" if share > 0.3 else "more data would narrow them little"
    return f"Of the variance of a typical prediction, {percent(share)} is lack of knowledge and the rest noise: {rest}."


def _of_classes(run: RunData, view: ClassView) -> list[str]:
    assert view.target is not None
    accuracy = float(run.metrics.get("test_accuracy", view.right.mean()))
    usual = float(np.bincount(view.target).max() / len(view.target))
    what = f" of {view.name}" if run.encoder is not None else ""
    first = (
        f"On {count(len(view.target), run.rows)} it names the right class{what} {percent(accuracy)} of the time; "
        f"always naming the commonest class would be right {percent(usual)} of the time."
    )
    judged = confidence(view)
    second = f"It says it is {percent(judged.expected)} sure on average: {confidence_words(judged)}."
    total = float((view.aleatoric + view.epistemic).sum())
    share = float(view.epistemic.sum()) / total if total > 0 else 0.0
    if view.epistemic.max() <= 1e-6:
        third = ALL_NOISE
    else:
        third = f"Of the uncertainty, {percent(share)} is lack of knowledge and the rest noise (shares of the entropy)."
    return [first, second, third]
