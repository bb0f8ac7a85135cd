"""Every figure explains itself, and each kind of run has its own."""

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import credo
from credo.report import RunData, figures
from credo.report.plots import CAPTIONS
from credo.report.svg import inline_svg
from credo.report.training import smooth

from .conftest import make_run, numbers_table

NUMBERS = {"predicted_observed", "residuals", "pit_histogram", "coverage_curve", "split", "share"}
CLASSES = {"confusion", "reliability", "confidence_histogram", "entropy_split"}
CHAINS = {"log_density", "acceptance", "step_size"}


def of(run: RunData) -> dict[str, Figure]:
    return figures(run.fit, run.predictive, run.targets, run.inputs, run.encoder)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("regression", NUMBERS | {"sorted_predictions", "loss_trace"}),
        ("classification", CLASSES | {"loss_trace"}),
        ("sampler", NUMBERS | CHAINS | {"curve"}),
    ],
)
def test_figures_of_a_run_have_titles_labels_and_captions(kind, expected, request) -> None:
    found = of(request.getfixturevalue(kind))
    assert set(found) == expected
    for name, figure in found.items():
        assert name in CAPTIONS
        for area in figure.axes:
            assert area.get_title(loc="left"), name
            assert area.get_xlabel(), name
            assert area.get_ylabel(), name


def test_a_fit_alone_and_predictions_alone(regression) -> None:
    assert set(figures(regression.fit)) == {"loss_trace"}
    assert set(figures(None, regression.predictive)) == {"sorted_predictions", "split", "share"}


@pytest.mark.full
def test_several_outputs_have_their_own_figures() -> None:
    table = numbers_table().assign(z=lambda t: 2 * t["y"])
    found = of(make_run("two", table, ["y", "z"], "map", 50, "regression"))
    assert {"predicted_observed", "predicted_observed_2", "residuals_2"} <= set(found)
    assert found["residuals_2"].axes[0].get_title(loc="left").endswith(": z")
    assert "split" not in found  # one set of weights has no lack of knowledge to show


def test_counts() -> None:
    table = numbers_table().drop(columns="y")
    table["n"] = np.random.default_rng(0).poisson(np.exp(0.5 * table["a"] + 1))
    run = make_run("counts", table, "n", credo.methods.BayesByBackprop(), 300, "count", credo.likelihoods.poisson())
    view = run.views[0]
    assert view.nominal > 0.9
    assert 0 <= view.pit.min() <= view.pit.max() <= 1
    assert set(of(run)) >= NUMBERS


def test_svg_stands_alone_and_takes_the_colour_of_the_page(regression) -> None:
    text, again, other = (inline_svg(of(regression)["residuals"], name) for name in "aab")
    assert text.startswith("<svg viewBox=")
    assert "http" not in text
    assert "currentColor" in text
    assert "<text" in text  # words stay words, to be searched and read aloud
    assert text == again != other


def test_many_rows_are_thinned_and_said_so(regression) -> None:
    x = np.resize(regression.inputs, (5000, regression.inputs.shape[1]))
    y = np.resize(regression.targets, 5000)
    predictive = make_predictions(regression, x)
    found = figures(None, predictive, y)
    assert "600 of 5,000 rows shown" in found["residuals"].axes[0].get_title(loc="left")
    assert len(inline_svg(found["residuals"], "a")) < 200_000


def make_predictions(run: RunData, inputs: np.ndarray) -> credo.Predictive:
    from credo.tables.score import predictive_at

    return predictive_at(run.fit, run.encoder, inputs, num_samples=20)


def test_smooth_keeps_the_mean_of_a_line() -> None:
    line = np.arange(20.0)[None]
    assert np.allclose(smooth(line, 5)[0, 2:-2], line[0, 2:-2])
    assert smooth(line, 1) is line


def test_replicated_data_is_drawn(regression) -> None:
    from credo.evaluation.diagnostics import posterior_predictive_check
    from credo.report import replicated

    arrays = regression.encoder.arrays(numbers_table().iloc[:60])
    checks = posterior_predictive_check(jax.random.key(0), regression.fit, (arrays.inputs, arrays.targets), num=50)
    drawn = replicated(checks)
    assert set(drawn) == {"mean", "std", "min", "max"}
    assert all(figure.axes[0].patches for figure in drawn.values())
