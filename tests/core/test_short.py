"""What objects say of themselves: one line and a small table, whatever they hold."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.short import short
from credo.core.tree import STRUCTS, leaf, struct
from credo.estimators import BayesianClassifier, BayesianRegressor
from credo.registry import ROWS
from oracles import first_of_each_claim, linear

KEY = jax.random.key(0)
PROBLEM = linear()
DATA = (PROBLEM.inputs[:64], PROBLEM.targets[:64])
LONGEST = 400


@struct
class Holder:
    """A number, an array and a word."""

    scale: object = leaf(default=1.0)
    many: object = leaf(default=None)
    word: str = "a"


def test_values_in_short():
    assert short(np.zeros((4, 1000), "f4")) == "float32[4, 1000]"
    assert short(jnp.array([1.0, 2.5])) == "[1.0, 2.5]"
    assert short(jnp.float32(0.25)) == "0.25"
    assert short({"w": {"k": np.zeros((3, 2))}, "b": np.zeros(1)}) == "{2 arrays of 7 numbers}"
    assert short({"a": 1}) == "{'a': 1}"
    assert short("x" * 1000).endswith("x…")
    assert short(KEY).endswith("[]")
    assert repr(Holder(2.0, np.zeros((3, 5)), "b")) == "Holder(scale=2.0, many=float64[3, 5], word='b')"
    assert repr(credo.likelihoods.gaussian(0.1)).startswith("Gaussian(noise='known', scale=0.1,")


def test_structs_can_be_printed_while_they_are_traced_or_taken_apart():
    seen = []
    jax.jit(lambda held: (seen.append(repr(held)), held.many.sum())[1])(Holder(1.0, jnp.zeros((2, 9))))
    assert seen == ["Holder(scale=float32[], many=float32[2, 9], word='a')"]
    posterior = credo.posteriors.Samples({"w": np.zeros((2, 3, 5))}, {})
    assert repr(posterior) == "Samples(2 members, draws 3 of each, 5 parameters)"
    assert repr(jax.tree.map(lambda x: object(), posterior)).startswith("Samples(params={'w': <object")
    assert all(cls.__repr__ is not object.__repr__ for cls in STRUCTS.values())


@pytest.mark.parametrize("row", first_of_each_claim(ROWS))
def test_fits_and_predictions_are_short(row):
    fit = credo.fit(KEY, PROBLEM.model(), DATA, row.load()(**row.quick_settings()), steps=5)
    predictive = credo.predict(KEY, fit, DATA[0][:3], num_samples=4)
    for thing in (fit, fit.posterior, predictive, fit.model, predictive.rescaled(1.0, 2.0)):
        text = repr(thing)
        assert len(text) < LONGEST, text
        assert "\n" not in text
        assert "Array(" not in text
        assert "array(" not in text
    assert f"Fit({row.name}, 64 rows, " in repr(fit)
    assert repr(predictive).startswith("Predictive(3 rows, Gaussian(")
    assert "alarm" not in repr(fit)  # nobody looked yet, and a repr does not compute
    fit.alarms  # noqa: B018
    assert "alarm" in repr(fit)


def test_tables_of_notebooks_are_escaped():
    fit = credo.fit(KEY, PROBLEM.model(), DATA, "map", steps=5)
    fit = dataclasses.replace(fit, config=fit.config | {"method": "<script>alert(1)</script>"})
    found = fit._repr_html_()
    assert "<script>" not in found
    assert "&lt;script&gt;" in found
    assert found.startswith("<table>")
    for name in ("method", "rows", "posterior", "time", "outcome"):
        assert f">{name}</th>" in found
    predictive = credo.predict(KEY, fit, DATA[0][:3])
    assert ">3 rows</td>" in predictive._repr_html_()
    assert ">1 member</td>" in fit.posterior._repr_html_()


def test_estimators_are_short_and_have_a_table():
    network = credo.from_functions(lambda key, x, out: {"w": jnp.zeros((x.shape[-1], out))}, lambda p, x: x @ p["w"])
    prior = credo.priors.as_prior(credo.posteriors.Samples({"w": np.zeros((2, 3, 5))}, {}))
    for model in (
        BayesianRegressor("map", network=network, settings={"learning_rate": 0.1}),
        BayesianClassifier("map", [8], prior=prior),
    ):
        assert len(repr(model)) < LONGEST, repr(model)
        assert "<script" not in repr(model)
        assert type(model).__name__ in model._repr_html_()
    fitted = BayesianRegressor("map", [4], steps=5, random_state=0).fit(*DATA)
    assert len(repr(fitted)) < LONGEST
    assert len(repr(fitted.fit_)) < LONGEST


def test_results_that_hold_arrays_are_short():
    from credo.applications import partial_dependence
    from credo.applications.effects import effects
    from credo.evaluation.diagnostics import loo

    fit = credo.fit(KEY, PROBLEM.model(), DATA, "laplace", steps=50)
    for thing in (effects(KEY, fit), partial_dependence(KEY, fit, DATA[0], 0), loo(fit, DATA)):
        assert len(repr(thing)) < 3 * LONGEST, repr(thing)
        assert "\n" not in repr(thing)
        assert "array(" not in repr(thing)
