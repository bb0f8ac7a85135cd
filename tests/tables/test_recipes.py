"""From words to objects."""

import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import InputError
from credo.likelihoods import Bernoulli, Categorical, Gaussian, NegativeBinomial, Poisson, StudentT
from credo.registry import LIKELIHOODS, NETWORKS, PRIORS
from credo.tables import model as recipes
from credo.tables.encode.encoder import TableEncoder


def encoder(values, task="auto", **more):
    return TableEncoder.learn(pd.DataFrame({"x": np.arange(len(values)) * 1.0, "y": values} | more), "y", task)


NUMBERS = encoder(10.0 * np.arange(12) ** 1.5)
TWO = encoder(["a", "b"] * 6)
THREE = encoder(["a", "b", "c"] * 4)
COUNTS = encoder(np.arange(12), "count")


@pytest.mark.parametrize(
    ("text", "widths", "activation"),
    [
        ("mlp:50,50", (50, 50), "relu"),
        ("mlp:7:tanh", (7,), "tanh"),
        ("mlp:", (), "relu"),
        ("mlp: 5, 6", (5, 6), "relu"),
    ],
)
def test_networks(text, widths, activation):
    network = recipes.parse_network(text)
    assert (network.widths, network.activation) == (widths, activation)


@pytest.mark.parametrize("text", ["50,50", "mlp", "cnn:3", "mlp:a", "mlp:5:tanh:x", "mlp:-5", "mlp:5:tahn", "mlp:0"])
def test_networks_that_are_none(text):
    with pytest.raises(InputError):
        recipes.parse_network(text)


def test_values_and_settings():
    words = ["a=1", "b=0.5", "c=1e-3", "d=true", "e=word", "f-g=x=y"]
    parsed = recipes.parse_settings(words)
    assert parsed == {"a": 1, "b": 0.5, "c": 1e-3, "d": True, "e": "word", "f_g": "x=y"}
    assert [type(v) for v in parsed.values()] == [int, float, float, bool, str, str]
    for bad in (["a"], ["=1"], ["a="], ["a=1", "a=2"]):
        with pytest.raises(InputError):
            recipes.parse_settings(bad)


def test_settings_reach_the_method():
    method, rest = recipes.build("bayes_by_backprop", {"learning_rate": 1, "num_samples": 4, "prior": "normal:1"})
    assert (method.learning_rate, method.num_samples) == (1.0, 4)
    assert type(method.learning_rate) is float
    assert rest == {"prior": "normal:1"}
    assert recipes.build("nuts", {"warmup": 0, "step_size": 0.1})[0].warmup == 0
    assert recipes.build("nuts", {"step_size": "none"})[0].step_size is None


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("bayes_by_backprop", {"learnin_rate": 1}, "Did you mean 'learning_rate'"),
        ("map", {"pior": "normal"}, "Did you mean 'prior'"),
        ("map", {"num_samples": 3}, "Its settings are learning_rate, optimiser, schedule"),
        ("bayes_by_backprop", {"num_samples": 2.5}, "a whole number"),
        ("bayes_by_backprop", {"num_samples": True}, "a whole number"),
        ("bayes_by_backprop", {"learning_rate": "fast"}, "a number"),
        ("bayes_by_backprop", {"learning_rate": -1}, "positive"),
        ("bayes_by_backprop", {"learning_rate": float("nan")}, "a number"),
        ("bayes_by_backprop", {"optimiser": 3}, "a word"),
        ("bayes_by_bakprop", {}, "Did you mean 'bayes_by_backprop'"),
    ],
)
def test_settings_that_do_not_fit(method, settings, words):
    with pytest.raises(InputError, match=words):
        recipes.build(method, settings)


def test_default_models():
    assert isinstance(recipes.table_model(NUMBERS).likelihood, Gaussian)
    assert isinstance(recipes.table_model(TWO).likelihood, Bernoulli)
    assert recipes.table_model(THREE).likelihood == Categorical(3)
    assert isinstance(recipes.table_model(COUNTS).likelihood, NegativeBinomial)


def test_model_options():
    options = {"prior": "student_t:3,0.5", "likelihood": "student_t:5", "noise": "inferred", "temperature": 0.5}
    model = recipes.table_model(NUMBERS, "mlp:3", options)
    assert (model.prior.df, model.prior.scale) == (3.0, 0.5)
    assert isinstance(model.likelihood, StudentT)
    assert (model.likelihood.df, model.likelihood.noise) == (5.0, "inferred")
    assert model.temperature == 0.5
    assert recipes.table_model(TWO, options={"likelihood": "categorical"}).likelihood == Categorical(2)
    assert isinstance(recipes.table_model(COUNTS, options={"likelihood": "poisson"}).likelihood, Poisson)


@pytest.mark.parametrize("method", ["ensemble_chains", credo.methods.EnsembleChains, credo.methods.EnsembleChains()])
def test_a_method_may_bring_its_own_defaults(method):
    model = recipes.table_model(NUMBERS, method=method)
    assert model.network.widths == (32, 32, 32)
    assert model.prior.scale == 3.0
    assert model.likelihood == credo.likelihoods.heteroscedastic(0.01)
    assert isinstance(recipes.table_model(TWO, method=method).likelihood, Bernoulli)
    told = recipes.table_model(NUMBERS, "mlp:3", {"noise": 0.1, "prior": "normal:1"}, method)
    assert isinstance(told.likelihood, Gaussian)
    assert told.network.widths == (3,)


