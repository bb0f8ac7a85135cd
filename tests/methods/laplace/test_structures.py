"""Curvature against dense autodiff, and what each structure says about log |H + P|, draws, densities and variances."""

import contextlib

import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.batch import Batch
from credo.core.network import Variables
from credo.core.tree import by_paths
from credo.methods.laplace.curvature import (
    DenseBlockSums,
    DiagonalSums,
    FullSums,
    KroneckerSums,
    LowRankSums,
    find_taps,
    ggn_product,
    hessian_product,
    local_prior,
    output_columns,
    square_root,
)
from credo.methods.laplace.curvature.kronecker import gram
from credo.methods.laplace.curvature.paths import flat, function, unflat

RNG = np.random.default_rng(1)
ROWS, WIDTH = 12, 3
LIKELIHOODS = {
    "gaussian": (credo.likelihoods.gaussian(0.5), RNG.normal(size=(ROWS, 2))),
    "categorical": (credo.likelihoods.categorical(3), RNG.integers(0, 3, ROWS)),
    "bernoulli": (credo.likelihoods.bernoulli(), RNG.integers(0, 2, ROWS)),
    "heteroscedastic": (credo.likelihoods.heteroscedastic(), RNG.normal(size=(ROWS, 1))),
    "heteroscedastic_t": (credo.likelihoods.heteroscedastic_t(df=5.0), RNG.normal(size=(ROWS, 1))),
    "poisson": (credo.likelihoods.poisson(), RNG.integers(0, 5, (ROWS, 1)).astype(float)),
}


def problem(likelihood="categorical", widths=(4,), dtype="float32", network=None, activation="tanh"):
    """A model, its variables, a batch (one row weighs 2, one nothing) and the flat GGN by dense autodiff."""
    given, targets = LIKELIHOODS[likelihood]
    network = network or credo.networks.MLP(tuple(widths), activation, dtype)
    model = credo.Model(network, credo.priors.normal(0.7), given)
    weight = np.ones(ROWS)
    weight[0], weight[-1] = 2.0, 0.0
    inputs = jnp.asarray(RNG.normal(size=(ROWS, WIDTH)), dtype)
    batch = Batch(inputs, jnp.asarray(targets), jnp.asarray(weight, dtype), jnp.asarray(float(ROWS), dtype))
    variables = model.init(jax.random.key(3), batch)
    params = jax.tree.map(lambda x: jnp.asarray(x + 0.1, dtype), variables.params["network"])
    return model, Variables(variables.params | {"network": params}, variables.state), batch


def dense(model, variables, batch):
    """Σ w J'HJ from the Jacobian of all outputs by all parameters."""
    values = by_paths(variables.params["network"])
    run = function(model, variables, batch.inputs)
    jacobian = jax.jacrev(lambda v: run(unflat(v, values)))(flat(values))
    middle = model.likelihood.curvature(variables.params["likelihood"], run(values))
    return jnp.einsum("n,nip,nij,njq->pq", batch.weight, jacobian, middle, jacobian)


def roots(model, variables, batch, kind="ggn"):
    def columns(outputs):
        params = variables.params["likelihood"]
        return output_columns(kind, jax.random.key(0), model.likelihood, params, outputs, batch.targets, batch.weight)

    return columns


def summed(sums, model, variables, batch):
    """The sum over two batches."""
    for rows in (slice(0, 5), slice(5, ROWS)):
        part = jax.tree.map(lambda x, r=rows: x[r], batch[:3])
        part = Batch(*part, batch.num_data)
        sums = sums.add(model, variables, part, roots(model, variables, part))
    return sums


@pytest.fixture(params=[pytest.param("float32", marks=pytest.mark.full), "float64"])
def precision(request):
    """(dtype, tolerance), in a double-precision context for float64."""
    double = request.param == "float64"
    with jax.enable_x64(True) if double else contextlib.nullcontext():
        yield request.param, 1e-8 if double else 1e-4


