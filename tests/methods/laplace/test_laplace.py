"""The Laplace approximation: exact where the posterior is Gaussian, and what it says elsewhere."""

import dataclasses

import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.draws import function_draws
from credo.core.tree import by_paths
from credo.errors import InputError, NoDensity, Refusal
from credo.evaluation.audit.conjugate import Conjugate
from credo.methods import Laplace
from credo.methods.laplace.curvature.paths import flat, function, unflat
from oracles import coefficients, linear

PROBLEM = linear(num_rows=60, dims=3)
DATA = (PROBLEM.inputs, PROBLEM.targets)
EVIDENCE = Conjugate(*DATA, PROBLEM.noise, PROBLEM.scale).log_evidence()
RNG = np.random.default_rng(2)
X = RNG.normal(size=(40, 2)).astype(np.float32)
LABELS = (X[:, 0] + 0.5 * RNG.normal(size=40) > 0).astype(int) + (X[:, 1] > 0.5)
KEY = jax.random.key(0)


def fit_linear(method, data=DATA, model=None, **options):
    options = {"steps": 2000} | options
    return credo.fit(KEY, model or PROBLEM.model(), data, dataclasses.replace(method, learning_rate=0.02), **options)


def covariance(posterior):
    """Of (b, w), from 20,000 draws."""
    draws = coefficients(posterior.sample(jax.random.key(3), 20_000)["network"]).astype(np.float64)
    return np.cov(draws.T)


@pytest.fixture(scope="module")
def mode():
    """The mode of the linear problem, where every structure can start."""
    return fit_linear(credo.methods.MAP())


def scaled(found):
    """A covariance in units of the exact standard deviations."""
    std = np.sqrt(np.diag(PROBLEM.covariance))
    return found / np.outer(std, std)


@pytest.mark.parametrize("structure", ["full", "kfac", "last_layer", "low_rank"])
def test_exact_on_the_linear_model(structure, mode):
    """Covariances of 20,000 draws are within 0.05 of correlations of 1: more than five standard errors."""
    fit = fit_linear(Laplace(structure=structure, train=False), start=mode)
    np.testing.assert_allclose(coefficients(fit.posterior.mean["network"])[0], PROBLEM.mean, atol=1e-5)
    np.testing.assert_allclose(scaled(covariance(fit.posterior)), scaled(PROBLEM.covariance), atol=0.05)
    assert fit.posterior.log_evidence[0] == pytest.approx(EVIDENCE, abs=1e-3)
    assert fit.phases["gaussian"]["log_evidence"][0, 0] == pytest.approx(EVIDENCE, abs=1e-3)


def test_the_diagonal_on_the_linear_model(mode):
    fit = fit_linear(Laplace(structure="diagonal", train=False), start=mode)
    std = coefficients(jax.tree.map(lambda x: x[0], unfolded(fit.posterior.spread.std)))
    np.testing.assert_allclose(std, PROBLEM.mean_field_std, rtol=1e-5)


def unfolded(values):
    return {"output": {path.rpartition("/")[2]: x for path, x in values.items()}}


def test_minibatches_and_weights_do_not_change_the_sum(mode):
    """Sweeps of 16 rows, all rows at once, and rows of weight 2 for doubled rows are the same curvature."""
    whole = fit_linear(Laplace(structure="full", train=False), start=mode)
    parts = fit_linear(Laplace(structure="full", train=False), start=mode, batch_size=16)
    np.testing.assert_allclose(parts.posterior.spread.scale, whole.posterior.spread.scale, rtol=1e-6, atol=1e-9)
    assert parts.phases["curvature"]["log_likelihood"].shape == (1, 4)
    doubled = fit_linear(Laplace(structure="full", train=False), start=mode, data=(*map(np.tile, DATA, ((2, 1), 2)),))
    weighted = fit_linear(Laplace(structure="full", train=False), start=mode, data=(*DATA, np.full(60, 2.0)))
    np.testing.assert_allclose(doubled.posterior.spread.scale, weighted.posterior.spread.scale, rtol=1e-6, atol=1e-9)
    assert doubled.posterior.log_evidence[0] == pytest.approx(weighted.posterior.log_evidence[0], rel=1e-6)


