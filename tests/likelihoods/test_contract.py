"""What every likelihood owes: the protocol, checked targets, jit, vmap and a structure that can be saved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import registered
from credo.applications.continual import learn
from credo.core.likelihood import Likelihood
from credo.core.model import Model
from credo.core.tree import STRUCTS
from credo.errors import InputError, Refusal
from credo.likelihoods import (
    Ordinal,
    Overdispersed,
    Stretched,
    Tempered,
    bernoulli,
    categorical,
    default_likelihood,
    gamma,
    gaussian,
    heteroscedastic,
    heteroscedastic_t,
    mislabelled,
    negative_binomial,
    ordinal,
    poisson,
    student_t,
)
from credo.methods.laplace.laplace import Laplace
from credo.networks import mlp
from credo.priors import normal

REAL = np.array([[0.5, -1.0], [2.0, 3.0], [0.0, 7.5]])
COUNTS = np.array([[0, 4], [2, 3], [1, 7]])
LABELS = np.array([0, 1, 1])
CASES = registered.cases(REAL, COUNTS, LABELS, LABELS) | {
    "gaussian_known": (gaussian(0.4), REAL),
    "gaussian_inferred": (gaussian("inferred"), REAL),
    "student_t_known": (student_t(noise=0.4), REAL),
    "heteroscedastic_t_known": (heteroscedastic_t(df=5.0), REAL),
    "gamma_known": (gamma(2.0), np.abs(REAL)),
    "mislabelled_known": (mislabelled(3, 0.1), LABELS),
    "ordinal_known": (ordinal(3, (-1.0, 2.0), scaled=True), LABELS),
    "negative_binomial_known": (negative_binomial(2.0), COUNTS),
    "stretched": (Stretched(gaussian(), 1.5), REAL),
    "tempered_known": (Tempered(categorical(3), 2.0, 0.1, (-1.0, -1.5, -0.9)), LABELS),
    "overdispersed_known": (Overdispersed(negative_binomial(2.0), 1.5), COUNTS),
}
every = pytest.mark.parametrize(("likelihood", "targets"), CASES.values(), ids=CASES.keys())


def pieces(likelihood, params, outputs, targets):
    """All functions of one parameter setting."""
    result = {
        "log_prob": likelihood.log_prob(params, outputs, targets),
        "mean": likelihood.mean(params, outputs),
        "variance": likelihood.variance(params, outputs),
        "sample": likelihood.sample(jax.random.key(0), params, outputs),
        "curvature": likelihood.curvature(params, outputs),
    }
    if likelihood.kind == "classes":
        return result | {"entropy": likelihood.entropy(params, outputs)}
    return result | {"cdf": likelihood.cdf(params, outputs, targets)}


def setting(likelihood, targets, draws=4):
    """Canonical targets, parameters and outputs [draws, n, out]."""
    targets = jnp.asarray(likelihood.prepare(targets))
    params = likelihood.init(targets, jnp.ones(len(targets)))
    outputs = jax.random.normal(jax.random.key(1), (draws, len(targets), likelihood.num_outputs(targets)))
    return targets, params, outputs


@every
def test_shapes_and_protocol(likelihood, targets):
    assert isinstance(likelihood, Likelihood)
    assert STRUCTS[type(likelihood).__name__] is type(likelihood)
    targets, params, outputs = setting(likelihood, targets)
    shapes = jax.eval_shape(pieces, likelihood, params, outputs[0], targets)
    got = {name: value.shape for name, value in shapes.items()}
    size = outputs.shape[-1]
    per_class = (3, 2) if size == 1 else (3, size)
    per_class = (3, likelihood.num_classes) if isinstance(likelihood, Ordinal) else per_class
    each = per_class if likelihood.kind == "classes" else targets.shape
    expected = {"log_prob": (3,), "mean": each, "variance": each, "sample": targets.shape}
    expected |= {"entropy": (3,)} if likelihood.kind == "classes" else {"cdf": targets.shape}
    assert got == expected | {"curvature": (3, size, size)}
    assert likelihood.log_prior(params).shape == ()


# samplers that take seconds to compile
SLOW = ("negative_binomial", "poisson", "zero_inflated_poisson", "zero_inflated_negative_binomial")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full] if name in SLOW else [])
        for name in CASES
        if not name.endswith(("known", "inferred"))
    ],
)
def test_draws_at_once_are_draws_one_by_one(name):
    likelihood, targets = CASES[name]
    targets, params, outputs = setting(likelihood, targets)
    params = jax.tree.map(lambda x: x + jnp.arange(4.0)[:, None] / 10, params)
    together = jax.jit(jax.vmap(pieces, (None, 0, 0, None)))(likelihood, params, outputs, targets)
    one = jax.jit(pieces)
    for draw in range(4):
        alone = one(likelihood, jax.tree.map(lambda x, i=draw: x[i], params), outputs[draw], targets)
        for piece, value in alone.items():
            np.testing.assert_allclose(together[piece][draw], value, rtol=1e-5, atol=1e-6, err_msg=piece)
            assert np.isfinite(value).all(), piece


@every
def test_float32_in_float32_out(likelihood, targets):
    """Numbers of the likelihood follow the outputs' precision, also while another method runs in float64."""
    targets, params, outputs = setting(likelihood, targets)
    with jax.enable_x64(True):
        # the likelihood's own numbers are closed over: they are Python floats, as where a user calls it
        types = jax.eval_shape(lambda *args: pieces(likelihood, *args), params, outputs[0], targets)
        for name, value in types.items():
            assert value.dtype in (jnp.float32, jnp.int32), name


