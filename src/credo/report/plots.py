"""Every figure that a run has, by name."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from credo.core.predict import predict
from credo.core.predictive import Predictive
from credo.errors import InputError
from credo.registry import did_you_mean
from credo.report import calibration, classes, regression, training, uncertainty
from credo.report.style import plain, retitle, title_of
from credo.report.views import ClassView, RealView, View, views
from credo.tables.encode.columns import DateColumn, NumericColumn
from credo.tables.score import predictive_at

MOST_OUTPUTS = 4
CURVE_POINTS = 240
LEAST_DISTINCT = 8

CAPTIONS = {
    "curve": "The line is the mean. The inner band is what the model does not know about it and what more data would "
    "narrow; the outer band adds the noise that no amount of data removes.",
    "predicted_observed": "Each dot is a row; its bar is the 90 % interval of what may be observed, which should "
    "hold nine dots of ten.",
    "sorted_predictions": "The inner band is what the model does not know about the mean; the outer band adds noise.",
    "residuals": "Errors are observed − predicted. Wanted: no trend, no funnel, nine of ten rows in the grey band.",
    "pit_histogram": "Flat is calibrated. A hump in the middle: intervals too wide; high ends: too narrow; a slope: "
    "predictions too low or too high.",
    "coverage_curve": "Wanted: dots on the line, or within the grey range that chance alone would give.",
    "split": "Rows high up are unlike the training data; rows far to the right are noisy by nature.",
    "share": "Rows on the right would gain from more data like them; rows on the left are limited by noise.",
    "reliability": "Below the line: more sure than right. The numbers on top count the rows of each bin.",
    "confidence_histogram": "Wanted: wrong rows (if any) at low confidence.",
    "confusion": "Rows of the table are true classes; shading is the share of each. The diagonal is right.",
    "entropy_split": "Wrong rows on the right are hard by nature; wrong rows high up are unlike the training data.",
    "loss_trace": "Flat at the end: trained long enough. Members far apart: they found different explanations.",
    "log_density": "Wanted: chains that wander over the same range, without a trend, after the warm-up.",
    "acceptance": "Far below the aim: the step size is too large for this posterior.",
    "step_size": "Adapted while warming up, then fixed.",
}  # fmt: skip


def figures(
    fit: Any,
    predictive: Predictive | None = None,
    targets: Any = None,
    inputs: Any = None,
    encoder: Any = None,
) -> dict[str, Figure]:
    """All figures of a fit, by name; those of further outputs end in `_2`, `_3`, ….

    Args:
        fit: the result of `credo.fit` or `credo.load`, or None for predictions alone.
        predictive: predictions, on the scale of the table.
        targets: what was observed at the same rows and on the same scale; class indices for classes.
        inputs: encoded inputs of these rows; one input gives a figure along it.
        encoder: the table's encoder, for names and scales.
    """
    by_name: dict[str, Figure] = {}
    if predictive is not None:
        by_name |= of_views(views(predictive, targets, encoder), fit, inputs, encoder)
    if fit is not None:
        by_name |= of_training(fit)
    return by_name


def one_figure(fit: Any, inputs: Any = None, targets: Any = None, which: str | None = None) -> Figure:
    """The figure of this name, or the first that there is; see `Fit.plot`."""
    if inputs is None and targets is not None:
        raise InputError("Targets belong to inputs: give both.")
    predictive = None if inputs is None else predict(jax.random.key(0), fit, inputs)
    by_name = figures(fit, predictive, targets, inputs)
    if not by_name:
        raise InputError("This fit has no trace to draw; give inputs to see what it predicts.")
    if which is None:
        return next(iter(by_name.values()))
    if which not in by_name:
        raise InputError(
            f"There is no figure {which!r} here.{did_you_mean(which, by_name)} There are {', '.join(by_name)}."
        )
    return by_name[which]


def of_views(
    outputs: list[View], fit: Any = None, inputs: Any = None, encoder: Any = None, seed: int = 0
) -> dict[str, Figure]:
    """The figures of predictions; the seed is that of a run on a table."""
    by_name: dict[str, Figure] = {}
    for i, view in enumerate(outputs[:MOST_OUTPUTS]):
        if isinstance(view, ClassView):
            parts = _of_classes(view)
        else:
            curve = _curve(view, i, fit, inputs, encoder, seed)
            parts = ({"curve": curve} if curve else {}) | _of_numbers(view, along=curve is not None)
        by_name |= {name + (f"_{i + 1}" if i else ""): figure for name, figure in parts.items()}
        for figure in parts.values() if len(outputs) > 1 else ():
            first, *more = title_of(figure.axes[0]).split("\n")
            retitle(figure.axes[0], "\n".join([f"{first}: {plain(view.name, 20)}", *more]))
    return by_name


def of_training(fit: Any) -> dict[str, Figure]:
    """The figures of how the fit went."""
    phases = {name: trace for name, trace in fit.phases.items() if trace} or {"fit": fit.trace}
    metrics = {metric for trace in phases.values() for metric in trace}
    by_name = {}
    if "loss" in metrics:
        by_name["loss_trace"] = training.loss_trace(phases)
    for metric in ("log_density", "acceptance", "step_size"):
        if metric in metrics:
            by_name[metric] = training.chain_trace(phases, metric, fit.config)
    return by_name


def _of_numbers(view: RealView, along: bool) -> dict[str, Figure]:
    functions: dict[str, Callable[[RealView], Figure]] = {}
    if view.target is not None:
        functions["predicted_observed"] = regression.predicted_observed
    if not along:
        functions["sorted_predictions"] = regression.sorted_predictions
    if view.target is not None:
        functions |= {
            "residuals": regression.residuals,
            "pit_histogram": calibration.pit_histogram,
            "coverage_curve": calibration.coverage_curve,
        }
    if view.epistemic.max() > 0:
        functions |= {"split": uncertainty.split, "share": uncertainty.share}
    return {name: draw(view) for name, draw in functions.items()}


def _of_classes(view: ClassView) -> dict[str, Figure]:
    functions: dict[str, Callable[[ClassView], Figure]] = {}
    if view.target is not None:
        functions |= {
            "confusion": classes.confusion,
            "reliability": calibration.reliability,
            "confidence_histogram": calibration.confidence_histogram,
        }
    return {name: draw(view) for name, draw in functions.items()} | {"entropy_split": uncertainty.entropy_split(view)}


def _curve(view: RealView, output: int, fit: Any, inputs: Any, encoder: Any, seed: int) -> Figure | None:
    """The prediction along the only input, on a grid where fit and scales are there."""
    if inputs is None or np.ndim(inputs) != 2 or np.shape(inputs)[1] != 1:
        return None
    x = np.asarray(inputs, float)[:, 0]
    if len(np.unique(x)) < LEAST_DISTINCT:
        return None
    shift, scale, name = _input_scale(encoder)
    observed = None if view.target is None else (shift + scale * x, view.target)
    if fit is None or encoder is None:
        return regression.curve(view, shift + scale * x, name, observed, view)
    margin = 0.05 * np.ptp(x)
    grid = np.linspace(x.min() - margin, x.max() + margin, CURVE_POINTS)
    along = views(predictive_at(fit, encoder, grid[:, None].astype(np.float32), seed), None, encoder)[output]
    assert isinstance(along, RealView)
    return regression.curve(along, shift + scale * grid, name, observed, view)


def _input_scale(encoder: Any) -> tuple[float, float, str]:
    if encoder is None:
        return 0.0, 1.0, "input"
    column = encoder.columns[0]
    if isinstance(column, NumericColumn | DateColumn):
        if column.form is not None:  # dates: days mean nothing to a reader
            return 0.0, 1.0, f"{column.name} (standardised)"
        return column.shift, column.scale, column.name
    return 0.0, 1.0, column.name
