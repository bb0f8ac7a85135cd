"""Diagnostics on the fit itself: computed once and when asked, saved, and free of training rows."""

import dataclasses
import json
import pickle
import subprocess
import sys

import jax
import numpy as np
import pytest

import arviz_numbers
import credo
from credo.evaluation.diagnostics import Diagnostics, diagnose
from credo.evaluation.diagnostics.diagnose import Convergence
from credo.evaluation.diagnostics.summary import verdict
from credo.training.clock import COMPILING

from .conftest import PROBLEM, exact_draws, samples, with_posterior

DATA = (PROBLEM.inputs, PROBLEM.targets)


def test_outcome_and_notes_cost_nothing(base):
    fit = dataclasses.replace(base, known=None)
    before = COMPILING.programs
    assert fit.status.ok
    assert fit.status.outcome == "finished"
    assert fit.status.notes == ()
    assert fit.known is None
    assert COMPILING.programs == before


def test_computed_once_and_carried_along(chains):
    first = chains.diagnostics
    assert chains.diagnostics is first
    assert chains.status.alarms
    assert chains.status.ok
    assert dataclasses.replace(chains, loop=None).diagnostics is first
    assert all(text in str(chains.status) for text in chains.status.alarms)


def test_numbers_are_arviz(chains):
    """The table's worst numbers are those of ArviZ on the same functions."""
    inputs = PROBLEM.inputs[:16]
    found = diagnose(jax.random.key(0), chains, inputs).space("function")[0]
    functions = chains.to_arviz(inputs).posterior["f"].values
    assert found.rhat == pytest.approx(arviz_numbers.rhat(functions).max(), rel=1e-9)
    assert found.ess_bulk == pytest.approx(arviz_numbers.ess(functions).min(), rel=1e-9)
    assert found.ess_tail == pytest.approx(arviz_numbers.ess(functions, "tail").min(), rel=1e-9)
    assert found.count == 16


def test_summary_says_what_there_is(chains):
    text = chains.summary()
    assert "hmc: 5 parameters, 2 members, 256 rows" in text
    assert "beta = 1, temperature = 1" in text
    assert "function values" in text
    assert "weights: output/kernel" in text
    assert "Alarm: " in text
    assert "E-BFMI" in text


def test_a_saved_fit_keeps_its_alarms_and_no_rows(chains, tmp_path):
    chains.save(tmp_path / "run")
    plain = json.loads((tmp_path / "run" / "diagnostics.json").read_text())
    assert Diagnostics.from_plain(plain) == chains.diagnostics
    loaded = credo.load(tmp_path / "run")
    assert loaded.loop is None
    assert loaded.diagnostics == chains.diagnostics
    assert loaded.status.alarms == chains.status.alarms
    assert loaded.summary() == chains.summary()
    again = diagnose(jax.random.key(0), loaded)  # without inputs: weights and energies alone
    assert again.space("function") == ()
    assert again.space("weights")
    assert diagnose(jax.random.key(0), loaded, PROBLEM.inputs).space("function")


def test_a_run_from_before_diagnostics_still_loads(chains, tmp_path):
    chains.save(tmp_path / "run")
    versions = json.loads((tmp_path / "run" / "versions.json").read_text())
    del versions["digests"]["diagnostics.json"]
    (tmp_path / "run" / "versions.json").write_text(json.dumps(versions))
    (tmp_path / "run" / "diagnostics.json").unlink()
    assert credo.load(tmp_path / "run").diagnostics.kind == "chains"


def test_a_pickle_has_no_training_rows(base):
    fit = dataclasses.replace(base, loop=None, known=None)
    assert len(pickle.dumps(jax.tree.map(np.asarray, fit.posterior))) < 5000
    assert fit.diagnostics.num_inputs == 0


def test_kinds_of_posterior(base):
    kinds = {
        "chains": samples(exact_draws(PROBLEM, 2, 50)),
        "ensemble": samples(exact_draws(PROBLEM, 3, 1)),
        "point": samples(exact_draws(PROBLEM, 1, 1)),
    }
    weights = np.zeros((2, 50), np.float32)
    kinds["weighted"] = dataclasses.replace(kinds["chains"], weights=weights)
    for kind, posterior in kinds.items():
        fit = with_posterior(base, posterior)
        assert fit.diagnostics.kind == kind
        assert fit.diagnostics.num_parameters == 5
        assert fit.summary()


def test_noise_is_looked_at_and_held_weights_are_not():
    """`subset` samples the slopes and the noise: the bias is held, and functions are looked at as ever."""
    model = dataclasses.replace(PROBLEM.model(), likelihood=credo.likelihoods.gaussian())
    method = credo.subset(credo.methods.HMC(chains=2, warmup=20, num_steps=3), ["output/kernel", "likelihood/*"])
    fit = credo.fit(jax.random.key(0), model, DATA, method, steps=20)
    found = fit.diagnostics
    assert [c.name for c in found.space("function")] == ["function values"]
    assert [c.name for c in found.space("likelihood")] == ["log_scale"]
    assert [c.name for c in found.space("weights")] == ["output/kernel"]
    assert found.num_parameters == 6
    assert set(fit.to_arviz().posterior.data_vars) == {"output.kernel", "likelihood.log_scale"}


def test_arviz_is_imported_when_needed():
    """It takes longer than a fit; `fit.status` must not pay for it."""
    code = (
        "import sys, jax, numpy as np, credo\n"
        "x = np.linspace(-1, 1, 20)[:, None]\n"
        "model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))\n"
        "fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), 'map', steps=3)\n"
        "print(fit.status, fit.summary())\n"
        "print('imported:', *[n for n in ('arviz', 'xarray', 'scipy.stats', 'matplotlib') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.rstrip().endswith("imported:"), result.stdout.splitlines()[-1]


@pytest.mark.parametrize(("rhat", "word"), [(1.01, "agree"), (1.5, "do not agree")])
def test_the_verdict_on_a_density_alone_is_that_of_its_r_hat(rhat, word):
    """There are no functions to look at, so no alarm speaks of them."""
    row = Convergence("log density", "log density", 1, rhat, 300.0, 300.0, 0.05, 0.05)
    found = Diagnostics("chains", 4, 200, 3, 0, (row,))
    assert f"of 200 draws {word} about the log density" in verdict(found)
