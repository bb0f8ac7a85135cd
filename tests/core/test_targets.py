"""Targets with a column too few or too many are refused; they would broadcast to a wrong density."""

from types import SimpleNamespace

import numpy as np
import pytest

from credo import likelihoods
from credo.core.draws import log_likelihood_draws
from credo.errors import InputError
from credo.evaluation import metrics
from credo.evaluation.diagnostics.data import canonical
from predictives import predictive

N = 6
Y = np.arange(3.0 * N).reshape(N, 3)
NUMBERS = [likelihoods.gaussian(noise=0.5), likelihoods.poisson()]
numbers = pytest.mark.parametrize("likelihood", NUMBERS, ids=["real", "counts"])


def fit(likelihood, *shape):
    return SimpleNamespace(model=SimpleNamespace(likelihood=likelihood), input_shape=(1,), target_shape=shape)


@numbers
def test_a_predictive_wants_all_columns_and_no_more(likelihood):
    two = predictive(likelihood, np.zeros((4, N, 2)), flat=False)
    assert two.log_prob(Y[:, :2]).shape == (N,)
    for wrong in (Y[:, 0], Y[:, :1], Y):
        with pytest.raises(InputError, match="has 2 targets"):
            two.log_prob(wrong)
        with pytest.raises(InputError, match="has 2 targets"):
            metrics.log_likelihood(two, wrong)
        with pytest.raises(InputError, match="has 2 targets"):
            two.cdf(wrong)


@numbers
@pytest.mark.parametrize("flat", [True, False])
def test_one_target_may_be_a_column(likelihood, flat):
    one = predictive(likelihood, np.zeros((4, N, 1)), flat=flat)
    np.testing.assert_array_equal(one.log_prob(Y[:, 0]), one.log_prob(Y[:, :1]))
    for wrong in (Y, Y[:, :0]):
        with pytest.raises(InputError, match="has one target"):
            one.log_prob(wrong)


def test_a_rescaled_predictive_does_not_broadcast_either():
    two = predictive(NUMBERS[0], np.zeros((4, N, 2)), flat=False).rescaled(np.zeros(2), np.array([2.0, 3.0]))
    with pytest.raises(InputError, match="has 2 targets"):
        two.log_prob(Y[:, 0])


def test_classes_are_as_before():
    p, y = predictive(likelihoods.categorical(3), np.zeros((4, N, 3))), np.arange(N) % 3
    np.testing.assert_array_equal(p.log_prob(y), p.log_prob(y[:, None]))
    for shape in ((), (1,)):
        for labels in (y, y[:, None]):
            assert canonical(fit(likelihoods.categorical(3), *shape), (Y[:, :1], labels))[1].shape == (N,)


@numbers
def test_data_of_a_fit_have_its_columns(likelihood):
    x = Y[:, :1]
    for shape in ((), (1,)):
        for y in (Y[:, 0], Y[:, :1]):
            assert canonical(fit(likelihood, *shape), (x, y))[1].shape == (N, 1)
        with pytest.raises(InputError, match="has one target"):
            canonical(fit(likelihood, *shape), (x, Y))
    assert canonical(fit(likelihood, 2), (x, Y[:, :2]))[1].shape == (N, 2)
    with pytest.raises(InputError, match="has 2 targets"):
        canonical(fit(likelihood, 2), (x, Y[:, 0]))


def test_log_likelihoods_of_draws_want_all_columns():
    with pytest.raises(InputError, match="has 2 targets"):
        log_likelihood_draws(None, fit(NUMBERS[0], 2), np.zeros((N, 1)), Y[:, 0])
