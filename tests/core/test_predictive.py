"""G1, G2: the predictive is a true mixture, and its variance is right in single precision."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import credo
import credo.errors
from credo.core.mixture import Flat, cdf, class_summary
from credo.core.predictive import Predictive


def mixture(outputs, sigma, likelihood=None):
    """A predictive of Gaussians with means `outputs` [K, n] and noise `sigma` [K]."""
    outputs, sigma = np.asarray(outputs, np.float32), np.asarray(sigma, np.float32)
    likelihood = likelihood or credo.likelihoods.gaussian("inferred")
    flat = Flat(
        jnp.asarray(outputs)[..., None],
        {"log_scale": jnp.log(sigma)[:, None]},
        jnp.full(len(sigma), -np.log(len(sigma))),
    )
    return Predictive(likelihood, lambda: iter([(slice(0, outputs.shape[1]), flat)]), outputs.shape[1], flat=True)


MEANS, SIGMAS = np.array([[-2.0, 0.0], [1.0, 0.5], [1.5, 3.0]]), np.array([0.3, 1.0, 0.5])


def exact(function, y):
    return np.mean([getattr(stats.norm(MEANS[k], SIGMAS[k]), function)(y) for k in range(3)], axis=0)


def test_mixture_density_cdf_quantiles():
    p, y = mixture(MEANS, SIGMAS), np.array([0.7, 1.9])
    np.testing.assert_allclose(p.log_prob(y), np.log(exact("pdf", y)), rtol=1e-5)
    np.testing.assert_allclose(p.cdf(y), exact("cdf", y), rtol=1e-5)
    for level in (0.01, 0.5, 0.95):
        np.testing.assert_allclose(exact("cdf", p.quantile(level)), level, atol=1e-4)
    low, high = p.interval(0.9)
    np.testing.assert_allclose(exact("cdf", high) - exact("cdf", low), 0.9, atol=2e-4)


def test_moments_and_decomposition():
    p = mixture(MEANS, SIGMAS)
    np.testing.assert_allclose(p.mean, MEANS.mean(0), rtol=1e-6)
    np.testing.assert_allclose(p.aleatoric, (SIGMAS**2).mean(), rtol=1e-6)
    np.testing.assert_allclose(p.epistemic, MEANS.var(0), rtol=1e-5)
    draws = p.sample(jax.random.key(0), 20_000)
    # The standard error of a mean of 20,000 draws is std/141; 5 of them is a false-alarm rate below 1e-5.
    np.testing.assert_allclose(draws.mean(0), p.mean, atol=5 * p.std.max() / 141)


def test_chunks_share_the_draw_of_the_weights_but_not_the_noise():
    flat = Flat(
        jnp.asarray([[[0.0]], [[100.0]]]), {"log_scale": jnp.zeros((2, 1))}, jnp.full(2, -np.log(2))
    )  # fmt: skip
    chunks = [(slice(i, i + 1), flat) for i in range(3)]
    p = Predictive(credo.likelihoods.gaussian("inferred"), lambda: iter(chunks), 3, flat=True)
    draws = p.sample(jax.random.key(0), 200)
    assert ((draws > 50).all(1) | (draws < 50).all(1)).all()
    noise = draws - 100 * (draws > 50)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.35  # 5 standard errors of a correlation of 200 pairs


def test_entropy_by_quadrature():
    p = mixture(MEANS, SIGMAS)

    def integrand(y, n):
        density = np.mean(stats.norm.pdf(y, MEANS[:, n], SIGMAS))
        return -density * np.log(density)

    total = [integrate.quad(integrand, -12, 14, args=(n,), limit=400)[0] for n in (0, 1)]
    noise = np.mean(0.5 * np.log(2 * np.pi * np.e * SIGMAS**2))
    np.testing.assert_allclose(p.entropy(), total, atol=2e-4)
    np.testing.assert_allclose(p.conditional_entropy(), noise, atol=2e-4)
    np.testing.assert_allclose(p.mutual_information(), np.array(total) - noise, atol=4e-4)


def test_variance_is_centred():
    """A float32 std of 0.01 around a mean of 1,000; E[x²] − E[x]² gives nonsense here."""
    rng = np.random.default_rng(0)
    outputs = (1000 + 0.01 * rng.normal(size=(2000, 4))).astype(np.float32)
    p = mixture(outputs, np.full(2000, 1e-4))
    expected = outputs.astype(np.float64).std(0)
    np.testing.assert_allclose(np.sqrt(p.epistemic), expected, rtol=1e-3)
    naive = np.sqrt(np.maximum((outputs**2).mean(0) - outputs.mean(0) ** 2, 0))
    assert not np.allclose(naive, expected, rtol=0.1)


def test_rescaling_moves_every_answer():
    p = mixture(MEANS, SIGMAS)
    q = p.rescaled(100.0, 10.0)
    y = np.array([0.7, 1.9])
    np.testing.assert_allclose(q.mean, 100 + 10 * p.mean, rtol=1e-6)
    np.testing.assert_allclose(q.std, 10 * p.std, rtol=1e-6)
    np.testing.assert_allclose(q.log_prob(100 + 10 * y), p.log_prob(y) - np.log(10), rtol=1e-5)
    np.testing.assert_allclose(q.quantile(0.3), 100 + 10 * p.quantile(0.3), rtol=1e-6)
    np.testing.assert_allclose(q.entropy(), p.entropy() + np.log(10), rtol=1e-5)
    np.testing.assert_allclose(q.rescaled(1.0, 2.0).mean, 1 + 2 * q.mean, rtol=1e-6)


def test_class_entropies():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(50, 7, 3)).astype(np.float32) * 3
    flat = Flat(jnp.asarray(logits), {}, jnp.full(50, -np.log(50)))
    p = Predictive(credo.likelihoods.categorical(3), lambda: iter([(slice(0, 7), flat)]), 7, flat=True)
    each = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    total = stats.entropy(each.mean(0), axis=-1)
    noise = stats.entropy(each, axis=-1).mean(0)
    np.testing.assert_allclose(p.probs, each.mean(0), rtol=1e-5)
    np.testing.assert_allclose(p.probs_std, each.std(0), rtol=1e-4)
    np.testing.assert_allclose(p.entropy(), total, rtol=1e-5)
    np.testing.assert_allclose(p.aleatoric, noise, rtol=1e-5)
    np.testing.assert_allclose(p.epistemic, total - noise, atol=1e-6)
    assert (p.mutual_information() >= 0).all()
    with pytest.raises(credo.errors.Refusal, match="quantile"):
        p.quantile(0.5)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_quantiles_of_counts_are_exact(level):
    """The smallest whole number whose CDF reaches the level, against a sum over SciPy's CDFs."""
    log_rates = np.random.default_rng(2).normal(1, 0.8, size=(40, 30, 1)).astype(np.float32)
    flat = Flat(jnp.asarray(log_rates), {}, jnp.full(40, -np.log(40)))
    p = Predictive(credo.likelihoods.poisson(), lambda: iter([(slice(0, 30), flat)]), 30, flat=True)
    grid = np.arange(200)
    whole = stats.poisson(np.exp(log_rates)).cdf(grid).mean(0)
    np.testing.assert_array_equal(p.quantile(level), (whole >= level).argmax(-1))


