"""C1: masks on weight rows and on activations are one predictive; the optimum and its L2 term are the exact ones."""

import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import credo
from credo.core.batch import Batch
from credo.core.network import Variables
from credo.errors import InputError, NoDensity, Refusal
from credo.methods import MAP, MCDropout
from credo.methods.ensembles.dataflow import flow
from credo.posteriors import ActivationDropout, WeightDropout
from oracles import coefficients, linear

KEY = jax.random.key(0)
RATE = 0.3
DRAWS = 4000


# ------------------------------------------------------------------ the two ways agree
class Conv(nnx.Module):
    """Channels are masked before the second convolution, single units before the read-out."""

    def __init__(self, rngs):
        self.first = nnx.Conv(1, 3, (3, 3), rngs=rngs)
        self.channels = nnx.Dropout(RATE, broadcast_dims=(1, 2), rngs=rngs)
        self.second = nnx.Conv(3, 4, (3, 3), rngs=rngs)
        self.units = nnx.Dropout(RATE, rngs=rngs)
        self.last = nnx.Linear(64, 2, rngs=rngs)

    def __call__(self, x):
        hidden = nnx.relu(self.first(x))
        hidden = nnx.relu(self.second(self.channels(hidden)))
        return self.last(self.units(hidden.reshape(len(hidden), -1)))


NETWORKS = {
    "mlp": (credo.networks.mlp([8, 40], activation="tanh", dropout=RATE), (6, 3)),
    "conv": (credo.from_flax(lambda rngs: Conv(rngs)), (6, 4, 4, 1)),
}


def both(network, shape):
    """The same weights under row masks and under the network's own masks, each as values [draw, n · out]."""
    inputs = jax.random.normal(jax.random.key(3), shape)
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    variables = network.init(jax.random.key(4), inputs, 2)
    seen = flow(network, variables, inputs)
    infos = jax.tree.leaves(network.info(variables.params), is_leaf=lambda x: hasattr(x, "input_axis"))
    rows = tuple((i.path, i.input_axis) for i in infos if i.path in seen.masked)
    params, state = jax.tree.map(lambda x: x[None], ({"network": variables.params, "likelihood": {}}, variables.state))
    rates = {name: jnp.full(1, RATE) for name, _ in rows}
    posteriors = WeightDropout(params, rates, state, rows), ActivationDropout(params, state)
    draw = jax.jit(lambda q, k: q.outputs(k, model, inputs, DRAWS).values)
    return rows, [
        np.asarray(draw(q, jax.random.key(5 + i)), np.float64).reshape(DRAWS, -1) for i, q in enumerate(posteriors)
    ]


@pytest.mark.parametrize("name", NETWORKS)
def test_masks_on_weight_rows_and_on_activations_predict_the_same(name):
    """Means and variances of 4,000 draws each; every z-score is below the Bonferroni bound for false alarms of 1e-3."""
    rows, draws = both(*NETWORKS[name])
    expected = {"mlp": {"hidden_1/kernel", "output/kernel"}, "conv": {"second/kernel", "last/kernel"}}
    assert {path for path, _ in rows} == expected[name]
    mean, variance = ([f(d, 0) for d in draws] for f in (np.mean, np.var))
    fourth = [((d - m) ** 4).mean(0) for d, m in zip(draws, mean)]
    z_mean = (mean[0] - mean[1]) / np.sqrt(sum(variance) / DRAWS)
    z_variance = (variance[0] - variance[1]) / np.sqrt(sum(f - v**2 for f, v in zip(fourth, variance)) / DRAWS)
    assert min(v.min() for v in variance) > 1e-3
    bound = scipy.stats.norm.isf(1e-3 / 2 / (2 * z_mean.size))
    assert np.abs(z_mean).max() < bound
    assert np.abs(z_variance).max() < bound


