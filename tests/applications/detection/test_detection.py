"""Attacks: inside their ball and box, uphill, and equal to closed forms on linear models (H3)."""

import dataclasses

import jax
import numpy as np
import pytest

import credo
from credo.applications import detection
from credo.applications.detection import Attack, attack, centre_of, predictive_loss
from credo.applications.detection.centre import fewer
from credo.applications.detection.scores import CLASS_SCORES, suspicion
from credo.errors import InputError, Refusal

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 4)).astype(np.float32)
LABELS = (X[:, 0] + X[:, 1] > 1).astype(int)


def fitted(method="map", likelihood=None, labels=LABELS, hidden=(), steps=200):
    likelihood = likelihood or credo.likelihoods.bernoulli()
    model = credo.Model(credo.networks.mlp(list(hidden), "tanh"), credo.priors.normal(3.0), likelihood)
    return credo.fit(jax.random.key(1), model, (X, labels), method, steps=steps, batch_size=120)


@pytest.fixture(scope="module")
def logistic():
    return fitted()


@pytest.fixture(scope="module")
def spread():
    """Three classes under a posterior with a spread."""
    labels = LABELS + (X[:, 2] > 0.6)
    return fitted("bayes_by_backprop", credo.likelihoods.categorical(3), labels, (8,), 400), labels


def weights_of(fit):
    return np.asarray(fit.posterior.params["network"]["output"]["kernel"]).ravel()


def test_fgsm_on_a_linear_model_is_the_closed_form(logistic):
    """∇L of a logistic model is (p − y) w, so δ = ε sign((p − y) w)."""
    found = attack(KEY, logistic, X, LABELS, "fgsm:0.2")
    expected = 0.2 * np.where(LABELS == 1, -1, 1)[:, None] * np.sign(weights_of(logistic))
    np.testing.assert_allclose(found.inputs - X, expected, atol=1e-6)
    np.testing.assert_array_equal(found.success, (found.before == LABELS) & (found.after != LABELS))
    assert 0.3 < found.success_rate <= 1


@pytest.mark.parametrize("random_start", [True, False])
def test_l2_pgd_on_a_linear_model_reaches_the_optimum(logistic, random_start):
    """A step of size α = ε on the sphere halves what is left across the gradient: 2^−30 of the start remains."""
    how = Attack("pgd", 0.3, "l2", steps=30, step_size=0.3, random_start=random_start)
    found = attack(KEY, logistic, X, LABELS, how)
    w = weights_of(logistic)
    expected = 0.3 * np.where(LABELS == 1, -1, 1)[:, None] * w / np.linalg.norm(w)
    # The place of largest loss is kept, and a loss in single precision is flat within √1e-7 of its top.
    np.testing.assert_allclose(found.inputs - X, expected, atol=1e-3)
    np.testing.assert_allclose(found.l2, 0.3, rtol=1e-4)


def test_linf_pgd_on_a_linear_model_is_fgsm(logistic):
    one, many = (attack(KEY, logistic, X, LABELS, how).inputs for how in ("fgsm:0.1", "pgd:0.1"))
    np.testing.assert_allclose(many, one, atol=1e-6)


@pytest.mark.parametrize("kind", ["fgsm", "pgd", "noise"])
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 2.0])
def test_attacks_stay_in_ball_and_box(spread, epsilon, norm, kind):
    fit, labels = spread
    how = Attack(kind, epsilon, norm, steps=5, box=(0.0, 1.0))
    found = attack(KEY, fit, X, labels, how, num_samples=8)
    assert found.inputs.min() >= 0
    assert found.inputs.max() <= 1
    assert (getattr(found, norm) <= epsilon * (1 + 1e-4) + 1e-6).all()
    np.testing.assert_allclose(found.linf, np.abs(found.inputs - X).max(1))


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_the_loss_never_falls_and_pgd_is_no_weaker_than_nothing(spread, norm):
    fit, labels = spread
    found = attack(KEY, fit, X, labels, Attack("pgd", 0.2, norm, steps=5), num_samples=8)
    key_draws = jax.random.split(jax.random.split(KEY)[0])[0]  # the attacker's own draws
    before, after = (
        np.asarray(predictive_loss(key_draws, fit.posterior, fit.model, x, labels, 8)) for x in (X, found.inputs)
    )
    assert (after >= before - 1e-5).all()
    assert after.mean() > before.mean() + 0.1
    control = attack(KEY, fit, X, labels, Attack("noise", 0.2, norm), num_samples=8)
    assert found.success_rate > control.success_rate


def test_the_loss_is_that_of_the_predictive(spread):
    fit, labels = spread
    found = predictive_loss(KEY, fit.posterior, fit.model, X, labels, 16)
    expected = -credo.predict(KEY, fit, X, num_samples=16).log_prob(labels)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_aimed_attacks_reach_their_class(spread):
    fit, labels = spread
    found = attack(KEY, fit, X, labels, "pgd:0.5", aim=2, num_samples=8)
    assert (found.open == (found.before != 2)).all()
    assert (found.success == (found.open & (found.after == 2))).all()
    assert found.success_rate > 0.5


def test_rows_in_chunks_are_attacked_alike(logistic):
    whole, parts = (attack(KEY, logistic, X, LABELS, "fgsm:0.1", rows_at_once=n).inputs for n in (500, 50))
    np.testing.assert_allclose(whole, parts, atol=1e-6)