@pytest.mark.parametrize("far", [18.0, 25.0, 60.0])
def test_one_draw_that_extrapolates_leaves_the_quantiles_of_counts_alone(far):
    """Its rate makes mean and spread huge; 1 % of the mixture moves no quantile up to 95 %."""
    log_rates = np.full((100, 2, 1), np.log([[3.0], [2000.0]]), np.float32)
    log_rates[-1] = far
    flat = Flat(jnp.asarray(log_rates), {}, jnp.full(100, -np.log(100)))
    poisson = Predictive(credo.likelihoods.poisson(), lambda: iter([(slice(0, 2), flat)]), 2, flat=True)
    wide = Predictive(credo.likelihoods.negative_binomial(2.0), lambda: iter([(slice(0, 2), flat)]), 2, flat=True)
    rates = np.array([3.0, 2000.0])
    for level in (0.01, 0.05, 0.5, 0.95):
        np.testing.assert_array_equal(poisson.quantile(level), stats.poisson(rates).ppf(level / 0.99))
        np.testing.assert_array_equal(wide.quantile(level), stats.nbinom(2, 2 / (2 + rates)).ppf(level / 0.99))
    assert poisson.quantile(0.995).min() > np.exp(min(far, 30) - 1)


@pytest.mark.parametrize("far", [1e5, 1e8, np.inf])
def test_a_draw_beyond_all_numbers_leaves_the_quantiles_of_counts_alone(far):
    """One of five rates: mean and spread are ∞ or no number, and the median that of Poisson(1) at 0.5/0.8."""
    for place in (0, 4):
        log_rates = np.zeros((5, 1, 1), np.float32)
        log_rates[place] = far
        flat = Flat(jnp.asarray(log_rates), {}, jnp.full(5, -np.log(5)))
        poisson = Predictive(credo.likelihoods.poisson(), lambda flat=flat: iter([(slice(0, 1), flat)]), 1, flat=True)
        assert poisson.quantile(0.5)[0] == stats.poisson(1).ppf(0.625) == 1
    sure = Flat(jnp.full((5, 1, 1), -40.0), {}, jnp.full(5, -np.log(5)))
    poisson = Predictive(credo.likelihoods.poisson(), lambda: iter([(slice(0, 1), sure)]), 1, flat=True)
    assert poisson.quantile(0.99999999)[0] == 0  # the level rounds to 1 where the spread is 0


