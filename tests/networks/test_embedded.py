"""Embeddings of categories: the formula, the closed forms of random effects, and what methods make of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.capabilities import DenseNetwork, FlipoutNetwork, LocalNetwork, MaskedNetwork, NodeNetwork, capability
from credo.core.network import ParamInfo, Variables, is_info
from credo.core.tree import paths, struct
from credo.errors import InputError, Refusal
from credo.networks import embedded, mlp
from credo.priors import by_path, fan_in_normal, normal

KEY = jax.random.key(0)
NETWORK = embedded(mlp([5], "tanh"), [(1, 4), (3, 2)], [3, 2])
ROWS = jnp.array([[0.5, 0, -1.0, 1, 2.0], [0.1, 3, 0.3, 0, 1.0], [0.7, 4, 0.2, 9, 1.5], [0.2, -1, 0.4, 1, 0.0]])
NOISE, SPREAD, LEVELS = 0.5, 0.8, 12


@struct
class Additive:
    """f = b + w x + Σ e: fixed effects of the first feature, and vectors that are added as they are."""

    def init(self, key, inputs, num_outputs):
        return Variables({"line": {"kernel": jnp.zeros((1, 1)), "bias": jnp.zeros(1)}}, {})

    def apply(self, variables, inputs, *, key=None, train=False):
        line = variables.params["line"]
        return inputs[:, :1] @ line["kernel"].T + line["bias"] + inputs[:, 1:].sum(1, keepdims=True), variables.state

    def info(self, params):
        kernel = ParamInfo("line/kernel", "kernel", 1, 1, (1, 1), 1)
        return {"line": {"kernel": kernel, "bias": ParamInfo("line/bias", "bias", 1, 1, (1,))}}


def table(rows=60, seed=0):
    """A line and effects of levels, of which some have one row and the last none."""
    rng = np.random.default_rng(seed)
    share = 1 / (np.arange(LEVELS - 1) + 1.0)
    code, x = rng.choice(LEVELS - 1, rows, p=share / share.sum()), rng.normal(size=rows)
    y = 0.4 - 0.7 * x + SPREAD * rng.normal(size=LEVELS)[code] + NOISE * rng.normal(size=rows)
    return np.column_stack([x, code]).astype(np.float32), y.astype(np.float32)


def henderson(inputs, targets):
    """Posterior mean and covariance of (b, w, e_0 … e_L) under N(0, 1) of b and w and N(0, τ²) of effects.

    Henderson (1975), Best linear unbiased estimation and prediction under a selection model.
    """
    x, code = np.asarray(inputs, np.float64).T
    design = np.column_stack([np.ones(len(x)), x, code[:, None] == np.arange(LEVELS + 1)])
    precision = design.T @ design / NOISE**2 + np.diag([1.0, 1.0, *[SPREAD**-2] * (LEVELS + 1)])
    covariance = np.linalg.inv(precision)
    return covariance @ design.T @ np.asarray(targets, np.float64) / NOISE**2, covariance


def effects_model():
    prior = by_path({"embedding_*": normal(SPREAD), "*": normal(1.0)})
    return credo.Model(embedded(Additive(), [(1, LEVELS)], 1), prior, credo.likelihoods.gaussian(NOISE))


def together(params):
    """(b, w, e) on the last axis."""
    each = params["network"]
    parts = (each["line"]["bias"], each["line"]["kernel"], each["embedding_0"]["table"])
    lead = np.shape(parts[0])[:-1]
    return np.concatenate([np.reshape(x, (*lead, -1)) for x in parts], -1)


def test_outputs_are_the_network_s_for_numbers_and_vectors():
    variables = NETWORK.init(KEY, ROWS, 2)
    tables = [np.asarray(variables.params[f"embedding_{i}"]["table"]) for i in (0, 1)]
    assert [t.shape for t in tables] == [(5, 3), (3, 2)]
    own = {name: x for name, x in variables.params.items() if name in ("hidden_0", "output")}
    seen = np.column_stack([ROWS[:, [0, 2, 4]], tables[0][[0, 3, 4, 4]], tables[1][[1, 0, 2, 1]]])
    inner = mlp([5], "tanh").apply(Variables(own, {}), jnp.asarray(seen))[0]
    np.testing.assert_allclose(NETWORK.apply(variables, ROWS)[0], inner, rtol=1e-6)
    infos = jax.tree.leaves(NETWORK.info(variables.params), is_leaf=is_info)
    assert [i.path for i in infos] == paths(variables.params)
    assert [i.shape for i in infos] == [x.shape for x in jax.tree.leaves(variables.params)]
    assert [i.fan_in for i in infos if i.kind == "embedding"] == [1, 1]


def test_rows_of_a_table_get_the_sum_of_their_rows_gradients():
    """Members, minibatches and repeated levels: what a scatter must add up."""
    variables = NETWORK.init(KEY, ROWS, 1)
    rows = jnp.concatenate([ROWS, ROWS[:2]])

    def total(table, rows):
        params = variables.params | {"embedding_0": {"table": table}}
        return NETWORK.apply(Variables(params, {}), rows)[0].sum()

    whole = jax.vmap(jax.grad(total), (0, None))(jnp.stack([variables.params["embedding_0"]["table"]] * 2), rows)
    each = sum(jax.grad(total)(variables.params["embedding_0"]["table"], row[None]) for row in rows)
    np.testing.assert_allclose(whole[0], each, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(whole[0], whole[1])
    assert (np.abs(each).sum(1) > 0).tolist() == [True, False, False, True, True]


def test_what_it_offers_is_what_the_network_offers():
    for kind in (LocalNetwork, FlipoutNetwork, DenseNetwork, MaskedNetwork):
        assert capability(NETWORK, kind) is NETWORK
    assert capability(NETWORK, NodeNetwork) is None
    plain = embedded(credo.networks.shallow(3), [(1, 4)], 2)
    assert capability(plain, LocalNetwork) is None
    assert capability(plain, DenseNetwork) is None
    assert embedded(mlp([5], dropout=0.2), [(0, 3)], 1).dropout_rates == (0.2,)


@pytest.mark.parametrize("way", ["local", "flipout"])
def test_estimators_have_the_moments_of_whole_draws(way):
    """Each row's output under draws of pre-activations, as under draws of all weights."""
    linear = embedded(mlp([]), [(1, 3)], 2)
    rows = jnp.array([[0.5, 0.0], [0.5, 2.0]])
    mean = linear.init(KEY, rows, 1).params
    mean = jax.tree.map(lambda x: x + 0.5, mean)
    std = jax.tree.map(lambda x: jnp.full_like(x, 0.3), mean)

    def moved(key):
        leaves, treedef = jax.tree.flatten(std)
        keys = jax.random.split(key, len(leaves))
        return jax.tree.unflatten(treedef, [s * jax.random.normal(k, s.shape) for s, k in zip(leaves, keys)])

    def whole(key):
        return linear.apply(Variables(jax.tree.map(jnp.add, mean, moved(key)), {}), rows)[0]

    def ours(key):
        if way == "local":
            return linear.apply_local(mean, std, rows, key)
        return linear.apply_flipout(mean, moved(key), rows, jax.random.fold_in(key, 1))

    keys = jax.random.split(KEY, 20_000)
    a, b = (np.asarray(jax.vmap(f)(keys))[..., 0] for f in (whole, ours))
    np.testing.assert_allclose(a.mean(0), b.mean(0), atol=5 * a.std() / 20_000**0.5 * 2**0.5)
    np.testing.assert_allclose(a.std(0), b.std(0), rtol=0.04)


