"""Batches: every row once per epoch, uniformly mixed, unbiased totals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credo.core.batch import Batch, bucket, mix
from credo.training.batches import ROUNDS, gather, order, permute, random_rows, sweep_rows


def rows_of(num_rows, batch_size, steps, seed=0):
    plan = order(num_rows, batch_size)
    rows, valid = jax.jit(random_rows, static_argnums=2)(jax.random.key(seed), jnp.arange(steps), batch_size, plan)
    return np.asarray(rows), np.asarray(valid), int(plan.num_batches)


@pytest.mark.parametrize(
    ("num_rows", "batch_size"), [(1, 1), (2, 1), (7, 3), (33, 32), (64, 16), (1000, 32), (4099, 99)]
)
def test_every_row_once_per_epoch(num_rows, batch_size):
    rows, valid, batches = rows_of(num_rows, batch_size, 3 * -(-num_rows // batch_size))
    sizes = valid.sum(1)
    assert sizes.max() - sizes.min() <= 1
    for epoch in range(3):
        part = slice(epoch * batches, (epoch + 1) * batches)
        assert sorted(rows[part][valid[part]]) == list(range(num_rows))


def numpy_permute(words, plan):
    """The order of one epoch in 64-bit arithmetic, where no sum wraps."""
    rows, height, width = (int(v) for v in plan[:3])

    def hashed(x):
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
            x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
        return x

    def once(i):
        row, column = i // width, i % width
        for a, b in words.astype(np.uint64).reshape(-1, 2):
            row = (row + hashed((column + a) & np.uint64(0xFFFFFFFF))) % height
            column = (column + hashed(row ^ b)) % width
        return row * width + column

    place = once(np.arange(rows, dtype=np.uint64))
    while (beyond := place >= rows).any():
        place[beyond] = once(place[beyond])
    return place


@pytest.mark.parametrize("num_rows", [1000, 999_999, 4_000_000])
def test_order_is_a_permutation_where_hashes_are_as_large_as_they_can_be(num_rows):
    """A sum of row and hash beyond 2³² − 1 must not wrap: the keys are chosen so that every round has such hashes."""
    few = np.arange(2**22, dtype=np.uint32)
    largest = np.uint32(few[np.asarray(jax.jit(mix)(few)).argmax()])
    assert int(mix(jnp.uint32(largest))) > 2**32 - 2500
    words = largest - np.arange(ROUNDS, dtype=np.uint32)  # the hash of column j, or of row 0 ^ it, is the largest
    plan = order(num_rows, 100)
    found = np.asarray(jax.jit(permute)(np.arange(num_rows, dtype=np.int32), words, plan))
    assert np.bincount(found, minlength=num_rows).max() == 1
    np.testing.assert_array_equal(found, numpy_permute(words, plan))


@pytest.mark.parametrize("num_rows", [5, 12, 50])
def test_pairs_meet_uniformly(num_rows):
    """How often two rows share a batch of two, over many epochs: chi-square at a false-alarm rate of 1e-4."""
    epochs = 3000
    rows, valid, _ = rows_of(num_rows, 2, epochs * -(-num_rows // 2))
    pairs = np.sort(rows[valid.all(1)], axis=1)
    counts = np.zeros((num_rows, num_rows))
    np.add.at(counts, (pairs[:, 0], pairs[:, 1]), 1)
    observed = counts[np.triu_indices(num_rows, 1)]
    expected = len(pairs) / observed.size
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert statistic < stats.chi2.isf(1e-4, observed.size - 1)


def test_sweep_is_in_order_and_complete():
    rows, valid = sweep_rows(jnp.arange(4), 3, order(10, 3))
    assert list(np.asarray(rows)[np.asarray(valid)]) == list(range(10))


def test_total_is_unbiased_with_weights_and_padding():
    """The mean of N/M Σ w v over the batches of an epoch is Σ w v when batches are equally large."""
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=64), rng.uniform(0.5, 2, size=64)
    data = Batch(jnp.zeros((64, 1)), jnp.zeros((64, 1)), jnp.asarray(weight, jnp.float32), jnp.float32(64))
    rows, valid = random_rows(jax.random.key(0), jnp.arange(4), 16, order(64, 16))
    batches = gather(data, rows, valid)
    totals = [Batch(*(x[i] for x in batches)).total(jnp.asarray(values)[rows[i]]) for i in range(4)]
    np.testing.assert_allclose(np.mean(totals), weight @ values, rtol=1e-4)


def test_padded_rows_count_for_nothing_even_when_not_finite():
    batch = Batch(jnp.zeros((3, 1)), jnp.zeros((3, 1)), jnp.array([1.0, 1.0, 0.0]), jnp.float32(10))
    assert float(batch.total(jnp.array([1.0, 2.0, jnp.nan]))) == pytest.approx(15.0)


def test_buckets_hold_all_rows_and_waste_little():
    for n in [1, 8, 9, 64, 65, 900, 1000, 1024, 1025, 12345]:
        assert n <= bucket(n) <= max(8, n + 8, n * 33 // 32 + 1)
    assert bucket(900) == bucket(910)