def some(names, quick):
    """Every name in `make test-full`, these in `make test`."""
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.full]) for name in names]


@pytest.mark.parametrize("likelihood", some(LIKELIHOODS, ("categorical",)))
def test_full_diagonal_and_product_equal_dense_autodiff(likelihood, precision):
    dtype, tolerance = precision
    model, variables, batch = problem(likelihood, dtype=dtype)
    truth = np.asarray(dense(model, variables, batch))
    values = by_paths(variables.params["network"])
    close = {"rtol": tolerance, "atol": tolerance * np.abs(truth).max()}
    full = summed(FullSums.zeros(values, dtype), model, variables, batch)
    np.testing.assert_allclose(full.matrix, truth, **close)
    layers = find_taps(model, variables, batch.inputs).layers
    for given in (layers, None):
        found = summed(DiagonalSums.zeros(values, dtype, given), model, variables, batch)
        np.testing.assert_allclose(flat(found.values), np.diag(truth), **close)
    vector = jax.random.normal(jax.random.key(5), truth.shape[:1], dtype)
    product = flat(ggn_product(model, variables, batch, values, unflat(vector, values)))
    np.testing.assert_allclose(product, truth @ np.asarray(vector), rtol=10 * tolerance, atol=10 * close["atol"])


def test_square_roots_of_singular_matrices():
    probs = jax.nn.softmax(jnp.asarray(RNG.normal(size=(6, 4)), jnp.float32))
    matrices = jax.vmap(lambda p: jnp.diag(p) - jnp.outer(p, p))(probs)
    matrices = matrices.at[0].set(0.0).at[1].set(jnp.diag(jnp.array([0.0, 2.0, 0.0, 1.0])))
    columns = square_root(matrices)
    np.testing.assert_allclose(jnp.einsum("cni,cnj->nij", columns, columns), matrices, atol=1e-6)


def test_columns_of_classes_without_a_factorisation():
    likelihood = credo.likelihoods.categorical(4)
    outputs = jnp.asarray(RNG.normal(size=(6, 4)), jnp.float32).at[0].set(jnp.array([200.0, 0.0, 0.0, -200.0]))
    columns = likelihood.curvature_columns({}, outputs)
    found = jnp.einsum("cni,cnj->nij", columns, columns)
    np.testing.assert_allclose(found, likelihood.curvature({}, outputs), atol=1e-6)


@pytest.mark.parametrize("width", [7, 384, 401])
def test_gram_matrices_in_blocks(width):
    rows = RNG.normal(size=(50, width))
    np.testing.assert_allclose(gram(jnp.asarray(rows, jnp.float32)), rows.T @ rows, rtol=1e-4, atol=1e-4)


def test_sampled_fisher_is_unbiased():
    """The mean of 4,000 sampled matrices: within five standard errors, entry by entry (false alarms below 1e-4)."""
    model, variables, batch = problem("categorical")
    values = by_paths(variables.params["network"])
    run = function(model, variables, batch.inputs)(values)

    def once(key):
        columns = output_columns("fisher", key, model.likelihood, {}, run, batch.targets, batch.weight)
        return jnp.einsum("cni,cnj->nij", columns, columns)

    each = np.asarray(jax.vmap(once)(jax.random.split(jax.random.key(0), 4000)))
    truth = batch.weight[:, None, None] * model.likelihood.curvature({}, run)
    error = each.std(0) / np.sqrt(len(each)) + 1e-6
    assert (np.abs(each.mean(0) - truth) / error).max() < 5


@pytest.mark.full
def test_hessian_and_its_product():
    model, variables, batch = problem("bernoulli")
    values = by_paths(variables.params["network"])

    def loss(vector):
        outputs = function(model, variables, batch.inputs)(unflat(vector, values))
        return -(batch.weight * model.likelihood.log_prob({}, outputs, batch.targets)).sum()

    truth = jax.hessian(loss)(flat(values))
    full = summed(FullSums.zeros(values, jnp.float32, exact=True), model, variables, batch)
    np.testing.assert_allclose(full.matrix, truth, rtol=1e-4, atol=1e-5)
    vector = jax.random.normal(jax.random.key(5), truth.shape[:1])
    product = flat(hessian_product(model, variables, batch, values, unflat(vector, values)))
    np.testing.assert_allclose(product, truth @ vector, rtol=1e-4, atol=1e-5)


