"""Temperatures that are known are found again; what comes out is a predictive that says it was corrected."""

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from credo import likelihoods
from credo.errors import InputError, Refusal
from credo.evaluation import metrics
from credo.evaluation.recalibration import Recalibrated, temperature_scaling
from predictives import predictive

N, C = 2000, 4


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def drawn_classes(rng, probs):
    return (probs.cumsum(1) < rng.uniform(size=(len(probs), 1))).sum(1)


def mixture_of_classes(rng, draws=3):
    p = predictive(likelihoods.categorical(C), 2 * rng.normal(size=(1, N, C)) + rng.normal(size=(draws, N, C)))
    return p, np.asarray(p.log_probs, np.float64)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_a_known_temperature_is_found(rng, temperature):
    """Five standard errors by the Fisher information in 1/T: false alarms below 10⁻⁶."""
    p, log_probs = mixture_of_classes(rng)
    truth = scipy.special.softmax(log_probs / temperature, 1)
    y = drawn_classes(rng, truth)
    mean = (truth * log_probs).sum(1, keepdims=True)
    information = (truth * (log_probs - mean) ** 2).sum()
    found = temperature_scaling(p, y)
    assert abs(1 / found.factor - 1 / temperature) < 5 / np.sqrt(information)

    def loss(t):
        return -scipy.special.log_softmax(log_probs / t, 1)[np.arange(N), y].sum()

    best = scipy.optimize.minimize_scalar(loss, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-8})
    assert found.factor == pytest.approx(best.x, rel=1e-4)
    after = found.apply(p)
    np.testing.assert_allclose(after.probs, scipy.special.softmax(log_probs / found.factor, 1), rtol=1e-3, atol=1e-6)
    assert metrics.log_likelihood(after, y) >= metrics.log_likelihood(p, y) - 1e-6
    assert metrics.accuracy(after, y) == metrics.accuracy(p, y)
    assert after.sample(jax.random.key(0), 2).shape == (2, N)


def test_weights_are_numbers_of_rows(rng):
    p, log_probs = mixture_of_classes(rng)
    y, weights = drawn_classes(rng, np.exp(log_probs)), rng.integers(0, 3, N)
    again = np.repeat(np.arange(N), weights)
    repeated = predictive(likelihoods.categorical(C), log_probs[None, again])
    assert temperature_scaling(p, y, weights).factor == pytest.approx(
        temperature_scaling(repeated, y[again]).factor, rel=1e-4
    )


def test_where_the_likelihood_has_no_top_the_note_says_so(rng):
    p, log_probs = mixture_of_classes(rng)
    always = temperature_scaling(p, log_probs.argmax(1))
    never = temperature_scaling(p, log_probs.argmin(1))
    assert (always.factor, never.factor) == (0.01, 100.0)
    assert "do not determine it" in always.note
    assert "do not determine it" in never.note
    assert metrics.accuracy(always.apply(p), log_probs.argmax(1)) == 1.0


REAL = {
    "mixture of normals": lambda rng: (likelihoods.gaussian(noise=0.6), rng.normal(size=(5, N, 1))),
    "Student-t": lambda rng: (likelihoods.student_t(df=4, noise=0.5), rng.normal(size=(2, N, 1))),
    "heteroscedastic": lambda rng: (likelihoods.heteroscedastic(), rng.normal(size=(3, N, 2))),
    "two outputs": lambda rng: (likelihoods.gaussian(noise=0.6), rng.normal(size=(3, N, 2))),
}


@pytest.mark.parametrize("case", REAL)
def test_a_known_factor_of_the_spread_is_found(rng, case):
    """Draws of y stretched by s. The error of s is at most about 1/√N; six of those: false alarms below 10⁻⁶."""
    likelihood, outputs = REAL[case](rng)
    p = predictive(likelihood, outputs, flat=case != "two outputs").rescaled(100.0, 10.0)
    # Each row needs its own draw of θ: one shared draw would not be a sample of the mixture over rows.
    y = np.take_along_axis(p.sample(jax.random.key(1), 64), rng.integers(0, 64, (1, N, *[1] * (p.mean.ndim - 1))), 0)[0]
    stretched = p.mean + 1.8 * (y - p.mean)
    found = temperature_scaling(p, stretched)
    assert abs(found.factor / 1.8 - 1) < 6 / np.sqrt(N)
    after = found.apply(p)
    np.testing.assert_allclose(after.mean, p.mean, rtol=1e-5)
    np.testing.assert_allclose(after.variance, found.factor**2 * p.variance, rtol=1e-4)
    if case != "Student-t":  # whose quantiles are slow
        assert metrics.coverage(after, stretched) == pytest.approx(0.9, abs=0.05)
        assert metrics.coverage(p, stretched) < 0.8
    assert metrics.log_likelihood(after, stretched) > metrics.log_likelihood(p, stretched)
    # The density is that of the stretched variable: p₀(m + (y − m)/s)/s, for each output.
    outputs = p.mean[0].size
    before = p.log_prob(p.mean + (stretched - p.mean) / found.factor) - outputs * np.log(found.factor)
    np.testing.assert_allclose(after.log_prob(stretched), before, rtol=1e-3, atol=1e-3)


def test_it_says_that_it_is_recalibrated(rng):
    p, log_probs = mixture_of_classes(rng)
    found = temperature_scaling(p, drawn_classes(rng, np.exp(log_probs)))
    after = found.apply(p)
    assert isinstance(after, Recalibrated)
    assert "Recalibrated" in repr(after)
    assert "learned by maximum likelihood on 2000 rows" in after.note
    assert "factor=" in repr(found)
    for ask in (lambda: after.epistemic, lambda: after.aleatoric, lambda: after.probs_std, after.mutual_information):
        with pytest.raises(Refusal, match="not of its parts"):
            ask()
    real = predictive(likelihoods.gaussian(noise=0.6), rng.normal(size=(2, 50, 1)))
    again = temperature_scaling(real, real.mean + 0.1).apply(real).rescaled(0.0, 2.0)
    assert "Recalibrated" in repr(again)
    with pytest.raises(InputError, match="learned on classes targets with 4"):
        found.apply(real)


def test_counts_are_refused_with_the_reason():
    with pytest.raises(Refusal, match="not a whole number"):
        temperature_scaling(predictive(likelihoods.poisson(), np.zeros((1, 5, 1))), np.ones(5))
