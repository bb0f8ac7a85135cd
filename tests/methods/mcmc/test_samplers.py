"""Metropolis, MALA, microcanonical Langevin and simulated annealing (D2, D3, D4): kernels, tuning, wrong variants."""

import contextlib
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo.errors import InputError, Refusal
from credo.evaluation import audit
from credo.evaluation.audit import calibrate, sbc
from credo.evaluation.diagnostics import chain_stats
from credo.methods.mcmc.chains import ChainState
from credo.methods.mcmc.energy_variance import energy_variance_tuner
from credo.methods.mcmc.mala import MALA
from credo.methods.mcmc.mclmc import MCLMC, Padded
from credo.methods.mcmc.metropolis import Metropolis, Walked
from credo.methods.points.simulated_annealing import SimulatedAnnealing
from credo.registry import METHODS
from oracles import coefficients, linear

PROBLEM = linear()
DATA = (PROBLEM.inputs, PROBLEM.targets)
SCALES = jnp.array([1.0, 0.3])


def banana(x):
    """A skewed density with E[x₀] = 0, Var[x₀] = 1 and x₁ | x₀ ~ N(0.3 (x₀² − 1), 0.3²)."""
    return -0.5 * x[0] ** 2 - 0.5 * ((x[1] - 0.3 * (x[0] ** 2 - 1)) / 0.3) ** 2


MOMENTS = np.array([0.0, 0.0, 1.0, 0.27])  # E[x₀], E[x₁], Var[x₀], Var[x₁] = 0.09 + 0.09 · 2


def run(method, steps=4000, step_size=0.5, chains=4):
    """Draws [chain, draw, 2] of the banana by the method's own transitions, with nothing adapted."""
    layout = method._layout({"x": jnp.zeros(2)})

    def one(key):
        key_start, key_run = jax.random.split(key)
        chain = method.start(key_start, layout, {"x": jax.random.normal(key_start, (2,)) * SCALES}, banana)
        state = ChainState(chain, jnp.float32(step_size), SCALES**2, (), {}, layout)

        def step(chain, key):
            now = dataclasses.replace(state, chain=chain)
            chain, _ = method.transition(method.noise(key, None, None, now), banana, now)
            return chain, chain.position

        return jax.lax.scan(step, chain, jax.random.split(key_run, steps))[1]

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), chains)), np.float64)


def worst_z(draws):
    """The largest |z| of the four moments; below 4.1 with probability 1 − 2e-4 where draws are right."""
    squares = (draws - MOMENTS[:2]) ** 2
    values = np.concatenate([draws, squares], -1)
    return np.abs((values.mean((0, 1)) - MOMENTS) / chain_stats(values).mcse_mean).max()


BOUND = stats.norm.isf(1e-3 / 2 / 4)


@pytest.mark.parametrize(
    ("method", "step_size"),
    [(Metropolis(moves=20), 1.5), (MALA(moves=10), 0.9), (MCLMC(max_steps=20), 0.5)],
    ids=["metropolis", "mala", "mclmc"],
)
def test_transitions_leave_a_skewed_density_invariant(method, step_size):
    """Four moments, all |z| below the Bonferroni bound for a false-alarm rate of 1e-3."""
    assert worst_z(run(method, step_size=step_size)) < BOUND


class NoRatio(MALA):
    """MALA that forgets q(θ|θ')/q(θ'|θ): a common mistake."""

    def transition(self, key, log_density, state):
        def one(chain, key):
            key_move, key_accept = jax.random.split(key)
            size, spread = state.step_size, state.inverse_mass
            noise = jax.random.normal(key_move, chain.position.shape)
            position = chain.position + 0.5 * size**2 * spread * chain.logdensity_grad + size * jnp.sqrt(spread) * noise
            value, gradient = jax.value_and_grad(log_density)(position)
            accept = jnp.log(jax.random.uniform(key_accept)) < value - chain.logdensity
            new = type(chain)(position, value, gradient)
            return jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, chain), accept

        chain, accepted = jax.lax.scan(one, state.chain, jax.random.split(key, self.moves))
        return chain, Walked(jnp.mean(accepted))


class RootRatio(Metropolis):
    """A random walk that accepts with the square root of the ratio."""

    def transition(self, noise, log_density, state):
        moves, limits = noise
        return super().transition((moves, 2 * limits), log_density, state)


@pytest.mark.parametrize(
    ("method", "step_size"),
    [(NoRatio(moves=10), 0.3), (RootRatio(moves=20), 1.5), (MCLMC(adjusted=False, max_steps=20), 1.5)],
    ids=["mala without the proposal ratio", "metropolis with another ratio", "unadjusted mclmc with a large step"],
)
def test_wrong_variants_are_caught(method, step_size):
    """The same test must fail clearly, not by chance."""
    assert worst_z(run(method, step_size=step_size)) > 2 * BOUND


