"""Every prior against scipy, by sampling moments, under jit and by gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from credo import priors
from credo.core.network import ParamInfo
from credo.errors import InputError, Refusal
from credo.networks import mlp

NETWORK = mlp([5])
PARAMS = NETWORK.init(jax.random.key(0), jnp.zeros((1, 3)), 2).params
INFO = NETWORK.info(PARAMS)


def mixture_log_density(x):
    wide, narrow = (scipy.stats.norm.logpdf(x, 0, s) for s in (2.0, 0.1))
    return np.logaddexp(np.log(0.25) + wide, np.log(0.75) + narrow)


# name: (prior, reference log density, variance) of one hidden kernel entry; the hidden layer has fan-in 3
CASES = {
    "normal": (priors.normal(0.7), lambda x: scipy.stats.norm.logpdf(x, 0, 0.7), 0.49),
    "fan_in": (priors.fan_in_normal(2.0), lambda x: scipy.stats.norm.logpdf(x, 0, 2 / 3**0.5), 4 / 3),
    "mixture": (priors.scale_mixture(0.25, 2.0, 0.1), mixture_log_density, 0.25 * 4 + 0.75 * 0.01),
    "laplace": (priors.laplace(0.5), lambda x: scipy.stats.laplace.logpdf(x, 0, 0.5), 2 * 0.25),
    "student_t": (priors.student_t(9.0, 0.5), lambda x: scipy.stats.t.logpdf(x, 9, 0, 0.5), 0.25 * 9 / 7),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def only_kernel(prior):
    """Density of the hidden kernel alone: the others get a unit normal, whose log density is taken off."""
    pieces = priors.by_path({"hidden_0/kernel": prior, "*": priors.normal(1.0)}).bind(INFO, {})
    rest = priors.normal(1.0).bind(INFO, {})

    def log_prob(kernel):
        params = PARAMS | {"hidden_0": PARAMS["hidden_0"] | {"kernel": kernel}}
        zero = PARAMS | {"hidden_0": PARAMS["hidden_0"] | {"kernel": jnp.zeros_like(kernel)}}
        return pieces.log_prob(params) - rest.log_prob(zero) - 15 * 0.5 * jnp.log(2 * jnp.pi)

    return log_prob


def test_log_prob_is_scipys(case):
    prior, reference, _ = case
    x = np.linspace(-3, 3, 15).reshape(5, 3)
    np.testing.assert_allclose(jax.jit(only_kernel(prior))(jnp.asarray(x)), reference(x).sum(), rtol=2e-5)


def test_whole_tree_is_a_sum(case):
    prior, reference, _ = case
    if isinstance(prior, priors.FanInNormal):
        pytest.skip("its scale differs by layer; see test_fan_in")
    expected = sum(reference(np.asarray(x)).sum() for x in jax.tree.leaves(PARAMS))
    np.testing.assert_allclose(jax.jit(prior.bind(INFO, {}).log_prob)(PARAMS), expected, rtol=2e-5)


def test_sampling_moments(case):
    """Mean, variance and a Kolmogorov test; false alarms: 3 tests × 5 priors at 1e-4 each, 1.5e-3 in all."""
    prior, reference, variance = case
    shapes = jax.eval_shape(lambda k: prior.bind(INFO, {}).sample(k, 2000), jax.random.key(0))
    assert jax.tree.map(lambda x: x.shape[1:], shapes) == jax.tree.map(lambda x: x.shape, PARAMS)
    info = {"hidden_0": {"kernel": INFO["hidden_0"]["kernel"]}}
    draws = prior.bind(info, {}).sample(jax.random.key(3), 2000)
    x = np.asarray(draws["hidden_0"]["kernel"], np.float64).ravel()
    z = scipy.stats.norm.isf(0.5e-4)
    assert abs(x.mean()) < z * np.sqrt(variance / x.size)
    assert abs((x**2).mean() - variance) < z * (x**2).std() / np.sqrt(x.size)
    grid = np.linspace(-40, 40, 400_001)
    cdf = np.cumsum(np.exp(reference(grid))) * (grid[1] - grid[0])
    assert scipy.stats.kstest(x, lambda v: np.interp(v, grid, cdf)).pvalue > 1e-4


def test_another_scale_is_the_same_program():
    traces = []

    @jax.jit
    def log_prob(prior, params):
        traces.append(prior)
        return prior.bind(INFO, {}).log_prob(params)

    centre = jax.tree.map(jnp.zeros_like, PARAMS)
    builders = [
        priors.normal,
        priors.fan_in_normal,
        lambda s: priors.fan_in_normal(1.0, bias_scale=s),
        lambda s: priors.scale_mixture(0.5, s, 0.1),
        priors.laplace,
        lambda s: priors.student_t(3.0, s),
        lambda s: priors.student_t(s, 1.0),
        lambda s: priors.by_path({"*/bias": priors.normal(s), "*": priors.laplace(2 * s)}),
        lambda s: priors.centred_on(jax.tree.map(lambda x: x + s, centre), {"*": s}),
    ]
    for build in builders:
        traces.clear()
        values = [log_prob(build(scale), PARAMS) for scale in (0.5, 2, 0.7)]
        assert len(traces) <= 1
        assert len(set(map(float, values))) == 3


def test_builders_take_traced_numbers():
    def value(scale):
        return priors.scale_mixture(scale / 4, scale, scale / 10).bind(INFO, {}).log_prob(PARAMS)

    gradient = jax.jit(jax.grad(value))(1.0)
    difference = (value(1.01) - value(0.99)) / 0.02
    np.testing.assert_allclose(gradient, difference, rtol=1e-2)


def test_gradients_are_the_densitys_slope(case):
    prior, reference, _ = case
    x = np.linspace(-2.9, 3, 15).reshape(5, 3)
    gradient = jax.jit(jax.grad(only_kernel(prior)))(jnp.asarray(x))
    slope = (reference(x + 1e-6) - reference(x - 1e-6)) / 2e-6
    np.testing.assert_allclose(gradient, slope, rtol=2e-4, atol=1e-4)


def test_mixture_is_stable_far_out():
    bound = priors.scale_mixture(0.5, 1.0, 1e-3).bind(INFO, {})
    far = jax.tree.map(lambda x: jnp.full_like(x, 1e3), PARAMS)
    assert jnp.isfinite(bound.log_prob(far))
    gradient = jax.grad(bound.log_prob)(far)
    np.testing.assert_allclose(gradient["output"]["bias"], -1e3, rtol=1e-5)


def test_fan_in():
    mean, std = priors.fan_in_normal(2.0).bind(INFO, {}).gaussian()
    np.testing.assert_allclose(std["hidden_0"]["kernel"], np.full((5, 3), 2 / 3**0.5), rtol=1e-6)
    np.testing.assert_allclose(std["output"]["kernel"], np.full((2, 5), 2 / 5**0.5), rtol=1e-6)
    np.testing.assert_allclose(std["output"]["bias"], [2.0, 2.0])
    assert all((m == 0).all() for m in jax.tree.leaves(mean))
    _, std = priors.fan_in_normal(2.0, bias_scale=0.3).bind(INFO, {}).gaussian()
    np.testing.assert_allclose(std["output"]["bias"], [0.3, 0.3], rtol=1e-6)


def test_fan_in_refuses_what_has_none():
    info = {"norm": {"scale": ParamInfo("norm/scale", "scale", None, None, (4,))}}
    with pytest.raises(Refusal, match=r"'norm/scale'.*no fan-in.*by_path"):
        priors.fan_in_normal().bind(info, {})
    both = priors.by_path({"norm/scale": priors.normal(1.0), "*": priors.fan_in_normal()})
    assert both.bind(info, {}).gaussian()[1]["norm"]["scale"].shape == (4,)


def test_fan_in_names_all_that_have_none_and_its_advice_centres_scales_at_their_start():
    info = {
        "norm": {k: ParamInfo(f"norm/{k}", k, None, None, (4,)) for k in ("bias", "scale")},
        "out": {"kernel": ParamInfo("out/kernel", "kernel", 4, 1, (1, 4), 1)},
        "word": ParamInfo("word", "embedding", None, None, (3, 4)),
    }
    with pytest.raises(Refusal) as refusal:
        priors.fan_in_normal().bind(info, {})
    assert all(f"'{path}'" in str(refusal.value) for path in ("norm/scale", "word"))
    advice = 'by_path({"norm/scale": centred_on(start, 0.1), "word": normal(1.0), "*": fan_in_normal()}), with start = '
    assert advice in str(refusal.value)
    start = jax.tree.map(lambda i: jnp.ones(i.shape), info, is_leaf=lambda x: isinstance(x, ParamInfo))
    prior = priors.by_path(
        {"norm/scale": priors.centred_on(start, 0.1), "word": priors.normal(1.0), "*": priors.fan_in_normal()}
    )
    mean, std = prior.bind(info, {}).gaussian()
    assert float(mean["norm"]["scale"][0]) == 1.0
    assert float(std["norm"]["scale"][0]) == pytest.approx(0.1)
    assert float(mean["word"][0, 0]) == 0.0


@pytest.mark.parametrize("build", [priors.normal, priors.laplace, priors.fan_in_normal, priors.scale_mixture])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "wide"])
def test_numbers_must_be_positive(build, value):
    with pytest.raises(InputError, match="positive"):
        build(value)


def test_mix_must_be_a_share():
    with pytest.raises(InputError, match="between 0 and 1"):
        priors.scale_mixture(1.0)


def test_only_normals_are_gaussian(case):
    prior, _, _ = case
    known = prior.bind(INFO, {}).gaussian() is not None
    assert known == isinstance(prior, (priors.Normal, priors.FanInNormal))
