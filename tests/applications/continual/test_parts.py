"""Marginals and renewed weights of every Gaussian posterior, against dense covariances; the next prior of new heads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from credo import priors
from credo.applications import continual
from credo.core.tree import path_string
from credo.errors import InputError, NoDensity, Refusal
from credo.methods.laplace import curvature
from credo.methods.laplace.curvature.taps import Layer
from credo.networks import mlp, multi_head
from credo.posteriors import GaussianWeights, LowRank, MatrixNormal, MeanField, Multivariate, Samples

NETWORK = multi_head(mlp([2]), 2)
ROWS = {"inputs": jnp.zeros((1, 3)), "head": jnp.zeros((1, 1), jnp.int32)}
PARAMS = NETWORK.init(jax.random.key(0), ROWS, 2).params
INFO = NETWORK.info(PARAMS)
LEAVES = {path_string(path): x for path, x in jax.tree_util.tree_flatten_with_path(PARAMS)[0]}
SHAPES = tuple((path, tuple(x.shape)) for path, x in LEAVES.items())
SIZE = sum(x.size for x in LEAVES.values())
LAYERS = tuple(Layer(f"{name}/kernel", f"{name}/bias") for name in ("trunk/hidden_0", "head_0", "head_1"))
NEW = ("head_1/*",)


def tree(values):
    """A flat vector, in the order of the tree, as `{"network": …}` with the member axis."""
    parts = np.split(values, np.cumsum([x.size for x in LEAVES.values()])[:-1])
    leaves = [jnp.asarray(p.reshape(1, *x.shape), jnp.float32) for p, x in zip(parts, LEAVES.values())]
    return {"network": jax.tree.unflatten(jax.tree.structure(PARAMS), leaves)}


def orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


def one_member(spread):
    return jax.tree.map(lambda x: np.asarray(x)[None], spread)


def posteriors():
    rng = np.random.default_rng(0)
    mean, std = tree(rng.normal(size=SIZE)), rng.uniform(0.2, 1.0, SIZE)
    factor = [tree(rng.normal(size=SIZE))["network"] for _ in range(3)]
    factor = {"network": jax.tree.map(lambda *x: jnp.stack(x, -1), *factor)}
    lower = np.tril(0.3 * rng.normal(size=(SIZE, SIZE)), -1) + np.diag(std)
    sides = {p: x.shape for p, x in LEAVES.items() if x.ndim == 2}

    def triangle(n):
        return jnp.asarray(np.tril(0.3 * rng.normal(size=(1, n, n)), -1) + np.diag(rng.uniform(0.3, 1, n)), jnp.float32)

    rows = {f"network/{p}": triangle(s[0]) for p, s in sides.items()}
    columns = {f"network/{p}": triangle(s[1]) for p, s in sides.items()}
    rest = {f"network/{p}": jnp.asarray(rng.uniform(0.2, 1, (1, *x.shape)), jnp.float32) for p, x in LEAVES.items()}
    rest = {p: x for p, x in rest.items() if p not in rows}
    full = curvature.full.Full(lower.T.copy(), SHAPES)
    diagonal = curvature.diagonal.Diagonal({p: rng.uniform(0.2, 1, s) for p, s in SHAPES})
    wide = {layer.kernel: (LEAVES[layer.kernel].shape[0], LEAVES[layer.kernel].shape[1] + 1) for layer in LAYERS}
    kronecker = curvature.kronecker.Kronecker(
        {p: orthogonal(rng, s[1]) for p, s in wide.items()}, {p: orthogonal(rng, s[0]) for p, s in wide.items()},
        {p: rng.uniform(0.5, 2, s[1]) for p, s in wide.items()}, {p: rng.uniform(0.2, 1, s) for p, s in wide.items()},
        LAYERS,
    )  # fmt: skip
    low = curvature.low_rank.LowRankSpread(
        orthogonal(rng, SIZE)[:, :4], rng.uniform(1, 9, 4), rng.uniform(0.5, 2, SIZE), SHAPES
    )
    spreads = {"full": full, "diagonal": diagonal, "kfac": kronecker, "low_rank": low}
    found = {
        "MeanField": MeanField(mean, tree(std), {}, {}),
        "LowRank": LowRank(mean, tree(std), factor, {}, {}),
        "Multivariate": Multivariate(mean, jnp.asarray(lower[None], jnp.float32), {}, {}),
        "MatrixNormal": MatrixNormal(mean, rows, columns, rest, {}, {}),
    }
    return found | {
        name: GaussianWeights(mean, one_member(spread), {}, {}, structure=name) for name, spread in spreads.items()
    }


POSTERIORS = posteriors()
each = pytest.mark.parametrize("name", POSTERIORS)


def gaussian(q, like):
    """Mean and covariance of a Gaussian by its log density alone, arrays in the order of `like` (a dict by path)."""
    layout = {path: np.shape(x) for path, x in like.items()}

    def log_prob(vector):
        values, start = {}, 0
        for path, shape in layout.items():
            length = int(np.prod(shape))
            values[path] = vector[start : start + length].reshape(shape)
            start += length
        nested = len(like) == len(LEAVES) and not set(q.mean["network"]) >= set(like)
        if nested:
            values = jax.tree.unflatten(jax.tree.structure(PARAMS), [values[path] for path in LEAVES])
        return q.log_prob({"network": values})

    # Differences of a quadratic are exact, and one program without derivatives is quick to compile.
    size = sum(int(np.prod(shape)) for shape in layout.values())
    unit, pairs = np.eye(size), np.triu_indices(size)
    points = np.concatenate([np.zeros((1, size)), unit, -unit, unit[pairs[0]] + unit[pairs[1]]])
    with jax.enable_x64(True):
        values = np.asarray(jax.jit(jax.vmap(log_prob))(jnp.asarray(points)))
    zero, plus, minus, both = np.split(values, [1, 1 + size, 1 + 2 * size])
    hessian = np.zeros((size, size))
    hessian[pairs] = both - plus[pairs[0]] - plus[pairs[1]] + zero
    covariance = np.linalg.inv(-np.triu(hessian) - np.triu(hessian, 1).T)
    return covariance @ (plus - minus) / 2, covariance, float(zero[0])


def places(paths):
    """Where the numbers of these weights lie in the whole vector."""
    found, start = {}, 0
    for path, x in LEAVES.items():
        found[path] = np.arange(start, start + x.size)
        start += x.size
    return np.concatenate([found[path] for path in paths])


@each
def test_marginal_is_a_block_of_the_whole(name):
    q = POSTERIORS[name]
    part = q.marginal(("trunk/*", "head_0/*"))
    own = {path: x for path, x in LEAVES.items() if not path.startswith("head_1")}
    assert set(part.mean["network"]) == set(own)
    mean, covariance, _ = gaussian(q, LEAVES)
    at = places(own)
    found_mean, found_covariance, at_zero = gaussian(part, own)
    np.testing.assert_allclose(found_covariance, covariance[np.ix_(at, at)], rtol=2e-4, atol=2e-6)
    np.testing.assert_allclose(found_mean, mean[at], rtol=1e-3, atol=1e-4)
    block = scipy.stats.multivariate_normal(mean[at], covariance[np.ix_(at, at)])
    np.testing.assert_allclose(at_zero, block.logpdf(np.zeros(len(at))), rtol=1e-3)


@each
def test_renewed_weights_are_independent_and_the_others_stay(name):
    q = POSTERIORS[name]
    new = {path: np.full(x.shape, 0.5, np.float32) for path, x in LEAVES.items() if path.startswith("head_1")}
    std = {path: np.full(x.shape, 2.0, np.float32) for path, x in new.items()}
    renewed = q.renewed(new, std)
    assert type(renewed) is type(q)
    mean, covariance, _ = gaussian(q, LEAVES)
    at = places(new)
    covariance[at, :] = covariance[:, at] = 0
    covariance[at, at], mean[at] = 4.0, 0.5
    found_mean, found_covariance, _ = gaussian(renewed, LEAVES)
    np.testing.assert_allclose(found_covariance, covariance, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-3, atol=1e-4)


@each
def test_new_heads_have_the_plain_density_and_others_do_not(name):
    """The same density in one structure for all tasks (`info`) and by globs, which any plain prior allows."""
    q, plain = POSTERIORS[name], priors.normal(3.0)
    one, two = (continual.next_prior(q, plain, NEW, info).bind(INFO, {}) for info in (INFO, None))

    moved = [PARAMS | {head: jax.tree.map(lambda x: x + 1.0, PARAMS[head])} for head in ("head_0", "head_1")]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), PARAMS, *moved)

    def values(bound):
        return np.asarray(jax.jit(jax.vmap(bound.log_prob))(stacked))

    found = [values(bound) for bound in (plain.bind(INFO, {}), one, two)]
    plain_gain, *gains = [x[1:] - x[0] for x in found]
    for gain in gains:
        assert gain[1] == pytest.approx(plain_gain[1], rel=1e-3, abs=1e-3)
        assert abs(gain[0] - plain_gain[0]) > 0.1
    np.testing.assert_allclose(found[1], found[2], rtol=1e-4)
    shapes = jax.eval_shape(lambda: two.sample(jax.random.key(0), 3))
    assert jax.tree.structure(shapes) == jax.tree.structure(PARAMS)


def test_new_heads_under_a_plain_prior_that_is_not_normal():
    prior = continual.next_prior(POSTERIORS["LowRank"], priors.laplace(1.0), NEW, INFO)
    assert prior.globs == ("head_1/*", "*")
    assert np.isfinite(prior.bind(INFO, {}).log_prob(PARAMS))


def test_refusals():
    with pytest.raises(Refusal, match="Samples has none"):
        continual.next_prior(Samples(PARAMS, {}))
    with pytest.raises(InputError, match="No weight's path matches"):
        POSTERIORS["MeanField"].marginal("nowhere/*")
    with pytest.raises(Refusal, match="depend on each other"):
        POSTERIORS["kfac"].marginal("head_0/kernel")
    uneven = {"head_1/kernel": np.arange(1, 5.0).reshape(2, 2), "head_1/bias": np.ones(2)}
    with pytest.raises(Refusal, match="one scale"):
        POSTERIORS["MatrixNormal"].renewed(uneven, uneven)
    last = GaussianWeights(POSTERIORS["full"].mean, one_member(_last_layer()), {}, {}, structure="last_layer")
    with pytest.raises(NoDensity, match='"last_layer" has no density'):
        last.marginal("trunk/*")
    with pytest.raises(InputError, match="shape"):
        continual.next_prior(POSTERIORS["LowRank"]).bind(multi_head(mlp([3]), 2).info(_wider()), {})


def _last_layer():
    return curvature.dense_block.DenseBlock(np.eye(6), LAYERS[-1], 2)


def _wider():
    return multi_head(mlp([3]), 2).init(jax.random.key(0), ROWS, 2).params