@pytest.mark.full
def test_unadjusted_paths_are_biased_by_their_step_alone():
    """Small steps: moments within 5 % of a standard deviation. There is a bias, but a small one."""
    draws = run(MCLMC(adjusted=False, max_steps=200), steps=4000, step_size=0.1)
    values = np.concatenate([draws, (draws - MOMENTS[:2]) ** 2], -1)
    off = np.abs(values.mean((0, 1)) - MOMENTS) - 4 * chain_stats(values).mcse_mean
    assert (off / values.std((0, 1)) < 0.05).all()


def test_one_leapfrog_step_is_preconditioned_mala():
    """The acceptance of BlackJAX's kernel is min(1, p(θ')q(θ|θ')/p(θ)q(θ'|θ)) with q of the Langevin proposal."""
    from credo.methods.mcmc.mala import KERNEL, blackjax_hmc

    spread, size = np.array([1.0, 0.09]), 0.9
    start = blackjax_hmc.init(jnp.array([0.7, -0.4]), banana)
    for seed in range(5):
        _, info = KERNEL(jax.random.key(seed), start, banana, size, jnp.asarray(spread), 1)
        there = info.proposal.position

        def log_q(to, at):
            drift = at + 0.5 * size**2 * spread * jax.grad(banana)(at)
            return stats.norm.logpdf(to, drift, size * np.sqrt(spread)).sum()

        ratio = banana(there) - banana(start.position) + log_q(start.position, there) - log_q(there, start.position)
        assert float(info.acceptance_rate) == pytest.approx(min(1.0, float(np.exp(ratio))), rel=1e-3)


def test_energy_variance_tuner_finds_the_step():
    """(ΔE)²/P = 3 ε⁶ χ²₁: the aim 5e-4 is met at ε = (5e-4/3)^{1/6}; a step that leaves the numbers is not tried."""
    init, update, final = energy_variance_tuner(5e-4)
    rng, state = np.random.default_rng(0), init(0.01)
    for _ in range(300):
        state = update(state, jnp.float32(3 * float(final(state)) ** 6 * rng.chisquare(8) / 8))
    assert float(final(state)) == pytest.approx((5e-4 / 3) ** (1 / 6), rel=0.1)
    before = float(final(state))
    assert float(final(update(state, jnp.float32(np.inf)))) <= 0.8 * before * 1.001


def test_one_parameter_gets_a_second_dimension():
    whole = MCLMC()._layout({"x": jnp.zeros(1)})
    assert isinstance(whole, Padded)
    assert whole.ravel({"x": jnp.ones(1)}).shape == (2,)
    np.testing.assert_array_equal(whole.unravel(jnp.array([3.0, 9.0]))["x"], [3.0])
    assert MCLMC()._layout({"x": jnp.zeros(5)}).added == 0


@pytest.mark.parametrize(
    ("name", "aim"),
    [("metropolis", 0.275), *(pytest.param(*x, marks=pytest.mark.full) for x in (("mala", 0.574), ("mclmc", 0.9)))],
)
def test_warmup_finds_the_acceptance_and_the_spread(name, aim):
    """The contract tests hold the draws to the posterior; this looks at what the warm-up learned."""
    method = METHODS[name].load()(**METHODS[name].quick_settings())
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, method, steps=1000)
    assert fit.trace["acceptance"].mean() == pytest.approx(aim, abs=0.1)
    learned = np.asarray(fit.loop.carry.state.inverse_mass)[:4]
    np.testing.assert_allclose(np.log(learned / np.diag(PROBLEM.covariance)), 0, atol=0.7)
    assert fit.status.ok
    assert fit.status.alarms == ()


def test_annealing_leaves_a_shallow_valley_and_gradients_do_not():
    """log p has a mode at w ≈ −1 and a higher one at w ≈ 1: f = w² x with x = 1 and a prior around 0.5."""
    network = credo.from_functions(lambda key, x: {"w": -jnp.ones(1)}, lambda p, x: p["w"][0] ** 2 * x)
    held = {"network": {"w": np.full((1, 1), 0.5, np.float32)}}
    prior = credo.priors.as_prior(credo.posteriors.MeanField(held, jax.tree.map(jnp.ones_like, held), {}, {}))
    model = credo.Model(network, prior, credo.likelihoods.gaussian(noise=1.0))
    x = np.ones((8, 1), np.float32)
    stuck = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=2000)
    assert float(stuck.posterior.params["network"]["w"].squeeze()) < -0.5
    fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), SimulatedAnnealing(polish=300), steps=2000)
    best = float(fit.posterior.params["network"]["w"].squeeze())
    grid = np.linspace(-2, 2, 200_001)
    value = -0.5 * 8 * (1 - grid**2) ** 2 - 0.5 * (grid - 0.5) ** 2
    assert best == pytest.approx(grid[value.argmax()], abs=1e-3)
    assert (fit.posterior.members, fit.posterior.available) == (1, 1)
    assert (np.diff(fit.trace["log_density"][0]) >= 0).all()  # the best so far never gets worse
    assert fit.trace["heat"][0, -1] == pytest.approx(0.001, rel=1e-3)


