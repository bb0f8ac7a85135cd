"""Families of q: exact where the posterior lies in them, densities that are their own draws', saved and used again."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo.core.tree import Layout, struct
from credo.errors import InputError, Refusal
from credo.evaluation import audit
from credo.methods.variational.bayes_by_backprop import BayesByBackprop
from credo.methods.variational.families import (
    FullFamily,
    KroneckerFamily,
    LowRankFamily,
    MeanFieldFamily,
    MixtureFamily,
)
from credo.networks.mlp import MLP
from oracles import coefficients, linear

PROBLEM = linear(num_rows=64, dims=3)
DATA = (PROBLEM.inputs, PROBLEM.targets)
EXACT = audit.Conjugate(PROBLEM.inputs, PROBLEM.targets, PROBLEM.noise, PROBLEM.scale)
DOUBLE = dataclasses.replace(PROBLEM.model(), network=MLP((), dtype="float64"))
FAMILIES = {
    "low_rank": {"rank": 2},
    "full": {},
    "kronecker": {},
    "averaged": {"family": "mixture", "components": 2},
    "joint": {"family": "mixture", "components": 2, "bound": "joint"},
}
X = np.linspace(-1, 1, 48, dtype=np.float32)[:, None]
Y = np.sin(3 * X[:, 0])


@struct
class Precise(BayesByBackprop):
    """The same in double precision. On a quadratic log p pairs leave no noise in the means, and the path gradient none
    in the factors once q is the posterior: what is left is the error of the optimiser."""

    precision = "float64"


def method(name, **options):
    return BayesByBackprop(**({"family": name} | FAMILIES[name] | options))


def matrix(tree, columns=()):
    """A tree of one member as a vector, or as a matrix with these last axes."""
    return np.concatenate([np.asarray(x[0], np.float64).reshape(-1, *columns) for x in jax.tree.leaves(tree)])


def precise(family, **options):
    options = {"path_gradient": True, "num_samples": 8, "antithetic": True} | options
    return credo.fit(jax.random.key(0), DOUBLE, DATA, Precise(family=family, **options), steps=6000).posterior


def test_full_covariance_is_the_conjugate_posterior():
    """Mean and covariance to 1e-3 of themselves, entry by entry."""
    q = precise("full")
    factor = np.asarray(q.factor[0])
    assert factor.dtype == np.float64
    np.testing.assert_allclose(coefficients(q.mean["network"])[0], PROBLEM.mean, rtol=1e-3)
    np.testing.assert_allclose(factor @ factor.T, PROBLEM.covariance, rtol=1e-3, atol=1e-3 * PROBLEM.covariance.max())


def test_low_rank_of_all_ranks_is_full():
    q = precise("low_rank", rank=4)
    std, factor = matrix(q.std), matrix(q.factor, (4,))
    covariance = np.outer(std, std) * (np.eye(4) + factor @ factor.T)
    np.testing.assert_allclose(coefficients(q.mean["network"])[0], PROBLEM.mean, rtol=1e-3)
    np.testing.assert_allclose(covariance, PROBLEM.covariance, atol=1e-3 * PROBLEM.covariance.max())


def test_mean_field_is_the_closest_product():
    """The noise of its path gradient does not die out: 32 pairs and 3,000 averaged steps leave about 1 %."""
    q = precise("mean_field", path_gradient=False, num_samples=64)
    np.testing.assert_allclose(coefficients(q.mean["network"])[0], PROBLEM.mean, rtol=1e-3)
    np.testing.assert_allclose(coefficients(q.std["network"])[0], PROBLEM.mean_field_std, rtol=0.02)


@pytest.fixture(scope="module", params=list(FAMILIES))
def fitted(request):
    return request.param, credo.fit(jax.random.key(0), PROBLEM.model(), DATA, method(request.param), steps=4000)


def test_families_are_ordered_by_their_bounds(fitted):
    """No bound is above the evidence; a richer family's is not below mean field's by more than the noise of a fit."""
    name, fit = fitted
    bound = audit.elbo(jax.random.key(1), fit, DATA)
    assert bound.below(EXACT.log_evidence())
    product = EXACT.log_evidence() - audit.gaussian_kl(PROBLEM.mean, PROBLEM.mean_field_std, EXACT)
    assert bound.value > product - 4 * bound.error - 0.02
    if name in ("full", "kronecker", "joint"):
        assert bound.value > product + 0.2


def test_densities_are_those_of_the_draws(fitted):
    """E_q[log q] from `log_prob` equals −H of a Gaussian with the covariance of 20,000 draws (Gaussian families)."""
    name, fit = fitted
    if fit.posterior.members > 1:
        pytest.skip("a mixture is not Gaussian")
    draws = fit.posterior.sample(jax.random.key(2), 20_000)
    theta = jax.vmap(Layout.of(jax.tree.map(lambda x: x[0], draws)).ravel)(draws)
    density = np.asarray(jax.jit(jax.vmap(fit.posterior.log_prob))(draws), np.float64)
    expected = stats.multivariate_normal(theta.mean(0), np.cov(theta.T)).logpdf(theta)
    assert abs(density.mean() - expected.mean()) < 0.01  # a covariance from 20,000 draws is off by 1 %
    assert np.abs(density - expected).max() < 1.0
    assert name in FAMILIES


def test_posteriors_are_saved(fitted, tmp_path):
    _, fit = fitted
    fit.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    first, second = (credo.predict(jax.random.key(1), f, PROBLEM.inputs[:4]).std for f in (fit, again))
    np.testing.assert_array_equal(first, second)


@pytest.mark.full
def test_posteriors_are_judged_and_are_priors(fitted):
    _, fit = fitted
    assert np.isfinite(credo.diagnostics.pareto_k(jax.random.key(2), fit, DATA, num=200).k)
    later = PROBLEM.model().with_prior(credo.priors.as_prior(fit.posterior))
    assert credo.fit(jax.random.key(0), later, DATA, BayesByBackprop(), steps=50).status.ok


@pytest.mark.full
@pytest.mark.parametrize("path", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", list(FAMILIES))
def test_networks_with_inferred_noise(name, path):
    """Every family over weights and noise of a network; the marginal over weights is a prior for the next fit."""
    model = credo.Model(
        credo.networks.mlp([4], activation="tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian("inferred")
    )
    fit = credo.fit(jax.random.key(0), model, (X, Y), method(name, path_gradient=path), steps=30, batch_size=16)
    assert fit.status.outcome == "finished"
    draws = fit.posterior.sample(jax.random.key(1), 3)
    assert np.isfinite(jax.vmap(fit.posterior.log_prob)(draws)).all()
    assert np.isfinite(jax.vmap(lambda p: fit.posterior.log_prob({"network": p}))(draws["network"])).all()


def test_the_marginal_of_a_full_covariance():
    mean = {"likelihood": jnp.zeros((1, 2)), "network": jnp.ones((1, 3))}
    factor = np.tril(np.random.default_rng(0).normal(size=(5, 5))) + 3 * np.eye(5)
    q = credo.posteriors.Multivariate(mean, jnp.asarray(factor[None], jnp.float32), {}, {})
    theta = np.array([0.3, 2.0, -1.0])
    expected = stats.multivariate_normal(np.ones(3), (factor @ factor.T)[2:, 2:]).logpdf(theta)
    assert float(q.log_prob({"network": jnp.asarray(theta, jnp.float32)})) == pytest.approx(expected, rel=1e-4)


def test_a_matrix_normal_has_the_kronecker_covariance():
    """Cov[vec Θ] = AA' ⊗ BB', and the density is that of this covariance."""
    rng = np.random.default_rng(0)
    a, b = (np.tril(rng.normal(size=(n, n)), -1) + 2 * np.eye(n) for n in (2, 3))
    mean = {"network": {"kernel": jnp.zeros((1, 2, 3)), "bias": jnp.zeros((1, 1))}}
    rows, columns = ({"network/kernel": jnp.asarray(x[None], jnp.float32)} for x in (a, b))
    q = credo.posteriors.MatrixNormal(mean, rows, columns, {"network/bias": jnp.ones((1, 1))}, {}, {})
    covariance = np.kron(a @ a.T, b @ b.T)
    draws = q.sample(jax.random.key(0), 50_000)["network"]["kernel"].reshape(-1, 6)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.03 * covariance.max())
    theta = rng.normal(size=(2, 3))
    params = {"network": {"kernel": jnp.asarray(theta, jnp.float32), "bias": jnp.zeros(1)}}
    expected = stats.multivariate_normal(np.zeros(6), covariance).logpdf(theta.ravel()) + stats.norm.logpdf(0)
    assert float(q.log_prob(params)) == pytest.approx(expected, rel=1e-4)


def stated(name):
    """A family over three numbers, and some parameters of it."""
    layout = Layout.of({"network": {"a": jnp.zeros((2, 1)), "b": jnp.zeros(1)}})
    family = {
        "mean_field": MeanFieldFamily(layout), "low_rank": LowRankFamily(layout, 2), "full": FullFamily(layout),
        "kronecker": KroneckerFamily(layout, (("network/a", 2, 1),)),
        "averaged": MixtureFamily(layout, 2, "averaged"), "joint": MixtureFamily(layout, 2, "joint"),
    }[name]  # fmt: skip
    centres = [jnp.asarray([0.0, 0.3, -0.2]), jnp.asarray([0.4, 0.0, 0.5])]
    q = family.init(jax.random.key(1), centres[: family.components], 0.5)
    return family, jax.tree.map(lambda x: x + 0.1 * jnp.cos(jnp.arange(x.size * 1.0)).reshape(x.shape), q)


@pytest.mark.parametrize("name", ["mean_field", "low_rank", "full", "kronecker", "averaged", "joint"])
def test_the_gradient_along_the_path_is_that_of_the_same_bound(name):
    """E over draws of the path gradient is the gradient of the entropy: z below the Bonferroni bound for 1e-4."""
    family, q = stated(name)

    @jax.jit
    def both(key):
        eps = family.noise(key, q, 200)
        at = lambda which: jax.grad(lambda p: which(p, family.draws(p, eps)))(q)  # noqa: E731
        flat = lambda tree: jnp.concatenate([x.ravel() for x in jax.tree.leaves(tree)])  # noqa: E731
        return flat(at(family.path_entropy)), flat(at(family.entropy))

    path, whole = (np.asarray(x, np.float64) for x in jax.lax.map(both, jax.random.split(jax.random.key(0), 400)))
    gap = path - whole
    z = gap.mean(0) / np.maximum(gap.std(0) / np.sqrt(len(gap)), 1e-7)
    assert np.abs(z).max() < stats.norm.isf(1e-4 / 2 / z.size)


@pytest.mark.parametrize("bound", ["averaged", "joint"])
def test_a_mixture_trains_the_bound_that_it_names(bound):
    """Under "averaged" every part is the best product; under "joint" the parts share the posterior."""
    options = {"components": 2, "bound": bound, "num_samples": 16, "mean": "prior"}
    q = precise("mixture", **options)
    std = np.stack([coefficients(jax.tree.map(lambda x, i=i: x[i : i + 1], q.std["network"]))[0] for i in (0, 1)])
    mean = np.stack([coefficients(jax.tree.map(lambda x, i=i: x[i : i + 1], q.mean["network"]))[0] for i in (0, 1)])
    away = np.abs(mean - PROBLEM.mean).max() / PROBLEM.mean_field_std.max()
    assert (away < 0.05) == (bound == "averaged")
    if bound == "averaged":
        np.testing.assert_allclose(std, np.broadcast_to(PROBLEM.mean_field_std, std.shape), rtol=0.03)


def test_a_joint_mixture_keeps_two_modes():
    """y = |w| + noise: the joint bound is above the averaged one, and both are below the evidence by quadrature."""
    problem = audit.problems()["bimodal"]
    bounds = {}
    for bound in ("averaged", "joint"):
        q = BayesByBackprop(family="mixture", components=4, bound=bound, mean="prior", num_samples=4)
        fit = credo.fit(jax.random.key(0), problem.model, problem.data, q, steps=4000)
        bounds[bound] = audit.elbo(jax.random.key(1), fit, problem.data)
    slack = 4 * np.hypot(bounds["joint"].error, bounds["averaged"].error)
    assert bounds["joint"].value > bounds["averaged"].value - slack


def test_sizes_and_names_are_refused_in_a_sentence():
    big = credo.Model(credo.networks.mlp([2500]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    with pytest.raises(Refusal, match="at most 5,000"):
        credo.fit(jax.random.key(0), big, (X, Y), BayesByBackprop(family="full"), steps=1)
    wide = dataclasses.replace(big, network=credo.networks.mlp([5001]))
    with pytest.raises(Refusal, match=r"'hidden_0/kernel' is 5,001 × .*, 'output/kernel' is 1 × 5,001"):
        credo.fit(jax.random.key(0), wide, (X, Y), BayesByBackprop(family="kronecker"), steps=1)
    for options, match in (
        ({"family": "banana"}, "Unknown family"),
        ({"family": "low_rank", "rank": 0}, "at least 1"),
        ({"family": "mixture", "bound": "loose"}, "averaged"),
    ):
        with pytest.raises(InputError, match=match):
            credo.fit(jax.random.key(0), PROBLEM.model(), DATA, BayesByBackprop(**options), steps=1)
    with pytest.raises(Refusal, match="mean_field"):
        method("full", estimator="local").prepare(PROBLEM.model())


@pytest.mark.parametrize("build", [MeanFieldFamily, LowRankFamily, KroneckerFamily])
def test_trees_and_flat_vectors_agree(build):
    """The same numbers, laid out as one vector or as a tree of arrays."""
    rng = np.random.default_rng(0)
    tree = {"network": {"a": jnp.asarray(rng.normal(size=(3, 2))), "b": jnp.asarray(rng.normal(size=3))}}
    extra = {"kernels": (("network/a", 3, 2),)} if build is KroneckerFamily else {}
    found = []
    for limit in (100, -1):
        layout = Layout.of(tree, limit=limit)
        family = build(layout, **extra)
        q = jax.jit(family.init)(jax.random.key(0), [layout.ravel(tree)], 0.3)
        if build is LowRankFamily:  # its start is random, and drawn array by array
            factor = jax.tree.map(lambda x: 0.1 * jnp.cos(jnp.arange(x.size * 5.0)).reshape(*x.shape, 5), tree)
            q["factor"] = jax.vmap(layout.ravel, -1, -1)(factor)
            q["log_std"] = jax.tree.map(lambda x: jnp.full_like(x, -1.0), q["mean"])
        theta = layout.ravel(jax.tree.map(lambda x: x + 0.1, tree))
        moments = [layout.unravel(m) for m in jax.jit(family.moments)(q)]
        found.append((jax.jit(family.log_prob)(q, theta), jax.jit(family.entropy)(q, None), moments))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), *found)


@pytest.mark.full
def test_a_large_network_stays_a_tree():
    """Above the limit of flat vectors, low rank and Kronecker work on trees of arrays."""
    model = credo.Model(credo.networks.mlp([1500, 150]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    for name in ("low_rank", "kronecker"):
        fit = credo.fit(jax.random.key(0), model, (X, Y), method(name), steps=2)
        assert fit.outcome == "finished"
        assert np.isfinite(float(fit.posterior.log_prob(jax.tree.map(lambda x: x[0], fit.posterior.mean))))
