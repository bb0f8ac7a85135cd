"""Classification likelihoods against scipy and brute-force sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import arviz_numbers
import credo
from credo.errors import Refusal
from credo.likelihoods import bernoulli, categorical, mislabelled

CASES = {
    "bernoulli": (bernoulli(), 2),
    "categorical_2": (categorical(2), 2),
    "categorical_5": (categorical(5), 5),
    "mislabelled_2": (mislabelled(2, 0.1), 2),
    "mislabelled_5": (mislabelled(5, 0.001), 5),
}
every = pytest.mark.parametrize(("likelihood", "num_classes"), CASES.values(), ids=CASES.keys())


def outputs_for(likelihood, rows, scale=2.0):
    width = likelihood.num_outputs(np.zeros(rows))
    return scale * np.random.default_rng(0).normal(size=(rows, width))


def truth_for(likelihood, outputs):
    """log p [n, C] in float64."""
    outputs = np.asarray(outputs, float)
    logits = np.concatenate([np.zeros_like(outputs), outputs], -1) if outputs.shape[1] == 1 else outputs
    share = getattr(likelihood, "value", None)
    if share is None:
        return scipy.special.log_softmax(logits, -1)
    return np.log((1 - share) * scipy.special.softmax(logits, -1) + share / logits.shape[1])


@every
@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
def test_log_probs_and_log_prob(likelihood, num_classes, scale):
    with jax.enable_x64(True):
        outputs = outputs_for(likelihood, 20, scale)
        truth = truth_for(likelihood, outputs)
        np.testing.assert_allclose(likelihood.log_probs({}, outputs), truth, rtol=1e-9, atol=1e-15)
        for c in range(num_classes):
            got = likelihood.log_prob({}, jnp.asarray(outputs), jnp.full(20, c))
            np.testing.assert_allclose(got, truth[:, c], rtol=1e-9, atol=1e-15)


@every
def test_float32_keeps_log_probabilities_of_saturated_rows(likelihood, num_classes):
    outputs = jnp.zeros((1, likelihood.num_outputs(None))).at[0, 0].set(-1e4)
    wrong = 1 if num_classes == 2 and outputs.shape[1] == 1 else 0
    got = likelihood.log_prob({}, outputs, jnp.array([wrong]))
    assert got[0] == pytest.approx(truth_for(likelihood, outputs)[0, wrong], rel=1e-6)


@every
def test_probabilities_sum_to_one_and_variance_is_p_times_one_minus_p(likelihood, num_classes):
    outputs = jnp.asarray(outputs_for(likelihood, 20), jnp.float32)
    probs = likelihood.mean({}, outputs)
    assert probs.shape == (20, num_classes)
    np.testing.assert_allclose(probs.sum(-1), 1, rtol=1e-6)
    truth = np.exp(truth_for(likelihood, outputs))
    np.testing.assert_allclose(probs, truth, rtol=1e-5)
    np.testing.assert_allclose(likelihood.variance({}, outputs), truth * (1 - truth), rtol=1e-4)


@every
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 1000.0])
def test_entropy(likelihood, num_classes, scale):
    outputs = jnp.asarray(outputs_for(likelihood, 50, scale), jnp.float32)
    log_probs = truth_for(likelihood, outputs)
    truth = scipy.special.entr(np.exp(log_probs)).sum(-1)
    got = likelihood.entropy({}, outputs)
    # 1 − p of the likely class has no digits in float64 below 1e-14
    np.testing.assert_allclose(got, truth, rtol=1e-4, atol=1e-14)
    assert (got >= 0).all()
    assert got.max() <= np.log(num_classes) + 1e-6


def test_entropy_of_nearly_sure_rows_keeps_its_digits_in_float32():
    gap = 25.0
    truth = np.log1p(np.exp(-gap)) + gap * np.exp(-gap) / (1 + np.exp(-gap))
    assert bernoulli().entropy({}, jnp.array([[-gap]]))[0] == pytest.approx(truth, rel=1e-5)
    assert categorical(2).entropy({}, jnp.array([[0.0, gap]]))[0] == pytest.approx(truth, rel=1e-5)


def test_classes_that_are_impossible_do_not_spoil_the_entropy():
    outputs = jnp.array([[0.0, 0.0, -jnp.inf]])
    assert categorical(3).entropy({}, outputs)[0] == pytest.approx(np.log(2), rel=1e-6)


@every
def test_cdf_is_refused(likelihood, num_classes):
    with pytest.raises(Refusal, match="Classes have no order"):
        likelihood.cdf({}, jnp.zeros((1, num_classes)), jnp.zeros(1, int))


@every
def test_samples_have_the_class_frequencies(likelihood, num_classes):
    """False-alarm budget: 1e-6 for each of three χ² tests."""
    outputs = outputs_for(likelihood, 1, 0.7)
    draws = likelihood.sample(jax.random.key(1), {}, jnp.repeat(jnp.asarray(outputs), 20_000, 0))
    assert draws.shape == (20_000,)
    assert draws.dtype == jnp.int32
    counts = np.bincount(draws, minlength=num_classes)
    assert scipy.stats.chisquare(counts, 20_000 * np.exp(truth_for(likelihood, outputs))[0]).pvalue > 1e-6


@every
def test_curvature_is_the_expected_hessian(likelihood, num_classes):
    with jax.enable_x64(True):
        outputs = jnp.asarray(outputs_for(likelihood, 4))
        probs = np.exp(truth_for(likelihood, outputs))
        hessian = jax.jit(jax.vmap(jax.hessian(lambda f, y: likelihood.log_prob({}, f[None], y[None])[0])))
        expected = sum(-probs[:, c, None, None] * hessian(outputs, jnp.full(4, c)) for c in range(num_classes))
        np.testing.assert_allclose(likelihood.curvature({}, outputs), expected, rtol=1e-9, atol=1e-12)


@every
@pytest.mark.parametrize("size", [100.0, 1e8])
def test_gradients_are_finite_at_extreme_outputs(likelihood, num_classes, size):
    width = likelihood.num_outputs(None)
    outputs = jnp.concatenate([size * jnp.eye(width), -size * jnp.eye(width)])
    for c in range(num_classes):
        grad = jax.grad(lambda f, c=c: likelihood.log_prob({}, f, jnp.full(len(f), c)).sum())(outputs)
        assert np.isfinite(grad).all()
        assert np.abs(grad).max() <= 1
    assert np.isfinite(jax.grad(lambda f: likelihood.entropy({}, f).sum())(outputs)).all()


def test_bernoulli_is_the_categorical_of_two_logits():
    logit = jnp.array([[-3.0], [0.5]])
    both = jnp.concatenate([0 * logit, logit], -1)
    np.testing.assert_allclose(bernoulli().mean({}, logit), categorical(2).mean({}, both), rtol=1e-6)
    np.testing.assert_allclose(bernoulli().mean({}, logit)[:, 1], jax.nn.sigmoid(logit[:, 0]), rtol=1e-6)


# ---------------------------------------------------------------------- labels that are wrong
def test_a_small_share_of_wrong_labels_is_the_categorical():
    outputs = jnp.asarray(outputs_for(categorical(4), 20), jnp.float32)
    almost = mislabelled(4, 1e-30)
    for piece in ("log_probs", "mean", "entropy", "curvature"):
        got, wanted = (getattr(x, piece)({}, outputs) for x in (almost, categorical(4)))
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-6, err_msg=piece)


def test_a_label_that_nobody_believes_pulls_no_more():
    """The gradient of a wrong label of a sure row vanishes, where that of the categorical stays 1."""
    outputs, wrong = jnp.array([[20.0, 0.0]]), jnp.array([1])
    for likelihood, size in [(mislabelled(2, 0.05), 0.0), (categorical(2), 1.0)]:
        grad = jax.grad(lambda f, own=likelihood: own.log_prob({}, f, wrong)[0])(outputs)
        np.testing.assert_allclose(np.abs(grad), size, atol=1e-6)


def test_the_share_of_wrong_labels_is_found():
    """The posterior of logit ε where the outputs are known, by quadrature and by NUTS. Of 1,000 effective draws or more
    the mean is off by 0.15 standard deviations, or the spread by 12 %, once in 10,000 runs."""
    rng, rows = np.random.default_rng(0), 400
    inputs = rng.normal(size=(rows, 1)).astype(np.float32)
    labels = np.where(rng.random(rows) < 0.2, rng.integers(0, 2, rows), inputs[:, 0] > 0).astype(int)
    likelihood = mislabelled(2)
    known = {"output": {"bias": np.zeros(2, np.float32), "kernel": np.array([[-4.0], [4.0]], np.float32)}}
    fixed = {"network": known, "likelihood": {"logit_share": None}, "prior": {}}
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), likelihood, fixed=fixed)
    fit = credo.fit(jax.random.key(0), model, (inputs, labels), credo.methods.NUTS(chains=4), steps=1000)
    draws = np.asarray(fit.posterior.params["likelihood"]["logit_share"], float).ravel()

    grid = np.linspace(-8, 4, 4001)
    outputs = inputs @ known["output"]["kernel"].T
    right = scipy.special.softmax(outputs.astype(float), -1)[np.arange(rows), labels]
    share = scipy.special.expit(grid)[:, None]
    log_density = np.log((1 - share) * right + share / 2).sum(1) + scipy.stats.norm.logpdf(grid, -4, 2)
    weight = np.exp(log_density - log_density.max())
    mean = np.average(grid, weights=weight)
    spread = np.sqrt(np.average((grid - mean) ** 2, weights=weight))
    assert arviz_numbers.ess(draws.reshape(4, -1)) > 1000
    assert abs(draws.mean() - mean) < 0.15 * spread
    assert abs(draws.std() / spread - 1) < 0.12
    assert scipy.special.expit(mean - 2 * spread) < 0.2 < scipy.special.expit(mean + 2 * spread)
