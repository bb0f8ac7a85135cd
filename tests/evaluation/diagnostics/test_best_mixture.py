"""Weights of a mixture against a general optimiser, and what they do with rows that say nothing."""

import time

import numpy as np
import pytest
from scipy import optimize

from credo.diagnostics import best_mixture
from credo.errors import InputError


def value(w, log_density, rows, pseudo):
    """Σ v log Σ w p + Σ a_c log w_c, from the definition."""
    top = log_density.max(0)
    mixed = np.log(w @ np.exp(log_density - top)) + top
    return rows @ mixed + (pseudo @ np.log(np.maximum(w, 1e-300)) if pseudo.any() else 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_no_other_weights_are_better(seed):
    """Against SLSQP from three starts, whatever sizes, scales, weights of rows and pseudo-rows."""
    rng = np.random.default_rng(seed)
    count, num = rng.integers(2, 8), rng.integers(1, 200)
    log_density = rng.normal(size=(count, num)) * rng.choice([0.1, 1.0, 5.0]) + rng.normal(size=num) * 50
    log_density += rng.normal(size=(count, 1))
    rows = rng.uniform(0.1, 3, num) if seed % 2 else np.ones(num)
    favoured = rng.dirichlet(np.ones(count))
    amount = 6.0 if seed % 3 == 0 else 0.0
    pseudo = amount * favoured
    found = best_mixture(log_density, weights=rows, pseudo_rows=amount, favoured=favoured)
    assert found.sum() == pytest.approx(1)
    assert (found >= amount * favoured / (amount + rows.sum()) - 1e-9).all()
    best = max(
        -optimize.minimize(
            lambda w: -value(w / w.sum(), log_density, rows, pseudo), start, bounds=[(1e-12, 1)] * count,
            method="SLSQP", constraints={"type": "eq", "fun": lambda w: w.sum() - 1}, options={"ftol": 1e-13},
        ).fun
        for start in [np.full(count, 1 / count), *rng.dirichlet(np.ones(count), 2)]
    )  # fmt: skip
    assert value(found, log_density, rows, pseudo) >= best - 1e-6 * rows.sum()


def test_no_direction_raises_the_sum():
    """The conditions of Karush, Kuhn and Tucker: mean_n p_cn / p_n is 1 where w_c > 0, and at most 1 elsewhere."""
    log_density = np.random.default_rng(0).normal(size=(10, 5000))
    weights = best_mixture(log_density)
    density = np.exp(log_density)
    slopes = (density / (weights @ density)).mean(1)
    assert slopes.max() <= 1 + 1e-6
    np.testing.assert_allclose(slopes[weights > 1e-6], 1, atol=1e-5)


def test_thousands_of_rows_take_milliseconds():
    """The fastest of ten, with room for a busy machine: the loop that was here before took seconds."""
    log_density = np.random.default_rng(1).normal(size=(10, 5000)) * 0.05
    times = []
    for _ in range(10):
        began = time.perf_counter()
        best_mixture(log_density)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.2


def test_a_row_of_weight_two_is_two_rows():
    log_density = np.random.default_rng(2).normal(size=(3, 20))
    twice = best_mixture(np.concatenate([log_density, log_density[:, :5]], 1))
    weights = np.r_[np.full(5, 2.0), np.ones(15)]
    np.testing.assert_allclose(best_mixture(log_density, weights=weights), twice, atol=1e-5)
    dropped = best_mixture(log_density, weights=np.r_[np.zeros(5), np.ones(15)])
    np.testing.assert_allclose(dropped, best_mixture(log_density[:, 5:]), atol=1e-5)


def test_impossible_rows_and_nan():
    log_density = np.random.default_rng(3).normal(size=(3, 30))
    log_density[:, 4] = -np.inf  # no component explains it: it says nothing
    log_density[0, 7] = np.nan
    log_density[0, 8] = -np.inf
    found = best_mixture(log_density)
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1)
    kept = np.nan_to_num(np.delete(log_density, 4, 1), nan=-np.inf, neginf=-np.inf)
    np.testing.assert_allclose(found, best_mixture(kept), atol=1e-8)
    np.testing.assert_allclose(best_mixture(np.full((4, 3), -np.inf)), 0.25)
    assert best_mixture(np.zeros((1, 5))) == pytest.approx(1)
    far = np.stack([np.zeros(9), np.full(9, -1e5)])
    np.testing.assert_allclose(best_mixture(far), [1, 0], atol=1e-9)


def test_pseudo_rows_keep_chance_from_deciding():
    """One row that only the first explains, beside a equal pseudo-rows: (1 + a/2, a/2)/(1 + a)."""
    log_density = np.array([[0.0], [-np.inf]])
    np.testing.assert_allclose(best_mixture(log_density), [1, 0], atol=1e-9)
    np.testing.assert_allclose(best_mixture(log_density, pseudo_rows=4), [0.6, 0.4], atol=1e-6)
    tied = best_mixture(log_density, pseudo_rows=3, favoured=np.array([0, 2]))
    np.testing.assert_allclose(tied, [0.25, 0.75], atol=1e-6)
    same = np.tile(np.random.default_rng(4).normal(size=40), (3, 1))
    np.testing.assert_allclose(best_mixture(same, pseudo_rows=1), 1 / 3, atol=1e-6)


def test_wrong_arguments_are_one_sentence():
    with pytest.raises(InputError, match="3 rows have as many weights"):
        best_mixture(np.zeros((2, 3)), weights=np.ones(2))
    with pytest.raises(InputError, match="favoured are 2 numbers"):
        best_mixture(np.zeros((2, 3)), pseudo_rows=1, favoured=np.zeros(2))
    with pytest.raises(InputError, match="pseudo_rows is at least 0, got -1"):
        best_mixture(np.zeros((2, 3)), pseudo_rows=-1)
