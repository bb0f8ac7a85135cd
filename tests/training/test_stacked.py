"""A stack is the weighted mixture of its parts, whatever networks, noise and posteriors these have."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy import integrate

import credo
import spilled
from credo.core.mixture import flatten, log_prob
from credo.errors import InputError, NoDensity, Refusal
from credo.likelihoods import Mixed, Overdispersed, Stretched, Tempered

KEY = jax.random.key(7)
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (80, 2)).astype(np.float32)
Y = (np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * RNG.standard_normal(80)).astype(np.float32)
LABELS = (X[:, 0] + 0.5 * RNG.standard_normal(80) > 0).astype(int)
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0] + 1))
AT, SEEN = X[:12], Y[:12]
WEIGHTS = np.array([0.15, 0.5, 0.35])


def fitted(seed, layers, likelihood, method, targets, steps=100, prior=None):
    model = credo.Model(credo.networks.mlp(layers), prior or credo.priors.normal(), likelihood)
    return credo.fit(jax.random.key(seed), model, (X, targets), method, steps=steps)


@pytest.fixture(scope="module")
def numbers():
    """A linear model, an ensemble with noise of its own at each input, and a process."""
    wide = credo.priors.fan_in_normal(1.5)
    return [
        fitted(0, [], credo.likelihoods.gaussian(), "map", Y),
        fitted(1, [8], credo.likelihoods.heteroscedastic_t(), credo.methods.DeepEnsemble(size=3), Y),
        fitted(2, [20], credo.likelihoods.gaussian(0.2), "infinite_width", Y, None, wide),
    ]


@pytest.fixture(scope="module")
def stack(numbers):
    return credo.stacked(numbers, WEIGHTS)


@pytest.fixture(scope="module")
def classes():
    return [
        fitted(3, [6], credo.likelihoods.bernoulli(), "laplace", LABELS),
        fitted(4, [8], credo.likelihoods.categorical(2), credo.methods.DeepEnsemble(size=3), LABELS),
    ]


def parts_of(fits, stack, inputs=AT):
    """What each part predicts with the key and the number of draws that it has inside of the stack."""
    keys = [KEY] if len(fits) == 1 else jax.random.split(KEY, len(fits))
    asked = stack.posterior.asked(None)
    return [credo.predict(k, f, inputs, num_samples=n) for k, f, n in zip(keys, fits, asked)]


def test_densities_are_the_weighted_mixture(numbers, stack):
    found, parts = credo.predict(KEY, stack, AT), parts_of(numbers, stack)
    density = sum(w * np.exp(p.log_prob(SEEN)) for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.log_prob(SEEN), np.log(density), atol=1e-5)
    below = sum(w * p.cdf(SEEN) for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.cdf(SEEN), below, atol=1e-5)
    mean = sum(w * p.mean for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.mean, mean, atol=1e-5)
    noise = sum(w * p.aleatoric for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.aleatoric, noise, rtol=1e-5)
    spread = sum(w * (p.epistemic + (p.mean - mean) ** 2) for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.epistemic, spread, rtol=1e-4)
    for level in (0.05, 0.5, 0.9):
        at = found.quantile(level)
        np.testing.assert_allclose(sum(w * p.cdf(at) for w, p in zip(WEIGHTS, parts)), level, atol=2e-5)


def test_entropies_are_those_of_the_mixture(numbers, stack):
    """By quadrature with SciPy, at one input."""
    at = AT[:1]
    found, parts = credo.predict(KEY, stack, at), parts_of(numbers, stack, at)

    def plogp(y):
        density = sum(w * np.exp(p.log_prob(np.array([y]))[0]) for w, p in zip(WEIGHTS, parts))
        return -density * np.log(max(density, 1e-300))

    low, high = found.mean[0] - 8 * found.std[0], found.mean[0] + 8 * found.std[0]
    truth = integrate.simpson([plogp(y) for y in np.linspace(low, high, 801)], dx=(high - low) / 800)
    assert found.entropy()[0] == pytest.approx(truth, abs=2e-3)
    noise = sum(w * p.conditional_entropy()[0] for w, p in zip(WEIGHTS, parts))
    assert found.conditional_entropy()[0] == pytest.approx(noise, abs=2e-3)


def test_classes_are_the_weighted_mixture(classes):
    weights = [0.4, 0.6]
    stack = credo.stacked(classes, weights)
    found, parts = credo.predict(KEY, stack, AT), parts_of(classes, stack)
    probs = sum(w * p.probs for w, p in zip(weights, parts))
    np.testing.assert_allclose(found.probs, probs, atol=1e-5)
    np.testing.assert_allclose(found.log_prob(LABELS[:12]), np.log(probs[np.arange(12), LABELS[:12]]), atol=1e-5)
    np.testing.assert_allclose(found.entropy(), -(probs * np.log(probs)).sum(1), atol=1e-5)
    noise = sum(w * p.aleatoric for w, p in zip(weights, parts))
    np.testing.assert_allclose(found.aleatoric, noise, atol=1e-5)
    assert stack.model.likelihood.num_outputs(LABELS) == 2
    assert set(np.unique(found.sample(KEY, 5))) <= {0, 1}


def corrected(fit, change):
    return dataclasses.replace(fit, model=dataclasses.replace(fit.model, likelihood=change(fit.model.likelihood)))


def test_corrected_noise_of_a_part_stays_its_own(numbers, classes):
    wider = corrected(numbers[0], lambda x: Stretched(x, 1.7))
    stack = credo.stacked([numbers[0], wider], [0.5, 0.5])
    found, parts = credo.predict(KEY, stack, AT), parts_of([numbers[0], wider], stack)
    np.testing.assert_allclose(found.aleatoric, (parts[0].aleatoric + parts[1].aleatoric) / 2, rtol=1e-5)
    assert parts[1].aleatoric[0] == pytest.approx(1.7**2 * parts[0].aleatoric[0], rel=1e-5)
    cooler = [corrected(classes[0], lambda x: Tempered(x, 2.0, 0.1, (-0.7, -0.7))), classes[1]]
    stack = credo.stacked(cooler, [0.5, 0.5])
    probs = sum(0.5 * p.probs for p in parts_of(cooler, stack))
    np.testing.assert_allclose(credo.predict(KEY, stack, AT).probs, probs, atol=1e-5)


def test_counts_are_the_weighted_mixture():
    plain = fitted(5, [], credo.likelihoods.poisson(), "map", COUNTS)
    fits = [plain, corrected(plain, lambda x: Overdispersed(x, 1.5)),
            fitted(6, [4], credo.likelihoods.zero_inflated_poisson(), "map", COUNTS)]  # fmt: skip
    stack = credo.stacked(fits, WEIGHTS)
    found, parts = credo.predict(KEY, stack, AT), parts_of(fits, stack)
    y = COUNTS[:12]
    density = sum(w * np.exp(p.log_prob(y)) for w, p in zip(WEIGHTS, parts))
    np.testing.assert_allclose(found.log_prob(y), np.log(density), atol=1e-5)
    assert np.isfinite(found.entropy()).all()
    low = found.quantile(0.3)
    below = [sum(w * p.cdf(q) for w, p in zip(WEIGHTS, parts)) for q in (low, np.maximum(low - 1, 0))]
    assert (below[0] >= 0.3 - 1e-5).all()
    assert ((below[1] < 0.3 + 1e-5) | (low == 0)).all()


def test_a_stack_of_one_is_that_one(numbers, classes):
    for fit, y in [*((f, SEEN) for f in numbers), (classes[0], LABELS[:12])]:
        stack = credo.stacked([fit], [3.0])
        assert stack.model.likelihood == fit.model.likelihood
        one, own = credo.predict(KEY, stack, AT), credo.predict(KEY, fit, AT)
        np.testing.assert_array_equal(one.mean, own.mean)
        np.testing.assert_array_equal(one.log_prob(y), own.log_prob(y))


def test_equal_likelihoods_need_no_mixture_of_them(numbers):
    fits = [numbers[0], fitted(8, [5], credo.likelihoods.gaussian(), "map", Y)]
    stack = credo.stacked(fits, [1, 1])
    assert stack.posterior.kinds == ()
    assert not isinstance(stack.model.likelihood, Mixed)
    parts = parts_of(fits, stack)
    np.testing.assert_allclose(credo.predict(KEY, stack, AT).mean, (parts[0].mean + parts[1].mean) / 2, atol=1e-6)


def test_weights_of_zero_and_padding_never_give_nan(numbers, stack):
    kept = credo.stacked(numbers, [0.5, 0.0, 0.5])
    assert len(kept.posterior.parts) == 2
    silent = dataclasses.replace(stack.posterior, log_shares=np.array([-np.inf, 0.0, -np.inf], np.float32))
    found = credo.predict(KEY, dataclasses.replace(stack, posterior=silent), AT)
    alone = credo.predict(jax.random.split(KEY, 3)[1], numbers[1], AT)
    np.testing.assert_allclose(found.log_prob(SEEN), alone.log_prob(SEEN), atol=1e-5)
    assert np.isfinite(found.quantile(0.9)).all()
    assert np.isfinite(found.entropy()).all()


def test_gradients_of_a_stack_are_finite(numbers):
    """Where a part says nothing of a draw, its own gradient may not spoil the others'."""
    stack = credo.stacked(numbers[:2], [1e-6, 1.0])

    def density(x):
        draws = flatten(stack.posterior.outputs(KEY, stack.model, x, None))
        return log_prob(stack.model.likelihood, draws, SEEN[:, None]).sum()

    assert np.isfinite(jax.grad(density)(1e6 * AT)).all()


