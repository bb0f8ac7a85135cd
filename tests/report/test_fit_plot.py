"""`fit.plot()`: the first figure that there is, or one by its name."""

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError

X = np.linspace(-1, 1, 30)[:, None]
Y = np.sin(2 * X[:, 0])


@pytest.fixture(scope="module")
def fit():
    model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
    return credo.fit(jax.random.key(0), model, (X, Y), "bayes_by_backprop", steps=50, progress=False)


def title(figure):
    return figure.axes[0].get_title(loc="left")


def test_without_inputs_it_is_how_the_fit_went(fit):
    assert "Loss" in title(fit.plot())


def test_along_one_input_it_is_the_curve(fit):
    assert len(fit.plot(X, Y).axes[0].collections) >= 2  # two bands
    assert title(fit.plot(X, Y, "residuals")) != title(fit.plot(X, Y))


def test_a_wrong_name_says_which_there_are(fit):
    with pytest.raises(InputError, match="Did you mean 'residuals'"):
        fit.plot(X, Y, "residual")
    with pytest.raises(InputError, match="give both"):
        fit.plot(targets=Y)
