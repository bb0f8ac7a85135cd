"""Targets that lie far from all others, and scales that no square holds (D10)."""

import numpy as np
import pandas as pd
import pytest

from credo.errors import InputError
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.far import far_note


def table(scale=1.0, rows=60):
    rng = np.random.default_rng(0)
    x = rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": scale * (x + 0.1 * rng.normal(size=rows))})


def test_one_value_beyond_all_others_is_told():
    frame = table()
    frame.loc[7, "y"] = 1e6
    notes = TableEncoder.learn(frame, "y").notes
    assert any(note.startswith("1 value of the target 'y' lies more than 1,000 times as far") for note in notes)
    assert any("the farthest at 1e+06" in note for note in notes)


def test_usual_targets_and_heavy_tails_are_no_matter():
    assert not [note for note in TableEncoder.learn(table(), "y").notes if "lie" in note]
    assert far_note("y", np.random.default_rng(0).standard_t(2, 1000)) == ""
    assert far_note("y", np.repeat([0.0, 1.0], [90, 10])) == ""  # half of the rows are at the median


@pytest.mark.parametrize(("scale", "how"), [(1e160, "divide"), (1e-160, "multiply")])
def test_a_variance_that_no_number_holds_is_refused(scale, how):
    with pytest.raises(InputError, match=rf"varies by about \de[+-]1\d\d, and the square .* {how} the column"):
        TableEncoder.learn(table(scale), "y")


@pytest.mark.parametrize("scale", [1e140, 1e-140])
def test_large_and_small_scales_that_squares_hold_are_standardised(scale):
    frame = table(scale)
    encoder = TableEncoder.learn(frame, "y")
    assert np.std(encoder.arrays(frame).targets) == pytest.approx(1.0, rel=1e-3)
    assert np.isfinite(encoder.target_scale**2)
