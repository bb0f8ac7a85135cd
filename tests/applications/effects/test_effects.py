"""What inputs do, against linear models whose posterior is known and against draws with known zeros."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy import stats

import credo
from credo.applications import grid_of, partial_dependence
from credo.applications.effects import effects
from credo.applications.effects.bands import quantile_over
from credo.applications.effects.selection import inputs_used
from credo.core import pieces
from credo.errors import InputError, Refusal
from credo.posteriors import Samples
from oracles import Linear, linear
from spilled import X
from spilled import fitted as spilled_fit

DRAWS = 4000
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def problem() -> Linear:
    return linear(num_rows=200, dims=3)


@pytest.fixture(scope="module")
def fitted(problem) -> credo.Fit:
    """A fit whose posterior is 4000 exact draws, in two chains."""
    fit = credo.fit(KEY, problem.model(), (problem.inputs, problem.targets), "map", steps=5)
    draws = np.random.default_rng(0).multivariate_normal(problem.mean, problem.covariance, (2, DRAWS // 2))
    return dataclasses.replace(fit, posterior=of_linear(draws.astype(np.float32)))


def of_linear(coefficients, weights=None) -> Samples:
    """Draws (b, w) [chain, draw, 1 + inputs] as parameters of `mlp([])`."""
    layer = {"bias": coefficients[..., :1], "kernel": coefficients[..., None, 1:]}
    return Samples({"network": {"output": layer}, "likelihood": {}, "prior": {}}, {}, weights)


def test_the_curve_of_every_draw_is_its_line(problem, fitted):
    found = partial_dependence(KEY, fitted, problem.inputs, 1, grid=[-2.0, 0.0, 3.0], num_samples=DRAWS)
    theta = np.concatenate([np.asarray(x, np.float64) for x in coefficients_of(fitted)])
    others = problem.inputs.mean(0, dtype=np.float64)
    for i, value in enumerate([-2.0, 0.0, 3.0]):
        others[1] = value
        np.testing.assert_allclose(found.draws[:, i], theta @ [1.0, *others], atol=2e-5)
    np.testing.assert_allclose(found.strengths, np.abs(theta[:, 2]) * np.std([-2.0, 0.0, 3.0]), atol=2e-5)


def coefficients_of(fit):
    layer = fit.posterior.params["network"]["output"]
    return np.concatenate([layer["bias"], layer["kernel"][..., 0, :]], -1)


@pytest.mark.parametrize("method", ["exact draws", "laplace"])
def test_the_band_is_that_of_the_exact_posterior(problem, fitted, method):
    """f̄(v) = (1, x̄ with x_k = v)'θ is normal. Ends of the 90 % band lie within 4.5 standard errors of a quantile of
    4000 draws, √(p(1 − p)/n) / density (a false-alarm rate of 1e-5 each)."""
    if method == "laplace":
        fitted = credo.fit(
            KEY,
            problem.model(),
            (problem.inputs, problem.targets),
            credo.methods.Laplace(learning_rate=0.05),
            steps=2000,
        )
    grid = np.linspace(-2, 2, 5)
    found = partial_dependence(KEY, fitted, problem.inputs, 0, grid, num_samples=DRAWS, level=0.9)
    at = np.repeat(problem.design.mean(0)[None], 5, 0)
    at[:, 1] = grid
    mean, std = at @ problem.mean, np.sqrt(np.einsum("gi,ij,gj->g", at, problem.covariance, at))
    edge = stats.norm.isf(0.05)
    error = std * np.sqrt(0.05 * 0.95 / DRAWS) / stats.norm.pdf(edge)
    assert np.abs((found.mean - mean) / (std / np.sqrt(DRAWS))).max() < 4.5
    assert np.abs((found.lower - mean + edge * std) / error).max() < 4.5
    assert np.abs((found.upper - mean - edge * std) / error).max() < 4.5


def test_strength_is_the_slope_times_the_spread_of_the_input(problem, fitted):
    """With quantiles as the grid; 40 of them have the spread of the 200 rows to within 3 %."""
    found = effects(KEY, fitted, problem.inputs, ["a", "b", "c"])
    np.testing.assert_allclose(found.strength, np.abs(problem.mean[1:]) * problem.inputs.std(0), rtol=0.06)
    assert (found.strength_lower < found.strength).all()
    assert (found.strength < found.strength_upper).all()
    doubled = found.rescaled(10.0, 2.0)
    np.testing.assert_allclose(doubled.strength, 2 * found.strength)
    np.testing.assert_allclose(doubled.curves["b"].mean, 10 + 2 * found.curves["b"].mean)
    assert list(found.table().columns) == ["strength", "lower", "upper"]
    assert found.matters is None
    assert "select_inputs=True" in str(found)


def test_shares_of_zeros(problem, fitted):
    """Four draws: the input is zero in none, one, and all of them."""
    theta = np.ones((2, 2, 4), np.float32)
    theta[0, 1, 2] = 0.0
    theta[:, :, 3] = 0.0
    fit = dataclasses.replace(fitted, posterior=of_linear(theta))
    found = effects(KEY, fit, problem.inputs)
    np.testing.assert_array_equal(found.matters, [1.0, 0.75, 0.0])
    assert found.strength[2] == 0
    assert found.note == ""
    assert found.table().loc["input 2", "matters"] == 0.75
    grouped = effects(KEY, fit, problem.inputs, ["a", "b", "c"], groups={"both": [1, 2]})
    assert grouped.names == ("a", "both")
    np.testing.assert_array_equal(grouped.matters, [1.0, 0.75])
    weights = np.log(np.array([[0.1, 0.7], [0.1, 0.1]]))
    weighted = dataclasses.replace(fitted, posterior=of_linear(theta, weights))
    np.testing.assert_allclose(effects(KEY, weighted, problem.inputs).matters, [1.0, 0.3, 0.0], atol=1e-6)


def test_weights_of_nodes_that_are_off_do_not_count(problem):
    """Draw 0: node 1 is on and looks at input 0. Draw 1: no node is on. The linear part looks at input 2 in draw 1."""
    model = credo.Model(
        credo.networks.shallow(2), credo.priors.node_hierarchy(), credo.likelihoods.gaussian(0.5)
    )  # fmt: skip
    fit = credo.fit(KEY, model, (problem.inputs, problem.targets), "map", steps=5)
    hidden = np.zeros((1, 2, 2, 3), np.float32)
    hidden[0, 0, 0], hidden[0, 0, 1, 0], hidden[0, 1] = 1.0, 2.0, 1.0
    output = np.zeros((1, 2, 1, 2), np.float32)
    output[0, 0, 0, 1] = 1.0
    slope = np.zeros((1, 2, 1, 3), np.float32)
    slope[0, 1, 0, 2] = 1.0
    network = {
        "hidden": {"kernel": hidden, "bias": np.zeros((1, 2, 2), np.float32)},
        "output": {"kernel": output},
        "linear": {"kernel": slope, "bias": np.zeros((1, 2, 1), np.float32)},
    }
    rest = {k: jax.tree.map(lambda x: np.repeat(x, 2, 1), fit.posterior.params[k]) for k in ("likelihood", "prior")}
    made = dataclasses.replace(
        fit, posterior=Samples({"network": network} | rest, {}), trace={"nodes": np.array([[1.0, 0.0]])}
    )
    found = effects(KEY, made, problem.inputs)
    np.testing.assert_array_equal(found.matters, [0.5, 0.0, 0.5])
    assert found.linear == 0.5
    assert "no hidden node" in str(found)


def test_classes_have_a_curve_each(problem):
    kinds = np.digitize(problem.inputs[:, 0], [-0.5, 0.5])
    model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.categorical(3))
    fit = credo.fit(KEY, model, (problem.inputs, kinds), credo.methods.DeepEnsemble(size=2), steps=200)
    found = partial_dependence(KEY, fit, problem.inputs, 0)
    assert found.mean.shape == (40, 3)
    np.testing.assert_allclose(found.mean.sum(1), 1, rtol=1e-5)
    assert found.mean[0].argmax() == 0
    assert found.mean[-1].argmax() == 2
    told = effects(KEY, fit, problem.inputs, outputs=["low", "mid", "high"])
    assert told.strength.shape == (3, 3)
    assert "strength high" in told.table().columns


def test_a_group_moves_together(problem):
    """A one-hot category with effects 1, 2 and 5, exactly: its points are the three patterns, by their shares."""
    codes = np.resize([0, 0, 1, 2], 200)
    x = np.column_stack([problem.inputs[:, 0], np.eye(3)[codes]]).astype(np.float32)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.5))
    fit = credo.fit(KEY, model, (x, x[:, 0]), "map", steps=5)
    fit = dataclasses.replace(fit, posterior=of_linear(np.array([[[0.0, 1.0, 1.0, 2.0, 5.0]]], np.float32)))
    found = effects(KEY, fit, x, ["size", "a", "b", "c"], groups={"town": [1, 2, 3]})
    curve = found.curves["town"]
    order = curve.grid.values.argmax(1)
    base = x[:, 0].mean()
    np.testing.assert_allclose(curve.mean, base + np.array([1.0, 2.0, 5.0])[order], atol=1e-5)
    np.testing.assert_allclose(curve.grid.shares, np.array([0.5, 0.25, 0.25])[order])
    np.testing.assert_allclose(found.strength[1], np.std([1, 1, 2, 5]), rtol=1e-5)


def test_rows_are_those_of_training_unless_given(fitted, problem, tmp_path):
    assert effects(KEY, fitted).names == ("input 1", "input 2", "input 3")
    fitted.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    with pytest.raises(InputError, match="loaded fit has no rows"):
        effects(KEY, loaded)
    one, two = (effects(KEY, f, problem.inputs).strength for f in (fitted, loaded))
    np.testing.assert_array_equal(one, two)


def test_grids_and_quantiles():
    many = grid_of(np.arange(1000.0))
    assert len(many) == 40
    np.testing.assert_allclose(many.shares, 1 / 40)
    crowded = grid_of(np.concatenate([np.zeros(900), np.arange(100.0)]))
    assert crowded.shares[0] == pytest.approx(0.9, abs=0.03)
    draws = np.array([[1.0], [2.0], [3.0]])
    even = np.log(np.full(3, 1 / 3))
    assert quantile_over(draws, None, 0.5) == quantile_over(draws, even, 0.5) == 2.0
    assert quantile_over(draws, np.log([0.98, 0.01, 0.01]), 0.5) < 1.1


def test_what_cannot_be_done_is_said(fitted, problem):
    for feature in (3, -1, [0, 0], []):
        with pytest.raises(InputError, match="column between 0 and 2"):
            partial_dependence(KEY, fitted, problem.inputs, feature)
    with pytest.raises(InputError, match="between 0 and 1"):
        partial_dependence(KEY, fitted, problem.inputs, 0, level=2.0)
    with pytest.raises(InputError, match="grid has 2 columns"):
        partial_dependence(KEY, fitted, problem.inputs, 0, grid=np.ones((3, 2)))
    with pytest.raises(InputError, match="3 columns but 2 names"):
        effects(KEY, fitted, problem.inputs, ["a", "b"])
    with pytest.raises(InputError, match="each in one group alone"):
        effects(KEY, fitted, problem.inputs, groups={"a": [0], "b": [0]})
    with pytest.raises(InputError, match="same name"):
        effects(KEY, fitted, problem.inputs, ["a", "a", "b"])
    with pytest.raises(Refusal, match=r"\[rows, features\]"):
        effects(KEY, dataclasses.replace(fitted, input_shape=(2, 2)), problem.inputs)


@pytest.mark.full
def test_a_fit_that_selects_its_inputs(problem):
    """y = sin(2 x_0) with little noise: the samplers leave inputs 1 and 2 out of most draws, and never input 0."""
    model = credo.Model(
        credo.networks.shallow(2), credo.priors.node_hierarchy(), credo.likelihoods.gaussian(0.2)
    )  # fmt: skip
    method = credo.shallow.Gibbs(chains=2, warmup=100, select_inputs=True)
    y = np.sin(2 * problem.inputs[:, 0]) + 0.2 * np.random.default_rng(0).normal(size=200)
    fit = credo.fit(KEY, model, (problem.inputs, y), method, steps=200)
    found = effects(KEY, fit, problem.inputs)
    assert found.matters[0] == 1
    assert found.matters[1:].max() < 0.5
    assert found.order[0] == "input 1"
    assert "matters" in found.table().columns


def test_draws_on_disk_give_the_same(monkeypatch):
    """Read in pieces of a few draws, each once for all inputs."""
    held, spilled = (spilled_fit(limit) for limit in (2**40, 0))
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1000)
    assert spilled.posterior.on_disk
    assert not held.posterior.on_disk
    one, two = (effects(KEY, fit, X, num_samples=30) for fit in (held, spilled))
    np.testing.assert_allclose(one.curves["input 1"].draws, two.curves["input 1"].draws, rtol=1e-6)
    used = inputs_used(spilled)
    assert used.shape == (held.posterior.members * held.posterior.available, 1)
    assert used.all()
    assert two.matters is None


def test_several_targets_have_curves_and_strengths_of_their_own():
    """Two targets, each a line with known coefficients: strengths are |w| times the spread of the input's values."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 2)).astype(np.float32)
    weights = np.array([[2.0, 0.0], [-0.5, 1.0]], np.float32)  # [target, input]
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (x, x @ weights.T), "map", steps=5)
    layer = {"bias": np.zeros((1, 3, 2), np.float32), "kernel": np.tile(weights, (1, 3, 1, 1))}
    posterior = Samples({"network": {"output": layer}, "likelihood": {}, "prior": {}}, {})
    found = effects(KEY, dataclasses.replace(fit, posterior=posterior), x, ["dose", "age"], outputs=("pulse", "weight"))
    for k, name in enumerate(found.names):
        grid = found.curves[name].grid
        values, shares = grid.values[:, 0].astype(np.float64), grid.shares
        spread = np.sqrt(shares @ (values - shares @ values) ** 2)
        np.testing.assert_allclose(found.strength[k], np.abs(weights[:, k]) * spread, rtol=1e-4, atol=1e-5)
    ratio = found.strength[0, 1] / found.strength[0, 0]
    np.testing.assert_allclose(ratio, 0.25, rtol=1e-4)
    columns = list(found.table().columns)
    assert columns == [f"{what} {y}" for y in ("pulse", "weight") for what in ("strength", "lower", "upper")]
    assert found.order == ["dose", "age"]
