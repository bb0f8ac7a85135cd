"""Structures of credo's objects as pytrees."""

import jax

import credo
from credo.methods.points.map import MAP, MaximumLikelihood


def test_classes_with_the_same_fields_have_different_structures():
    """Else a method could be given the program that was compiled for another."""
    pairs = [(MAP(), MaximumLikelihood()), (credo.priors.normal(1.0), credo.priors.laplace(1.0))]
    for one, other in pairs:
        assert jax.tree.structure(one) != jax.tree.structure(other)
        assert jax.tree.structure(one) == jax.tree.structure(type(one)(**vars(one)))
        assert jax.tree.map(lambda x: x, one) == one
