"""ArviZ sees what the fit has, and files keep it."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError
from credo.evaluation.diagnostics import inference_data, to_arviz
from credo.evaluation.diagnostics.arviz_border import arviz, modern, quiet

from .conftest import PROBLEM, exact_draws, samples, with_posterior

X, Y = PROBLEM.inputs[:20], PROBLEM.targets[:20]


def groups(data):
    """The names of InferenceData's or a DataTree's groups."""
    return set(data.children) if modern() else set(data.groups())


def test_chains_bring_their_statistics(chains):
    data = chains.to_arviz(X, Y)
    assert groups(data) == {
        "posterior", "sample_stats", "log_likelihood", "posterior_predictive", "observed_data", "constant_data",
    }  # fmt: skip
    assert dict(data.posterior.sizes)["chain"] == 2
    np.testing.assert_array_equal(
        data.posterior["output.kernel"], chains.posterior.params["network"]["output"]["kernel"]
    )
    assert set(data.sample_stats.data_vars) == {"lp", "acceptance_rate", "diverging", "energy", "step_size", "n_steps"}
    # Every second draw was kept: the statistics are those of its step.
    np.testing.assert_array_equal(data.sample_stats["lp"], chains.trace["log_density"][:, 1::2])
    assert data.sample_stats["lp"].shape == (2, 20)
    assert data.posterior["f"].shape == (2, 20, 20, 1)
    assert data.posterior_predictive["y"].shape == (2, 20, 20)
    assert data.log_likelihood["y"].shape == (2, 20, 20)
    np.testing.assert_array_equal(data.observed_data["y"], Y)
    np.testing.assert_array_equal(data.constant_data["x"], X)
    assert data.posterior.attrs["inference_library"] == "credo"
    assert np.isfinite(arviz().rhat(data)["output.bias"]).all()


def test_statistics_have_the_types_that_arviz_masks_and_counts_with(chains):
    found = chains.to_arviz().sample_stats
    assert found["diverging"].dtype == bool
    assert found["n_steps"].dtype.kind == "i"
    np.testing.assert_array_equal(found["diverging"], chains.trace["divergent"][:, 1::2] > 0)


@pytest.mark.parametrize("plot", ["trace", "pair", "parallel", "energy", "rank", "autocorr"])
def test_standard_plots_can_be_drawn(chains, plot):
    """A quarter of the draws are marked as divergent, so that there is something to mark."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    az = arviz()
    trace = chains.trace | {"divergent": np.tile(np.float32([0, 0, 0, 1]), (2, 10))}
    with quiet():
        data = dataclasses.replace(chains, trace=trace).to_arviz()
        assert data.sample_stats["diverging"].sum() == 20
        options = {"divergences": True} if plot == "pair" and not modern() else {}  # 1.x marks them unasked
        names = {} if plot == "energy" else {"var_names": ["output.kernel"]}
        getattr(az, f"plot_{plot}")(data, **names, **options)
    plt.close("all")


def test_log_likelihood_is_that_of_the_function_values(base):
    data = to_arviz(with_posterior(base, samples(exact_draws(PROBLEM, 2, 30))), X, Y)
    f = data.posterior["f"].values[..., 0]
    expected = -0.5 * ((Y - f) / 0.5) ** 2 - np.log(0.5) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(data.log_likelihood["y"], expected, rtol=1e-4, atol=1e-4)
    noise = data.posterior_predictive["y"].values - f
    assert noise.std() == pytest.approx(0.5, rel=0.1)


def test_noise_has_keys_of_its_own(base, monkeypatch):
    """`fold_in(key, 1)` is `split(key, n)[1]`: noise made with it would be that of a draw's weights."""
    seen = []

    def recording(function):
        def record(key, *others):
            seen.append(key)
            return function(key, *others)

        return record

    for name in ("function_draws", "_replicate"):
        monkeypatch.setattr(inference_data, name, recording(getattr(inference_data, name)))
    to_arviz(with_posterior(base, samples(exact_draws(PROBLEM, 2, 30))), X)
    of_draws, of_noise = (jax.random.key_data(jax.random.split(seen[0], 60)), jax.random.key_data(seen[1]))
    assert not (np.asarray(of_draws) == np.asarray(of_noise)).all(1).any()


def test_weights_alone_and_distributions(base):
    assert groups(to_arviz(base)) == {"posterior"}
    data = (PROBLEM.inputs[:64], PROBLEM.targets[:64])
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), data, "bayes_by_backprop", steps=50)
    found = to_arviz(fit, X, num=30)
    assert found.posterior["output.kernel"].shape == (1, 30, 1, 4)
    assert "sample_stats" not in groups(found)
    # Functions belong to the weights beside them.
    f = found.posterior["output.bias"].values + np.einsum("cdoi,ni->cdno", found.posterior["output.kernel"], X)[..., 0]
    np.testing.assert_allclose(found.posterior["f"].values[..., 0], f, rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="need the inputs"):
        fit.to_arviz(targets=Y)


@pytest.mark.full
def test_several_outputs_and_classes():
    key = jax.random.key(0)
    two = np.column_stack([Y, -Y])
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.5))
    data = credo.fit(key, model, (X, two), "map", steps=5).to_arviz(X, two)
    assert data.log_likelihood["y"].shape == (1, 1, 20)
    assert data.posterior_predictive["y"].shape == (1, 1, 20, 2)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.categorical(3))
    data = credo.fit(key, model, (X, np.arange(20) % 3), "map", steps=5).to_arviz(X, np.arange(20) % 3)
    assert data.posterior_predictive["y"].shape == (1, 1, 20)
    assert data.observed_data["y"].dtype.kind == "i"


def test_netcdf_keeps_everything(chains, tmp_path):
    data = chains.to_arviz(X, Y)
    data.to_netcdf(str(tmp_path / "fit.nc"))
    again = arviz().from_netcdf(str(tmp_path / "fit.nc"))
    assert groups(again) == groups(data)
    for group in groups(data):
        for name in data[group].data_vars:
            np.testing.assert_array_equal(again[group][name], data[group][name])


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_zarr_keeps_everything(chains, tmp_path):
    pytest.importorskip("zarr", minversion="3", reason="the zarr extra is not installed")
    import xarray

    data = chains.to_arviz(X, Y)
    (data if modern() else data.to_datatree()).to_zarr(tmp_path / "fit.zarr")
    again = xarray.open_datatree(tmp_path / "fit.zarr", engine="zarr")
    for group in groups(data):
        for name in data[group].data_vars:
            np.testing.assert_array_equal(again[group][name], data[group][name])
