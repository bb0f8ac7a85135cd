"""D5: samplers on minibatches give the posterior of the conjugate model, with steps that they choose themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arviz_numbers
import credo
from credo.core.batch import Batch
from credo.core.method import Phase
from credo.core.network import Variables
from credo.core.tree import Layout
from credo.methods.sgmcmc.chain import StochasticState
from credo.methods.sgmcmc.tuning import BY_CURVATURE, BY_NOISE, Landscape, hamiltonian_choice, langevin_choice
from credo.registry import find
from credo.training.batches import gather
from oracles import coefficients, linear

SMALL, LARGE = linear(), linear(num_rows=2000, dims=8, correlation=0.5, noise=0.7, seed=3)
CLASSES = {name: find(name).load() for name in ("sgld", "psgld", "sghmc", "sgnht")}
CYCLICAL = {name: find(name).load() for name in ("cyclical_sgld", "cyclical_sghmc")}
LANGEVIN = ("sgld", "psgld", "cyclical_sgld")


def moments(method, problem, batch_size, steps, thin, seed=0, weights=None, model=None):
    """(largest error of a mean in standard deviations, variances ÷ true ones, smallest ESS) of long chains."""
    data = (problem.inputs, problem.targets) if weights is None else (problem.inputs, problem.targets, weights)
    fit = credo.fit(
        jax.random.key(seed), model or problem.model(), data, method, steps=steps, thin=thin, batch_size=batch_size
    )
    values = coefficients(fit.posterior.params["network"]).astype(np.float64)
    scaled = (values - problem.mean) / np.sqrt(np.diag(problem.covariance))
    sizes = [arviz_numbers.ess(x).min() for x in (scaled, scaled**2)]
    return np.abs(scaled.mean((0, 1))).max(), scaled.var((0, 1)), min(sizes)


def bar(name, problem, share, seed=0):
    """Long chains of a method on N/share rows at a time."""
    steps, thin = (200_000, 100) if name in LANGEVIN else (40_000, 20)
    if name in CYCLICAL:  # a third of the draws is kept, and of small steps
        steps, thin = 4 * steps, 2 * thin
    method = (CLASSES | CYCLICAL)[name](chains=16)
    return moments(method, problem, len(problem.inputs) // share, steps, thin, seed)


# ---------------------------------------------------------------------- the posterior, with tuned steps
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("sghmc", 10),
        *[
            pytest.param(name, share, marks=pytest.mark.full)
            for name in [*CLASSES, *CYCLICAL]
            for share in (10, 4)
            if (name, share) != ("sghmc", 10)
        ],
    ],
)
def test_the_posterior_on_minibatches_with_a_step_from_the_pilot(name, share):
    """Means to 0.1 standard deviations and variances to 10 %, from at least 2,000 effective draws. The pilot allows a
    bias of 4 % at most, and the Monte-Carlo errors are 2 % of a standard deviation and 3 % of a variance at that size
    (of which chains have three times as many), so that 5 coefficients pass by chance less than once in 1,000 runs."""
    mean, variance, effective = bar(name, SMALL, share)
    assert effective > 2000
    assert mean < 0.1
    assert np.abs(variance - 1).max() < 0.1


@pytest.mark.full
@pytest.mark.parametrize("share", [10, 4])
@pytest.mark.parametrize("name", [*CLASSES, *CYCLICAL])
def test_the_posterior_of_a_larger_problem(name, share):
    """As above, with 2,000 rows and 9 coefficients."""
    mean, variance, effective = bar(name, LARGE, share)
    assert effective > 2000
    assert mean < 0.1
    assert np.abs(variance - 1).max() < 0.1


@pytest.mark.full
@pytest.mark.parametrize("name", [*CLASSES, *CYCLICAL])
def test_fresh_keys(name):
    """Three keys that nobody chose; a false alarm in less than 300 runs (see above)."""
    for seed in np.random.SeedSequence().generate_state(3):
        mean, variance, effective = bar(name, SMALL, 10, int(seed))
        assert effective > 2000, seed
        assert mean < 0.1, seed
        assert np.abs(variance - 1).max() < 0.1, seed


def test_a_gradient_that_is_not_scaled_is_caught():
    """Rows that weigh M/N undo the factor N/M: Σ_m log p(y_m) as it is, a common mistake. Its posterior is ten times
    too wide, and the bounds above see it."""
    share = len(SMALL.inputs) // 25
    weights = np.full(len(SMALL.inputs), 1 / share, np.float32)
    _, variance, _ = moments(CLASSES["sghmc"](chains=16), SMALL, 25, 4000, 20, weights=weights)
    assert variance.min() > 4
    assert np.abs(variance - 1).max() > 0.1


@pytest.mark.full
@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_control_variates(name):
    """The same posterior; the noise of the gradient is so much smaller that the step is limited by curvature alone."""
    method = CLASSES[name](chains=16, control_variates=True)
    steps, thin = (200_000, 100) if name == "sgld" else (40_000, 20)
    mean, variance, effective = moments(method, LARGE, 100, steps, thin)
    assert effective > 2000
    assert mean < 0.1
    assert np.abs(variance - 1).max() < 0.1
    data = (LARGE.inputs, LARGE.targets)
    plain, varied = (
        credo.fit(jax.random.key(1), LARGE.model(), data, CLASSES[name](control_variates=c), steps=50, batch_size=100)
        for c in (False, True)
    )
    assert varied.phases["pilot"]["noise"][:, -1].max() < 0.2 * plain.phases["pilot"]["noise"][:, -1].min()
    assert varied.trace["step_size"].mean() > 1.5 * plain.trace["step_size"].mean()


def test_cold_posteriors():
    """log joint / T: a quarter of the variance at T = ¼. 9,000 effective draws: 10 % is more than six errors."""
    cold = SMALL.model().tempered(0.25)
    mean, variance, effective = moments(CLASSES["sghmc"](chains=8), SMALL, None, 20_000, 10, model=cold)
    assert effective > 2000
    assert mean < 0.1
    np.testing.assert_allclose(variance, 0.25, rtol=0.1)


# ---------------------------------------------------------------------- the gradient
def pieces(method, theta, batch_size=16):
    """(mean over an epoch's batches of the gradient, each of them, the full gradient) at θ, for the small problem."""
    model, rows = SMALL.model(), len(SMALL.inputs)
    chosen = np.random.default_rng(0).permutation(rows).reshape(-1, batch_size)

    def run(theta):
        data = Batch(jnp.asarray(SMALL.inputs), jnp.asarray(SMALL.targets)[:, None], jnp.ones(rows), float(rows))
        layout = Layout.of(model.init(jax.random.key(0), data).params)
        state = method.init(jax.random.key(0), model, Variables(layout.unravel(theta), {}), data)
        if method.control_variates:
            state, _ = method.step(None, model, Phase("anchor", 1, "full"), state, data)
        place = theta + (0.0 if method.control_variates else 0.1)
        batches = gather(data, jnp.asarray(chosen), jnp.ones(chosen.shape, bool))
        each = jax.vmap(lambda b: method.gradient(model, state, place, b)[1])(batches)
        whole = jax.grad(lambda p: model.log_joint(Variables(layout.unravel(p), {}), data)[0])(place)
        return each.mean(0), each, whole

    return jax.jit(run)(theta)


def test_an_epoch_of_gradients_averages_to_the_full_one():
    """Unbiased by construction, for every batch size."""
    for size in (16, 64):
        mean, _, whole = pieces(CLASSES["sgld"](), jnp.linspace(-1, 1, 5), size)
        np.testing.assert_allclose(mean, whole, rtol=1e-4, atol=1e-3)


def test_control_variates_have_no_noise_at_the_anchor():
    _, each, whole = pieces(CLASSES["sgld"](control_variates=True), jnp.linspace(-1, 1, 5))
    np.testing.assert_allclose(each, np.broadcast_to(whole, each.shape), rtol=1e-4, atol=1e-3)


# ---------------------------------------------------------------------- the dynamics alone, on N(0, diag(1/λ))
CURVATURE = jnp.array([1.0, 4.0])
CHAINS = 2000


def simulate(method, step, noise, friction=1.0):
    """Variances × λ of `move` on a Gaussian target whose gradients have independent errors of variance `noise`, and
    their Monte-Carlo errors."""
    each = _simulate(method, *(jnp.asarray(x) for x in (step, noise, friction)))
    return np.asarray(each.mean(0) * CURVATURE), np.asarray(each.std(0) * CURVATURE) / np.sqrt(CHAINS)


@jax.jit
def _simulate(method, step, noise, friction):
    zero = jnp.zeros((), jnp.int32)

    def chain(key):
        key_start, key_steps = jax.random.split(key)
        start = jax.random.normal(key_start, (2,)) / jnp.sqrt(CURVATURE)
        rest = (zero, step, friction, zero, jnp.ones(()), (), (), (), {})

        def one(moving, key):
            key_gradient, key_move = jax.random.split(key)
            gradient = -CURVATURE * moving[0] + jnp.sqrt(noise) * jax.random.normal(key_gradient, (2,))
            state = StochasticState(*moving, *rest)
            moving = method.move(jax.random.normal(key_move, (2,)), gradient, state, jnp.ones(()))
            return moving, moving[0] ** 2

        moving = (start, method.start(key_start, start))
        squares = jax.lax.scan(one, moving, jax.random.split(key_steps, 1000))[1]
        return squares[500:].mean(0)

    return jax.vmap(chain)(jax.random.split(jax.random.key(0), CHAINS))


@pytest.mark.parametrize("step", [0.2, pytest.param(0.1, marks=pytest.mark.full), 0.05])
def test_sgld_is_wrong_by_as_much_as_theory_says_and_less_with_smaller_steps(step):
    """λ Var = (1 + ηV/2) / (1 − ηλ/2), which is 1 in the limit. Five Monte-Carlo errors: a false alarm in 10⁶ runs."""
    found, error = simulate(CLASSES["sgld"](), step, 2.0)
    theory = (1 + step * 2.0 / 2) / (1 - step * np.asarray(CURVATURE) / 2)
    assert (np.abs(found - theory) < 5 * error).all()


@pytest.mark.parametrize("name", ["sghmc", "sgnht"])
def test_a_hamiltonian_step_has_no_error_of_its_own_on_a_gaussian(name):
    """At h√λ = 1, half of what is stable, and without gradient noise. Five Monte-Carlo errors, and 1 % for the second
    order that the thermostat's friction, which is not constant, leaves."""
    found, error = simulate(CLASSES[name](), 0.5, 0.0)
    assert (np.abs(found - 1) < 5 * error + (0.01 if name == "sgnht" else 0)).all()


@pytest.mark.full
@pytest.mark.parametrize("step", [0.1, 0.05])
def test_gradient_noise_heats_sghmc_unless_it_is_subtracted(step):
    """Temperature 1 + hV/2γ to first order in h (2 % here); with B̂ = V it is 1 again. SGNHT finds that by itself."""
    heated, error = simulate(CLASSES["sghmc"](), step, 4.0)
    np.testing.assert_allclose(heated, 1 + step * 4.0 / 2, atol=0.02 + 5 * error.max())
    corrected, error = simulate(CLASSES["sghmc"](gradient_noise=4.0), step, 4.0)
    np.testing.assert_allclose(corrected, 1, atol=0.01 + 5 * error.max())
    cooled, error = simulate(CLASSES["sgnht"](), step, 4.0)
    np.testing.assert_allclose(cooled, 1, atol=0.01 + 5 * error.max())


# ---------------------------------------------------------------------- the pilot
def tuned(data):
    """A short fit of the shapes that the tests above have compiled."""
    method = CLASSES["sghmc"](chains=16)
    return credo.fit(jax.random.key(0), SMALL.model(), data, method, steps=400, thin=20, batch_size=25)


def test_the_pilot_measures_the_landscape():
    """Curvatures of P^½ΛP^½ to 10 %, the noise for each unit of curvature to 40 % (V = (N/M) Σ g g' (1 − M/N))."""
    data = (SMALL.inputs, SMALL.targets)
    fit = tuned(data)
    found = {name: values[:, -1].mean() for name, values in fit.phases["pilot"].items()}
    scale = 1 / np.sqrt(np.sqrt((SMALL.precision**2).sum(0)))
    curvature = np.linalg.eigvalsh(scale[:, None] * SMALL.precision * scale)
    np.testing.assert_allclose(found["largest"], curvature[-1], rtol=0.1)
    np.testing.assert_allclose(found["smallest"], curvature[0], rtol=0.2)
    np.testing.assert_allclose(found["noise"], 256 / 25 - 1, rtol=0.4)
    assert found["epoch"] == pytest.approx(256 / 25, rel=0.05)


def land(noise=10.0, epoch=10.0, smallest=0.2):
    return Landscape(*(jnp.asarray(v) for v in (2.0, smallest, 1.0, noise, epoch)))


def test_steps_shrink_with_curvature_noise_and_tolerance():
    for choose in (langevin_choice, hamiltonian_choice):
        quiet, noisy, strict = choose(land(1e-9, 1.0), 0.02), choose(land(), 0.02), choose(land(), 0.002)
        assert quiet.step_size > noisy.step_size > strict.step_size > 0
        assert (int(quiet.limit), int(noisy.limit)) == (BY_CURVATURE, BY_NOISE)
    assert float(langevin_choice(land(1e-9, 1.0), 0.02).step_size) * 2.0 == pytest.approx(2 * 0.02 / 1.02)


def test_the_pilot_says_why():
    data = (SMALL.inputs, SMALL.targets)
    fit = tuned(data)
    assert "limited by gradient noise" in str(fit.status)
    given = CLASSES["sghmc"](chains=2, step_size=0.005, friction=20.0, map_steps=0)
    fit = credo.fit(jax.random.key(0), SMALL.model(), data, given, steps=20)
    assert fit.notes == ()
    assert fit.trace["step_size"] == pytest.approx(0.005)


def on_scales(spread):
    """Columns of these spreads, the true coefficients as large as they are small; correlated, so that in units of the
    parameters a column of small numbers is coupled more to the others than to itself."""
    problem = linear(correlation=0.2)
    problem = problem._replace(inputs=problem.inputs * spread, scale=30.0)
    return problem._replace(targets=(problem.inputs @ (1 / spread) + problem.targets).astype(np.float32))


SPREAD = np.array([0.05, 1.0, 4.0, 20.0], np.float32)


def test_the_preconditioner_knows_no_units():
    """The condition number that is left is that of columns of one spread, 2.2 if all is known (Jacobi's is the same);
    rows of DHD of one length by diag(H²)^{-¼} alone leave 130."""
    problem = on_scales(SPREAD)
    fit = credo.fit(
        jax.random.key(0), problem.model(), (problem.inputs, problem.targets), CLASSES["sgld"](chains=8, map_steps=0),
        steps=20, batch_size=64,
    )  # fmt: skip
    pilot = fit.phases["pilot"]
    condition = np.asarray(pilot["largest"][:, -1] / pilot["smallest"][:, -1])
    assert condition.max() < 4, condition


@pytest.mark.full
@pytest.mark.parametrize("name", ["sgld", "psgld", "sghmc", "sgnht"])
def test_columns_on_different_scales(name):
    """Columns of spread 0.05 to 20: one step for all would need millions of steps; the preconditioner needs none more.
    RMSprop's, 1/rms(∇), goes half of the way: the spread that it leaves is the root of the one that it finds, so pSGLD
    gets the roots of these spreads, and twice the steps."""
    problem = on_scales(SPREAD**0.5 if name == "psgld" else SPREAD)
    steps, thin = {"sgld": (200_000, 100), "psgld": (400_000, 200)}.get(name, (40_000, 20))
    mean, variance, effective = moments(CLASSES[name](chains=16), problem, 64, steps, thin)
    assert effective > 1000
    assert mean < 0.12
    assert np.abs(variance - 1).max() < 0.12


# ---------------------------------------------------------------------- schedules
@pytest.mark.full
@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_decaying_steps_weigh_their_draws(name):
    """Weights fall with the step, and weighted moments are the posterior's: 300 effective draws or more, so that a
    mean is off by more than 0.3 standard deviations, or a variance by 40 %, once in 10,000 runs."""
    method = CLASSES[name](chains=16, schedule="decay", decay_after=2000.0)
    data = (SMALL.inputs, SMALL.targets)
    fit = credo.fit(jax.random.key(0), SMALL.model(), data, method, steps=10_000, thin=10)
    weights = np.asarray(fit.posterior.log_weights)
    power = 0.33 if name == "sgld" else 0.165
    np.testing.assert_allclose(weights[:, -1] - weights[:, 0], -power * np.log(6), rtol=0.01)
    share = np.exp(weights) / np.exp(weights).sum()
    values = coefficients(fit.posterior.params["network"])
    mean = (share[..., None] * values).sum((0, 1))
    variance = (share[..., None] * (values - mean) ** 2).sum((0, 1))
    spread = np.sqrt(np.diag(SMALL.covariance))
    np.testing.assert_allclose((mean - SMALL.mean) / spread, 0, atol=0.3)
    np.testing.assert_allclose(variance / spread**2, 1, atol=0.4)


@pytest.mark.parametrize("name", [pytest.param("cyclical_sgld", marks=pytest.mark.full), "cyclical_sghmc"])
def test_cycles_keep_draws_of_small_steps(name):
    """With B = 4 the last third of each cycle; a fit that goes on keeps its cycles."""
    data = (SMALL.inputs, SMALL.targets)
    method = CYCLICAL[name](chains=2, cycle_length=300)
    fit = credo.fit(jax.random.key(0), SMALL.model(), data, method, steps=600)
    assert fit.posterior.available == 200
    assert fit.posterior.log_weights is None
    longer = fit.extend(300)
    assert longer.posterior.available == 300
    first = jax.tree.map(lambda a, b: np.array_equal(a, b[:, :200]), fit.posterior.params, longer.posterior.params)
    assert all(jax.tree.leaves(first))
