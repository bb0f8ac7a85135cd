"""Coresets: rows at random, and the greedy choice of centres against the best one."""

import itertools

import jax
import numpy as np
import pytest

from credo.applications.continual import k_centre, random_rows
from credo.errors import InputError


def radius(rows, centres):
    """How far the farthest row is from its nearest centre."""
    return np.linalg.norm(rows[:, None] - rows[None, list(centres)], axis=2).min(1).max()


@pytest.mark.parametrize("seed", range(5))
def test_greedy_centres_are_within_twice_the_best(seed):
    rows = np.random.default_rng(seed).normal(size=(12, 2))
    found = k_centre(jax.random.key(seed), rows, 3)
    assert len(set(found.tolist())) == 3
    best = min(radius(rows, centres) for centres in itertools.combinations(range(12), 3))
    assert best <= radius(rows, found) <= 2 * best + 1e-6


def test_centres_are_distinct_where_rows_repeat():
    rows = np.zeros((6, 2))
    assert sorted(k_centre(jax.random.key(0), rows, 5).tolist()) != [0, 0, 0, 0, 0]
    assert len(set(k_centre(jax.random.key(0), rows, 5).tolist())) == 5


def test_random_rows_are_distinct_and_depend_on_the_key():
    rows = np.zeros((100, 2))
    first, again, other = (random_rows(jax.random.key(k), rows, 20) for k in (0, 0, 1))
    assert len(set(first.tolist())) == 20
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("size", [0, 10, 11])
def test_a_coreset_is_smaller_than_its_task(size):
    with pytest.raises(InputError, match="the task has 10"):
        random_rows(jax.random.key(0), np.zeros((10, 2)), size)