def test_one_hidden_layer_has_moments_in_closed_form():
    """E[f] is the network without masks and Var[f] = π/(1−π) Σ_j v_j² h_j²; false alarms 1e-3 over all z-scores."""
    network = credo.networks.mlp([7], activation="tanh", dropout=RATE)
    _, draws = both(network, (6, 3))
    inputs = jax.random.normal(jax.random.key(3), (6, 3))
    params = network.init(jax.random.key(4), inputs, 2).params
    hidden = np.tanh(inputs @ params["hidden_0"]["kernel"].T)
    truth = np.asarray(network.apply(Variables(params, {}), inputs)[0]).ravel()
    variance = (RATE / (1 - RATE) * hidden**2 @ (params["output"]["kernel"] ** 2).T).ravel()
    bound = scipy.stats.norm.isf(1e-3 / 2 / (4 * truth.size))
    for d in draws:
        spread = np.sqrt((((d - truth) ** 4).mean(0) - variance**2) / DRAWS)
        assert np.abs((d.mean(0) - truth) / np.sqrt(variance / DRAWS)).max() < bound
        assert np.abs((((d - truth) ** 2).mean(0) - variance) / spread).max() < bound


def small_problem(network, prior=None):
    x = np.linspace(-2, 2, 64).astype(np.float32)[:, None]
    model = credo.Model(network, prior or credo.priors.normal(0.7), credo.likelihoods.gaussian(0.2))
    batch = Batch(jnp.asarray(x), jnp.sin(2 * jnp.asarray(x)), jnp.ones(64), jnp.float32(64))
    return model, batch


def objective(method, model, batch, num):
    """log p(D|θ) and E_q[log p(θ)] under `num` draws of the noise, at the start."""
    variables = model.init(jax.random.key(4), batch)
    state = method.init(KEY, model, variables, batch)
    phase = method.phases(64, 10)[0]
    parts = state.layout.unravel(state.values)

    def one(key):
        return method.terms(method.noise(key, model, phase, state), model, state, parts, batch)[:2]

    return [np.asarray(x, np.float64) for x in jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(9), num))]


@pytest.mark.full
def test_both_ways_maximise_the_same_bound():
    """E_q[log p(D|θ)] by 4,000 draws of each way (false alarms 1e-3) and the same prior term."""
    ways = [
        objective(MCDropout(**options), *small_problem(credo.networks.mlp([10], dropout=rate)), DRAWS)
        for rate, options in ((RATE, {}), (0.0, {"rate": RATE}))
    ]
    (one, prior_one), (two, prior_two) = ways
    z = (one.mean() - two.mean()) / np.sqrt((one.var() + two.var()) / DRAWS)
    assert abs(z) < scipy.stats.norm.isf(0.5e-3)
    assert two.std() > one.std()  # one mask for all rows is the noisier estimate
    np.testing.assert_allclose(prior_one, prior_two, rtol=1e-6)


def test_the_prior_term_is_the_variational_one():
    """(1 − π) log p(W/(1 − π)) + π log p(0) for masked kernels; other priors are drawn to the same mean."""
    model, batch = small_problem(credo.networks.mlp([10]))
    params = model.init(jax.random.key(4), batch).params["network"]
    expected = 0.0
    for path, x in (("hidden_0", "kernel"), ("hidden_0", "bias"), ("output", "kernel"), ("output", "bias")):
        w, rate = np.asarray(params[path][x], np.float64), RATE if (path, x) == ("output", "kernel") else 0.0
        kept, gone = (scipy.stats.norm.logpdf(v, 0, 0.7).sum() for v in (w / (1 - rate), 0 * w))
        expected += (1 - rate) * kept + rate * gone
    _, closed = objective(MCDropout(rate=RATE), model, batch, 3)
    np.testing.assert_allclose(closed, expected, rtol=1e-5)
    same = credo.priors.scale_mixture(mix=0.5, scale_wide=0.7, scale_narrow=0.7)
    _, drawn = objective(MCDropout(rate=RATE), *small_problem(credo.networks.mlp([10]), same), DRAWS)
    assert drawn.std() > 0.1
    assert abs(drawn.mean() - expected) < scipy.stats.norm.isf(0.5e-3) * drawn.std() / DRAWS**0.5


