"""Priors made of others or of given weights: by_path, centred_on, as_prior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from credo import likelihoods, priors
from credo.core.batch import Batch
from credo.core.capabilities import GaussianDistribution, ask
from credo.core.model import Model
from credo.core.tree import leaf, struct
from credo.errors import InputError, NoDensity, Refusal
from credo.networks import mlp
from credo.posteriors import MeanField, Samples

NETWORK = mlp([5])
PARAMS = NETWORK.init(jax.random.key(0), jnp.zeros((1, 3)), 2).params
INFO = NETWORK.info(PARAMS)


def by_tree(fn):
    return jax.tree.map(fn, PARAMS)


def by_tree_of(tree):
    """The arrays with an axis over one member."""
    return jax.tree.map(lambda x: x[None], tree)


def arrays(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def check_gaussian(bound):
    """The pair (mean, std) must give the log density that the prior gives."""
    mean, std = bound.gaussian()
    trees = jax.tree.map(np.asarray, (PARAMS, mean, std))
    each = jax.tree.map(lambda x, m, s: scipy.stats.norm.logpdf(x, m, s).sum(), *trees)
    np.testing.assert_allclose(jax.jit(bound.log_prob)(PARAMS), sum(jax.tree.leaves(each)), rtol=1e-5)


def test_first_glob_wins():
    prior = priors.by_path(
        {"output/*": priors.normal(3.0), "*/bias": priors.normal(0.1), "*": priors.fan_in_normal(1.0)}
    )
    bound = prior.bind(INFO, prior.init())
    _, std = bound.gaussian()
    flat = {"/".join((a, b)): float(np.ravel(x)[0]) for a, d in std.items() for b, x in d.items()}
    expected = {"hidden_0/bias": 0.1, "hidden_0/kernel": 3**-0.5, "output/bias": 3.0, "output/kernel": 3.0}
    assert flat == pytest.approx(expected)
    check_gaussian(bound)


def test_parts_draw_from_their_own_prior():
    """Standard deviations of 2,000 and more draws; false alarms: 2 tests at 1e-4."""
    prior = priors.by_path({"*/bias": priors.normal(0.1), "*": priors.laplace(1.0)})
    draws = prior.bind(INFO, {}).sample(jax.random.key(1), 2000)
    assert jax.tree.structure(draws) == jax.tree.structure(PARAMS)
    z = scipy.stats.norm.isf(0.5e-4)
    for name, variance in (("bias", 0.01), ("kernel", 2.0)):
        squares = np.asarray(draws["hidden_0"][name]) ** 2
        assert abs(squares.mean() - variance) < z * squares.std() / squares.size**0.5


def test_no_glob():
    with pytest.raises(InputError, match=r"No glob of by_path \(\"\*/kernel\"\) matches 'hidden_0/bias'"):
        priors.by_path({"*/kernel": priors.normal(1.0)}).bind(INFO, {})
    with pytest.raises(InputError, match="at least one"):
        priors.by_path({})
    with pytest.raises(InputError, match="expects a prior"):
        priors.by_path({"*": 1.0})


def test_not_gaussian_where_a_part_is_not():
    prior = priors.by_path({"*/bias": priors.normal(0.1), "*": priors.laplace(1.0)})
    assert prior.bind(INFO, {}).gaussian() is None


@struct
class _Scaled(priors.elementwise.ElementwisePrior):
    """A prior with a hyper-parameter of its own."""

    start: float = leaf(0.0)

    def init(self):
        return {"log_scale": jnp.asarray(self.start)}

    def log_hyperprior(self, params):
        return jax.scipy.stats.norm.logpdf(params["log_scale"])

    def bind(self, info, params):
        return priors.normal(jnp.exp(params["log_scale"])).bind(info, {})

    bind_part = bind


def test_hyper_parameters_of_the_parts():
    prior = priors.by_path({"*/bias": priors.normal(1.0), "*": _Scaled(0.5)})
    params = prior.init()
    assert params == {"part_1": {"log_scale": 0.5}}
    np.testing.assert_allclose(prior.log_hyperprior(params), scipy.stats.norm.logpdf(0.5), rtol=1e-6)
    _, std = prior.bind(INFO, params).gaussian()
    np.testing.assert_allclose(std["hidden_0"]["kernel"], np.full((5, 3), np.exp(0.5)), rtol=1e-6)


def test_nested_by_path():
    inner = priors.by_path({"*/bias": priors.normal(0.2), "*": priors.normal(0.3)})
    _, std = priors.by_path({"output/*": inner, "*": priors.normal(1.0)}).bind(INFO, {}).gaussian()
    assert float(std["output"]["bias"][0]) == pytest.approx(0.2)
    assert float(std["output"]["kernel"][0, 0]) == pytest.approx(0.3)
    assert float(std["hidden_0"]["kernel"][0, 0]) == 1.0


def test_centred_on():
    centre = by_tree(lambda x: np.asarray(x) + 1)
    bound = priors.centred_on(centre, {"*/bias": 2.0, "*": 0.5}).bind(INFO, {})
    mean, std = bound.gaussian()
    jax.tree.map(np.testing.assert_allclose, mean, centre)
    assert float(std["output"]["bias"][0]) == 2.0
    assert float(std["output"]["kernel"][0, 0]) == 0.5
    check_gaussian(bound)
    draws = bound.sample(jax.random.key(0), 4000)
    z = scipy.stats.norm.isf(0.5e-4 / 10)  # 10 kernel entries, false alarm 1e-4 in all
    error = np.asarray(draws["output"]["kernel"]).mean(0) - np.asarray(centre["output"]["kernel"])
    assert (np.abs(error) < z * 0.5 / 4000**0.5).all()


def test_centred_on_takes_whole_parameters_and_keeps_arrays_traced():
    prior = priors.centred_on({"network": PARAMS, "likelihood": {}, "prior": {}}, 1.0)
    assert len(jax.tree.leaves(prior)) == 5
    gradient = jax.grad(lambda p: p.bind(INFO, {}).log_prob(by_tree(jnp.zeros_like)))(prior)
    jax.tree.map(lambda g, x: np.testing.assert_allclose(g, -x, rtol=1e-6), gradient.centre, PARAMS)


def test_centred_on_checks_the_network():
    wrong = PARAMS | {"output": PARAMS["output"] | {"kernel": jnp.zeros((3, 5))}}
    with pytest.raises(InputError, match=r"'output/kernel' has shape \(3, 5\) in place of \(2, 5\)"):
        priors.centred_on(wrong).bind(INFO, {})
    everything = r"'more' is extra, 'output/bias' is lacking, 'output/kernel' has shape"
    wrong = {"hidden_0": PARAMS["hidden_0"], "output": {"kernel": jnp.zeros((3, 5))}, "more": jnp.zeros(2)}
    with pytest.raises(InputError, match=everything):
        priors.centred_on(wrong).bind(INFO, {})
    whole = {"network": by_tree_of(wrong)}
    with pytest.raises(InputError, match=everything):
        priors.as_prior(MeanField(whole, whole, {}, {})).bind(INFO, {})
    with pytest.raises(InputError, match=r"No glob of centred_on"):
        priors.centred_on(PARAMS, {"*/bias": 1.0}).bind(INFO, {})
    with pytest.raises(InputError, match="positive"):
        priors.centred_on(PARAMS, -1.0)
    with pytest.raises(InputError, match="got none"):
        priors.centred_on({})


def test_centred_on_for_a_part():
    prior = priors.by_path({"hidden_0/*": priors.centred_on(PARAMS, 0.1), "*": priors.fan_in_normal(1.0)})
    bound = prior.bind(INFO, {})
    mean, _ = bound.gaussian()
    np.testing.assert_allclose(mean["hidden_0"]["kernel"], PARAMS["hidden_0"]["kernel"])
    assert (mean["output"]["kernel"] == 0).all()
    check_gaussian(bound)


def mean_field(members):
    rng = np.random.default_rng(7)
    mean = {"network": PARAMS, "prior": {"log_scale": np.zeros(())}}
    mean = jax.tree.map(lambda x: rng.normal(size=(members, *x.shape)).astype("float32"), mean)
    std = jax.tree.map(lambda m: 0.1 + 0.1 * np.abs(m), mean)
    mean, std = jax.tree.map(jnp.asarray, (mean, std))
    return MeanField(mean, std, {"likelihood": {"log_scale": jnp.zeros((members, 2))}}, {})


def test_as_prior_of_one_mean_field():
    q = mean_field(1)
    bound = priors.as_prior(q).bind(INFO, {})
    mean, std = bound.gaussian()
    jax.tree.map(lambda m, x: np.testing.assert_allclose(m, x[0]), mean, q.mean["network"])
    jax.tree.map(lambda s, x: np.testing.assert_allclose(s, x[0], rtol=1e-6), std, q.std["network"])
    check_gaussian(bound)
    part = priors.by_path({"output/*": priors.as_prior(q), "*": priors.normal(1.0)}).bind(INFO, {})
    np.testing.assert_allclose(part.gaussian()[0]["output"]["bias"], q.mean["network"]["output"]["bias"][0])


@pytest.mark.full
def test_as_prior_of_a_mixture():
    q = mean_field(3)
    bound = priors.as_prior(q).bind(INFO, {})
    assert ask(bound, GaussianDistribution).gaussian() is None
    each = [
        sum(
            scipy.stats.norm.logpdf(x, m[s], d[s]).sum()
            for x, m, d in zip(*map(arrays, (PARAMS, q.mean["network"], q.std["network"])))
        )
        for s in range(3)
    ]
    np.testing.assert_allclose(bound.log_prob(PARAMS), scipy.special.logsumexp(each) - np.log(3), rtol=1e-5)
    draws = jax.jit(lambda k: bound.sample(k, 4))(jax.random.key(0))
    assert jax.tree.map(lambda x: x.shape, draws) == jax.tree.map(lambda x: (4, *x.shape), PARAMS)
    with pytest.raises(Refusal, match="one member"):
        priors.by_path({"*": priors.as_prior(q)}).bind(INFO, {})


def test_as_prior_of_other_distributions():
    assert priors.as_prior(priors.normal(1.0)) == priors.normal(1.0)
    bare = priors.as_prior(priors.laplace(1.0).bind(INFO, {})).bind(INFO, {})
    expected = priors.laplace(1.0).bind(INFO, {}).log_prob(PARAMS)
    np.testing.assert_allclose(bare.log_prob(PARAMS), expected, rtol=1e-6)
    draws = Samples({"network": by_tree(lambda x: x[None, None])}, {})
    with pytest.raises(NoDensity):
        priors.as_prior(draws).bind(INFO, {}).log_prob(PARAMS)
    with pytest.raises(InputError, match="as_prior expects"):
        priors.as_prior(3.0)


def test_as_prior_checks_the_network():
    other = mlp([4])
    info = other.info(other.init(jax.random.key(0), jnp.zeros((1, 3)), 2).params)
    with pytest.raises(InputError, match="shape"):
        priors.as_prior(mean_field(1)).bind(info, {})


def test_in_a_model_under_jit():
    batch = Batch(jnp.ones((4, 3)), jnp.ones((4, 2)), jnp.ones(4), jnp.asarray(4.0))
    likelihood = likelihoods.gaussian(noise=1.0)
    for prior in (priors.as_prior(mean_field(1)), priors.as_prior(mean_field(2)), priors.centred_on(PARAMS)):
        model = Model(NETWORK, prior, likelihood)
        variables = jax.jit(lambda m: m.init(jax.random.key(0), batch))(model)
        value, grads = jax.jit(jax.value_and_grad(lambda v, m: m.log_joint(v, batch)[0]))(variables, model)
        assert jnp.isfinite(value)
        assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(grads))