def test_temperature_scales_the_covariance(mode):
    plain = fit_linear(Laplace(structure="full", train=False), start=mode)
    cold = fit_linear(Laplace(structure="full", train=False), start=mode, model=PROBLEM.model().tempered(0.25))
    np.testing.assert_allclose(cold.posterior.spread.scale, 0.5 * plain.posterior.spread.scale, rtol=1e-6)


@pytest.fixture(scope="module")
def early():
    """Far from the mode of the linear problem."""
    return fit_linear(credo.methods.MAP(), steps=5)


@pytest.mark.parametrize("structure", ["full", "kfac", "diagonal", "last_layer", "low_rank"])
def test_the_newton_decrement_is_what_the_log_joint_lacks(structure, early):
    """½ (θ − θ*)'Λ(θ − θ*) where the curvature is exact, and the evidence lacks just that; ½ Σ g²/Λ_ii of a diagonal.
    Neither minibatches nor the scale that the evidence gives the prior change it; a temperature divides it."""
    theta = coefficients(early.posterior.params["network"])[0, 0].astype(np.float64)
    gradient = PROBLEM.precision @ (PROBLEM.mean - theta)
    inverse = np.diag(1 / np.diag(PROBLEM.precision)) if structure == "diagonal" else PROBLEM.covariance
    truth = 0.5 * gradient @ inverse @ gradient
    method = Laplace(structure=structure, train=False)
    fit = fit_linear(method, start=early)
    assert fit.phases["gaussian"]["newton_decrement"][0, 0] == pytest.approx(truth, rel=1e-4)
    if structure != "diagonal":
        assert fit.posterior.log_evidence[0] + truth == pytest.approx(EVIDENCE, rel=1e-4)
    if structure in ("full", "low_rank"):
        scaled = dataclasses.replace(method, prior_precision="evidence")
        cold = fit_linear(scaled, start=early, batch_size=16, model=PROBLEM.model().tempered(0.25))
        assert cold.phases["gaussian"]["newton_decrement"][0, 0] == pytest.approx(truth / 0.25, rel=1e-4)


@pytest.mark.parametrize(
    "structure", ["full", *(pytest.param(s, marks=pytest.mark.full) for s in ("kfac", "diagonal", "low_rank"))]
)
def test_a_point_that_is_no_mode_raises_an_alarm(structure):
    """Five Adam steps leave hundreds of nats, and a search that has converged next to none."""
    x = np.linspace(-2, 2, 40)[:, None].astype(np.float32)
    noise = credo.likelihoods.gaussian(noise=0.1)
    problem = credo.Model(credo.networks.mlp([10], "tanh"), credo.priors.normal(1.0), noise)
    method = Laplace(structure=structure)
    early, late = (credo.fit(KEY, problem, (x, np.sin(3 * x[:, 0])), method, steps=n) for n in (5, 20_000))
    alarm = next(a for a in early.diagnostics.alarms if a.id == "off_mode")
    assert "not at a mode" in str(early.status)
    assert str(alarm) in early.status.alarms
    assert early.phases["gaussian"]["newton_decrement"][0, 0] > 100
    assert late.phases["gaussian"]["newton_decrement"][0, 0] < 0.01
    assert not any(a.id == "off_mode" for a in late.diagnostics.alarms)


@pytest.mark.parametrize("names", [("gap",), pytest.param((), marks=pytest.mark.full)], ids=["gap", "all"])
def test_the_problems_of_the_audit_raise_no_alarm_of_the_mode(names):
    problems = credo.audit.problems()
    for name in names or problems:
        fit = credo.fit(KEY, problems[name].model, problems[name].data, "laplace")
        assert fit.phases["gaussian"]["newton_decrement"][0, 0] < 0.2, name
        assert not any("not at a mode" in a for a in fit.status.alarms), name


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_the_posterior_is_the_next_prior(structure, mode):
    """Half the data, then the other half under the first posterior, is all the data."""
    first = fit_linear(Laplace(structure=structure), data=(DATA[0][:30], DATA[1][:30]))
    model = PROBLEM.model().with_prior(credo.priors.as_prior(first.posterior))
    second = fit_linear(Laplace(structure=structure), data=(DATA[0][30:], DATA[1][30:]), model=model)
    if structure == "full":
        np.testing.assert_allclose(coefficients(second.posterior.mean["network"])[0], PROBLEM.mean, atol=2e-3)
        np.testing.assert_allclose(scaled(covariance(second.posterior)), scaled(PROBLEM.covariance), atol=0.05)
    else:
        whole = fit_linear(Laplace(structure=structure, train=False), start=mode)
        both = (unfolded(fit.posterior.spread.std)["output"]["kernel"] for fit in (second, whole))
        np.testing.assert_allclose(*both, rtol=1e-4)


