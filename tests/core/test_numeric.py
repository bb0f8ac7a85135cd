"""Users' numbers on their way to JAX: of every type, and never wrapped around."""

import datetime
import decimal
import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.numeric import Mapped, host_array, host_arrays
from credo.core.tree import struct
from credo.errors import InputError

LARGE = 5_000_000_000
KEY = jax.random.key(0)
LINEAR = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))


@pytest.fixture(scope="module")
def linear():
    """A fit whose mean is a line."""
    x = np.linspace(-1, 1, 40)[:, None]
    return credo.fit(KEY, LINEAR, (x, x[:, 0]), "map", steps=20)


# Every way to write the number that wraps around in 32 bits.
WRITTEN = {
    "int64": np.array([[LARGE]]), "uint64": np.array([[LARGE]], np.uint64), "big-endian i": np.array([[LARGE]], ">i8"),
    "big-endian": np.array([[LARGE]], ">f8"), "big-endian single": np.array([[LARGE]], ">f4"),
    "longdouble": np.array([[LARGE]], np.longdouble), "object": np.array([[LARGE]], object), "list": [[LARGE]],
    "tuple": ((LARGE,),), "decimal": [[decimal.Decimal(LARGE)]], "fraction": [[fractions.Fraction(LARGE)]],
    "float list": [[5e9]], "float32": np.array([[5e9]], np.float32),
    "bfloat16 of JAX": jnp.array([[5e9]], jnp.bfloat16), "scalars": [[np.int64(LARGE)]],
}  # fmt: skip


@pytest.mark.parametrize("form", WRITTEN)
def test_a_number_predicts_the_same_in_every_type(linear, form: str) -> None:
    expected = credo.predict(KEY, linear, np.array([[5e9]])).mean
    found = credo.predict(KEY, linear, WRITTEN[form]).mean
    np.testing.assert_allclose(found, expected, rtol=4e-3 if "bfloat" in form else 1e-6)


def test_a_fit_of_large_integers_is_that_of_the_same_floats() -> None:
    whole = np.arange(40)[:, None] * 1_000_000_000
    model = credo.Model(LINEAR.network, LINEAR.prior, credo.likelihoods.gaussian(noise=1e10))
    found = [
        credo.fit(KEY, model, (x, y), "map", steps=5).posterior.params
        for x, y in ((whole, whole[:, 0]), (whole.astype(float), whole[:, 0].astype(float)))
    ]
    jax.tree.map(np.testing.assert_array_equal, *found)


def test_targets_and_weights_do_not_wrap_around(linear) -> None:
    x = np.zeros((1, 1))
    predicted = credo.predict(KEY, linear, x).rescaled(0.0, 1e9)
    assert predicted.log_prob(np.array([LARGE]))[0] == predicted.log_prob(np.array([5e9]))[0]
    assert predicted.cdf([LARGE])[0] == 1.0
    rows = (np.zeros((3, 1)), np.zeros(3))
    fits = [credo.fit(KEY, LINEAR, (*rows, w), "map", steps=1) for w in (np.full(3, 2**33), np.full(3, 2.0**33))]
    assert fits[0].loop.source.weight.tolist() == fits[1].loop.source.weight.tolist() == [2.0**33] * 3


def test_likelihoods_of_ones_own_see_their_numbers_unwrapped() -> None:
    @struct
    class Own(credo.likelihoods.gaussian(noise=1e9).__class__):
        def prepare(self, targets):
            return np.asarray(targets)[:, None]  # 64 bits stay 64 bits

    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), Own("known", 1e9))
    fit = credo.fit(KEY, model, (np.zeros((3, 1)), np.full(3, LARGE)), "map", steps=1)
    assert fit.loop.source.targets.tolist() == [[5e9]] * 3


