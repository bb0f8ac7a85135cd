"""Sequential Monte Carlo: the evidence, modes in their shares, and honesty about the way (D2)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import credo
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.errors import InputError, Refusal
from credo.evaluation import audit
from credo.evaluation.audit.conjugate import Conjugate
from credo.methods.population.importance_sampling import ImportanceSampling
from credo.methods.population.prior_draws import check_drawable
from credo.methods.population.smc import SMC
from credo.methods.population.smc_schedule import Schedule

LINE = audit.problems()["linear"]
EXACT = Conjugate(LINE.inputs, LINE.targets, 0.5, 1.0)
BIMODAL = audit.problems()["bimodal"]
METHOD = SMC(num_steps=5, moves=1)


def bimodal_log_evidence(temperature=1.0):
    """log ∫ (N(w; 0, 1.5²) Π_n N(y_n; w² x_n, 1))^{1/T} dw by quadrature."""
    weight, step = np.linspace(-6, 6, 20_001, retstep=True)
    errors = BIMODAL.targets.astype(np.float64) - weight[:, None] ** 2 * BIMODAL.inputs[:, 0]
    log_joint = (-0.5 * errors**2 - 0.5 * np.log(2 * np.pi)).sum(1)
    log_joint += -0.5 * (weight / 1.5) ** 2 - np.log(1.5 * np.sqrt(2 * np.pi))
    return float(special.logsumexp(log_joint / temperature) + np.log(step))


@pytest.fixture(scope="module")
def line():
    return credo.fit(jax.random.key(0), LINE.model, LINE.data, METHOD, steps=60)


@pytest.fixture(scope="module")
def bimodal():
    return credo.fit(jax.random.key(0), BIMODAL.model, BIMODAL.data, METHOD, steps=60)


def test_evidence_of_the_conjugate_model(line):
    """Within 0.1 nats. Its standard error here is about 0.03: a false alarm in a thousand keys."""
    assert line.posterior.log_evidence.shape == (4,)
    assert line.posterior.mean_log_evidence == pytest.approx(EXACT.log_evidence(), abs=0.1)
    assert any("log evidence" in note for note in line.notes)
    assert line.status.alarms == ()
    rises = np.diff(line.trace["exponent"], axis=1)
    assert (rises >= 0).all()
    assert (line.trace["exponent"][:, -1] == 1).all()


def test_draws_are_those_of_the_posterior(line):
    """Means within 5 errors of 4,000 draws; spreads within 10 %."""
    layer = line.posterior.params["network"]["output"]
    theta = np.concatenate([np.asarray(layer["bias"]), np.asarray(layer["kernel"])[..., 0, :]], -1).reshape(-1, 4)
    std = np.sqrt(np.diag(EXACT.covariance))
    np.testing.assert_allclose((theta.mean(0) - EXACT.mean) / std, 0, atol=0.1)
    np.testing.assert_allclose(np.cov(theta.T), EXACT.covariance, atol=0.1 * np.outer(std, std).max())


def test_modes_have_their_shares_and_the_evidence_counts_both(bimodal):
    """Half of the particles at each sign of w; log evidence by quadrature within 0.1; Laplace misses log 2 of it, and
    importance sampling from the prior agrees."""
    weight = np.asarray(bimodal.posterior.params["network"]["weight"]).ravel()
    assert (weight > 0).mean() == pytest.approx(0.5, abs=0.08)
    exact = bimodal_log_evidence()
    assert bimodal.posterior.mean_log_evidence == pytest.approx(exact, abs=0.1)
    prior = credo.fit(jax.random.key(1), BIMODAL.model, BIMODAL.data, ImportanceSampling("prior"), steps=4000)
    assert prior.posterior.mean_log_evidence == pytest.approx(exact, abs=0.1)
    assert float(prior.posterior.pareto_k) < 0.7


FEW = np.linspace(-1.5, 1.5, 6, dtype=np.float32)[:, None]


@functools.cache
def few_particles(runs):
    """Ẑ/Z of many runs with 6 particles: of the adaptive first run, and of the second along its schedule."""
    targets = np.array([-1.1, -0.6, 0.6, 0.4, 1.9, 1.7], np.float32)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.5))
    batch = Batch(FEW, targets[:, None], np.ones(6, np.float32), np.float32(6))
    method = SMC(particles=6, chains=1, num_steps=3, moves=1, repeat=True)
    variables = model.init(jax.random.key(0), batch)

    def phase(name, state, key):
        step = lambda s, k: (method.step(k, model, Phase(name, 30, "full"), s, batch)[0], None)  # noqa: E731
        return jax.lax.scan(step, state, jax.random.split(key, 30))[0]

    def run(key):
        key_init, key_first, key_second = jax.random.split(key, 3)
        first = phase("temper", method.init(key_init, model, variables, batch), key_first)
        second = phase("repeat", first, key_second)
        return [(s.log_evidence, s.exponent) for s in (first, second)]

    found = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(1), runs))
    assert all((np.asarray(exponent) == 1).all() for _, exponent in found)
    exact = Conjugate(FEW, targets, 0.5, 1.0).log_evidence()
    return [np.exp(np.asarray(log_evidence, np.float64) - exact) for log_evidence, _ in found]


def test_evidence_along_a_fixed_schedule_has_no_bias():
    """E[Ẑ]/Z over 4,000 runs of 6 particles: |z| below the bound for a rate of 1e-4; the adaptive one is above."""
    adaptive, fixed = few_particles(4000)
    z = [(ratio.mean() - 1) / (ratio.std() / np.sqrt(len(ratio))) for ratio in (adaptive, fixed)]
    assert abs(z[1]) < stats.norm.isf(1e-4 / 2), (fixed.mean(), z)
    assert z[0] > stats.norm.isf(1e-4 / 2), (adaptive.mean(), z)


@pytest.mark.full
def test_a_second_run_is_a_fit_like_any_other():
    """Draws and evidence are those of the second run, which takes as many stages as the first."""
    fit = credo.fit(jax.random.key(0), LINE.model, LINE.data, dataclasses.replace(METHOD, repeat=True), steps=60)
    assert fit.posterior.mean_log_evidence == pytest.approx(EXACT.log_evidence(), abs=0.1)
    first, second = (np.asarray(fit.phases[name]["exponent"]) for name in ("temper", "repeat"))
    np.testing.assert_array_equal(first, second)
    assert (fit.phases["temper"]["log_evidence"][:, -1] != fit.posterior.log_evidence).all()
    assert fit.status.alarms == ()


def test_a_schedule_that_is_too_large_is_refused():
    with pytest.raises(InputError, match='take mass="diagonal"'):
        Schedule.empty(np.zeros(()), np.zeros((1000, 1000)))


@pytest.mark.full
def test_laplace_sees_one_mode():
    network = dataclasses.replace(BIMODAL.model)
    found = credo.fit(jax.random.key(0), network, BIMODAL.data, credo.methods.Laplace(structure="diagonal"))
    gap = bimodal_log_evidence() - float(found.posterior.log_evidence[0])
    assert gap == pytest.approx(np.log(2), abs=0.35)


def test_too_few_steps_are_said_loudly(bimodal):
    fit = credo.fit(jax.random.key(0), BIMODAL.model, BIMODAL.data, METHOD, steps=1)
    assert any("DID NOT REACH" in note for note in fit.notes)
    assert fit.diagnostics.alarms[0].id == "unfinished"
    assert "DID NOT REACH" in str(fit.status)
    assert fit.trace["exponent"].max() < 1


def test_evidence_is_saved(line, tmp_path):
    line.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    np.testing.assert_array_equal(again.posterior.log_evidence, line.posterior.log_evidence)
    first, second = (credo.predict(jax.random.key(1), f, LINE.places[:3]).std for f in (line, again))
    np.testing.assert_array_equal(first, second)


def test_settings_and_priors_are_checked():
    model = LINE.model
    wrong = [
        ({"kernel": "gibbs"}, "kernel must be"), ({"mass": "full"}, "kernel must be"),
        ({"particles": 1}, "two particles"), ({"ess": 1.5}, "share of the particles"),
    ]  # fmt: skip
    for options, match in wrong:
        with pytest.raises(InputError, match=match):
            SMC(**options).prepare(model)
    learned = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian())
    assert any("default prior" in note for note in SMC().prepare(learned)[1])


@pytest.mark.parametrize(("prior", "fine"), [(credo.priors.normal(), True), (credo.priors.hierarchical(), False)])
def test_held_weights_must_leave_the_others_alone(prior, fine):
    """Under a shared scale the free weights depend on the held ones: the prior cannot be drawn from given those."""
    model = credo.Model(credo.networks.mlp([3]), prior, credo.likelihoods.gaussian(noise=0.5))
    x = np.zeros((4, 2), np.float32)
    batch = credo.core.batch.Batch(x, x[:, :1], np.ones(4, np.float32), 4.0)
    variables = model.init(jax.random.key(0), batch)
    held = model.frozen(variables.params, "hidden_0/*")
    free = variables._replace(params=held.free(variables.params))
    if fine:
        check_drawable(held, free)
        return
    with pytest.raises(Refusal, match="held"):
        check_drawable(held, free)
    check_drawable(model, variables)


@pytest.mark.full
@pytest.mark.parametrize("options", [{"kernel": "mala", "moves": 10}, {"kernel": "random_walk", "moves": 30},
                                     {"mass": "dense"}, {"ess": 0.5, "moves": 4}])  # fmt: skip
def test_every_kernel_finds_the_evidence(options):
    fit = credo.fit(jax.random.key(0), LINE.model, LINE.data, SMC(**options))
    assert fit.posterior.mean_log_evidence == pytest.approx(EXACT.log_evidence(), abs=0.15)
    assert fit.status.alarms == ()


@pytest.mark.full
def test_a_tempered_model_is_followed_to_its_own_target():
    fit = credo.fit(jax.random.key(0), BIMODAL.model.tempered(0.5), BIMODAL.data, METHOD, steps=60)
    assert fit.posterior.mean_log_evidence == pytest.approx(bimodal_log_evidence(0.5), abs=0.1)


@pytest.mark.full
def test_evidence_with_fresh_keys():
    """Ten keys that nobody chose: the mean of the estimates of p(D) is within 0.1 nats in each (rate 1e-2 in all)."""
    seeds = np.random.SeedSequence().generate_state(10)
    found = [credo.fit(jax.random.key(int(s)), LINE.model, LINE.data, SMC()).posterior.mean_log_evidence for s in seeds]
    assert np.abs(np.array(found) - EXACT.log_evidence()).max() < 0.1, (seeds, found)
    assert jnp.isfinite(jnp.asarray(found)).all()
