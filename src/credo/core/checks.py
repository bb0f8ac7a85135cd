"""Checks of arguments and hyper-parameters; each error is one sentence."""

import dataclasses
import math
import numbers
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import FitResult, PhasedMethod, lacks, offers
from credo.errors import InputError

SMALLEST, LARGEST = 1, 2**31 - 1
MOST_NAMED = 8  # problems in one sentence


def whole_number(value: Any, name: str, least: int = SMALLEST, most: int = LARGEST) -> int:
    """A whole number from `least` to `most`, or a sentence.

    Example:
        >>> whole_number(3.0, "steps")
        3
    """
    number = _real(value)
    if number is None or not math.isfinite(number) or number != int(number) or number < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {_shown(value)}.")
    if number > most:
        raise InputError(f"{name} must be at most {most:,}, got {_shown(value)}.")
    return int(number)


def positive(value: Any, name: str) -> Any:
    """A positive finite number as a float, so that 1 and 1.0 are one program; traced numbers pass.

    Example:
        >>> positive(2, "scale")
        2.0
    """
    if isinstance(value, jax.core.Tracer):
        return value
    number = _real(value)
    if number is None or not 0 < number < math.inf:
        raise InputError(f"{name} must be a positive finite number, got {_shown(value)}.")
    return number


def finite(value: Any, name: str) -> float:
    """A finite number, or a sentence.

    Example:
        >>> finite(3, "bound")
        3.0
    """
    number = _real(value)
    if number is None or not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {_shown(value)}.")
    return number


def or_none(check: Callable[[Any, str], Any], value: Any, name: str) -> Any:
    """The checked value; None stays."""
    return None if value is None else check(value, name)


def share(value: Any, name: str) -> float:
    """A number between 0 and 1, the ends left out, or a sentence."""
    number = _real(value)
    if number is None or not 0 < number < 1:
        raise InputError(f"{name} lies between 0 and 1, got {_shown(value)}.")
    return number


def list_of(value: Any, name: str) -> list[Any]:
    """The entries of a list, a tuple or an array of one dimension, or a sentence."""
    if isinstance(value, list | tuple | range) or (isinstance(value, np.ndarray | jax.Array) and value.ndim == 1):
        return list(value)
    raise InputError(f"{name} must be a list, got {_shown(value)}.")


