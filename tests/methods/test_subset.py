"""`subset`: the method itself where all is selected, a conditional posterior where something is held."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo.core.network import Variables
from credo.errors import InputError, Refusal
from credo.methods import FunctionSpaceVI, Laplace, LastLayer
from credo.methods.combine import stages
from oracles import linear

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
Y = np.sin(3 * X[:, 0])
NEW = np.linspace(-2, 2, 9, dtype=np.float32)[:, None]
PROBLEM = linear(num_rows=60, dims=3)
BIAS = 1.5


def model(likelihood=None):
    noise = likelihood or credo.likelihoods.gaussian(0.1)
    return credo.Model(credo.networks.mlp([4], "tanh"), credo.priors.normal(1.0), noise)


def fit(method, likelihood=None, targets=Y, **options):
    return credo.fit(KEY, model(likelihood), (X, targets), method, steps=1, **options)


@pytest.fixture(scope="module")
def both():
    """Laplace of two classes, alone and as a subset of all weights, around one point."""
    likelihood, targets = credo.likelihoods.bernoulli(), Y > 0
    point = credo.fit(KEY, model(likelihood), (X, targets), "map", steps=300)
    method = Laplace("full", train=False)
    return [fit(m, likelihood, targets, start=point) for m in (method, credo.subset(method, "*"))]


def test_all_of_the_weights_are_the_method_itself(both):
    """Also in its precision: the spread has the same bits."""
    alone, whole = (f.posterior for f in (both[0], both[1]))
    assert whole.inner.spread.scale.dtype == np.float64
    np.testing.assert_array_equal(whole.inner.spread.scale, alone.spread.scale)
    np.testing.assert_array_equal(whole.inner.log_evidence, alone.log_evidence)


@pytest.mark.parametrize("mode", [None, "linearised", "probit", "sampled"])
def test_it_predicts_like_the_method_itself(both, mode):
    alone, whole = (credo.predict(KEY, f, NEW, mode=mode, num_samples=50) for f in both)
    np.testing.assert_allclose(whole.probs, alone.probs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(whole.probs_std, alone.probs_std, rtol=1e-3, atol=1e-5)
    with pytest.raises(Refusal, match="mode"):
        credo.predict(KEY, both[1], NEW, mode="exact")


def with_bias():
    """A start whose bias is not at its best."""
    kernel = np.zeros((1, 3), np.float32)
    return {"network": {"output": {"kernel": kernel, "bias": np.full(1, BIAS, np.float32)}}} | {
        "likelihood": {},
        "prior": {},
    }


@pytest.mark.parametrize("held", ["by the start", "by the model"])
def test_a_held_bias_leaves_the_conditional_posterior(held):
    """Λ = X'X/σ² + I/s², mean Λ⁻¹X'(y − b)/σ² and evidence N(y; b, σ²I + s²XX')."""
    whole, data = PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets)
    if held == "by the start":
        found = credo.fit(
            KEY, whole, data, credo.subset(LastLayer(train=False), "output/kernel"), start=Variables(with_bias(), {})
        )
    else:
        frozen = whole.frozen(with_bias(), "output/bias")
        found = credo.fit(KEY, frozen, data, credo.subset(LastLayer(train=False), "output/*"))
    inputs, rest = PROBLEM.inputs.astype(np.float64), PROBLEM.targets.astype(np.float64) - BIAS
    covariance = np.linalg.inv(inputs.T @ inputs / PROBLEM.noise**2 + np.eye(3) / PROBLEM.scale**2)
    mean = covariance @ inputs.T @ rest / PROBLEM.noise**2
    inner = found.posterior.inner
    np.testing.assert_allclose(inner.mean["network"]["output"]["kernel"][0, 0], mean, rtol=1e-6)
    marginal = PROBLEM.noise**2 * np.eye(60) + PROBLEM.scale**2 * inputs @ inputs.T
    exact = stats.multivariate_normal(np.zeros(60), marginal).logpdf(rest)
    assert inner.log_evidence[0] == pytest.approx(exact, rel=1e-7)
    predictive = credo.predict(KEY, found, PROBLEM.inputs[:10], num_samples=4000)
    variance = np.einsum("ni,ij,nj->n", inputs[:10], covariance, inputs[:10])
    # 4,000 draws: five standard errors of a mean are 8 % of a standard deviation, of a variance 11 %.
    np.testing.assert_allclose(predictive.epistemic, variance, rtol=0.12)
    far = np.abs(predictive.mean - BIAS - inputs[:10] @ mean) / np.sqrt(variance)
    assert far.max() < 0.1