# ------------------------------------------------------------------ the optimum
PROBLEM = linear()._replace(scale=0.3)
DATA = (PROBLEM.inputs, PROBLEM.targets)


def ridge(rate, problem=PROBLEM, mean=1.0, variance=None):
    """(b, E[z]w/(1−π)) that maximises the bound of a linear model with masked inputs: dropout is a ridge whose weight
    on w_j is π/(1−π) Σ_n x_nj²/σ² + 1/((1−π)s²). Other masks z/(1−π) have another mean and variance."""
    gram = problem.design.T @ problem.design / problem.noise**2
    variance = rate / (1 - rate) if variance is None else variance
    masked = np.array([0, 1, 1, 1, 1])
    decay = np.where(masked, 1 / ((1 - rate) * mean**2), 1.0) / problem.scale**2
    precision = gram + np.diag(masked * variance / mean**2 * np.diag(gram) + decay)
    return np.linalg.solve(precision, problem.design.T @ problem.targets / problem.noise**2), precision


def error(batch_size, scale=PROBLEM.scale, **options):
    method = MCDropout(rate=0.2, inputs=True, learning_rate=0.01, **options)
    model = PROBLEM._replace(scale=scale).model()
    fit = credo.fit(KEY, model, DATA, method, steps=20_000, batch_size=batch_size)
    truth, precision = ridge(0.2)
    return np.abs(coefficients(fit.posterior.params["network"])[0] - truth).max() * np.sqrt(np.diag(precision).min())