def test_settings_are_checked():
    model = PROBLEM.model()
    wrong = [
        (Metropolis(moves=0), "one move"), (MALA(moves=0), "one move"), (MCLMC(mass="dense"), "diagonal"),
        (Metropolis(warmup=0), "step size"), (SimulatedAnnealing(cold=2.0, hot=1.0), "cold ≤ hot"),
        (Metropolis(chains=0), "one chain"),
    ]  # fmt: skip
    for method, match in wrong:
        with pytest.raises((InputError, Refusal), match=match):
            method.prepare(model)
    assert any("biased" in note for note in MCLMC(adjusted=False).prepare(model)[1])
    learned = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian())
    assert any("default prior" in note for note in Metropolis().prepare(learned)[1])


RESUMED = {
    "metropolis": Metropolis(chains=2, warmup=60, moves=5),
    "mala": MALA(chains=2, warmup=60, moves=5),
    "mclmc": MCLMC(chains=2, warmup=60),
    "unadjusted": MCLMC(chains=2, warmup=60, adjusted=False),
    "simulated_annealing": SimulatedAnnealing(polish=100),
    "smc": credo.methods.SMC(chains=2, particles=30, num_steps=3),
    "importance_sampling": credo.methods.ImportanceSampling("bayes_by_backprop"),
}


@pytest.mark.parametrize(
    "name", ["metropolis", *(pytest.param(n, marks=pytest.mark.full) for n in list(RESUMED)[1:])]
)  # fmt: skip
def test_a_fit_that_was_stopped_goes_on_bit_for_bit(name, tmp_path):
    """Stopped after its second and again after its fourth block, in the warm-up or later, and resumed."""

    def go(folder, blocks):
        seen = []
        checkpoint = None if folder is None else credo.Checkpoint(folder, every=0.0)
        with contextlib.suppress(Refusal):
            return credo.fit(
                jax.random.key(0), PROBLEM.model(), DATA, RESUMED[name], steps=60, checkpoint=checkpoint,
                callbacks=[lambda event: seen.append(event) or len(seen) >= blocks],
            )  # fmt: skip

    whole = go(None, 10**6)
    for blocks in (2, 2):
        go(tmp_path / "c", blocks)
    resumed = go(tmp_path / "c", 10**6)
    same = jax.tree.map(lambda a, b: np.array_equal(a, b), whole.posterior, resumed.posterior)
    assert all(jax.tree.leaves(same))
    assert all(np.array_equal(whole.trace[k], resumed.trace[k]) for k in whole.trace)


@pytest.mark.full
@pytest.mark.parametrize("name", ["metropolis", "mala", "mclmc", "smc"])
def test_exact_samplers_keep_their_claim_on_every_problem(name):
    """|z| below the Bonferroni bound for 1e-3 on each of the eight problems, or flagged where there are two modes."""
    result = audit.audit([name])
    assert not result.broken, result.broken


@pytest.mark.full
def test_simulation_based_calibration_of_mclmc_with_fresh_keys():
    """500 simulations, false-alarm rate 0.01 over all quantities; unadjusted with a large energy variance must fail."""
    seed = int(np.random.SeedSequence().generate_state(1)[0]) % 2**31
    for setting in ("network", "linear"):
        found = calibrate("mclmc", setting, simulations=500, seed=seed)
        assert found.passed, (seed, str(found))
    broken = calibrate("mclmc", "linear", simulations=500, seed=seed, adjusted=False, energy_variance=3.0)
    assert not broken.passed, seed


@pytest.mark.full
def test_many_fits_give_calibrated_draws():
    """Every sampler inside one program over 200 data sets; false-alarm rate 0.01 each."""
    for name in ("metropolis", "mala", "smc"):
        found = calibrate(name, sbc.linear_setting(), simulations=200, seed=3)
        assert found.passed, str(found)


SLOWER = [pytest.param(name, marks=pytest.mark.full) for name in ("nuts", "mala", "metropolis")]


@pytest.mark.parametrize("name", ["hmc", *SLOWER])
def test_without_a_learned_mass_chains_are_as_exact(name):
    """Means and variances of the conjugate posterior: z below the Bonferroni bound for a false-alarm rate of 1e-3."""
    method = METHODS[name].load()(chains=4, warmup=300, mass="identity")
    fit = credo.fit(jax.random.key(0), PROBLEM.model(), DATA, method, steps=1000)
    assert (np.asarray(fit.loop.carry.state.inverse_mass) == 1).all()
    chains = coefficients(fit.posterior.params["network"]).astype(np.float64)
    values = np.concatenate([chains, (chains - PROBLEM.mean) ** 2], -1)
    truth = np.concatenate([PROBLEM.mean, np.diag(PROBLEM.covariance)])
    z = (values.mean((0, 1)) - truth) / chain_stats(values).mcse_mean
    assert np.abs(z).max() < stats.norm.isf(1e-3 / 2 / z.size)
