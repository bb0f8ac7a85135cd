"""Spaces: codes go both ways, samples fill the space, wrong words get a sentence (H1)."""

import numpy as np
import pytest

from credo.applications.optimise import Category, Float, Int, Optimizer, Space
from credo.errors import InputError

RNG = np.random.default_rng(0)
MIXED = Space(
    {
        "x": Float(-2, 3),
        "rate": Float(1e-5, 1, log=True),
        "n": Int(1, 50),
        "width": Int(8, 1024, log=True),
        "kind": Category(["a", "b", "c"]),
        "flag": Category([True, False]),
    }
)


def test_points_come_back_from_their_codes():
    rows = MIXED.snap(RNG.random((200, MIXED.columns)))
    points = MIXED.decode(rows)
    assert MIXED.columns == 4 + 3 + 2
    np.testing.assert_allclose(MIXED.code(points), rows, atol=1e-12)
    for before, after in zip(points, MIXED.decode(MIXED.code(points))):
        numbers = ("x", "rate", "n", "width")
        assert [before[k] for k in numbers] == pytest.approx([after[k] for k in numbers], rel=1e-12)
        assert (before["kind"], before["flag"]) == (after["kind"], after["flag"])
        assert MIXED.checked(before) == before
    assert {type(p["n"]) for p in points} == {int}


def test_every_value_of_an_int_has_its_share():
    for dimension in (Int(1, 6), Int(1, 6, log=True)):
        values = [dimension.decode(np.array([u])) for u in np.linspace(0, 1, 2001)]
        assert set(values) == {1, 2, 3, 4, 5, 6}
        assert [dimension.decode(dimension.code(v)) for v in range(1, 7)] == list(range(1, 7))
    even = np.bincount([Int(1, 6).decode(np.array([u])) for u in np.linspace(0, 1, 6001)])[1:]
    assert np.ptp(even) <= 2


def test_samples_fill_the_space():
    rows = MIXED.sample(256, 3)
    assert rows.shape == (256, MIXED.columns)
    np.testing.assert_array_equal(rows, MIXED.sample(256, 3))
    assert (np.histogram(rows[:, 0], 16, (0, 1))[0] == 16).all()
    assert rows[:, 4:7].sum(0) == pytest.approx(256 / 3, abs=3)
    np.testing.assert_allclose(MIXED.snap(rows), rows, atol=1e-12)


def test_finite_spaces_are_counted_and_listed():
    space = Space({"n": Int(0, 3), "kind": Category(["a", 2])})
    assert space.count == 8
    assert len({space.key(p) for p in space.decode(space.every())}) == 8
    assert MIXED.count is None


def test_plain_data_and_files(tmp_path):
    assert Space.from_data(MIXED.to_data()) == MIXED
    place = tmp_path / "space.toml"
    place.write_text('[x]\ntype = "float"\nlow = 0\nhigh = 1\n[n]\ntype = "int"\nlow = 1\nhigh = 9\nlog = true\n'
                     '[kind]\nchoices = ["a", "b"]\n')  # fmt: skip
    assert Space.from_toml(place) == Space({"x": Float(0, 1), "n": Int(1, 9, log=True), "kind": Category(["a", "b"])})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[x]\ntype = 'real'", "type of \"x\" is one of float, int, categorical, got 'real'"),
        ("[x]\nlow = 0", "has no 'high'"),
        ("[x]\nlow = 0\nhigh = 1\nstep = 2", "'step', which a float does not have"),
        ("[x]\nlow = 1\nhigh = 0", "to a larger one, got 1 and 0"),
        ("[x]\nlow = 0\nhigh = 1\nlog = true", "positive lower end"),
        ("[x]\nchoices = ['a']", "at least two choices"),
        ("[x]\nchoices = ['a', 'a']", "differ from each other"),
        ("[x]\ntype = 'int'\nlow = 0.5\nhigh = 2", "whole numbers"),
        ("x = 3", '"x" is a table'),
        ("", "a table for each setting"),
        ("[x", "is not TOML"),
    ],
)
def test_wrong_files_get_a_sentence(text, words, tmp_path):
    place = tmp_path / "space.toml"
    place.write_text(text)
    with pytest.raises(InputError) as error:
        Space.from_toml(place)
    assert words in str(error.value)
    assert str(place) in str(error.value)


def test_wrong_points_get_a_sentence(tmp_path):
    good = MIXED.decode(MIXED.sample(1, 0))[0]
    for change, words in [
        ({"x": 9.0}, 'For "x" a number between -2 and 3 is wanted, got 9.0'),
        ({"n": 1.5}, "a whole number from 1 to 50"),
        ({"kind": "d"}, "one of 'a', 'b', 'c'"),
        ({"flag": 1}, "one of True, False"),
        ({"rate": "much"}, "is wanted, got 'much'"),
    ]:
        with pytest.raises(InputError) as error:
            MIXED.checked(good | change)
        assert words in str(error.value)
    with pytest.raises(InputError, match="A point has the settings x, rate"):
        MIXED.checked({"x": 1.0})
    with pytest.raises(InputError, match="Cannot read"):
        Space.from_toml(tmp_path / "none.toml")
    with pytest.raises(InputError, match="at least one setting"):
        Space({})


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (1.0, np.nextafter(1.0, 2.0), False), (1e16, 1e16 + 2, False), (-1e308, 1e308, False), (1.0, 1.0 + 1e-14, True),
        (0.0, 10**400, False), (5e-324, np.inf, True), (float("nan"), 1.0, False),
    ],
)  # fmt: skip
def test_ranges_that_cannot_be_divided_are_refused(low, high, log):
    with pytest.raises(InputError, match="range of a Float"):
        Float(low, high, log)


@pytest.mark.parametrize(("low", "high"), [(2**60, 2**60 + 3), (0, 10**400), (-(10**30), 0)])
def test_whole_numbers_that_double_precision_merges_are_refused(low, high):
    with pytest.raises(InputError, match="Int"):
        Int(low, high)


@pytest.mark.parametrize("dimension", [Float(1.0, 1.0 + 1e-11), Float(1e300, 1e300 * (1 + 1e-11)), Float(0.0, 5e-324)])
def test_few_numbers_end_a_search(dimension):
    search = Optimizer(Space({"x": dimension}), "random")
    search.minimise(lambda point: point["x"], 40)
    assert 1 <= len(search.history) <= 40
    assert np.isfinite(search.best.value)