def test_kronecker_factors_are_exact_in_a_deep_linear_network():
    """Without activations and with squared loss g is the same for all rows: the product of sums is exact."""
    network = credo.from_functions(
        init=lambda key, x: {"w": jax.random.normal(key, (3, 4)), "b": jnp.ones(4), "v": jnp.ones((4, 2)) / 3 + 0.2},
        apply=lambda p, x: (x @ p["w"] + p["b"]) @ p["v"],
    )
    model, variables, batch = problem("gaussian", network=network)
    truth = dense(model, variables, batch)
    values = by_paths(variables.params["network"])
    layers = find_taps(model, variables, batch.inputs).layers
    sums = summed(KroneckerSums.zeros(values, jnp.float32, layers), model, variables, batch)
    place = unflat(jnp.arange(len(truth)), values)
    for layer in layers:
        block = jnp.kron(sums.outputs[layer.kernel], sums.inputs[layer.kernel]) / sums.weight
        index = layer.join(place).ravel()
        np.testing.assert_allclose(block, truth[index][:, index], rtol=1e-4, atol=1e-4)


def test_the_last_layers_block_is_exact():
    model, variables, batch = problem("categorical", widths=(4, 3))
    truth = dense(model, variables, batch)
    values = by_paths(variables.params["network"])
    layer = find_taps(model, variables, batch.inputs).last
    sums = summed(DenseBlockSums.zeros(values, jnp.float32, layer), model, variables, batch)
    index = layer.join(unflat(jnp.arange(len(truth)), values)).ravel()
    np.testing.assert_allclose(sums.matrix(), truth[index][:, index], rtol=1e-4, atol=1e-5)


def low_rank(model, variables, batch, values, rank, sweeps):
    sums = LowRankSums.start(jax.random.key(0), values, jnp.float32, rank)
    prior = local_prior(model, variables, tuple(values), "low_rank")
    for _ in range(sweeps):
        sums = summed(sums.turned(prior), model, variables, batch)
    return sums


@pytest.mark.full
def test_low_rank_finds_the_largest_eigenvalues():
    model, variables, batch = problem("categorical", widths=(5,))
    truth = np.linalg.eigvalsh(0.7**2 * dense(model, variables, batch))
    values = by_paths(variables.params["network"])
    sums = low_rank(model, variables, batch, values, 6, 5)
    small = np.asarray(sums.basis.T @ sums.images)
    np.testing.assert_allclose(np.linalg.eigvalsh(small)[-6:], truth[-6:], rtol=2e-3)