REFUSED = {
    "complex": (np.ones((3, 1), complex), "real and imaginary"),
    "complex objects": (np.array([[1j]], object), "a complex"),
    "masked": (np.ma.masked_array(np.ones((3, 1)), mask=np.zeros((3, 1))), "masked"),
    "text": (np.array([["a"]]), "numeric"),
    "text in objects": (np.array([[1, "a"]], object), "'a'"),
    "dates": (np.array([["2020-01-01"]], "M8[s]"), "numeric"),
    "objects": ([[datetime.date(2020, 1, 1)]], "a date"),
    "missing": ([[None], [1.0]], "NaN"),
    "none": (None, "None"),
    "unequal rows": ([[1.0], [1.0, 2.0]], "equal length"),
    "empty": ([], "rows|shape"),
    "no arrays": ({}, "no arrays"),
    "NaN": (np.array([[np.nan]]), "NaN"),
    "infinite": (np.array([[np.inf]]), "infinite"),
    "beyond single precision": (np.array([[1e39]]), "single precision"),
    "beyond double precision": ([[10**400]], "double precision"),
    "beyond, as longdouble": (np.array([["1e4000"]], np.longdouble), "single precision"),
    "one number": (3.0, "shape"),
    "one dimension": (np.ones(3), "shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_number_is_refused_in_a_sentence(linear, name: str) -> None:
    inputs, words = REFUSED[name]
    with pytest.raises(InputError, match=words) as told:
        credo.predict(KEY, linear, inputs)
    assert "\n" not in str(told.value)
    with pytest.raises(InputError, match=f"{words}|shape|rows"):
        credo.fit(KEY, LINEAR, (inputs, np.zeros(3)), "map", steps=1)
    if name not in ("one number", "one dimension", "no arrays"):
        with pytest.raises((InputError, credo.errors.Refusal), match=f"{words}|targets|rows"):
            credo.fit(KEY, LINEAR, (np.zeros((3, 1)), inputs), "map", steps=1)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", "f2", "i8", "u8"])
def test_memory_maps_are_converted_as_they_are_read(tmp_path, linear, dtype: str) -> None:
    values = np.linspace(-1, 1, 40)[:, None] if "f" in dtype else np.arange(40)[:, None] * 100_000_000
    values = values.astype(dtype)
    file = np.memmap(tmp_path / "x", dtype, "w+", shape=values.shape)
    file[:] = values
    expected = credo.predict(KEY, linear, values).mean
    np.testing.assert_array_equal(credo.predict(KEY, linear, file).mean, expected)
    y = np.zeros(40)
    model = credo.Model(LINEAR.network, LINEAR.prior, credo.likelihoods.gaussian(noise=1e10))
    found = credo.fit(KEY, model, (file, y), "map", steps=3, batch_size=8)
    assert found.loop.source.streamed
    assert isinstance(found.loop.source.inputs, np.memmap | Mapped)
    known = credo.fit(KEY, model, (values, y), "map", steps=3, batch_size=8, stream=True)
    jax.tree.map(np.testing.assert_array_equal, found.posterior.params, known.posterior.params)
    if "f" in dtype:
        file[7] = np.nan
        for use in (lambda: credo.predict(KEY, linear, file), lambda: credo.fit(KEY, LINEAR, (file, y), "map")):
            with pytest.raises(InputError, match="NaN"):
                use()


def test_arrays_that_fit_are_not_copied() -> None:
    for dtype in (np.float32, np.int32, np.uint8, np.int16):
        x = np.ones((4, 2), dtype)
        assert host_array(x) is x
    assert host_array(np.ones((2, 1), np.int64)).dtype == np.int32  # tokens stay whole numbers
    assert host_array(np.ones((2, 1), bool)).dtype == np.float32


def test_a_list_of_numbers_is_one_array_and_a_list_of_arrays_is_a_tree() -> None:
    assert host_arrays([[1, 2], [3, 4]]).shape == (2, 2)
    assert [x.shape for x in host_arrays([np.ones((2, 1)), np.ones((2, 3))])] == [(2, 1), (2, 3)]