@every
def test_structure_survives_flattening(likelihood, targets):
    leaves, structure = jax.tree.flatten(likelihood)
    assert jax.tree.unflatten(structure, leaves) == likelihood
    assert not any(isinstance(x, str) for x in leaves)


@every
def test_only_learned_parameters_change_by_inferring(likelihood, targets):
    inferring = likelihood.inferring()
    assert not inferring.point
    assert (inferring != likelihood) == likelihood.point
    targets, params, _ = setting(likelihood, targets)
    plain = getattr(likelihood, "inner", likelihood)  # a corrected likelihood learns what the one inside does
    modes = [getattr(plain, name, None) for name in ("noise", "dispersion", "tails", "share", "thresholds", "shape")]
    mode = next((mode for mode in modes if mode is not None), "known")
    assert bool(params) == (mode != "known")
    if likelihood.point:
        assert likelihood.log_prior(params) == 0
        assert inferring.log_prior(params) != 0


@every
def test_inferred_is_said_wherever_parameters_have_a_posterior(likelihood, targets):
    """ν has a posterior where there is a ν and it is no point; whoever leaves that out asks this one property."""
    for one in (likelihood, likelihood.inferring()):
        _, params, _ = setting(one, targets)
        assert one.inferred is (bool(params) and not one.point)
        model = Model(mlp([]), normal(1.0), one)
        notes = [x for x in Laplace().prepare(model)[1] if "taken at its mode" in x]
        assert len(notes) == one.inferred
        tasks = [(np.zeros((3, 2)), targets)]
        if one.inferred:
            assert getattr(one, "learns", "noise") in notes[0]
            with pytest.raises(Refusal, match=f"inferred {getattr(one, 'learns', 'noise')} has a posterior that would"):
                learn(jax.random.key(0), model, tasks, "ivon")


def test_every_likelihood_has_its_cases():
    """The cases above hold every likelihood there is, but those that tests of their own hold: from a function
    (test_from_log_prob.py), and those of stacks, which are never fitted (test_stacked.py)."""
    own = {c for c in STRUCTS.values() if c.__module__.startswith("credo.likelihoods.") and hasattr(c, "log_prob")}
    own = {c for c in own if not c.__module__.endswith(("from_log_prob", "mixed"))}
    assert len(own) >= 9
    assert own == {type(likelihood) for likelihood, _ in CASES.values()}