def classifier(network=None, prior=None, likelihood=None):
    return credo.Model(
        network or credo.networks.mlp([4], "tanh"), prior or credo.priors.normal(1.0),
        likelihood or credo.likelihoods.categorical(3),
    )  # fmt: skip


def fit_classes(method, targets=LABELS, steps=300, **options):
    model = options.pop("model", None) or classifier()
    return credo.fit(KEY, model, (X, targets), method, steps=steps, **options)


@pytest.fixture(scope="module")
def point():
    """A mode of a small classifier."""
    return fit_classes(credo.methods.MAP(0.02), steps=800)


@pytest.fixture(scope="module", params=["full", "kfac", "diagonal", "last_layer", "low_rank"])
def fitted(request, point):
    return fit_classes(Laplace(structure=request.param, train=False, rank=10), start=point)


def dense_moments(fit):
    """f(x), and J Σ J' from the dense Jacobian and the covariance of 20,000 draws of the weights."""
    posterior = fit.posterior
    variables = posterior.centre(0)
    values = {p: x for p, x in by_paths(variables.params["network"]).items() if p in posterior.spread.paths}
    run = function(fit.model, variables, X)
    jacobian = np.asarray(jax.jit(jax.jacrev(lambda v: run(unflat(v, values))))(flat(values)))
    spread = jax.tree.map(lambda x: np.asarray(x[0], np.float32), posterior.spread)
    draws = jax.jit(jax.vmap(spread.draw))(jax.random.split(KEY, 20_000))
    sampled = np.asarray(flat({p: draws[p] for p in values}, lead=1), np.float64)
    return np.asarray(run(values)), np.einsum("nip,pq,niq->ni", jacobian, np.cov(sampled.T), jacobian)


def test_linearised_and_probit_predictions(fitted):
    """Variances of 4,000 and 20,000 draws: 15 % is beyond five standard errors."""
    outputs, variance = dense_moments(fitted)
    draws = function_draws(jax.random.key(1), fitted, X, 4000).values[0]
    np.testing.assert_allclose(draws.var(0), variance, rtol=0.15)
    np.testing.assert_allclose(draws.mean(0), outputs, atol=5 * np.sqrt(variance.max() / 4000))
    expected = jax.nn.softmax(outputs / np.sqrt(1 + np.pi / 8 * variance))
    probit = credo.predict(KEY, fitted, X, mode="probit")
    np.testing.assert_allclose(probit.probs, expected, atol=0.02)
    sampled = credo.predict(KEY, fitted, X, mode="sampled", num_samples=50)
    assert np.abs(sampled.probs - expected).max() < 0.4
    assert (sampled.epistemic > 0).all()


def test_draws_are_functions(fitted):
    """The same key gives the same functions, at whichever inputs they are looked at."""
    few, all_of_them = (function_draws(KEY, fitted, x, 5).values for x in (X[:7], X))
    np.testing.assert_allclose(few, all_of_them[:, :, :7], rtol=1e-4, atol=1e-5)


