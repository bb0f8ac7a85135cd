"""The node hierarchy (E): its densities against SciPy's, and its draws against its densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import credo
from credo.errors import InputError, Refusal
from credo.priors.node_hierarchy import pack, unpack


def bound(nodes=3, inputs=2):
    network = credo.networks.shallow(nodes)
    params = network.init(jax.random.key(0), jnp.zeros((1, inputs)), 1).params
    return network, network.info(params), params


def test_hyperprior_is_normal_inverse_gamma_and_wishart():
    """The density of L times the Jacobian of L → LL', by automatic differentiation, is Wishart's."""
    prior = credo.priors.node_hierarchy(hidden_scale=2.0, output_scale=(3.0, 1.5), hidden_mean=0.7, freedom=5.0)
    _, info, _ = bound()
    with jax.enable_x64(True):
        hyper = jax.jit(lambda k: prior.sample_hyper(k, info))(jax.random.key(1))
        packed = hyper["hidden"]["root"]
        rows = np.tril_indices(3)
        jacobian = jax.jit(jax.jacobian(lambda v: (unpack(v, 3) @ unpack(v, 3).T)[rows]))(packed)
        precision = np.asarray(unpack(packed, 3) @ unpack(packed, 3).T)
        wishart = stats.wishart(8, np.eye(3) / (4.0 * 4.0)).logpdf(precision)
        expected = wishart + np.linalg.slogdet(jacobian)[1]
        u = float(hyper["output"]["log_scale"])
        expected += stats.invgamma(3.0, scale=1.5).logpdf(np.exp(2 * u)) + np.log(2) + 2 * u
        expected += stats.norm(0, 1).logpdf(hyper["output"]["mean"])
        expected += stats.norm(0, 0.7).logpdf(hyper["hidden"]["mean"]).sum()
        np.testing.assert_allclose(jax.jit(prior.log_hyperprior)(hyper), expected, rtol=1e-9)
        np.testing.assert_allclose(pack(unpack(packed, 3)), packed, rtol=1e-12)


def test_weights_are_normal_given_hyper_parameters():
    prior = credo.priors.node_hierarchy(linear_scale=0.5)
    _, info, params = bound()
    with jax.enable_x64(True):
        hyper = jax.jit(lambda k: prior.sample_hyper(k, info))(jax.random.key(1))
        params = jax.tree.map(lambda x: jnp.asarray(np.random.default_rng(0).normal(size=x.shape)), params)
        root = unpack(hyper["hidden"]["root"], 3)
        gamma = np.column_stack([params["hidden"]["bias"], params["hidden"]["kernel"]])
        nodes = stats.multivariate_normal(hyper["hidden"]["mean"], np.linalg.inv(root @ root.T))
        expected = nodes.logpdf(gamma).sum()
        beta = stats.norm(hyper["output"]["mean"], np.exp(hyper["output"]["log_scale"]))
        expected += beta.logpdf(params["output"]["kernel"]).sum()
        linear = np.concatenate([params["linear"]["kernel"].ravel(), params["linear"]["bias"]])
        expected += stats.norm(0, 0.5).logpdf(linear).sum()
        distribution = prior.bind(info, hyper)
        np.testing.assert_allclose(distribution.log_prob(params), expected, rtol=1e-9)


def test_draws_have_the_means_and_covariances_they_claim():
    """20,000 draws: five standard errors of a covariance are about 5 % of its diagonal."""
    prior = credo.priors.node_hierarchy(hidden_scale=2.0, freedom=8.0)
    _, info, _ = bound(1)
    with jax.enable_x64(True):
        hyper = jax.jit(lambda k: prior.sample_hyper(k, info))(jax.random.key(3))
        root = unpack(hyper["hidden"]["root"], 3)
        drawn = jax.jit(lambda k: prior.bind(info, hyper).sample(k, 20_000))(jax.random.key(4))
        gamma = np.column_stack([drawn["hidden"]["bias"][:, 0], drawn["hidden"]["kernel"][:, 0]])
        covariance = np.linalg.inv(root @ root.T)
        np.testing.assert_allclose(np.cov(gamma.T), covariance, atol=0.06 * np.diag(covariance).max())
        sample = jax.jit(jax.vmap(lambda k: prior.sample_hyper(k, info)["hidden"]["root"]))
        draws = sample(jax.random.split(jax.random.key(5), 20_000))
        roots = jax.vmap(lambda v: unpack(v, 3))(draws)
        mean = np.asarray(jnp.linalg.inv(roots @ roots.swapaxes(1, 2)).mean(0))
        np.testing.assert_allclose(mean, 4.0 * np.eye(3), atol=0.25)


def test_other_networks_and_bad_numbers_are_refused():
    model = credo.Model(credo.networks.mlp([3]), credo.priors.node_hierarchy(), credo.likelihoods.gaussian(0.1))
    with pytest.raises(Refusal, match=r"credo\.networks\.shallow"):
        credo.fit(jax.random.key(0), model, (np.ones((8, 1)), np.ones(8)), "map", steps=2)
    with pytest.raises(InputError, match="freedom"):
        credo.priors.node_hierarchy(freedom=1.0)


def test_it_stands_beside_other_priors_under_by_path():
    """The same density and draws of nodes, whoever else has weights."""
    network = credo.networks.embedded(credo.networks.shallow(3), [(1, 4)], 2)
    params = network.init(jax.random.key(0), jnp.ones((2, 2)), 1).params
    table, inner = params["embedding_0"]["table"], {k: x for k, x in params.items() if k != "embedding_0"}
    alone = credo.priors.node_hierarchy()
    both = credo.priors.by_path({"embedding_*": credo.priors.normal(0.5), "*": alone})
    hyper = both.init(network.info(params))
    weights = both.bind(network.info(params), hyper)
    own = alone.bind(network.network.info(inner), hyper["part_1"])
    wanted = own.log_prob(inner) + jax.scipy.stats.norm.logpdf(table, 0.0, 0.5).sum()
    assert float(weights.log_prob(params)) == pytest.approx(float(wanted), rel=1e-5)
    drawn = weights.sample(jax.random.key(1), 2)
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(lambda x: (2, *x.shape), params)
