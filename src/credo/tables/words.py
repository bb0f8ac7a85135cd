"""Parts of a model in words: "student_t:4", "mlp:50,50:tanh", "by_path:*/bias=normal(0.1),*=horseshoe(0.05)".

A name of the registry, a colon, and the arguments of its builder: numbers, true and false, words, lists (2,2), other
priors as name(…), or any of these by keyword as scale=0.5.
"""

import inspect
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from credo.errors import InputError
from credo.registry import PRIORS, SCALES, Entry, Part

SPELLED = {"true": True, "false": False}


def build_entry(row: Entry, arguments: Sequence[str], text: Any, **extra: Any) -> Any:
    """What the row's builder makes of arguments in words.

    Args:
        row: of the registry.
        arguments: one for each argument of the builder, in its order or as "name=…".
        text: all that was written, for the sentence where it does not fit.
        extra: further arguments; of those that the builder does not have none is handed over.
    """
    if isinstance(row, Part) and not row.example:
        raise InputError(f"{row.name} takes more than words can say: build it in Python ({row.builder}).")
    builder = row.load()
    parameters, hints = inspect.signature(builder).parameters, typing.get_type_hints(builder)
    keywords = {name: value for name, value in extra.items() if name in parameters}
    order = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY and p.name not in keywords]
    pairs = order[0] if order and typing.get_origin(hints.get(order[0])) is Mapping else None
    if pairs:
        keywords[pairs] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if pairs:
            keywords[pairs][name.strip()] = _value(value)
        elif equals and name.strip() in parameters:
            keywords[name.strip()] = _fitting(value, hints.get(name.strip()), row, text)
        elif equals:
            raise InputError(f"{row.name} has no setting {name.strip()!r}; it has {', '.join(parameters)}.")
        elif not (free := [name for name in order if name not in keywords]):
            raise InputError(f"{text!r} has more numbers than {row.name} takes.")
        else:
            keywords[free[0]] = _fitting(argument, hints.get(free[0]), row, text)
    lacking = [p.name for p in parameters.values() if p.default is p.empty and p.name not in keywords]
    if lacking:
        raise _unfit(row, text)
    return builder(**keywords)


def name_and_rest(text: Any) -> tuple[str, str]:
    """The name, and what is said of it after a colon or between brackets.

    Example:
        >>> name_and_rest("normal:1.0"), name_and_rest("normal(1.0)"), name_and_rest("bernoulli")
        (('normal', '1.0'), ('normal', '1.0'), ('bernoulli', ''))
    """
    text = str(text).strip()
    name, _, rest = text.partition(":")
    if "(" in name and text.endswith(")"):
        name, _, rest = text[:-1].partition("(")
    return name.strip(), rest


def parts(text: str, at: str = ",") -> list[str]:
    """Text in pieces, cut where no bracket is open; no text has none.

    Example:
        >>> parts("inverse_gamma(2, 1), layer"), parts("")
        (['inverse_gamma(2, 1)', 'layer'], [])
    """
    pieces, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == at and not depth:
            pieces.append("")
        else:
            pieces[-1] += letter
    if depth:
        raise InputError(f"Brackets do not match in {text!r}.")
    return [piece.strip() for piece in pieces] if text.strip() else []


def _value(text: str) -> Any:
    """A number, true or false, a list, a prior, or else the word itself."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        return tuple(_value(piece) for piece in parts(text[1:-1]))
    if text.lower() in SPELLED:
        return SPELLED[text.lower()]
    name, rest = name_and_rest(text)
    for table in (SCALES, PRIORS):
        if name in table:
            return build_entry(table[name], parts(rest), text)
    try:
        return float(text)
    except ValueError:
        return text


def _fitting(argument: str, hint: Any, row: Entry, text: Any) -> Any:
    """The argument, as a list where the builder takes one; a word only where it takes words."""
    several = typing.get_origin(hint) is Sequence
    value = [_value(piece) for piece in parts(argument) if piece] if several else _value(argument)
    words = [x for x in (value if isinstance(value, list | tuple) else [value]) if isinstance(x, str)]
    if words and hint is not Any and str not in (hint, *typing.get_args(hint)):
        raise _unfit(row, text)
    return value


def _unfit(row: Entry, text: Any) -> InputError:
    example = row.example if isinstance(row, Part) else f"{row.name}(1.0)"
    return InputError(f"{row.name} is written as {example}, got {text!r}.")
