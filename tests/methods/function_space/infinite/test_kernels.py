"""Kernels against quadrature and other closed forms, their derivatives, and which models have one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

import credo
from credo.errors import InputError, Refusal
from credo.methods.function_space.infinite import kernel, kernel_of

X = np.random.default_rng(0).normal(size=(5, 3))
Z = np.random.default_rng(1).normal(size=(4, 3))
WEIGHT, BIAS = np.array([1.3, 0.8, 2.1]), np.array([0.4, 0.0, 0.3])


def gauss_hermite(a, b, c):
    """E[erf(u) erf(v)] on a grid of 120 × 120 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    u = np.sqrt(a) * nodes
    along = c / a * u[:, None] + np.sqrt(max(b - c * c / a, 0.0)) * nodes
    return weights @ (special.erf(u)[:, None] * special.erf(along)) @ weights


def polar(a, b, c):
    """E[relu(u) relu(v)] as an integral over the angle: the radius integrates to 2."""
    angle = np.arccos(np.clip(c / np.sqrt(a * b), -1, 1))
    if angle > np.pi - 1e-12:
        return 0.0
    inner = integrate.quad(lambda p: np.cos(p) * np.cos(p - angle), angle - np.pi / 2, np.pi / 2, epsabs=1e-13)[0]
    return np.sqrt(a * b) * inner / np.pi


MOMENTS = {"erf": gauss_hermite, "relu": polar}


def by_quadrature(x, z, activation, layers):
    """The recursion with every expectation by quadrature."""

    def first(p, q):
        return BIAS[0] + WEIGHT[0] * p @ q / len(p)

    a, b, c = first(x, x), first(z, z), first(x, z)
    for layer in range(1, layers + 1):
        moment = MOMENTS[activation]
        new = [BIAS[layer] + WEIGHT[layer] * moment(*t) for t in ((a, a, a), (b, b, b), (a, b, c))]
        a, b, c = new
    return c


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_kernels_are_the_expectations_by_quadrature(activation, hidden):
    k = kernel(hidden, activation, weight=WEIGHT[: hidden + 1], bias=BIAS[: hidden + 1])
    expected = np.array([[by_quadrature(x, z, activation, hidden) for z in Z] for x in X])
    np.testing.assert_allclose(k(X, Z), expected, rtol=0, atol=1e-8)
    own = np.array([by_quadrature(x, x, activation, hidden) for x in X])
    np.testing.assert_allclose(k.diagonal(X), own, rtol=0, atol=1e-8)


def test_known_values():
    """Williams: erf of one input without bias; Cho and Saul: opposite inputs share no active unit."""
    x = np.array([[1.0], [-1.0]])
    expected = 2 / np.pi * np.arcsin(2 / 3)
    np.testing.assert_allclose(kernel(1, "erf", bias=0.0)(x), expected * np.array([[1, -1], [-1, 1]]), rtol=1e-14)
    np.testing.assert_allclose(kernel(1, "relu", bias=0.0)(x), [[0.5, 0.0], [0.0, 0.5]], atol=1e-15)


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("hidden", [0, 1, 3])
def test_diagonal_symmetry_and_both_kinds_of_arrays(activation, hidden):
    k = kernel(hidden, activation, weight=2.0, bias=0.1)
    whole = k(X)
    np.testing.assert_allclose(np.diag(whole), k.diagonal(X), rtol=1e-12)
    np.testing.assert_allclose(whole, whole.T, rtol=1e-13)
    assert np.linalg.eigvalsh(whole).min() > -1e-12
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.asarray(jax.jit(k.__call__)(jnp.asarray(X), jnp.asarray(Z))), k(X, Z), rtol=1e-13)
    single = np.asarray(jax.jit(k.__call__)(jnp.asarray(X, jnp.float32)))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, whole, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("activation", ["erf", "relu"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e8])
def test_gradients_are_finite_where_inputs_coincide(activation, scale):
    """Also at x = 0 without biases, and for variances that round the cosine to 1."""

    def total(weight, bias, x):
        return kernel(2, activation, weight=weight, bias=bias)(x).sum()

    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(total, (0, 1, 2)))
        for bias in (0.0, 1.0):
            for g in gradient(jnp.float64(1.5), jnp.float64(bias), jnp.asarray(scale * X[:2])):
                assert np.isfinite(np.asarray(g)).all()


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_gradients_are_those_of_finite_differences(activation):
    with jax.enable_x64(True):
        x = jnp.asarray(np.concatenate([X, X[:1]]))  # the last row is the first again

        @jax.jit
        def total(pair):
            return (kernel(2, activation, weight=pair[0], bias=pair[1])(x) * jnp.arange(36.0).reshape(6, 6)).sum()

        at, step = jnp.array([1.4, 0.6]), 1e-5
        found = jax.jit(jax.grad(total))(at)
        for i in range(2):
            move = step * jnp.eye(2)[i]
            np.testing.assert_allclose(found[i], (total(at + move) - total(at - move)) / (2 * step), rtol=1e-7)


def test_arguments_are_checked():
    with pytest.raises(InputError, match="closed form for erf and relu"):
        kernel(1, "tanh")
    with pytest.raises(InputError, match="one for each of 2 layers"):
        kernel(1, weight=[1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="whole number"):
        kernel(-1)


def with_prior(prior, network=None, **options):
    network = credo.networks.mlp([7, 5], "erf") if network is None else network
    return credo.Model(network, prior, credo.likelihoods.gaussian(), **options)


def test_kernel_of_a_model():
    found = kernel_of(with_prior(credo.priors.fan_in_normal(1.5, bias_scale=0.5)), 3)
    np.testing.assert_allclose(found.weight, [2.25] * 3, rtol=1e-6)
    np.testing.assert_allclose(found.bias, [0.25] * 3, rtol=1e-6)
    assert found.activation == "erf"
    mixed = credo.priors.by_path(
        {
            "hidden_0/kernel": credo.priors.normal(2.0),
            "*/bias": credo.priors.normal(0.1),
            "*": credo.priors.fan_in_normal(),
        }
    )
    found = kernel_of(with_prior(mixed), 3)
    np.testing.assert_allclose(found.weight, [12.0, 1.0, 1.0], rtol=1e-6)  # the inputs do not grow in number
    np.testing.assert_allclose(found.bias, [0.01] * 3, rtol=1e-6)
    linear = kernel_of(with_prior(credo.priors.normal(2.0), credo.networks.mlp([], "tanh")), 3)
    np.testing.assert_allclose(linear(np.eye(3)), 4.0 + 4.0 * np.eye(3), rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (with_prior(credo.priors.normal(1.0)), "does not fall as 1/fan_in"),
        (with_prior(credo.priors.fan_in_normal(), credo.networks.mlp([5], "tanh")), "closed form for erf and relu"),
        (with_prior(credo.priors.fan_in_normal(), credo.networks.mlp([5], dropout=0.1)), "without masks"),
        (with_prior(credo.priors.node_hierarchy(), credo.networks.shallow(4)), "fully connected"),
        (with_prior(credo.priors.laplace(1.0)), "need normal weights"),
        (with_prior(credo.priors.hierarchical()), "mixture of Gaussian processes|independent weights"),
        (with_prior(credo.priors.horseshoe()), "mixture of Gaussian processes|independent weights"),
    ],
)
def test_models_without_a_limit_are_refused(model, words):
    with pytest.raises(Refusal, match=words):
        kernel_of(model, 2)
