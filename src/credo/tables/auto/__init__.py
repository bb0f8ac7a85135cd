"""`method="auto"`: which method, network and likelihood a table gets when nobody says, and why (I1).

`choose` says what the size of a table asks for, `pilot` decides by short fits what size cannot tell, and `resolve`
turns a table or a model and what the user said into what is fitted.
"""

from typing import Any

from credo.tables.auto.choice import AUTO as AUTO
from credo.tables.auto.choice import Choice as Choice
from credo.tables.auto.choice import choose as choose
from credo.tables.auto.choice import count as count

# Loaded when first used: the choice by size is made where JAX is not.
_LATER = (
    {"pilot": "pilots"}
    | dict.fromkeys(("Case", "of_model", "of_table"), "case")
    | dict.fromkeys(("Resolved", "resolve"), "resolution")
)
_OLD = {"compete": "pilot", "compete_each": "pilot", "settle": "Choice.words"} | dict.fromkeys(
    ("choose_for", "choose_for_model", "chosen_for", "chosen_for_model", "without_likelihood"), "resolve"
)


def __getattr__(name: str) -> Any:
    from credo.registry import load

    if name in _LATER:
        return load(f"credo.tables.auto.{_LATER[name]}:{name}")
    if name in _OLD:
        raise AttributeError(f"credo.tables.auto.{name} is no more; use credo.tables.auto.{_OLD[name]}.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