def names_of(value: Any, name: str) -> list[str]:
    """Names in a list, a tuple or an index of pandas, as texts; or a sentence.

    Example:
        >>> names_of(("a", 1), "names")
        ['a', '1']
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or isinstance(value, type):
        raise InputError(f"{name} must be a list of names, got {_shown(value)}.")
    return [str(one) for one in value]


def checked_path(value: Any, name: str) -> Any:
    """The path of a file or folder, or a sentence."""
    if isinstance(value, str | os.PathLike):
        return value
    raise InputError(f"{name} must be the path of a folder, got {_shown(value)}.")


def one_of(value: Any, choices: Collection[str], name: str) -> str:
    """One of these words, or a sentence."""
    if isinstance(value, str) and value in choices:
        return value
    raise InputError(f"Unknown {name} {_shown(value)}; choose one of {', '.join(choices)}.")


def check_shapes(shapes: Mapping[str, Any], expected: Mapping[str, Any], whose: str, of: str = "the network") -> None:
    """Raise one sentence with everything in which shapes by path differ.

    Args:
        shapes, expected: path → shape.
        whose: the name of the arrays in the sentence.
        of: the name of what they should belong to.
    """
    wrong = [path for path in sorted({*shapes, *expected}) if shapes.get(path) != expected.get(path)]
    if wrong:
        problems = [
            f"'{path}' is lacking" if path not in shapes
            else f"'{path}' is extra" if path not in expected
            else f"'{path}' has shape {shapes[path]} in place of {expected[path]}"
            for path in wrong[:MOST_NAMED]
        ]  # fmt: skip
        more = f", and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
        raise InputError(f"{whose} are not those of {of}: {', '.join(problems)}{more}; give those of the same network.")


def checked_fit(value: Any, name: str) -> Any:
    """The result of a fit, or a sentence; `name` is that of the function that takes it."""
    if isinstance(value, type) or not offers(value, FitResult):
        raise InputError(f"{name} takes the result of credo.fit or credo.load, got {_shown(value)}.")
    return value


def checked_predictive(value: Any) -> Any:
    """What `credo.predict` gives, or a sentence."""
    if isinstance(value, type) or lacks(value, ("kind", "interval", "log_prob")):
        raise InputError(f"Predictions are what credo.predict gives, got {_shown(value)}.")
    return value


def checked_key(key: Any) -> Any:
    """A JAX key, or a sentence."""
    if isinstance(key, jax.Array | np.ndarray):
        typed = jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()
        if typed or (key.dtype == np.uint32 and key.shape in ((2,), (4,))):
            return key
    raise InputError(f"The first argument is a JAX key such as jax.random.key(0), got {_shown(key)}.")


def _real(value: Any) -> float | None:
    """A number of Python, NumPy or JAX as a float; None for all else."""
    if isinstance(value, bool | np.bool_ | str | bytes) or value is None:
        return None
    if isinstance(value, jax.Array | np.ndarray) and (value.ndim or value.dtype.kind not in "fiu"):
        return None
    if not isinstance(value, numbers.Real | np.ndarray | jax.Array | np.number):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | jax.Array) and value.ndim:
        return f"an array of shape {list(value.shape)}"
    if isinstance(value, int) and abs(value) > 10**60:  # of whose digits Python writes 4,300 at most
        return "a whole number of more than 60 digits"
    text = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}…"


# ---------------------------------------------------------------------- hyper-parameters
Rule = tuple[Callable[[float], bool], str]
POSITIVE: Rule = (lambda x: 0 < x < math.inf, "a positive finite number")
NOT_NEGATIVE: Rule = (lambda x: 0 <= x < math.inf, "a finite number of at least 0")
SHARE: Rule = (lambda x: 0 < x < 1, "a number between 0 and 1")
PROBABILITY: Rule = (lambda x: 0 <= x <= 1, "a number from 0 to 1")
BELOW_ONE: Rule = (lambda x: 0 <= x < 1, "a number of at least 0 and below 1")
FINITE: Rule = (math.isfinite, "a finite number")
COUNT: Rule = (lambda x: x == int(x) and 1 <= x <= LARGEST, "a whole number of at least 1")
NONE_OR_MORE: Rule = (lambda x: x == int(x) and 0 <= x <= LARGEST, "a whole number of at least 0")

# A name means the same in every method. Other names follow their type: whole numbers of at least 0, finite numbers,
# texts, true or false. `leaf(must=…)` declares a rule at the field itself.
RULES: dict[str, Rule] = (
    dict.fromkeys(
        ("averaging_rate", "boost", "cold", "damping", "decay_after", "energy_variance", "hot", "inflate",
         "initial_hessian", "initial_std", "length", "point_rate", "refined_step", "step_scale",
         "step_size", "tails", "tolerance", "more", "friction", "clip"),
        POSITIVE,
    )
    | dict.fromkeys(
        ("beta", "gradient_noise", "learning_rate", "margin", "jitter", "decay_power", "kl_warmup"), NOT_NEGATIVE
    )
    | dict.fromkeys(("target_acceptance", "held_out"), SHARE)
    | dict.fromkeys(("momentum",), BELOW_ONE)
    | dict.fromkeys(("hessian_memory", "ess", "fresh", "input_share"), PROBABILITY)
    | dict.fromkeys(
        ("averaging_rows", "chains", "components", "every", "function_draws", "max_doublings", "members", "num_samples",
         "particles", "passes", "prior_draws", "size", "cycle_length", "max_steps"),
        COUNT,
    )
)  # fmt: skip


def check_settings(thing: Any) -> None:
    """Every hyper-parameter of a method (and of the methods inside it) against its rule, or a sentence."""
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        return
    hints = _types(type(thing))
    for field in dataclasses.fields(thing):
        value = vars(thing)[field.name]
        if dataclasses.is_dataclass(value):
            if offers(value, PhasedMethod):
                check_settings(value)
            continue
        _check_one(f"{field.name} of {type(thing).__name__}", value, hints.get(field.name, Any), _rule(thing, field))


def _rule(thing: Any, field: Any) -> Rule | None:
    declared = field.metadata.get("must")
    built_in = type(thing).__module__.startswith("credo.")
    return declared if declared is not None else RULES.get(field.name) if built_in else None


def _types(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except (NameError, TypeError):  # names that only a type checker knows
        return {}


def _check_one(name: str, value: Any, hint: Any, rule: Rule | None) -> None:
    kinds = set(typing.get_args(hint)) or {hint}
    if value is None or isinstance(value, jax.core.Tracer):
        if value is None and kinds <= {int, float, str, bool}:
            raise InputError(f"{name} is missing: got None.")
        return
    if kinds - {type(None)} == {bool}:
        if not isinstance(value, bool | np.bool_):
            raise InputError(f"{name} is True or False, got {_shown(value)}.")
    elif kinds - {type(None)} == {str}:
        if not isinstance(value, str):
            raise InputError(f"{name} is a word, got {_shown(value)}.")
    elif kinds - {type(None)} <= {int, float}:
        rule = rule or (NONE_OR_MORE if int in kinds else FINITE)
        if int in kinds and rule not in (COUNT, NONE_OR_MORE):
            rule = NONE_OR_MORE
        _check_number(name, value, rule)
    elif rule is not None and (isinstance(value, str) or _real(value) is not None):
        _check_number(name, value, rule)


def _check_number(name: str, value: Any, rule: Rule) -> None:
    fits, words = rule
    if isinstance(value, np.ndarray | jax.Array) and value.ndim:
        if not all(math.isfinite(x) and fits(x) for x in np.asarray(value, float).ravel().tolist()):
            raise InputError(f"Each entry of {name} is {words}.")
        return
    number = _real(value)
    if (
        number is None
        or math.isnan(number)
        or (math.isinf(number) and rule in (COUNT, NONE_OR_MORE))
        or not fits(number)
    ):
        raise InputError(f"{name} is {words}, got {_shown(value)}.")
