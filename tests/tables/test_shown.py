"""A date is its trend and its clocks, and a clock tells the time it was given."""

import numpy as np
import pandas as pd
import pytest

from credo.tables.columns.shown import shown_inputs
from credo.tables.encode.encoder import TableEncoder


def encoded(dates, **others):
    frame = pd.DataFrame({"day": dates, **others, "y": np.resize([1.0, 2.5, 4.0], len(dates))})
    encoder = TableEncoder.learn(frame, "y", "regression", missing="impute")
    return encoder, encoder.inputs(frame), frame


def test_clocks_read_what_they_were_set_to():
    encoder, inputs, frame = encoded(pd.date_range("2019-01-01", periods=9000, freq="5h"))
    shown = shown_inputs(encoder, inputs)
    assert list(shown) == ["day", "day: day of year", "day: day of week", "day: hour of day"]
    days = frame["day"]
    wanted = {"day of year": days.dt.day_of_year - 1, "day of week": days.dt.day_of_week, "hour of day": days.dt.hour}
    for part, cells in wanted.items():
        one = shown[f"day: {part}"]
        own = inputs[:, list(one.places)]
        got = one.cells(own)
        usual = (cells < 365).to_numpy()  # the 366th day of a leap year is read as new year
        np.testing.assert_array_equal(got[usual], cells[usual])
        tolerance = 1e-5 if part != "day of year" else 0.02  # that clock turns in 365.2425 days
        np.testing.assert_allclose(one.hands(got)[usual], own[usual], atol=tolerance)
    back = shown["day"].cells(inputs[:, list(shown["day"].places)])
    away = np.abs(back - days.to_numpy().astype("M8[s]"))
    assert away.max() <= np.timedelta64(5, "s")  # what single precision holds of five years


@pytest.mark.parametrize(
    ("rows", "clocks"), [(10, []), (20, ["day of week"]), (700, ["day of week"]), (740, ["day of year", "day of week"])]
)
def test_a_clock_needs_two_turns_to_be_told_from_a_trend(rows, clocks):
    encoder, inputs, _ = encoded(pd.date_range("2020-02-01", periods=rows))
    shown = shown_inputs(encoder, inputs)
    assert list(shown) == ["day", *(f"day: {clock}" for clock in clocks)]
    assert sorted(place for one in shown.values() for place in one.places) == list(range(inputs.shape[1]))


def test_missing_dates_and_names_that_are_taken():
    dates = pd.Series(pd.date_range("2020-02-01", periods=60)).where(np.arange(60) % 5 > 0)
    encoder, inputs, _ = encoded(dates, **{"day: day of week": np.arange(60.0)})
    shown = shown_inputs(encoder, inputs)
    assert list(shown) == ["day", "day: day of week (clock)", "day: day of week"]
    clock = shown["day: day of week (clock)"]
    np.testing.assert_array_equal(clock.has_value(inputs), dates.notna())
    assert shown["day: day of week"].part is None
    assert shown["day"].places[-1] == max(clock.column_places)  # the mark of a missing cell goes with the trend