def test_draws_are_shared_by_weight(numbers):
    """As many sixteenths of its own draws as a part weighs, rounded up; members that are points are all there."""
    chains = fitted(9, [], credo.likelihoods.gaussian(), credo.methods.HMC(chains=2, warmup=30), Y, 80)
    stack = credo.stacked([chains, *numbers[1:]], [0.74, 0.25, 0.01])
    assert stack.posterior.asked(None) == [120, 1, 13]
    assert stack.posterior.num_draws(None) == (1, 120 + 3 + 13)
    assert stack.posterior.num_draws(20)[1] <= 30
    draws = stack.posterior.outputs(KEY, stack.model, AT, None)
    assert draws.values.shape == (1, 136, 12, 2)
    assert float(jax.nn.logsumexp(draws.log_weights)) == pytest.approx(0, abs=1e-6)
    found = stack.diagnostics
    assert found.kind == "stack"
    assert found.space("function")[0].name == "hmc: function values"
    assert "R-hat" in stack.summary()


def test_a_fit_of_parts_says_what_it_is(numbers, stack):
    assert stack.config["method"] == "stacked"
    assert [part["name"] for part in stack.config["parts"]] == ["map", "deep_ensemble", "infinite_width"]
    assert sum(part["weight"] for part in stack.config["parts"]) == pytest.approx(1)
    assert stack.notes[0] == "A stack: 50 % deep_ensemble, 35 % infinite_width, 15 % map."
    assert stack.timing["steps"] == sum(fit.timing["steps"] for fit in numbers)
    twice = credo.stacked([numbers[0], numbers[0]], [1, 1])
    assert [part["name"] for part in twice.config["parts"]] == ["map 1", "map 2"]
    assert "2 parts" in repr(twice)


