"""Several likelihoods side by side: every draw is answered by its own, in any order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core import mixture
from credo.core.likelihood import Likelihood
from credo.errors import InputError, Refusal
from credo.evaluation.recalibration.unseen import with_settings
from credo.likelihoods import (
    Mixed,
    Stretched,
    Tempered,
    bernoulli,
    categorical,
    gaussian,
    heteroscedastic_t,
    negative_binomial,
    poisson,
)

RNG = np.random.default_rng(0)
COUNT, ROWS = 75, 6
WHICH = RNG.integers(0, 2, COUNT).astype(np.int32)
CASES = {
    "numbers": (Mixed((Stretched(gaussian(), 1.5), heteroscedastic_t()), (1, 2)), RNG.normal(size=(ROWS, 1))),
    "counts": (Mixed((poisson(), negative_binomial()), (1, 1)), RNG.poisson(2.0, (ROWS, 1)).astype(float)),
    "classes": (Mixed((categorical(2), bernoulli()), (2, 1)), RNG.integers(0, 2, ROWS)),
}
every = pytest.mark.parametrize(("mixed", "targets"), CASES.values(), ids=CASES.keys())


def draws_of(mixed, targets):
    """Draws in random order: padding and other parts' numbers hold what no part would stand."""
    width, weight = max(mixed.widths), np.ones(ROWS, np.float32)
    outputs = RNG.normal(size=(COUNT, ROWS, width)).astype(np.float32)
    parts = []
    for c, part in enumerate(mixed.parts):
        outputs[c == WHICH, :, mixed.widths[c] :] = np.nan
        start = part.init(part.prepare(targets), weight)
        moved = jax.tree.map(lambda x: x + RNG.normal(size=(COUNT, *np.shape(x))).astype(np.float32), start)
        parts.append(moved)
    params = {"which": jnp.asarray(WHICH), "parts": tuple(parts)}
    log_weights = np.log(RNG.dirichlet(np.ones(COUNT))).astype(np.float32)
    return mixture.Flat(jnp.asarray(outputs), params, jnp.asarray(log_weights))


def alone(mixed, draws, ask):
    """Draw by draw, from the part itself."""
    found = []
    for k, c in enumerate(WHICH):
        own = jax.tree.map(lambda x, k=k: x[k], draws.params["parts"][c])
        found.append(ask(mixed.parts[c], own, draws.outputs[k, :, : mixed.widths[c]]))
    return np.stack(found)


@every
def test_each_draw_is_answered_by_its_own_part(mixed, targets):
    assert isinstance(mixed, Likelihood)
    y = jnp.asarray(mixed.prepare(targets))
    draws = draws_of(mixed, targets)
    asked = {"mean": lambda one, p, f: one.mean(p, f), "log_prob": lambda one, p, f: one.log_prob(p, f, y)}
    if mixed.kind == "classes":
        asked |= {"log_probs": lambda one, p, f: one.log_probs(p, f), "entropy": lambda one, p, f: one.entropy(p, f)}
    else:
        asked |= {"variance": lambda one, p, f: one.variance(p, f), "cdf": lambda one, p, f: one.cdf(p, f, y)}
    for name, ask in asked.items():
        wanted = alone(mixed, draws, ask)
        blocks = mixture.each_draw(mixed, ask, draws)
        single = jax.vmap(lambda p, f, a=ask: a(mixed, p, f))(draws.params, draws.outputs)
        np.testing.assert_allclose(blocks, wanted, rtol=2e-5, atol=1e-6, err_msg=name)
        np.testing.assert_allclose(single, wanted, rtol=2e-5, atol=1e-6, err_msg=name)


@every
def test_draws_of_targets_are_of_the_kind(mixed, targets):
    draws = draws_of(mixed, targets)
    found = np.asarray(mixture.sample(mixed, draws, jax.random.key(0), 200, 0))
    assert np.isfinite(found).all()
    if mixed.kind == "classes":
        mean = mixture.class_summary(mixed, draws)["mean"][:, 1]
        assert np.abs(found.mean(0) - mean).max() < 0.18  # five standard errors: false alarms 4e-6


@every
def test_gradients_are_finite_beside_nan(mixed, targets):
    y, draws = jnp.asarray(mixed.prepare(targets)), draws_of(mixed, targets)
    clean = jnp.nan_to_num(draws.outputs)
    slope = jax.grad(lambda f: mixture.log_prob(mixed, draws._replace(outputs=f), y).sum())(clean)
    assert np.isfinite(slope).all()
    assert np.abs(slope).max() > 0


def test_a_correction_goes_into_the_parts():
    numbers, _ = CASES["numbers"]
    wider = with_settings(numbers, {"factor": 2.0})
    assert isinstance(wider, Mixed)
    assert [part.factor for part in wider.parts] == [2.0, 2.0]
    classes, _ = CASES["classes"]
    cooler = with_settings(classes, {"heat": 2.0, "share": 0.1, "frequencies": [0.5, 0.5]})
    assert all(isinstance(part, Tempered) for part in cooler.parts)


def test_what_it_is_and_what_it_is_not():
    numbers, targets = CASES["numbers"]
    assert numbers.num_outputs(targets) == 2
    assert numbers.point
    assert not numbers.inferred
    assert not numbers.normal
    assert Mixed((gaussian(), Stretched(gaussian(0.1), 2.0)), (1, 1)).normal
    with pytest.raises(InputError, match="numbers of outputs of 2 parts"):
        Mixed((gaussian(), gaussian()), (1,))
    model = credo.Model(credo.networks.mlp([3]), credo.priors.normal(), numbers)
    with pytest.raises(Refusal, match="not fitted itself"):
        credo.fit(jax.random.key(0), model, (np.zeros((ROWS, 1)), targets), "map", steps=2)
