"""Weighted statistics agree with those of repeated rows."""

import numpy as np
import pytest

from credo.tables.encode import weighted

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 51])
def test_weights_are_repetitions(size):
    values, repeats = RNG.normal(size=size).round(1), RNG.integers(1, 4, size)
    rows = np.repeat(values, repeats)
    assert weighted.median(values, repeats.astype(float)) == np.median(rows)
    mean, std = weighted.mean_and_std(values, repeats.astype(float))
    assert mean == pytest.approx(rows.mean(), abs=1e-12)
    assert std == pytest.approx(rows.std(), abs=1e-12)


def test_constant_has_no_spread_at_all():
    # The mean of equal numbers is not always that number in floating point.
    assert weighted.mean_and_std(np.full(7, 0.1)) == (0.1, 0.0)


def test_totals_leave_out_negative_codes():
    codes = np.array([0, 2, -1, 2])
    assert weighted.totals(codes, 4).tolist() == [1, 0, 2, 0]
    assert weighted.totals(codes, 4, np.array([0.5, 1.0, 9.0, 2.0])).tolist() == [0.5, 0.0, 3.0, 0.0]
