"""ArviZ is imported in one place, whatever else starts at the same time and whatever its cache is like."""

import os
import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import arviz_numbers
from credo.evaluation.diagnostics import arviz_border
from credo.evaluation.diagnostics.left_out import left_out

# What ArviZ imports is there already, so that all processes reach its own first lines together. The border alone is
# run, because credo.diagnostics would import JAX in each. The disk is slow: a file takes a second to get its last name.
TOGETHER = f"""
import matplotlib.pyplot, platformdirs, xarray, scipy.stats, pandas, pathlib, runpy, sys, time
rename = pathlib.Path.replace
pathlib.Path.replace = lambda path, target: time.sleep(1) or rename(path, target)
border = runpy.run_path({arviz_border.__file__!r})
print("ready", flush=True)
sys.stdin.readline()
print(border["arviz"]().__version__)
"""


def start(home):
    """A process that waits for a line before it imports ArviZ, at home in a folder of its own."""
    home.mkdir(exist_ok=True)
    # Matplotlib's list of fonts takes seconds to make again.
    others = {"XDG_CACHE_HOME": str(home / ".cache"), "MPLCONFIGDIR": matplotlib.get_cachedir()}
    env = os.environ | {"HOME": str(home)} | others
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", TOGETHER], env=env, text=True, **pipes)


def finish(processes):
    for one in processes:
        assert one.stdout.readline() == "ready\n", one.communicate(timeout=300)[1]
    for one in processes:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in processes:
        out, err = one.communicate(timeout=300)
        assert one.returncode == 0, err
        assert out.strip() == arviz_border.arviz().__version__


def test_four_processes_with_an_empty_home_import_it_at_once(tmp_path):
    finish([start(tmp_path / "home") for _ in range(4)])
    assert not (tmp_path / "home" / ".cache" / "arviz").exists()


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path):
    home = tmp_path / "home"
    (home / ".cache").mkdir(parents=True)
    (home / ".cache" / "arviz").write_text("a file where ArviZ wants a folder")
    finish([start(home)])


def test_other_folders_stay_where_they_are():
    import platformdirs

    usual, function = platformdirs.user_cache_dir("credo"), platformdirs.user_cache_dir
    with arviz_border._private_stamp():
        assert platformdirs.user_cache_dir("credo") == usual
        assert platformdirs.user_cache_dir("arviz", "arviz") != function("arviz", "arviz")
    assert platformdirs.user_cache_dir is function


def test_rows_with_several_entries_have_one_log_likelihood():
    groups = {
        "posterior": {"w": np.zeros((2, 5, 3))},
        "posterior_predictive": {"y": np.zeros((2, 5, 7, 2))},
        "log_likelihood": {"y": np.zeros((2, 5, 7))},
        "observed_data": {"y": np.zeros((7, 2))},
    }
    data = arviz_border.assemble(groups, {"y": ["row", "entry"], "absent": ["row"]}, {"method": "map"})
    assert data.log_likelihood["y"].dims == ("chain", "draw", "row")
    assert data.posterior_predictive["y"].dims == ("chain", "draw", "row", "entry")
    assert data.observed_data["y"].dims == ("row", "entry")
    assert data.posterior.attrs["method"] == "map"


@pytest.mark.parametrize("efficiency", [1.0, 0.25])
def test_left_out_densities_are_those_of_arviz(efficiency):
    """With 2500 draws the tail has 150 of them, or 300, without rounding: ArviZ 0 rounds up and ArviZ 1 down."""
    draws = np.random.default_rng(0).normal(size=(4, 625, 20))
    log_density = -((draws * np.linspace(0.1, 1.5, 20)) ** 2)
    found, shapes = left_out(log_density.reshape(2500, 20), efficiency)
    expected = arviz_numbers.loo(log_density, efficiency)
    np.testing.assert_allclose(found, expected["pointwise"], rtol=1e-9)
    np.testing.assert_allclose(shapes, expected["pareto_k"], atol=1e-6)


def test_rows_that_every_draw_predicts_alike_are_reliable():
    """A sure classifier says log p = 0 whatever the weights are; such a row has no tail, and is left out exactly."""
    found, shapes = left_out(np.zeros((4, 500, 3)))
    assert shapes.max() == 0
    np.testing.assert_allclose(found, 0, atol=1e-12)
