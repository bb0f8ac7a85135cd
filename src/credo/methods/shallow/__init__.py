"""Bayesian networks of one hidden layer, architecture included (E): `credo.shallow` is where a user finds all of it.

network              one hidden layer of nodes beside a linear part
prior                the conjugate hierarchy over its weights
Gibbs                a fixed number of nodes
ReversibleJump       an unknown number of nodes
autoregression       series
effects              what each input does
partial_dependence   along which curve
"""

from credo.registry import lazy

# Names are looked up when first used: the samplers are below the applications, these names above both.
__getattr__, __dir__ = lazy(__name__, {
    "network": "networks:shallow",
    "prior": "priors:node_hierarchy",
    "Gibbs": "methods.shallow.gibbs:Gibbs",
    "ReversibleJump": "methods.shallow.reversible_jump:ReversibleJump",
    "autoregression": "applications:autoregression",
    "effects": "applications:effects",
    "partial_dependence": "applications:partial_dependence",
})  # fmt: skip