@pytest.mark.parametrize("method", ["map", "laplace", "hmc"])
def test_effects_are_henderson_s(method):
    """Normal noise, an additive network and a fixed τ: the posterior is normal, also of a level without rows."""
    inputs, targets = table()
    mean, covariance = henderson(inputs, targets)
    std = np.diag(covariance) ** 0.5
    how = {
        "map": credo.methods.MAP(), "laplace": credo.methods.Laplace(structure="full"),
        "hmc": credo.methods.HMC(num_steps=10, warmup=500),
    }[method]  # fmt: skip
    fit = credo.fit(KEY, effects_model(), (inputs, targets), how, steps=3000)
    if method == "map":
        np.testing.assert_allclose(together(fit.posterior.params)[0, 0], mean, atol=1e-3)
        return
    drawn = together(fit.posterior.sample(KEY, 4000)).reshape(-1, LEVELS + 3)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.12 * SPREAD)
    np.testing.assert_allclose(drawn.std(0), std, rtol=0.12)
    np.testing.assert_allclose(drawn[:, -2:].std(0), SPREAD, rtol=0.12)  # no rows: the spread between levels
    unseen = credo.predict(KEY, fit, np.array([[0.0, LEVELS], [0.0, 0.0]], np.float32), num_samples=2000).epistemic
    assert unseen[0] > 0.8 * SPREAD**2 > unseen[1]