@pytest.mark.parametrize("share", [1, 4, 16])
def test_optimum_is_exact_for_every_batch_size(share):
    """0.2 of a standard deviation, as for every variational mean."""
    assert error(256 // share) < 0.2


@pytest.mark.parametrize("share", [4, 16])
def test_scaling_the_penalty_by_the_batch_is_caught(share):
    """An L2 term weighted by M/N is that of a prior wider by √(N/M)."""
    assert error(256 // share, scale=PROBLEM.scale * share**0.5) > 0.2


def test_learned_rates_are_those_of_the_bound():
    """Concrete dropout against its bound in closed form, maximised over w and π, with the moments of the relaxed masks
    by quadrature: the mean of eight fits within 8 %, four times its standard error. With hard masks the best rate is an
    eighth lower: that is the price of the relaxation."""
    noisy = linear(num_rows=32, noise=2.0)
    method = credo.methods.replicate(MCDropout(concrete=True, inputs=True, learning_rate=0.01), 8, over="vmap")
    fit = credo.fit(KEY, noisy.model(), (noisy.inputs, noisy.targets), method, steps=20_000)

    def bound(logit, relaxed):
        rate = scipy.special.expit(logit)
        u = (np.arange(20_000) + 0.5) / 20_000
        mask = scipy.special.expit((scipy.special.logit(u) - logit) / 0.1) / (1 - rate)
        best, precision = ridge(rate, noisy, mask.mean(), mask.var()) if relaxed else ridge(rate, noisy)
        entropy = -rate * np.log(rate) - (1 - rate) * np.log1p(-rate)
        return -0.5 * best @ precision @ best - 4 * entropy

    soft, hard = (
        scipy.special.expit(scipy.optimize.minimize_scalar(bound, (-3, 0), (-9, 3), (relaxed,), "bounded").x)
        for relaxed in (True, False)
    )
    found = float(fit.posterior.rates["output/kernel"].mean())
    assert found == pytest.approx(soft, rel=0.08)
    assert found == pytest.approx(hard, rel=0.3)
    assert fit.trace["rate"].shape == (8, 20_000)


@pytest.mark.full
def test_no_masks_is_map():
    model, batch = small_problem(credo.networks.mlp([10], activation="tanh"))
    likelihood, prior = objective(MCDropout(rate=0.0), model, batch, 2)
    joint = model.log_joint(model.init(jax.random.key(4), batch), batch)[0]
    np.testing.assert_allclose(likelihood + prior, np.full(2, joint), rtol=1e-6)
    x, y = np.asarray(batch.inputs), np.asarray(batch.targets)[:, 0]
    fits = [credo.fit(KEY, model, (x, y), m, steps=6000) for m in (MCDropout(rate=0.0), MCDropout(rate=1e-4), MAP())]
    without, little, best = (credo.predict(KEY, f, x, num_samples=50) for f in fits)
    np.testing.assert_allclose(without.mean, best.mean, atol=0.02)  # a tenth of the noise
    np.testing.assert_allclose(little.mean, best.mean, atol=0.02)
    assert without.epistemic.max() < 1e-10
    assert "collapsed to a point" in str(fits[0].status)


@pytest.mark.full
def test_networks_that_do_not_say_their_inputs_are_told_apart():
    network = credo.from_functions(function_init, lambda params, x: jnp.tanh(x @ params["w"]) @ params["v"])
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (X, Y), "mc_dropout", steps=5)
    assert "so this is MAP: no kernel of this network says" in str(fit.status)
    assert fit.posterior.num_draws(None) == (1, 1)


# ------------------------------------------------------------------ users' own networks
class NnxNet(nnx.Module):
    def __init__(self, rngs, switch=False):
        self.inner, self.outer = nnx.Linear(2, 6, rngs=rngs), nnx.Linear(6, 1, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(6, rngs=rngs), nnx.Dropout(0.4, rngs=rngs)

    def __call__(self, x):
        return self.outer(self.drop(jnp.tanh(self.norm(self.inner(x)))))


class Switched(NnxNet):
    def __call__(self, x, train=False):
        hidden = self.norm(self.inner(x), use_running_average=not train)
        return self.outer(self.drop(jnp.tanh(hidden), deterministic=not train))


class LinenNet(nn.Module):
    @nn.compact
    def __call__(self, x, train=False):
        hidden = nn.BatchNorm(use_running_average=not train)(nn.Dense(6)(x))
        return nn.Dense(1)(nn.Dropout(0.4, deterministic=not train)(jnp.tanh(hidden)))


class EqxNet(eqx.Module):
    inner: eqx.nn.Linear
    norm: eqx.nn.BatchNorm
    drop: eqx.nn.Dropout
    outer: eqx.nn.Linear

    def __init__(self, key):
        self.inner, self.outer = eqx.nn.Linear(2, 6, key=key), eqx.nn.Linear(6, 1, key=key)
        self.norm, self.drop = eqx.nn.BatchNorm(6, "batch", mode="ema"), eqx.nn.Dropout(0.4)

    def __call__(self, x, state, key=None):
        hidden, state = self.norm(self.inner(x), state)
        return self.outer(self.drop(jnp.tanh(hidden), key=key)), state


def function_apply(params, x, key=None):
    hidden = jnp.tanh(x @ params["w"])
    if key is not None:
        hidden = jnp.where(jax.random.bernoulli(key, 0.6, hidden.shape), hidden / 0.6, 0.0)
    return hidden @ params["v"]


def function_init(key, x):
    return {"w": jax.random.normal(key, (2, 6)), "v": jax.random.normal(key, (6, 1))}


USERS = {
    "nnx": lambda: credo.from_flax(NnxNet),
    "linen": lambda: credo.from_linen(LinenNet()),
    "equinox": lambda: credo.from_equinox(EqxNet),
    "functions": lambda: credo.from_functions(
        function_init, function_apply, {"w": ("kernel", 2, 6, 0), "v": ("kernel", 6, 1, 0)}
    ),
}
X = np.random.default_rng(1).normal(size=(64, 2)).astype(np.float32)
Y = np.sin(2 * X[:, 0])


@pytest.mark.full
@pytest.mark.parametrize("name", USERS)
def test_users_dropout_layers_predict_with_frozen_statistics(name, tmp_path):
    """A draw is one function at all inputs; its mean is the quiet network (linear read-out): 4,000 draws, false alarms
    of 1e-3 over 7 inputs."""
    model = credo.Model(USERS[name](), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(KEY, model, (X, Y), MCDropout(rate=0.4 if name == "functions" else None), steps=30, batch_size=16)
    assert isinstance(fit.posterior, ActivationDropout)
    inputs = np.concatenate([X[:3], X[:4]])
    values = np.asarray(fit.posterior.outputs(KEY, fit.model, inputs, DRAWS).values)[0, :, :, 0]
    np.testing.assert_allclose(values[:, :3], values[:, 3:6], rtol=1e-5)
    quiet = np.asarray(model.outputs(jax.tree.map(lambda x: x[0], fit.point()), inputs)[0])[:, 0]
    z = (values.mean(0) - quiet) / (values.std(0) / DRAWS**0.5)
    assert np.abs(z).max() < scipy.stats.norm.isf(1e-3 / 2 / 7)
    with pytest.raises(NoDensity):
        fit.posterior.log_prob(None)
    fit.save(tmp_path / "run")
    again = credo.load(tmp_path / "run", network=fit.model.network)
    pair = [credo.predict(KEY, f, X[:5], num_samples=20).mean for f in (fit, again)]
    np.testing.assert_array_equal(*pair)


@pytest.mark.full
def test_weight_rows_save_and_load(tmp_path):
    fit = credo.fit(KEY, small_problem(credo.networks.mlp([6]))[0], (X[:, :1], Y), "mc_dropout", steps=30)
    fit.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    assert again.posterior.rows == fit.posterior.rows == (("output/kernel", 1),)
    pair = [credo.predict(KEY, f, X[:5, :1], num_samples=20).mean for f in (fit, again)]
    np.testing.assert_array_equal(*pair)
    with pytest.raises(NoDensity):
        fit.posterior.log_prob(None)


def test_a_subset_is_masked_where_it_is_free():
    """Only the read-out is learned: only its rows are masked, and held kernels stay whole."""
    model, _ = small_problem(credo.networks.mlp([6, 5]))
    method = credo.methods.subset(MCDropout(), "output/*")
    fit = credo.fit(KEY, model, (X[:, :1], Y), method, steps=20)
    assert fit.posterior.inner.rows == (("output/kernel", 1),)
    assert credo.predict(KEY, fit, X[:4, :1]).epistemic.min() > 0


def test_refusals_are_sentences():
    def run(network, **options):
        model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        credo.fit(KEY, model, (X, Y), MCDropout(**options), steps=2)

    plain, own = credo.networks.mlp([4]), credo.networks.mlp([4], dropout=0.2)
    for network, options, error, words in (
        (plain, {"masks": "rows"}, InputError, "masks must be"),
        (plain, {"rate": 1.0}, InputError, r"\[0, 1\)"),
        (plain, {"rate": 0.0, "concrete": True}, InputError, "cannot start at 0"),
        (plain, {"masks": "activations"}, Refusal, "no dropout layers"),
        (own, {"masks": "activations", "concrete": True}, Refusal, "cannot be learned"),
        (own, {"rate": 0.3}, InputError, "leave rate=None"),
        (USERS["functions"](), {}, InputError, "give that rate"),
        (credo.from_flax(Switched), {}, Refusal, "batch statistics"),
    ):
        with pytest.raises(error, match=words):
            run(network, **options)
    with pytest.raises(InputError, match=r"\[0, 1\)"):
        credo.networks.mlp([4], dropout=1.0)


@pytest.mark.parametrize("name", ["nnx", "linen", "equinox", "functions"])
def test_kernels_say_where_their_inputs_lie(name):
    """A kernel whose input rows are zero does not see its input."""
    network = USERS[name]()
    variables = network.init(KEY, X, 1)
    infos = jax.tree.leaves(network.info(variables.params), is_leaf=lambda x: hasattr(x, "kind"))
    kernels = {i.path: i for i in infos if i.kind == "kernel"}
    assert len(kernels) == 2
    assert all(i.shape[i.input_axis] == i.fan_in for i in kernels.values())
    assert all(i.input_axis is None for i in infos if i.kind != "kernel")
