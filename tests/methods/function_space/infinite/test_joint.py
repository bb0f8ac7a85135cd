"""Draws of an infinitely wide network are functions: joint over many rows, over calls, and in what is made of them."""

import jax
import numpy as np
import pytest

import credo
from credo.applications import active
from credo.applications.effects.dependence import partial_dependence
from credo.core import draws as draws_module
from credo.core import predict as predict_module
from credo.core.draws import function_draws
from credo.methods.function_space.infinite import joint

from .nets import model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 1)).astype(np.float32)
LINE = np.linspace(3, 6, 700, dtype=np.float32)[:, None]  # more than are drawn together given anchors
DRAWS = 4000


@pytest.fixture(scope="module")
def fit():
    return credo.fit(jax.random.key(0), model([20], "relu"), (X, np.sin(2 * X[:, 0])), "infinite_width")


def exact(fit, rows):
    """Mean [n] and covariance [n, n] of f."""
    mean, covariance = fit.posterior.moments(rows, covariance=True)
    return mean[:, 0], covariance[:, 0, :, 0]


def values(fit, rows, num=DRAWS):
    return function_draws(jax.random.key(1), fit, rows, num).values[0, :, :, 0].astype(np.float64)


def check_moments(found, mean, covariance):
    """Entries of the covariance in units of the standard deviations, within 6 √(2/K) (a false alarm at 10⁻³ over
    490,000 entries, most of which depend on each other)."""
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((found.mean(0) - mean) / std, 0, atol=1e-3)
    error = (np.cov(found.T) - covariance) / np.outer(std, std)
    assert np.abs(error).max() < 6 * np.sqrt(2 / len(found))


def test_many_rows_are_joint(fit):
    found, (mean, covariance) = values(fit, LINE), exact(fit, LINE)
    check_moments(found, mean, covariance)
    for i in (255, 511, 512, 600):  # neighbours of a smooth function, whatever lies between blocks
        rest = covariance[i, i] + covariance[i + 1, i + 1] - 2 * covariance[i, i + 1]
        assert np.var(found[:, i] - found[:, i + 1]) == pytest.approx(rest, rel=0.15, abs=1e-9)


def test_calls_for_parts_are_one_function(fit, monkeypatch):
    """Chunks of 37 rows are the same draws as all rows at once, bit for bit."""
    whole = values(fit, LINE, 20)
    monkeypatch.setattr(draws_module, "CHUNK_BYTES", 37 * 16 * 20)
    np.testing.assert_array_equal(values(fit, LINE, 20), whole)
    monkeypatch.setattr(predict_module, "CHUNK_BYTES", 37 * 4 * 20)
    chunks = credo.predict(jax.random.key(1), fit, LINE, num_samples=20, memory=0).chunks()
    parts = [np.asarray(d.outputs)[:, : rows.stop - rows.start, 0] for rows, d in chunks]
    assert len(parts) > 10
    np.testing.assert_array_equal(np.concatenate(parts, 1), whole.astype(np.float32))


def test_beyond_the_limit_others_follow_the_anchors(fit, monkeypatch):
    """64 of 700 values at once, the others in blocks of 16 given 32: neighbours still belong together, for a kernel so
    smooth that 32 values say nearly all."""
    for name, size in (("TOGETHER", 64), ("ANCHORS", 32), ("BLOCK", 16)):
        monkeypatch.setattr(joint, name, size)
    check_moments(values(fit, LINE), *exact(fit, LINE))


@pytest.mark.parametrize("spread", [3.0, 60.0])
def test_beyond_the_limit_each_value_keeps_its_distribution(fit, monkeypatch, spread):
    """Rows so far apart that anchors say little of the others."""
    for name, size in (("TOGETHER", 32), ("ANCHORS", 8), ("BLOCK", 16)):
        monkeypatch.setattr(joint, name, size)
    rows = spread * np.random.default_rng(3).normal(size=(120, 1)).astype(np.float32)
    found, (mean, covariance) = values(fit, rows), exact(fit, rows)
    np.testing.assert_allclose((found.mean(0) - mean) / np.sqrt(np.diag(covariance)), 0, atol=1e-3)
    assert np.abs(found.var(0, ddof=1) / np.diag(covariance) - 1).max() < 5 * np.sqrt(2 / DRAWS)