def test_each_member_has_its_own_held_values():
    """Outputs are linear in the last layer: the linearised and the sampled network have one distribution. 2,000 draws
    of each of two members, whose hidden layers differ: spreads to 10 %, means to a tenth of the spread."""
    method = credo.subset(credo.replicate(Laplace("full", train=False), 2), "output/*")
    found = fit(method)
    kernel = found.posterior.held["network"]["hidden_0"]["kernel"]
    assert not np.allclose(kernel[0], kernel[1])
    linear, sampled = (
        credo.predict(KEY, found, NEW, mode=mode, num_samples=4000) for mode in ("linearised", "sampled")
    )
    np.testing.assert_allclose(linear.epistemic**0.5, sampled.epistemic**0.5, rtol=0.1)
    assert (np.abs(linear.mean - sampled.mean) < 0.1 * sampled.epistemic**0.5).all()


def test_functions_of_function_space_inference_are_linearised():
    found = fit(credo.subset(FunctionSpaceVI(points=3, rows=5, prior_draws=20), "output/*"))
    own, asked = (credo.predict(KEY, found, NEW, mode=mode, num_samples=9).mean for mode in (None, "linearised"))
    np.testing.assert_array_equal(own, asked)
    assert not found.posterior.whole
    with pytest.raises(Refusal, match="mode must be"):
        credo.predict(KEY, found, NEW, mode="probit")


@pytest.mark.parametrize("name", ["laplace", "last_layer", "nuts", "deep_ensemble", "vis", "sgld"])
def test_what_the_loop_asks_is_forwarded(name):
    inner = credo.registry.build_method(name)
    method = credo.subset(inner, "output/*")
    for asked in ("default_steps", "lockstep", "step_field", "several_starts", "members", "over", "precision"):
        assert getattr(method, asked) == getattr(inner, asked), asked
    assert [type(part) for part in stages(method)] == [type(method)]


def test_remarks_and_parts_are_forwarded():
    bound = {"bound": {"bound": np.arange(4.0)[None]}}
    inner = credo.methods.VIS()
    assert credo.subset(inner, "*").remarks(bound) == inner.remarks(bound) != []
    parts = stages(credo.subset(credo.then("map", "nuts"), "output/*"))
    assert [type(part.method).__name__ for part in parts] == ["MAP", "NUTS"]
    assert {part.select for part in parts} == {"output/*"}


def test_a_lowered_step_is_told():
    steep = credo.subset(credo.methods.MAP(learning_rate=1e6, optimiser="sgd"), "output/*")
    found = credo.fit(KEY, PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets), steep, steps=2000)
    assert "it began again with learning_rate lowered." in str(found.status)


def test_several_members_are_not_all_started_at_one_point():
    point = jax.tree.map(jnp.asarray, with_bias())
    with pytest.raises(Refusal, match="different start"):
        credo.fit(
            KEY, PROBLEM.model(), (PROBLEM.inputs, PROBLEM.targets),
            credo.subset(credo.methods.DeepEnsemble(size=2), "output/kernel"), steps=2, start=point,
        )  # fmt: skip
    with pytest.raises(InputError, match="No parameter path"):
        fit(credo.subset("map", "nothing/*"))