def spreads(name, scale, temperature):
    """The structure's Gaussian, log |H + scale · P|, and its exact covariance in the layout of the flat vector."""
    model, variables, batch = problem("categorical")
    values = by_paths(variables.params["network"])
    taps = find_taps(model, variables, batch.inputs)
    truth = np.asarray(dense(model, variables, batch), np.float64)
    chosen = values
    if name == "full":
        sums, matrix = summed(FullSums.zeros(values, jnp.float32), model, variables, batch), truth
    elif name == "low_rank":
        sums, matrix = low_rank(model, variables, batch, values, len(truth), 1), truth
    elif name == "kfac":
        sums = summed(KroneckerSums.zeros(values, jnp.float32, taps.layers), model, variables, batch)
        matrix = np.zeros_like(truth)
        for layer in taps.layers:
            index = np.asarray(layer.join(unflat(jnp.arange(len(truth)), values)).ravel())
            block = np.kron(sums.outputs[layer.kernel], sums.inputs[layer.kernel]) / float(sums.weight)
            matrix[np.ix_(index, index)] = block
    elif name == "last_layer":
        sums = summed(DenseBlockSums.zeros(values, jnp.float32, taps.last), model, variables, batch)
        matrix, chosen = truth, {path: values[path] for path in taps.last.paths}
    else:
        layers = taps.layers if name == "diagonal" else None
        sums = summed(DiagonalSums.zeros(values, jnp.float32, layers), model, variables, batch)
        matrix = np.diag(np.diag(truth))
    kept = np.concatenate(
        [np.asarray(x).ravel() for p, x in unflat(jnp.arange(len(truth)), values).items() if p in chosen]
    )
    precision = matrix[np.ix_(kept, kept)] + scale / 0.7**2 * np.eye(len(kept))
    prior = local_prior(model, variables, tuple(chosen), name.partition("_by")[0])
    spectrum = sums.spectrum(prior)
    scales = dict.fromkeys(chosen, jnp.asarray(scale))
    covariance = temperature * np.linalg.inv(precision)
    where = (model, variables, batch)
    return spectrum.at(scales, temperature), float(spectrum.log_det(scales)), covariance, kept, where


STRUCTURES = ("full", "low_rank", "kfac", "last_layer", "diagonal", "diagonal_by_rows")


@pytest.mark.parametrize("name", some(STRUCTURES, ("kfac", "diagonal")))
def test_every_structure_is_the_gaussian_that_it_says(name):
    """log |H + P|, density, output variances; draws by five standard errors of their covariance (below 1e-4)."""
    spread, log_det, covariance, kept, (model, variables, batch) = spreads(name, 1.7, 0.5)
    truth = -np.linalg.slogdet(covariance / 0.5)[1]
    assert log_det == pytest.approx(truth, rel=1e-3)
    values = by_paths(variables.params["network"])
    chosen = {path: values[path] for path in values if path in spread.paths}
    assert sum(x.size for x in chosen.values()) == len(kept)
    deviation = RNG.normal(size=len(kept)).astype(np.float32) * 0.1
    expected = -0.5 * (
        deviation @ np.linalg.solve(covariance, deviation) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    assert float(spread.log_prob(unflat(jnp.asarray(deviation), chosen))) == pytest.approx(expected, rel=2e-3)
    square = float(spread.square(unflat(jnp.asarray(10 * deviation), chosen)))
    assert square == pytest.approx(100 * deviation @ covariance @ deviation, rel=2e-3)
    run = function(model, variables, batch.inputs)
    jacobian = np.asarray(jax.jacrev(lambda v: run(unflat(v, chosen)))(flat(chosen)))
    variance = np.einsum("nip,pq,niq->ni", jacobian, covariance, jacobian)
    np.testing.assert_allclose(spread.variance(model, variables, batch.inputs), variance, rtol=2e-3, atol=1e-5)
    draws = jax.vmap(spread.draw)(jax.random.split(jax.random.key(7), 4000))
    draws = np.asarray(flat({path: draws[path] for path in chosen}, lead=1), np.float64)
    std = np.sqrt(np.diag(covariance))
    error = 5 * np.sqrt((np.outer(std, std) ** 2 + covariance**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - covariance) < error).mean() > 0.9999


class Normed(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.Linear(WIDTH, 4, rngs=rngs)
        self.norm = nnx.LayerNorm(4, rngs=rngs)
        self.outer = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x):
        return self.outer(jnp.tanh(self.norm(self.inner(x))))


@pytest.mark.full
def test_the_diagonal_needs_no_rules():
    model, variables, batch = problem("categorical", network=credo.from_flax(lambda rngs: Normed(rngs)))
    values = by_paths(variables.params["network"])
    truth = np.asarray(dense(model, variables, batch))
    found = summed(DiagonalSums.zeros(values, jnp.float32, None), model, variables, batch)
    np.testing.assert_allclose(flat(found.values), np.diag(truth), rtol=1e-4, atol=1e-5)