def test_coupled_outputs_are_joint():
    """Three classes: the outputs of a row depend on each other."""
    likelihood = credo.likelihoods.categorical(3)
    prior = credo.priors.fan_in_normal(1.6, bias_scale=0.7)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    fit = credo.fit(
        jax.random.key(0), credo.Model(credo.networks.mlp([20]), prior, likelihood), (X, labels), "infinite_width"
    )
    rows = LINE[:230:10]
    mean, covariance = fit.posterior.moments(rows, covariance=True)
    found = function_draws(jax.random.key(1), fit, rows, DRAWS).values[0].astype(np.float64)
    check_moments(found.reshape(DRAWS, -1), mean.ravel(), covariance.reshape(mean.size, -1))


def test_epig_beyond_a_block_is_exact(fit):
    """−½ log(1 − ρ²) of two labels, ρ from the exact covariance; 200 draws: 0.05 to 0.1 nats of error at ρ = 0.95."""
    target = np.array([[6.001]], np.float32)
    both = np.concatenate([LINE, target])
    covariance = exact(fit, both)[1] + 0.1**2 * np.eye(len(both))
    share = covariance[:-1, -1] ** 2 / (np.diag(covariance)[:-1] * covariance[-1, -1])
    found = active.acquisition_scores(jax.random.key(1), fit, LINE, "epig", targets=target, num_samples=2000)
    np.testing.assert_allclose(found, -0.5 * np.log1p(-share), atol=0.1)


def test_batches_beyond_a_block_tell_as_much_as_those_of_the_exact_covariance(fit):
    """The greedy choice by 2,000 draws has 98 % of the information of the greedy choice by the exact covariance."""
    covariance = exact(fit, LINE)[1] / 0.1**2

    def gain(rows):
        return 0.5 * np.linalg.slogdet(np.eye(len(rows)) + covariance[np.ix_(rows, rows)])[1]

    best = []
    for _ in range(4):
        left = covariance - covariance[:, best] @ np.linalg.solve(
            np.eye(len(best)) + covariance[np.ix_(best, best)], covariance[best]
        )
        best.append(int(np.diag(left).argmax()))
    chosen = active.choose(jax.random.key(1), fit, LINE, 4, "batch_bald", num_samples=2000)
    assert len(set(chosen.tolist())) == 4
    assert gain(chosen.tolist()) > 0.98 * gain(best)


def test_partial_dependence_is_one_curve():
    """Differences along the curve have the variance of the exact covariance, though 1,200 rows lie behind it."""
    x = np.random.default_rng(4).normal(size=(60, 2)).astype(np.float32)
    fit = credo.fit(jax.random.key(0), model([20], "relu"), (x, np.sin(2 * x[:, 0])), "infinite_width")
    grid = np.linspace(2, 4, 20)
    found = partial_dependence(jax.random.key(1), fit, x, 0, grid, num_samples=2000).draws
    rows = np.concatenate([np.column_stack([np.full(60, v), x[:, 1]]) for v in grid]).astype(np.float32)
    mean, covariance = exact(fit, rows)
    average = np.kron(np.eye(20), np.full((1, 60), 1 / 60))
    check_moments(found, average @ mean, average @ covariance @ average.T)
    between = np.diff(np.eye(20), axis=0) @ average
    truth = np.diag(between @ covariance @ between.T)
    np.testing.assert_allclose(np.diff(found, axis=1).var(0, ddof=1), truth, rtol=6 * np.sqrt(2 / 2000))


def test_equal_rows_are_one_place_with_either_zero(fit):
    rows = np.array([[0.0], [1.0], [-0.0], [1.0]], np.float32)
    found = values(fit, rows, 10)
    np.testing.assert_array_equal(found[:, :2], found[:, 2:])