@pytest.mark.parametrize("likelihood", [gaussian(), student_t(), heteroscedastic(), heteroscedastic_t()])
def test_real_targets(likelihood):
    assert likelihood.prepare(np.array([1, 2, 3])).shape == (3, 1)
    assert likelihood.prepare(REAL).dtype == np.float32
    assert likelihood.prepare(np.zeros((0, 2))).shape == (0, 2)
    for bad, sentence in [
        (np.array(["a", "b"]), "numeric targets"),
        (np.zeros((2, 2, 2)), r"shape \[rows\] or \[rows, outputs\]"),
        (np.array([1.0, np.nan]), "NaN or infinite"),
        (np.array([1.0, np.inf]), "NaN or infinite"),
    ]:
        with pytest.raises(InputError, match=sentence):
            likelihood.prepare(bad)


@pytest.mark.parametrize("likelihood", [poisson(), negative_binomial()])
def test_count_targets(likelihood):
    assert likelihood.prepare(np.array([1, 2, 3])).shape == (3, 1)
    assert likelihood.prepare(COUNTS.astype(float)).tolist() == COUNTS.tolist()
    for bad, sentence in [
        (np.array([1.0, -2.0]), "got -2"),
        (np.array([0.5]), "got 0.5"),
        (REAL * np.nan, "NaN"),
    ]:
        with pytest.raises(InputError, match=sentence):
            likelihood.prepare(bad)


@pytest.mark.parametrize("likelihood", [categorical(2), bernoulli(), mislabelled(2), ordinal(2)])
def test_class_targets(likelihood):
    for good in (LABELS, LABELS[:, None], LABELS.astype(float), LABELS.astype(bool), LABELS.astype(np.uint8)):
        prepared = likelihood.prepare(good)
        assert prepared.dtype == np.int32
        assert prepared.tolist() == [0, 1, 1]
    for bad, sentence in [
        (np.array([0, 2]), "from 0 to 1, got 2"),
        (np.array([0, -1]), "got -1"),
        (np.array([0.0, 0.5]), "got 0.5"),
        (np.array([0.0, np.nan]), "got nan"),
        (np.array(["cat", "dog"]), "encode the labels as 0 to 1"),
        (np.zeros((3, 2)), r"got \[3, 2\]"),
    ]:
        with pytest.raises(InputError, match=sentence):
            likelihood.prepare(bad)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: gaussian(0.0), "noise must be a positive finite number, got 0.0"),
        (lambda: gaussian(float("nan")), "got nan"),
        (lambda: gaussian("fixed"), '"learned" or "inferred", got \'fixed\''),
        (lambda: gaussian(prior_scale=0.0), "positive prior_scale"),
        (lambda: student_t(2.0), "above 2"),
        (lambda: student_t(float("inf")), "use gaussian"),
        (lambda: student_t(4.0, -1.0), "noise must be a positive"),
        (lambda: heteroscedastic(floor=0.0), "floor of the noise scale"),
        (lambda: heteroscedastic_t(floor=0.0), "floor of the noise scale"),
        (lambda: heteroscedastic_t(df=2.0), "above 2"),
        (lambda: categorical(1), "at least 2, got 1"),
        (lambda: categorical(2.5), "at least 2, got 2.5"),
        (lambda: mislabelled(1), "at least 2, got 1"),
        (lambda: mislabelled(3, 1.0), "between 0 and 1, got 1.0"),
        (lambda: mislabelled(3, "few"), "share must be a number"),
        (lambda: negative_binomial(-1.0), "dispersion must be a positive"),
        (lambda: negative_binomial("free"), "dispersion must be"),
        (lambda: default_likelihood("ranking"), "Unknown task 'ranking'; choose one of regression"),
        (lambda: default_likelihood("multiclass"), "needs num_classes"),
    ],
)
def test_builders_refuse_with_a_sentence(build, sentence):
    with pytest.raises(InputError, match=sentence):
        build()


def test_default_likelihoods():
    assert default_likelihood("regression") == gaussian("learned")
    assert default_likelihood("binary", 2) == bernoulli()
    assert default_likelihood("multiclass", 7) == categorical(7)
    assert default_likelihood("count") == negative_binomial("learned")
