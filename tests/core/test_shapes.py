"""The shapes of `credo.core.typing` are checked in every test, by tests/support/shapes.py."""

import subprocess
import sys

import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

import credo
from credo.core.likelihood import Likelihood
from credo.core.network import Variables


def test_a_wrong_shape_is_named_in_arguments_and_in_results():
    gaussian = credo.likelihoods.gaussian(0.1)
    assert gaussian.log_prob({}, jnp.ones((3, 2)), jnp.ones((3, 2))).shape == (3,)
    with pytest.raises(TypeCheckError, match="targets"):
        gaussian.log_prob({}, jnp.ones((3, 2)), jnp.ones((4, 2)))
    with pytest.raises(TypeCheckError, match="outputs"):
        gaussian.mean({}, jnp.ones(3))
    layer = {"kernel": jnp.ones((2, 1)), "bias": jnp.zeros(2)}
    outputs, _ = credo.networks.mlp([]).apply(Variables({"output": layer}, {}), jnp.ones((3, 1)))
    assert outputs.shape == (3, 2)


def test_shapes_are_names_alone_outside_of_tests():
    """Users need neither jaxtyping nor beartype."""
    hidden = "import sys; sys.modules['jaxtyping'] = sys.modules['beartype'] = None\n"
    code = hidden + "import credo.core.typing, credo.core.model; print(credo.core.typing.Outputs.__metadata__)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "('n out',)", result.stderr
    assert Likelihood.mean.__annotations__["outputs"] is credo.core.typing.Outputs