def test_fresh_draws_and_the_mean(spread):
    fit, labels = spread
    fixed, fresh, mean = (
        attack(KEY, fit, X, labels, Attack("pgd", 0.2, steps=5, **more), num_samples=4)
        for more in ({}, {"draws": "fresh"}, {"through": "mean"})
    )
    assert not np.array_equal(fixed.inputs, fresh.inputs)
    assert not np.array_equal(fixed.inputs, mean.inputs)
    assert min(found.success_rate for found in (fixed, fresh, mean)) > 0.1


def test_centres(spread):
    fit, _ = spread
    centre = centre_of(fit.posterior)
    assert centre.num_draws(None) == (1, 1)
    np.testing.assert_array_equal(
        np.asarray(centre.params["network"]["output"]["kernel"])[0, 0],
        np.asarray(fit.posterior.mean["network"]["output"]["kernel"])[0],
    )
    chain = credo.posteriors.Samples({"network": {"kernel": np.arange(6.0).reshape(1, 6)}}, {})
    with pytest.raises(Refusal, match="hidden units"):
        centre_of(chain)
    with pytest.raises(Refusal, match="no mean"):
        centre_of(object())
    one, two = (fewer(jax.random.key(i), chain, 3).params["network"]["kernel"] for i in range(2))
    assert one.shape == (1, 3)
    assert set(np.ravel(one)) != set(np.ravel(two))
    assert fewer(KEY, chain, None) is chain
    weighted = dataclasses.replace(chain, weights=np.log([[1e-12, 1e-12, 1e-12, 1e-12, 1.0, 1e-12]]))
    taken = fewer(KEY, weighted, 3)
    np.testing.assert_array_equal(taken.params["network"]["kernel"], [[4.0, 4.0, 4.0]])
    np.testing.assert_allclose(taken.chosen_weights(None), np.log([[1 / 3] * 3]), rtol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
    "method",
    ["deep_ensemble", "laplace", "last_layer", "sghmc", "swag", "mc_dropout",
     credo.replicate(credo.methods.BayesByBackprop(), 2)],
)  # fmt: skip
def test_every_kind_of_posterior_can_be_attacked(method):
    likelihood = credo.likelihoods.categorical(2)
    network = credo.networks.mlp([8], "tanh", dropout=0.2 if method == "mc_dropout" else 0.0)
    model = credo.Model(network, credo.priors.normal(1.0), likelihood)
    fit = credo.fit(KEY, model, (X, LABELS), method, steps=300)
    found = attack(KEY, fit, X, LABELS, Attack("pgd", 0.3, steps=5), num_samples=8)
    assert found.success_rate > 0.2
    if method == "sghmc":
        with pytest.raises(Refusal, match="hidden units"):
            attack(KEY, fit, X, LABELS, Attack(through="mean"))
    else:
        assert attack(KEY, fit, X, LABELS, Attack("pgd", 0.3, steps=5, through="mean")).success.any()


@pytest.mark.full
def test_a_posterior_without_gradients_is_refused():
    network = credo.networks.mlp([8], "erf")
    model = credo.Model(network, credo.priors.fan_in_normal(2.0), credo.likelihoods.bernoulli())
    fit = credo.fit(KEY, model, (X, LABELS), "infinite_width")
    with pytest.raises(Refusal, match="no gradients"):
        attack(KEY, fit, X, LABELS, Attack("pgd", 0.3, steps=5), num_samples=8)


def test_scores_are_those_of_the_predictive(spread):
    predictive = credo.predict(KEY, spread[0], X, num_samples=16)
    values = {name: suspicion(predictive, name) for name in CLASS_SCORES}
    np.testing.assert_allclose(
        values["entropy"], values["conditional_entropy"] + values["mutual_information"], atol=1e-5
    )
    np.testing.assert_allclose(values["max_probability"], 1 - predictive.probs.max(1), atol=1e-6)
    np.testing.assert_array_equal(suspicion(predictive), values["entropy"])
    with pytest.raises(InputError, match="Unknown score 'variance' for classes"):
        suspicion(predictive, "variance")


def test_bad_attacks_get_a_sentence(logistic):
    for bad in ({"kind": "cw"}, {"norm": "l1"}, {"epsilon": -1}, {"steps": 0}, {"box": (1, 0)}, {"draws": "some"}):
        with pytest.raises(InputError):
            Attack(**bad)
    for text in ("fgsm", "fgsm:big", "fgsm:1:l2:3"):
        with pytest.raises(InputError, match="kind:size"):
            Attack.parse(text)
    with pytest.raises(InputError, match="outside of the box"):
        attack(KEY, logistic, X, LABELS, Attack(box=(0.4, 0.6)))
    with pytest.raises(InputError, match="Expected 120 labels"):
        attack(KEY, logistic, X, LABELS[:5])
    with pytest.raises(InputError, match="one array"):
        attack(KEY, logistic, {"x": X}, LABELS)
    numbers = dataclasses.replace(
        logistic, model=dataclasses.replace(logistic.model, likelihood=credo.likelihoods.gaussian(0.1))
    )
    with pytest.raises(Refusal, match="real targets"):
        attack(KEY, numbers, X, LABELS)
    assert "fresh draws" in str(Attack(draws="fresh"))
    assert "l∞ ≤ 0.1" in str(detection.attack(KEY, logistic, X, LABELS, "fgsm:0.1"))
