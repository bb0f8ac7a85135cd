"""Fits whose members leave out a fold of the rows each, and what these say of rows that they did not see."""

import jax
import numpy as np
import pytest
from scipy.stats import norm

import credo
from credo.core.folds import even_folds
from credo.errors import InputError, Refusal
from credo.evaluation.recalibration.cross_fit import log_densities, unseen_by_fold
from credo.training.left_out import folds_of, left_out

ROWS, FOLDS = 60, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 2))
Y = X @ np.array([1.0, -0.5]) + 0.3 * RNG.normal(size=ROWS)
LINEAR = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.3))
PARTS = even_folds(ROWS, FOLDS, seed=1)


def fitted(method, folds=PARTS, **how):
    return credo.fit(jax.random.key(0), LINEAR, (X, Y), method, folds=folds, progress=False, **how)


def exact(rows):
    """Mean and covariance of the weights (x₀, x₁, 1) given these rows."""
    design = np.c_[X, np.ones(ROWS)][rows]
    precision = np.eye(3) + design.T @ design / 0.3**2
    return np.linalg.solve(precision, design.T @ Y[rows] / 0.3**2), np.linalg.inv(precision)


def test_the_mode_of_each_member_is_that_of_the_rows_that_it_sees():
    fit = fitted(credo.methods.DeepEnsemble(size=FOLDS), steps=3000)
    outputs = [part.outputs[0, :, 0] for part in unseen_by_fold(fit)]
    for fold, found in zip(PARTS, outputs):
        mean, _ = exact(np.setdiff1d(np.arange(ROWS), fold))
        np.testing.assert_allclose(found, np.c_[X, np.ones(ROWS)][fold] @ mean, atol=2e-3)


def test_densities_of_unseen_rows_are_those_of_exact_cross_validation():
    """Chains of 1,500 draws: log densities err by less than 0.05 with a false alarm in less than 1 of 10⁴ runs."""
    fit = fitted(credo.methods.HMC(chains=FOLDS, warmup=300), steps=1500)
    found = log_densities(unseen_by_fold(fit))
    expected = []
    for fold in PARTS:
        mean, covariance = exact(np.setdiff1d(np.arange(ROWS), fold))
        design = np.c_[X, np.ones(ROWS)][fold]
        variance = 0.3**2 + np.einsum("ni,ij,nj->n", design, covariance, design)
        expected.append(norm.logpdf(Y[fold], design @ mean, np.sqrt(variance)))
    np.testing.assert_allclose(found, np.concatenate(expected), atol=0.05)


def test_minibatches_of_a_member_have_none_of_its_fold():
    """Targets of a fold at 10⁶ would show in every member that sees one of them."""
    y = np.where(np.isin(np.arange(ROWS), PARTS[0]), 1e6, Y)
    how = {"folds": PARTS, "steps": 300, "batch_size": 16, "progress": False}
    method = credo.methods.DeepEnsemble(size=FOLDS, learning_rate=0.3)
    fit = credo.fit(jax.random.key(0), LINEAR, (X, y), method, **how)
    predicted = [np.abs(part.outputs).max() for part in unseen_by_fold(fit)]
    assert predicted[0] < 10 < min(predicted[1:])


def test_a_stopped_fit_with_folds_resumes_to_the_same_bits(tmp_path):
    method = credo.methods.EnsembleChains(size=FOLDS, warmup=20, num_steps=10, longest=200)
    whole = fitted(method, steps=20)

    def at_the_chains(event):
        return event.phase == "sample"

    fitted(method, steps=20, checkpoint=credo.Checkpoint(tmp_path / "c", 0.0), callbacks=[at_the_chains])
    again = fitted(method, steps=20, checkpoint=tmp_path / "c")
    for a, b in zip(jax.tree.leaves(whole.posterior), jax.tree.leaves(again.posterior)):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="another"):
        fitted(method, steps=20, checkpoint=tmp_path / "c", folds=even_folds(ROWS, FOLDS, seed=2))


def test_folds_of_rows_that_weigh_something():
    """Rows of weight 0 are dropped before the fit; folds name the rows that were given."""
    kept = np.arange(8) != 3
    mask = left_out([np.array([0, 3]), np.array([1, 7])], 4, 8, 0, kept)
    assert [(m.tolist(), r.tolist()) for m, r in folds_of(mask)] == [([0, 2], [0]), ([1, 3], [1, 6])]


def test_what_cannot_be_left_out_is_a_sentence():
    with pytest.raises(InputError, match="4 members take 2 to 4 folds"):
        left_out(5, 4, 10, 0)
    with pytest.raises(InputError, match="none to learn from"):
        left_out([np.arange(10), np.arange(5)], 2, 10, 0)
    with pytest.raises(InputError, match="at least one place"):
        left_out([np.array([10]), np.array([1])], 2, 10, 0)
    with pytest.raises(Refusal, match="read from disk"):
        fitted(credo.methods.DeepEnsemble(size=FOLDS), steps=5, stream=True, batch_size=8)
    with pytest.raises(InputError, match="a fit with folds"):
        unseen_by_fold(credo.fit(jax.random.key(0), LINEAR, (X, Y), "map", steps=5, progress=False))