def test_alarms_name_the_part_and_faint_parts_are_silent(numbers):
    alarm = credo.diagnostics.Alarm("divergences", "Chains disagree", "run more")
    loud = dataclasses.replace(numbers[0])
    loud.rings, quiet = (alarm,), dataclasses.replace(numbers[1])
    quiet.rings = ()
    heard = credo.stacked([loud, quiet], [0.1, 0.9]).status.alarms
    assert heard == ("map (10 % of the stack): Chains disagree; run more.",)
    assert credo.stacked([loud, quiet], [0.009, 0.991]).status.alarms == ()


def test_saved_and_loaded_predictions_are_equal(stack, tmp_path):
    stack.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    one, other = (credo.predict(KEY, fit, AT) for fit in (stack, loaded))
    for name in ("mean", "aleatoric", "epistemic"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.log_prob(SEEN), other.log_prob(SEEN))
    assert loaded.summary() == stack.summary()
    with pytest.raises(InputError, match="no chains under way: extend the fits"):
        loaded.extend(5)


def test_figures_and_arviz_of_a_stack(stack):
    stack.plot()
    stack.plot(AT, SEEN)
    assert "posterior_predictive" in list(getattr(stack.to_arviz(AT, SEEN), "children", stack.to_arviz(AT, SEEN)))