def test_known_noise_is_on_the_scale_of_the_table():
    likelihood = recipes.table_model(NUMBERS, options={"noise": 20}).likelihood
    assert likelihood.noise == "known"
    assert likelihood.scale * NUMBERS.target_scale == pytest.approx(20)
    frame = pd.DataFrame({"x": np.arange(9.0), "y": np.arange(9.0) ** 2, "z": 7.0 * np.arange(9)})
    several = TableEncoder.learn(frame, ["y", "z"], "regression")
    scales = recipes.table_model(several, options={"noise": 2.0}).likelihood.scale
    assert np.allclose(scales * several.target_scale, 2.0)


@pytest.mark.parametrize(
    ("which", "options", "words"),
    [
        (NUMBERS, {"prior": "gaussian:1"}, "Unknown prior 'gaussian'"),
        (NUMBERS, {"prior": "normal:x"}, "written as normal:1.0"),
        (NUMBERS, {"prior": "normal:1,2,3"}, "more numbers"),
        (NUMBERS, {"prior": "normal:-1"}, "positive"),
        (NUMBERS, {"likelihood": "poisson"}, "A regression target has no likelihood"),
        (TWO, {"likelihood": "bernouli"}, "Did you mean 'bernoulli'"),
        (TWO, {"noise": 0.1}, "noise is a setting of"),
        (NUMBERS, {"noise": "loud"}, "noise must be"),
        (NUMBERS, {"noise": 0}, "noise must be"),
        (NUMBERS, {"temperature": 0}, "temperature"),
        (NUMBERS, {"temperature": "warm"}, "temperature"),
        (NUMBERS, {"depth": 3}, "Unknown model option"),
    ],
)
def test_model_options_that_do_not_fit(which, options, words):
    with pytest.raises(InputError, match=words):
        recipes.table_model(which, options=options)


@pytest.mark.parametrize("row", [*LIKELIHOODS.values(), *PRIORS.values(), *NETWORKS.values()], ids=lambda row: row.name)
def test_every_part_is_named_in_words_as_its_row_says(row):
    """What the example makes is of the row's class, and the row of such an object is found again."""
    table = next(t for t in (LIKELIHOODS, PRIORS, NETWORKS) if row in t.values())
    parse = {
        "likelihood": lambda text: recipes.parse_likelihood(text, row.tasks[0], 3),
        "prior": recipes.parse_prior,
        "network": recipes.parse_network,
    }[table.kind]
    if not row.example:
        with pytest.raises(InputError, match=r"build it in Python|takes (images|sequences|codes); one of a table"):
            parse(row.name)
        return
    made = parse(row.example)
    assert type(made).__name__ == row.makes
    assert table.row_of(made) is next(r for r in table.values() if r.makes == row.makes)
    assert row.summary.endswith(".")


def test_priors_in_words():
    horseshoe = recipes.parse_prior("horseshoe:0.05,known=true,slab_df=3")
    assert (horseshoe.global_scale, horseshoe.known, horseshoe.slab_df) == (0.05, True, 3.0)
    assert recipes.parse_prior("hierarchical:inverse_gamma(2,1),global") == credo.priors.hierarchical(
        credo.priors.inverse_gamma(2.0, 1.0), "global"
    )
    assert recipes.parse_prior("hierarchical:half_cauchy,per=array").per == "array"
    several = recipes.parse_prior("by_path:*/bias=normal(0.1),hidden_0/*=scale_mixture(0.5,1,0.1),*=fan_in_normal")
    assert several.globs == ("*/bias", "hidden_0/*", "*")
    assert [type(p).__name__ for p in several.priors] == ["Normal", "ScaleMixture", "FanInNormal"]
    hierarchy = recipes.parse_prior("node_hierarchy:hidden_scale=2,output_scale=(3,1)")
    assert hierarchy == credo.priors.node_hierarchy(hidden_scale=2.0, output_scale=(3.0, 1.0))
    assert recipes.parse_prior("normal(0.5)") == recipes.parse_prior("normal:0.5") == credo.priors.normal(0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("horseshoe:scale=1", "horseshoe has no setting 'scale'; it has global_scale"),
        ("horseshoe:often", "horseshoe is written as horseshoe:0.1, got 'horseshoe:often'"),
        ("hierarchical:normal(1)", "expects a prior of scales"),
        ("by_path:*=normal(1", "Brackets do not match"),
        ("by_path:*=0.1", "expects a prior for"),
        ("by_path", "at least one glob"),
        ("as_prior:runs", "more than words can say"),
        ("horsesho:0.1", "Did you mean 'horseshoe'"),
    ],
)
def test_priors_in_words_that_do_not_fit(text, words):
    with pytest.raises(InputError, match=words):
        recipes.parse_prior(text)