def test_chunks_do_not_change_answers():
    """Kept, recomputed, in one chunk or in many: the same numbers."""
    x = np.linspace(-2, 2, 300).astype(np.float32)[:, None]
    model = credo.Model(credo.networks.mlp([8]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(jax.random.key(0), model, (x, np.sin(x[:, 0])), "bayes_by_backprop", steps=300)
    whole = credo.predict(jax.random.key(1), fit, x, num_samples=20)
    import credo.core.predict as module

    size, module.CHUNK_BYTES = module.CHUNK_BYTES, 4 * 20 * 37
    try:
        parts = credo.predict(jax.random.key(1), fit, x, num_samples=20, memory=0)
        np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(parts.quantile(0.9), whole.quantile(0.9), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(parts.log_prob(x[:, 0]), whole.log_prob(x[:, 0]), rtol=1e-4)
    finally:
        module.CHUNK_BYTES = size


MEMORY = """
import resource, jax, numpy as np, credo
from credo.posteriors import MeanField
x = np.random.default_rng(0).random((10_000, 784), dtype=np.float32)
y = np.arange(10_000) % 10
model = credo.Model(credo.networks.mlp([100]), credo.priors.normal(1.0), credo.likelihoods.categorical(10))
fit = credo.fit(jax.random.key(0), model, (x, y), "bayes_by_backprop", steps=3, batch_size=128)
p = credo.predict(jax.random.key(1), fit, x, num_samples=1000)
assert p.probs.shape == (10_000, 10) and np.isfinite(p.epistemic).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


@pytest.mark.full
def test_memory_of_a_large_prediction():
    """1,000 draws × 10,000 inputs of a 784-100-10 net stay under 1.5 GB."""
    out = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout
    assert float(out.split()[-1]) < 1.5


def test_rounded_weights_do_not_make_probabilities_above_one():
    """A draw of no weight that says 0 and many that say 1: float32 weights sum to 1 + 10⁻⁷."""
    rng = np.random.default_rng(0)
    for count in (37, 203, 999):
        weights = jnp.asarray(np.append(-60.0, rng.normal(size=count)).astype(np.float32))
        outputs = jnp.where(jnp.arange(count + 1) == 0, -90.0, 90.0)[:, None, None] * jnp.ones((1, 3, 1))
        draws = Flat(outputs, {}, weights - jax.scipy.special.logsumexp(weights))
        found = class_summary(credo.likelihoods.bernoulli(), draws)
        assert 0 <= found["mean"].min() <= found["mean"].max() <= 1
        assert (found["entropy"] >= 0).all()
        below = cdf(credo.likelihoods.gaussian(1.0), draws, jnp.full((3, 1), 1000.0))
        assert below.max() <= 1
