"""`gibbs` and `reversible_jump` as ordinary methods: tables, files, estimators, weights, combinators."""

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import Refusal
from credo.methods.shallow.gibbs import Gibbs
from credo.methods.shallow.reversible_jump import ReversibleJump
from credo.tables.encode.encoder import TableEncoder
from credo.tables.model import parse_network, table_model

X = np.linspace(-2, 2, 50)[:, None].astype(np.float32)
Y = np.abs(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=50).astype(np.float32)


def test_a_table_gets_nodes_beside_a_line_and_their_hierarchy():
    encoder = TableEncoder.learn(pd.DataFrame({"x": X[:, 0], "y": Y}), "y")
    model = table_model(encoder, method="reversible_jump")
    assert model.network == credo.networks.shallow(12)
    assert isinstance(model.prior, credo.priors.NodeHierarchy)
    assert parse_network("shallow:3:intercept:tanh") == credo.networks.shallow(3, "intercept", "tanh")
    assert table_model(encoder, network="mlp:5", method="gibbs").prior == credo.priors.fan_in_normal(2.0)


def test_a_saved_run_predicts_the_same(tmp_path):
    model = credo.Model(credo.networks.shallow(4), credo.priors.node_hierarchy(), credo.likelihoods.gaussian())
    fit = credo.fit(jax.random.key(0), model, (X, Y), ReversibleJump(warmup=50, chains=2), steps=60)
    fit.save(tmp_path / "run")
    again = credo.load(tmp_path / "run")
    one, two = (credo.predict(jax.random.key(1), f, X) for f in (fit, again))
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(fit.trace["nodes"], again.trace["nodes"])


@pytest.mark.full
def test_estimators_take_it():
    from credo.estimators import BayesianRegressor

    model = BayesianRegressor(method="gibbs", settings={"chains": 2, "warmup": 100}, steps=100, random_state=0)
    assert model.fit(X, Y).score(X, Y) > 0.8


@pytest.mark.full
def test_estimators_take_two_classes():
    from credo.estimators import BayesianClassifier

    labels = np.where(X[:, 0] > 0.3, "b", "a")
    classes = BayesianClassifier(method="gibbs", settings={"chains": 2, "warmup": 100}, steps=100, random_state=0)
    assert classes.fit(X, labels).score(X, labels) > 0.9


def test_weights_count_as_rows_and_classes_refuse_parts_of_rows():
    """A weight of 2 is two rows: the two posteriors of a linear model agree within Monte-Carlo error."""
    model = credo.Model(credo.networks.shallow(0), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.5))
    weights = np.where(np.arange(50) < 25, 2.0, 1.0)
    rows = np.repeat(np.arange(50), weights.astype(int))
    found = []
    for data in ((X, Y, weights), (X[rows], Y[rows])):
        fit = credo.fit(jax.random.key(0), model, data, Gibbs(warmup=0), steps=2000)
        found.append(np.asarray(fit.posterior.params["network"]["linear"]["kernel"]).ravel())
    # 8,000 independent draws: five standard errors of a difference of means are 0.08 standard deviations.
    assert abs(found[0].mean() - found[1].mean()) < 0.08 * found[1].std()
    np.testing.assert_allclose(found[0].std(), found[1].std(), rtol=0.06)
    classes = credo.Model(credo.networks.shallow(0), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
    with pytest.raises(Refusal, match="whole rows"):
        credo.fit(jax.random.key(0), classes, (X, Y > 1, weights), Gibbs(warmup=0), steps=5)


@pytest.mark.full
def test_combinators():
    model = credo.Model(credo.networks.shallow(2), credo.priors.node_hierarchy(), credo.likelihoods.gaussian(0.2))
    start = credo.methods.MAP()
    fit = credo.fit(jax.random.key(0), model, (X, Y), credo.then(start, Gibbs(warmup=20, chains=2)), steps=30)
    assert fit.status.ok
    with pytest.raises(Refusal, match="holds no parameter fixed"):
        credo.fit(jax.random.key(0), model, (X, Y), credo.subset(Gibbs(warmup=5), "hidden/*"), steps=5)
