"""What a recalibrated predictive says of a row is what every application and score hears, row by row."""

import numpy as np
import pytest
from scipy import stats

import credo
from credo import likelihoods
from credo.applications import step_utility
from credo.applications.active.acquisition import mean_draws
from credo.applications.detection import suspicion
from credo.errors import InputError, Refusal
from credo.evaluation import metrics
from credo.evaluation.recalibration import split_conformal, temperature_scaling
from credo.evaluation.recalibration.unseen import with_settings
from predictives import predictive

N, K = 40, 5
PLACES = np.linspace(-5, 5, N)[:, None]  # rows far apart: the shift of one is none of another


def outputs(columns, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([PLACES, np.zeros((N, columns - 1))], 1) + 0.2 * rng.normal(size=(K, N, columns))


REAL = {
    "gaussian": (likelihoods.gaussian(noise=0.6), 1),
    "heteroscedastic": (likelihoods.heteroscedastic(), 2),
    "student_t": (likelihoods.student_t(df=5.0, noise=0.5), 1),
    "heteroscedastic_t": (likelihoods.heteroscedastic_t(df=5.0), 2),
}
CLASSES = {
    "bernoulli": (likelihoods.bernoulli(), 1),
    "categorical": (likelihoods.categorical(3), 3),
    "mislabelled": (likelihoods.mislabelled(3, share=0.05), 3),
}
COUNTS = {"poisson": likelihoods.poisson(), "negative_binomial": likelihoods.negative_binomial(dispersion=0.5)}


def recalibrated(name, width=16):
    """Targets three times as far out as the model says, on the scale of the user."""
    likelihood, columns = REAL[name]
    given = predictive(likelihood, outputs(columns), width=width).rescaled(100.0, 10.0)
    away = 3 * np.sqrt(given.variance) * stats.norm.ppf((np.arange(N) * 0.618 + 0.3) % 1)
    found = temperature_scaling(given, given.mean + away).apply(given)
    assert found.affine[0].std() > 1  # another shift in each row
    return found


def value(a, y):
    return y + 0 * a


@pytest.mark.parametrize("name", REAL)
def test_the_expected_outcome_of_numbers_is_the_mean(name):
    given = recalibrated(name)
    np.testing.assert_allclose(credo.decide(given, value, actions=[0]).expected[:, 0], given.mean, rtol=1e-4)


@pytest.mark.parametrize("name", REAL)
def test_chances_of_thresholds_are_the_distribution_function(name):
    """A threshold cuts the panels of each row at another place of the likelihood's scale."""
    given = recalibrated(name)
    for threshold in (60.0, 103.0):
        found = credo.decide(given, step_utility({"act": (threshold, 0.0, 1.0)}))
        np.testing.assert_allclose(found.expected[:, 0], 1 - given.cdf(np.full(N, threshold)), atol=2e-4)


@pytest.mark.parametrize("name", CLASSES)
def test_the_expected_class_is_that_of_the_scaled_probabilities(name):
    likelihood, columns = CLASSES[name]
    given = predictive(likelihood, outputs(columns), width=16)
    after = temperature_scaling(given, np.arange(N) % given.probs.shape[1]).apply(given)
    assert np.abs(after.probs - given.probs).max() > 0.1
    expected = after.probs @ np.arange(given.probs.shape[1])
    np.testing.assert_allclose(credo.decide(after, value, actions=[0]).expected[:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", COUNTS)
def test_the_expected_count_is_the_mean(name):
    given = predictive(COUNTS[name], outputs(1) / 4, width=16)
    np.testing.assert_allclose(credo.decide(given, value, actions=[0]).expected[:, 0], given.mean, rtol=1e-3)


CORRECTED = {
    "numbers": (REAL["heteroscedastic"], {"factor": 1.7}),
    "counts": ((COUNTS["poisson"], 1), {"factor": 1.7}),
    "classes": (CLASSES["categorical"], {"heat": 1.7, "share": 0.1, "frequencies": [0.5, 0.3, 0.2]}),
}


@pytest.mark.parametrize("name", CORRECTED)
def test_the_expected_outcome_under_a_corrected_likelihood(name):
    (likelihood, columns), settings = CORRECTED[name]
    given = predictive(with_settings(likelihood, settings), outputs(columns) / 4, width=16)
    mean = given.probs @ np.arange(3) if name == "classes" else given.mean
    np.testing.assert_allclose(credo.decide(given, value, actions=[0]).expected[:, 0], mean, rtol=1e-3, atol=1e-4)


def test_several_outputs_keep_their_own_means_and_scales():
    given = predictive(likelihoods.gaussian(noise=0.6), outputs(2), flat=False).rescaled([0.0, 50.0], [1.0, 10.0])
    after = temperature_scaling(given, given.mean + np.array([2.0, 20.0])).apply(given)
    np.testing.assert_allclose(after.mean, given.mean, rtol=1e-5)
    np.testing.assert_allclose(after.affine[1][:, 1] / after.affine[1][:, 0], 10.0)
    np.testing.assert_allclose(suspicion(after), suspicion(given), rtol=1e-6)  # in units of the likelihood
    with pytest.raises(Refusal, match="one outcome in each row"):
        credo.decide(after, value, actions=[0])


def test_conformal_margins_go_around_the_recalibrated_quantiles():
    given = recalibrated("gaussian")
    found = split_conformal(given, given.mean + 30.0)
    low, high = given.interval(0.9)
    np.testing.assert_allclose(found.apply(given), [low - found.margin, high + found.margin], rtol=1e-6)


def test_means_of_draws_are_on_the_scale_of_the_targets():
    given = recalibrated("gaussian")
    means, weights = mean_draws(given)
    np.testing.assert_allclose(weights @ means, given.mean, rtol=1e-5)
    np.testing.assert_allclose(weights @ (means - weights @ means) ** 2, given.epistemic, rtol=1e-3)


def test_shift_and_scale_may_differ_in_each_row():
    """One normal draw in each row: closed forms of its density, entropy and CRPS."""
    shift, scale = 10 * PLACES, np.linspace(0.5, 3, N)[:, None]
    given = predictive(likelihoods.gaussian(noise=0.6), PLACES[None], width=16).rescaled(shift, scale)
    law = stats.norm((shift + scale * PLACES)[:, 0], 0.6 * scale[:, 0])
    y = law.mean() + 0.4
    np.testing.assert_allclose(given.log_prob(y), law.logpdf(y), rtol=1e-4)
    np.testing.assert_allclose(given.entropy(), law.entropy(), atol=1e-4)
    z = (y - law.mean()) / law.std()
    score = law.std() * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert metrics.crps(given, y) == pytest.approx(score.mean(), rel=1e-4)
    assert metrics.energy_score(given, y) == pytest.approx(score.mean(), rel=0.05)
    np.testing.assert_allclose(credo.decide(given, value, actions=[0]).expected[:, 0], law.mean(), rtol=1e-4)


@pytest.mark.parametrize("scale", [-1.0, 0.0, [1.0, np.nan]])
def test_scales_are_above_zero(scale):
    with pytest.raises(InputError, match="numbers above 0"):
        predictive(likelihoods.gaussian(noise=0.6), PLACES[None]).rescaled(0.0, scale)
