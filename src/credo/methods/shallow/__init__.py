"""Bayesian networks of one hidden layer, architecture included (E): `credo.shallow` is where a user finds all of it.

network              one hidden layer of nodes beside a linear part
prior                the conjugate hierarchy over its weights
Gibbs                a fixed number of nodes
ReversibleJump       an unknown number of nodes
autoregression       series
effects              what each input does
partial_dependence   along which curve
"""

from typing import Any

# Names are looked up when first used: samplers stand below the applications, and this page of names above both.
_NAMES = {
    "network": "credo.networks:shallow",
    "prior": "credo.priors:node_hierarchy",
    "Gibbs": "credo.methods.shallow.gibbs:Gibbs",
    "ReversibleJump": "credo.methods.shallow.reversible_jump:ReversibleJump",
    "autoregression": "credo.applications:autoregression",
    "effects": "credo.applications:effects",
    "partial_dependence": "credo.applications:partial_dependence",
}


def __getattr__(name: str) -> Any:
    from credo.registry import load

    if name not in _NAMES:
        raise AttributeError(f"module 'credo.methods.shallow' has no attribute {name!r}")
    return load(_NAMES[name])


def __dir__() -> list[str]:
    return sorted(_NAMES)