@pytest.mark.parametrize("structure", ["full", "kfac", "diagonal"])
def test_shrinkage_under_every_curvature(structure):
    """With fixed effects held, e_c ~ N(s_c/(n_c + σ²/τ²), σ²/(n_c + σ²/τ²)): a look-up is a layer of indicators."""
    inputs, targets = table()
    model = credo.Model(embedded(mlp([]), [(1, LEVELS)], 1), normal(SPREAD), credo.likelihoods.gaussian(NOISE))
    held = {
        "network": {
            "output": {"kernel": jnp.array([[-0.7, 1.0]]), "bias": jnp.array([0.4])},
            "embedding_0": {"table": jnp.zeros((LEVELS + 1, 1))},
        },
        "likelihood": {}, "prior": {},
    }  # fmt: skip
    fit = credo.fit(
        KEY, model.frozen(held, "output/*"), (inputs, targets), credo.methods.Laplace(structure=structure), steps=3000
    )
    code = inputs[:, 1].astype(int)
    ratio = (NOISE / SPREAD) ** 2
    count = np.bincount(code, minlength=LEVELS + 1)
    mean = np.bincount(code, targets - 0.4 + 0.7 * inputs[:, 0], minlength=LEVELS + 1) / (count + ratio)
    rows = np.column_stack([np.zeros(LEVELS + 1), np.arange(LEVELS + 1)]).astype(np.float32)
    found = credo.predict(KEY, fit, rows, num_samples=4000)
    assert fit.posterior.structure == structure
    np.testing.assert_allclose(found.mean - 0.4, mean, atol=0.05)
    np.testing.assert_allclose(found.epistemic, NOISE**2 / (count + ratio), rtol=0.12)


def test_tables_of_very_many_levels_are_no_layers_of_indicators():
    wide = embedded(mlp([3]), [(0, 5_000)], 2)
    assert [path for path, *_ in wide.dense_layers()] == ["hidden_0/kernel", "output/kernel"]
    model = credo.Model(wide, fan_in_normal(1.0), credo.likelihoods.gaussian(0.1))
    data = (np.arange(40, dtype=np.float32)[:, None], np.zeros(40, np.float32))
    with pytest.raises(Refusal, match="'embedding_0/table'"):
        credo.fit(KEY, model, data, credo.methods.Laplace(structure="kfac"), steps=2)
    assert credo.fit(KEY, model, data, credo.methods.Laplace(structure="last_layer"), steps=2).posterior is not None


@pytest.mark.parametrize("method", ["gibbs", "infinite_width"])
def test_methods_without_vectors_refuse(method):
    model = credo.Model(embedded(mlp([3]), [(0, 3)], 2), normal(1.0), credo.likelihoods.gaussian(0.1))
    with pytest.raises(Refusal, match="embedding"):
        credo.fit(KEY, model, (np.zeros((5, 1), np.float32), np.zeros(5, np.float32)), method, steps=2)


def test_arguments_are_checked():
    with pytest.raises(InputError, match="different places"):
        embedded(mlp([]), [(0, 3), (0, 4)])
    with pytest.raises(InputError, match="2 columns and 1 widths"):
        embedded(mlp([]), [(0, 3), (1, 4)], [2])
    with pytest.raises(InputError, match="single precision"):
        embedded(mlp([]), [(0, 2**24)])
