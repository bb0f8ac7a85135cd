"""Functions of likelihoods run as one program each, as in a fit; else JAX compiles every operation on its own."""

import functools
import inspect

import jax
import pytest

from credo.likelihoods import base
from credo.registry import LIKELIHOODS

FUNCTIONS = ("log_prob", "log_probs", "mean", "variance", "cdf", "entropy", "curvature", "sample")


def classes():
    """Those of all likelihoods, and what they derive from."""
    made = [getattr(inspect.getmodule(row.load()), row.makes) for row in LIKELIHOODS.values()]
    return {each for kind in made for each in kind.__mro__ if each.__module__.startswith(base.__package__)}


def whole(function):
    program = jax.jit(function)

    @functools.wraps(function)
    def call(self, *args, **kwargs):
        return program(self, *args, **kwargs)

    return call


@pytest.fixture(autouse=True, scope="session")
def functions_as_programs():
    with pytest.MonkeyPatch.context() as patch:
        for kind in classes():
            for name in FUNCTIONS:
                function = vars(kind).get(name)
                if inspect.isfunction(function) and not getattr(function, "__isabstractmethod__", False):
                    patch.setattr(kind, name, whole(function))
        yield
