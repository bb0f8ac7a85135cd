"""Acquisitions against quadrature, brute force and closed forms; the search for their maximum (H1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import credo
from credo.applications.optimise import (
    Category,
    Float,
    Int,
    Space,
    Surrogate,
    expected_improvement,
    log_expected_improvement,
)
from credo.applications.optimise.acquisition import AcquisitionSetting, acquisition_values, draw_improvement, log_h
from credo.applications.optimise.batches import incumbent, propose
from credo.applications.optimise.belief import DrawBelief, NormalBelief, condition, moments, posterior_covariance
from credo.applications.optimise.gp import GaussianProcess
from credo.applications.optimise.maximise import climb_rows, largest, thompson_normal
from credo.core.posterior import Draws
from credo.core.tree import leaf, struct
from credo.errors import InputError

RNG = np.random.default_rng(1)
EVERYWHERE = lambda rows: np.ones(len(rows), bool)  # noqa: E731


@pytest.mark.parametrize(
    ("mean", "std", "best"), [(0.3, 1.2, 0.5), (-2.0, 0.7, 0.1), (4.0, 0.5, 1.0), (-3.0, 1.0, 2.0)]
)
def test_expected_improvement_is_the_integral(mean, std, best):
    truth, _ = integrate.quad(lambda f: (f - best) * stats.norm.pdf(f, mean, std), best, mean + 40 * std + best,
                              epsabs=1e-14, points=[mean])  # fmt: skip
    with jax.enable_x64(True):
        args = [jnp.float64(a) for a in (mean, std, best)]
        np.testing.assert_allclose(float(jax.jit(expected_improvement)(*args)), truth, rtol=1e-6)
        np.testing.assert_allclose(float(jax.jit(log_expected_improvement)(*args)), np.log(truth), rtol=1e-6)


def test_log_improvement_holds_in_the_far_tail():
    """h(z) = φ(z) (1 − t R(t)) with Mills' ratio R by erfcx in 50 digits' worth of a continued fraction."""
    z = np.array([-1e3, -200.0, -60.0, -40.0, -30.5, -29.5, -12.0, -7.5, -6.5, -3.0, -1.001, -0.999, 0.0, 2.0, 9.0])
    truth = np.array([float(_log_h_exact(v)) for v in z])
    both = jax.jit(jax.vmap(jax.value_and_grad(log_h)))
    with jax.enable_x64(True):
        value, slope = (np.asarray(a) for a in both(jnp.asarray(z, jnp.float64)))
    np.testing.assert_allclose(value, truth, rtol=1e-9)
    value, single = (np.asarray(a) for a in both(jnp.asarray(z, jnp.float32)))
    np.testing.assert_allclose(value, truth, rtol=2e-4, atol=2e-4)
    expected = np.exp(stats.norm.logcdf(z) - truth)  # h' = Φ
    np.testing.assert_allclose(slope, expected, rtol=1e-6)
    np.testing.assert_allclose(single, expected, rtol=5e-3)


def _log_h_exact(z):
    """By quadrature of ∫_0^∞ u φ(u − z) du with the factor φ(z) taken out: ∫ u exp(u z − u²/2) du."""
    if z > 0:
        return np.log(stats.norm.pdf(z) + z * stats.norm.cdf(z))
    step = max(-z, 1.0)  # u = v/step, so that the integrand is about v e^(−v) however far out z is
    inside, _ = integrate.quad(
        lambda v: v * np.exp(v * z / step - 0.5 * (v / step) ** 2), 0, 60, epsabs=0, epsrel=1e-12, limit=500
    )
    return stats.norm.logpdf(z) + np.log(inside) - 2 * np.log(step)


@struct
class _Sines:
    """Draws of f: sums of sines with coefficients [1, K, terms] (a posterior for tests)."""

    coefficients: jax.Array = leaf()

    def outputs(self, key, model, inputs, num):
        basis = jnp.sin(inputs[:, :1] * jnp.arange(1, self.coefficients.shape[-1] + 1) + inputs[:, 1:].sum(-1)[:, None])
        values = jnp.einsum("mkt,nt->mkn", self.coefficients, basis)[..., None]
        return Draws(values, {}, None)

    def num_draws(self, num):
        return self.coefficients.shape[:2]


def sines(draws=40, columns=1, noise=0.0, scale=1.0):
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    weights = jnp.asarray(scale * RNG.normal(size=(1, draws, 3)), jnp.float32)
    return DrawBelief(_Sines(weights), model, jax.random.key_data(jax.random.key(0)), np.float32(noise), None)


def setting(best, columns, held=(), beta=2.0, which=0, size=4):
    rows = np.zeros((size, columns))
    rows[: len(held)] = np.reshape(held, (len(held), columns))
    return AcquisitionSetting(best, beta, rows, (np.arange(size) < len(held)).astype(float), which)


def test_batches_on_draws_are_greedy_in_the_exact_improvement():
    belief = sines()
    x = np.linspace(0, 1, 30)[:, None]
    values = np.asarray(belief.draws(jnp.asarray(x, jnp.float32))[0], float)

    def gain(chosen):
        return np.maximum(values[:, chosen].max(1) - 0.5, 0).mean()

    expected = []
    for _ in range(3):
        expected.append(max(range(30), key=lambda i: gain([*expected, i])))
    held = []
    for place in range(3):
        found = acquisition_values("ei", belief, x, setting(0.5, 1, held)) if held else np.array(
            [gain([i]) for i in range(30)]
        )  # fmt: skip
        brute = np.array([gain([*expected[:place], i]) - (gain(expected[:place]) if place else 0.0) for i in range(30)])
        np.testing.assert_allclose(found, brute, atol=1e-6)
        held.append(x[expected[place]])
    soft = acquisition_values("log_ei", belief, x, setting(0.5, 1, held[:2]))
    exact = acquisition_values("ei", belief, x, setting(0.5, 1, held[:2]))
    np.testing.assert_allclose(np.exp(soft), exact, atol=0.01)
    assert (np.exp(soft) >= exact - 1e-6).all()


def test_smooth_improvement_has_a_slope_where_nothing_improves():
    values = lambda x: -50.0 + x * jnp.arange(5.0)[:, None]  # noqa: E731
    slope = jax.grad(lambda x: draw_improvement(values(x), jnp.full(5, 0.2), jnp.zeros(5), 0.01)[0])
    found = jax.jit(slope)(1.0)
    assert np.isfinite(found)
    assert found > 0


def test_mixture_improvement_is_near_the_normal_one_for_normal_draws():
    """20,000 draws of a normal f: the relative error of the mean improvement is 1 %, three of them are allowed."""
    draws = RNG.normal(0.2, 0.8, size=(20_000, 1))
    exact = float(expected_improvement(jnp.float32(0.2), jnp.float32(0.8), 0.5))
    found = draw_improvement(jnp.asarray(draws, jnp.float32), jnp.full(20_000, 5e-5), jnp.full(20_000, 0.5))
    np.testing.assert_allclose(float(found[0]), exact, rtol=0.04)


@pytest.fixture(scope="module")
def process():
    x = RNG.random((12, 2))
    fitted = GaussianProcess().fit(jax.random.key(0), x, np.sin(5 * x[:, 0]) + x[:, 1])
    return fitted.belief


def test_conditioning_is_that_of_the_normal_distribution(process):
    held, x = RNG.random((3, 2)), RNG.random((5, 2))
    mean, covariance = posterior_covariance(process, np.concatenate([x, held]))
    noise = float(process.noise)
    gain = covariance[:5, 5:] @ np.linalg.inv(covariance[5:, 5:] + noise * np.eye(3))
    expected = np.diagonal(covariance[:5, :5] - gain @ covariance[5:, :5])
    found_mean, found_std = moments(process, x, held)
    np.testing.assert_allclose(found_mean, mean[:5], atol=1e-9)
    np.testing.assert_allclose(found_std**2, expected, rtol=1e-3, atol=1e-9)
    ucb = acquisition_values("ucb", process, x, setting(0.0, 2, held, beta=1.5))
    np.testing.assert_allclose(ucb, mean[:5] + 1.5 * np.sqrt(expected), rtol=1e-3)


def test_conditioning_of_draws_uses_their_covariance():
    belief = sines(draws=60, noise=0.3)
    x, held = RNG.random((5, 1)), RNG.random((2, 1))
    values = np.asarray(belief.draws(jnp.asarray(np.concatenate([x, held]), jnp.float32))[0], float)
    covariance = np.cov(values.T)
    gain = covariance[:5, 5:] @ np.linalg.inv(covariance[5:, 5:] + 0.3 * np.eye(2))
    expected = np.diagonal(covariance[:5, :5] - gain @ covariance[5:, :5])
    full, mask = jnp.asarray(np.concatenate([held, [[9.0]]]), jnp.float32), jnp.asarray([1.0, 1.0, 0.0])
    mean, variance = jax.jit(condition)(belief, jnp.asarray(x, jnp.float32), full, mask)
    np.testing.assert_allclose(mean, values[:, :5].mean(0), atol=1e-4)
    np.testing.assert_allclose(variance, expected, rtol=5e-3, atol=1e-4)


def _bowl(centre):
    """A Gaussian belief whose mean is a hill at `centre`: one row, a wide kernel, no spread that matters."""
    from credo.applications.optimise.hyper import Matern

    width = len(centre)
    return NormalBelief(
        Matern(np.float64(1.0), np.full(width, 0.7)), np.array([centre]), np.array([1.0]), np.zeros((1, 1)),
        np.float64(0.0), np.float64(1e-6),
    )  # fmt: skip


def test_the_climb_finds_the_maximum():
    centre = np.array([0.31, 0.77, 0.5])
    belief = _bowl(centre)
    starts = RNG.random((8, 3))
    ends = climb_rows("ucb", belief, setting(0.0, 3, beta=0.0), starts, np.ones(3))
    np.testing.assert_allclose(ends, np.repeat(centre[None], 8, 0), atol=2e-3)
    outside = climb_rows("ucb", _bowl(np.array([1.4, -0.2, 0.5])), setting(0.0, 3, beta=0.0), starts, np.ones(3))
    np.testing.assert_allclose(outside, np.repeat([[1.0, 0.0, 0.5]], 8, 0), atol=0.01)
    held = climb_rows("ucb", belief, setting(0.0, 3, beta=0.0), starts, np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(held[:, 1], starts[:, 1])


def test_whole_numbers_and_choices_are_rounded_and_judged_again():
    space = Space({"x": Float(0, 1), "n": Int(0, 9), "kind": Category(["a", "b"])})
    belief = _bowl(np.array([0.31, 0.46, 1.0, 0.0]))
    rng = np.random.default_rng(0)
    rows = space.sample(512, 5)
    best = largest("ucb", belief, setting(0.0, 4, beta=0.0), space, rows, EVERYWHERE)
    point = space.decode(best[None])[0]
    assert (point["n"], point["kind"]) == (4, "a")
    assert point["x"] == pytest.approx(0.31, abs=0.02)
    np.testing.assert_allclose(space.snap(best[None])[0], best)
    assert largest("ucb", belief, setting(0.0, 4), space, rows, lambda r: np.zeros(len(r), bool)) is None
    drawn = thompson_normal(belief, space, rows, EVERYWHERE, rng)
    np.testing.assert_allclose(space.snap(drawn[None])[0], drawn)


@pytest.mark.parametrize("acquisition", ["log_ei", "ucb", "thompson"])
def test_points_of_a_batch_differ(acquisition, process):
    space = Space({"x": Float(0, 1), "y": Float(0, 1)})
    x = np.asarray(process.parts.rows[0])[:12]
    from credo.applications.optimise.belief import Fitted

    rows = propose(np.random.default_rng(0), Fitted(process, width=2), space, x, x[:0], 2, acquisition, 2.0, EVERYWHERE)
    assert rows.shape == (2, 2)
    assert np.abs(rows[0] - rows[1]).max() > 1e-3


def test_the_incumbent_is_the_best_mean_not_the_luckiest_value():
    x = np.repeat(np.linspace(0, 1, 6), 4)[:, None]
    gains = -((x[:, 0] - 0.4) ** 2) * 10 + 0.7 * RNG.normal(size=24)
    gains[-1] += 4.0  # luck
    belief = GaussianProcess().fit(jax.random.key(0), x, gains).belief
    best, order = incumbent(belief, x)
    assert order[0, 0] < 0.9
    assert best < (gains.max() - gains.mean()) / gains.std()


def test_an_infinite_network_is_rebuilt_from_its_numbers():
    x = RNG.random((9, 2))
    surrogate = Surrogate("infinite_width")
    fitted = surrogate.fit(jax.random.key(0), x, np.sin(4 * x[:, 0]) * x[:, 1])
    fit = credo.fit(
        jax.random.split(jax.random.key(0))[0], surrogate.model,
        ((2 * x - 1).astype("f"), np.asarray((lambda g: (g - g.mean()) / g.std())(np.sin(4 * x[:, 0]) * x[:, 1]), "f")),
        surrogate.method, capacity=32, progress=False,
    )  # fmt: skip
    new = RNG.random((6, 2)).astype(np.float32)
    mean, variance = fit.posterior.moments(2 * new.astype(float) - 1)
    found = moments(fitted.belief, new, new[:0])
    np.testing.assert_allclose(found[0], mean[:, 0], atol=1e-5)
    np.testing.assert_allclose(found[1] ** 2, variance[:, 0], rtol=1e-3, atol=1e-8)


def test_unknown_words_get_a_sentence():
    from credo.applications.optimise import Optimizer

    space = Space({"x": Float(0, 1)})
    with pytest.raises(InputError, match="Unknown acquisition 'pi'"):
        Optimizer(space, acquisition="pi")
    with pytest.raises(InputError, match="Did you mean 'deep_ensemble'"):
        Optimizer(space, surrogate="deep_ensembel")