def test_modes_go_to_the_parts_that_have_them(classes):
    stack = credo.stacked(classes, [0.5, 0.5])
    sampled = credo.predict(KEY, stack, AT, mode="sampled")
    probit = credo.predict(KEY, stack, AT, mode="probit")
    assert np.abs(sampled.probs - probit.probs).max() > 0
    with pytest.raises(Refusal, match="No part of this stack predicts with mode='linearised'"):
        credo.predict(KEY, credo.stacked(classes[1:], [1]), AT, mode="linearised")


def test_draws_of_several_blocks_are_one_function(stack):
    whole = credo.predict(KEY, stack, AT).sample(KEY, 3)
    assert whole.shape == (3, 12)
    tied = stack.posterior.joint_at(iter([AT[:6], AT[6:]]))
    both = [tied.outputs(KEY, stack.model, rows, None).values for rows in (AT[:6], AT[6:])]
    together = tied.outputs(KEY, stack.model, AT, None).values
    np.testing.assert_allclose(np.concatenate(both, 2), together, atol=2e-3)


def test_what_a_stack_has_not_is_one_sentence(numbers, classes, stack):
    with pytest.raises(InputError, match="no chains under way: extend the fits"):
        stack.extend(10)
    with pytest.raises(InputError, match="no single point"):
        stack.point()
    with pytest.raises(Refusal, match="no weights of its own"):
        stack.posterior.sample(KEY, 1)
    with pytest.raises(NoDensity, match="no density over weights"):
        stack.posterior.log_prob({})
    with pytest.raises(Refusal, match="not fitted itself"):
        credo.fit(KEY, stack.model, (X, Y), "map", steps=2)
    with pytest.raises(InputError, match="targets that are real, another classes"):
        credo.stacked([numbers[0], classes[0]], [1, 1])
    with pytest.raises(InputError, match="as many weights"):
        credo.stacked(numbers, [1, 2])
    with pytest.raises(InputError, match="as many weights"):
        credo.stacked(numbers[:1], [0])
    with pytest.raises(InputError, match="at least one fit"):
        credo.stacked([], [])
    three = fitted(4, [], credo.likelihoods.categorical(3), "map", LABELS)
    with pytest.raises(InputError, match="one has 2 columns, another 3"):
        credo.stacked([classes[0], three], [1, 1])


def test_draws_on_disk_are_read_and_thinned_to_what_memory_holds(monkeypatch):
    """A stack of the fit whose draws lie on disk is that of the same fit in memory; with less room, fewer draws."""
    in_memory, on_disk = spilled.fitted(2**28), spilled.fitted(3000)
    assert on_disk.posterior.on_disk
    assert not in_memory.posterior.on_disk
    one, other = (credo.predict(KEY, credo.stacked([fit], [1]), spilled.X) for fit in (in_memory, on_disk))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.log_prob(spilled.Y), other.log_prob(spilled.Y))
    monkeypatch.setattr("credo.training.stacked.PIECE_BYTES", 10 * 3 * on_disk.posterior.draw_bytes)
    less = credo.stacked([on_disk, in_memory], [1, 1])
    assert less.posterior.parts[0].posterior.num_draws(None) == (3, 10)
    assert less.notes[1] == "hmc 1: 30 of its 180 draws, which lie on disk, are in the stack."
    heavy = np.tile(np.where(np.arange(spilled.STEPS) == 7, 50.0, 0.0).astype(np.float32), (3, 1))
    uneven = [
        dataclasses.replace(fit, posterior=dataclasses.replace(fit.posterior, weights=heavy))
        for fit in (in_memory, on_disk)
    ]
    for fit in uneven:
        draws = credo.stacked([fit], [1]).posterior.outputs(KEY, fit.model, spilled.X, None)
        assert float(jax.nn.logsumexp(draws.log_weights)) == pytest.approx(0, abs=1e-5)