def test_sampled_predictions_are_the_network_at_draws(point):
    fit = fit_classes(Laplace(structure="full", train=False), start=point)
    draws = fit.posterior.view("sampled")
    variables = draws.draw(jax.random.split(KEY, 3)[1], 0, 0)
    expected = fit.model.outputs(variables, X)[0]
    np.testing.assert_allclose(draws.outputs(KEY, fit.model, X, 3).values[0, 1], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(Refusal, match="mode must be one of"):
        fit.posterior.view("exact")


def test_log_prob_is_a_density_where_all_weights_are_spread(fitted):
    params = jax.tree.map(lambda x: np.asarray(x[0]), fitted.posterior.mean)
    if fitted.posterior.structure == "last_layer":
        with pytest.raises(NoDensity, match="is a point"):
            fitted.posterior.log_prob(params)
    else:
        assert np.isfinite(fitted.posterior.log_prob(params))


@pytest.mark.parametrize("structure", ["full", "kfac", "diagonal", "last_layer", "low_rank"])
def test_the_evidence_is_maximised(structure, point):
    """Refits with the prior scaled by hand, the mode held, have less evidence than the scale that was found."""
    best = fit_classes(Laplace(structure=structure, train=False, prior_precision="evidence", rank=10), start=point)
    found = float(best.posterior.prior_scale[0, 0])
    evidence = {}
    for factor in (0.8, 1.0, 1.25):
        model = classifier(prior=credo.priors.normal(float((factor * found) ** -0.5)))
        again = fit_classes(Laplace(structure=structure, train=False, rank=10), model=model, start=point)
        evidence[factor] = float(again.posterior.log_evidence[0])
    assert evidence[1.0] == pytest.approx(float(best.posterior.log_evidence[0]), abs=2e-3)
    assert evidence[1.0] > max(evidence[0.8], evidence[1.25])


@pytest.mark.parametrize("structure", ["kfac", "full"])
def test_one_scale_for_each_layer_has_more_evidence(structure, point):
    methods = [Laplace(structure=structure, train=False, prior_precision=p) for p in ("evidence", "evidence_by_layer")]
    one, layers = (fit_classes(method, start=point).posterior for method in methods)
    assert layers.prior_scale.shape == (1, 2)
    assert float(layers.log_evidence[0]) > float(one.log_evidence[0])


@pytest.mark.full
def test_validation_takes_the_best_of_the_grid(point):
    held = (X[:20] + 0.1, LABELS[:20])
    method = Laplace(structure="kfac", train=False, prior_precision="validation", held_out=held)
    fit = fit_classes(method, start=point)
    found = float(fit.posterior.prior_scale[0, 0])
    scores = {}
    for factor in (1e-2, 1.0, 1e2):
        model = classifier(prior=credo.priors.normal(float((factor * found) ** -0.5)))
        again = fit_classes(Laplace(structure="kfac", train=False), model=model, start=point)
        predictive = credo.predict(KEY, again, held[0], num_samples=1000)
        scores[factor] = predictive.log_prob(held[1]).sum()
    assert scores[1.0] > max(scores[1e-2], scores[1e2]) - 0.3


def test_the_hessian_of_a_linear_classifier_is_its_ggn():
    model = classifier(credo.networks.mlp([]), likelihood=credo.likelihoods.bernoulli())
    start = fit_classes(credo.methods.MAP(0.05), LABELS > 0, model=model)
    both = [
        fit_classes(Laplace("full", curvature, train=False), LABELS > 0, model=model, start=start).posterior
        for curvature in ("ggn", "hessian")
    ]
    np.testing.assert_allclose(both[0].spread.scale, both[1].spread.scale, rtol=1e-4, atol=1e-6)
    assert both[0].log_evidence[0] == pytest.approx(both[1].log_evidence[0], abs=1e-3)


def test_sampled_fisher_is_near_the_ggn(point):
    """One target for each of 40 rows: the trace of the curvature is right to 60 %, beyond five standard errors."""
    fits = [fit_classes(Laplace("diagonal", c, train=False), start=point) for c in ("ggn", "fisher")]
    traces = [sum(((1 / s**2) - 1).sum() for s in fit.posterior.spread.std.values()) for fit in fits]
    assert 0.4 < traces[1] / traces[0] < 1.6
    assert traces[1] != traces[0]


@pytest.mark.full
def test_auto_takes_what_fits():
    wide = credo.networks.mlp([600], "tanh")
    assert fit_classes(Laplace(), steps=2).posterior.structure == "full"
    assert fit_classes(Laplace(), steps=2, model=classifier(wide)).posterior.structure == "kfac"
    heavy = classifier(wide, credo.priors.student_t(scale=5.0))
    assert fit_classes(Laplace(), steps=2, model=heavy).posterior.structure == "diagonal"


@pytest.mark.full
def test_combinators(point):
    chained = fit_classes(credo.then(credo.methods.MAP(0.02), Laplace("full", train=False)), steps=1)
    assert np.isfinite(chained.posterior.log_evidence).all()
    several = fit_classes(credo.replicate(Laplace("kfac"), 2), steps=50)
    assert credo.predict(KEY, several, X[:3], mode="probit").probs.shape == (3, 3)
    assert several.posterior.log_evidence.shape == (2,)
    some = fit_classes(credo.subset(Laplace("full", train=False), "output/*"), steps=1, start=point)
    kernel = some.posterior.sample(KEY, 4)["network"]["hidden_0"]["kernel"]
    np.testing.assert_array_equal(kernel[0], kernel[3])
    whole = fit_classes(Laplace("last_layer", train=False), start=point)
    inner = some.posterior.inner.spread.scale[0]
    same = np.sort(np.linalg.eigvalsh(inner @ inner.T))
    other = whole.posterior.spread.scale[0]
    np.testing.assert_allclose(same, np.sort(np.linalg.eigvalsh(other @ other.T)), rtol=1e-4)


def test_a_saved_posterior_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    for mode, num in (("sampled", 50), ("probit", None)):
        probs = [credo.predict(KEY, fit, X, mode=mode, num_samples=num).probs for fit in (fitted, loaded)]
        np.testing.assert_array_equal(*probs)


class Normed(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(2, 4, rngs=rngs)
        self.norm = nnx.LayerNorm(4, rngs=rngs)
        self.outer = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x):
        return self.outer(jnp.tanh(self.norm(self.inner(x))))


NORMED = classifier(credo.from_flax(lambda rngs: Normed(rngs)))
REFUSED = {
    "layer": (Laplace("kfac"), NORMED, '\'norm/.*"diagonal", "last_layer" or "low_rank"'),
    "prior": (Laplace(), classifier(prior=credo.priors.laplace(1.0)), "has no curvature"),
    "scales": (Laplace("kfac"), classifier(prior=credo.priors.student_t()), "one scale for each array"),
    "evidence": (Laplace(prior_precision="evidence"), classifier(prior=credo.priors.student_t()), "not normal"),
    "hessian": (Laplace("kfac", "hessian"), classifier(), "add up squares"),
    "fisher": (Laplace("low_rank", "fisher"), classifier(), "exact matrix"),
    "layers": (Laplace("low_rank", prior_precision="evidence_by_layer"), classifier(), "one scale for all layers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name):
    method, model, match = REFUSED[name]
    with pytest.raises(Refusal, match=match):
        fit_classes(method, model=model, steps=1)


def test_bad_options_get_a_sentence():
    with pytest.raises(InputError, match="structure must be one of"):
        fit_classes(Laplace("kron"), steps=1)
    with pytest.raises(InputError, match="belong together"):
        fit_classes(Laplace(prior_precision="validation"), steps=1)


def slow(value):
    return pytest.param(value, marks=pytest.mark.full)


@pytest.mark.parametrize("structure", ["diagonal", *map(slow, ("low_rank", "last_layer"))])
def test_what_a_layer_without_a_rule_can_take(structure):
    fit = fit_classes(Laplace(structure, rank=5, sweeps=2), model=NORMED, steps=20)
    assert np.isfinite(credo.predict(KEY, fit, X[:4], num_samples=5).probs).all()
    assert np.isfinite(credo.predict(KEY, fit, X[:4], mode="probit").probs).all()


def test_a_prior_with_positive_curvature_is_used():
    """Student-t at small weights: its second derivatives stand for the precision."""
    fit = fit_classes(Laplace("diagonal"), model=classifier(prior=credo.priors.student_t(scale=3.0)), steps=300)
    assert all((s > 0).all() for s in fit.posterior.spread.std.values())


def test_a_prior_without_positive_curvature_is_refused(point):
    """A Student-t that is much narrower than the weights curves the other way there."""
    model = classifier(prior=credo.priors.student_t(scale=0.01))
    with pytest.raises(Refusal, match="the prior"):
        fit_classes(Laplace("diagonal", train=False), model=model, start=point)


def test_probit_is_for_classes(mode):
    fit = fit_linear(Laplace(structure="full", train=False), start=mode)
    with pytest.raises(Refusal, match="for classes"):
        credo.predict(KEY, fit, DATA[0], mode="probit")
