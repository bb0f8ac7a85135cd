"""Wrong arguments of the public functions: credo's own sentence, never an error of JAX or NumPy.

A table of calls that are right, and hostile values in the place of each argument, drawn by a seed.
"""

import dataclasses
import warnings

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.core.checks import RULES
from credo.errors import CredoError
from credo.registry import METHODS
from credo.storage.export.portable.cells import PortableError

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 40)[:, None]
Y = X[:, 0]
MODEL = credo.Model(credo.networks.mlp([3]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1))
NAN = float("nan")
# Right for no number, word or array of numbers.
WRONG = {
    "nan": NAN, "minus": -1, "text": "x", "list": [1, 2], "object": object(), "complex": 1j, "huge": -(10**400),
    "dict": {"a": 1}, "none": None, "array": np.ones((3, 3)), "bytes": b"1", "-inf": -np.inf, "class": int,
}  # fmt: skip
COUNTS = WRONG | {"zero": 0, "half": 1.5, "infinite": np.inf, "true": True, "2^31": 2**31}
SHARES = WRONG | {"zero": 0.0, "one": 1.0, "three": 3.0}
SCALES = WRONG | {"zero": 0.0, "infinite": np.inf}
ROWS = {
    "complex": X + 1j, "text": X.astype(str), "nan": X * NAN, "empty": X[:0], "no columns": X[:, :0], "flat": Y,
    "masked": np.ma.masked_array(X), "none": None, "ragged": [[1.0], [1.0, 2.0]], "dates": X.astype("M8[s]"),
    "huge": X * 1e300, "dict": {"a": X}, "word": "x", "object": np.array([[object()]]), "wide": np.ones((40, 2)),
}  # fmt: skip
TARGETS = {
    "short": Y[:-1], "complex": Y + 1j, "text": Y.astype(str), "nan": Y * NAN, "none": None,
    "cube": np.ones((40, 2, 1)),
    "empty": Y[:0], "masked": np.ma.masked_array(Y), "huge": Y * 1e300, "no columns": np.ones((40, 0)), "word": "x",
}  # fmt: skip
WEIGHTS = {"short": np.ones(39), "minus": -np.ones(40), "nan": Y * NAN, "text": "x"}
# For an array that shares its rows with others.
ARRAYS = {
    "short": np.ones((39, 2)), "complex": Y + 1j, "text": "x", "masked": np.ma.masked_array(Y), "huge": Y * 1e300,
    "none": None, "ragged": [[1.0], [1.0, 2.0]], "object": object(), "dict": {"a": Y}, "empty": Y[:0],
    "cube": np.ones((40, 2, 3, 4)), "endless": 10**400,
}  # fmt: skip
# One number among those of a utility that are right.
UTILITIES = {word: WRONG[word] for word in ("nan", "text", "object", "complex", "huge", "dict", "none", "-inf")}
TABLE = pd.DataFrame({"a": Y, "b": Y**2, "y": Y + 1})
KEYS = {"int": 0, "none": None, "text": "x", "floats": np.ones(2), "several": jax.random.split(KEY, 3)}
NAMES = {word: WRONG[word] for word in ("nan", "minus", "text", "object", "complex", "huge", "dict", "bytes", "class")}
BOUNDS = {word: value for word, value in WRONG.items() if word not in ("list", "none")}
NOT_NONE = {name: value for name, value in WRONG.items() if name != "none"}
TRUE_COUNTS = {name: value for name, value in COUNTS.items() if name != "none"}


@pytest.fixture(scope="module")
def fit():
    return credo.fit(KEY, MODEL, (X, Y), "map", steps=5, progress=False)


def _learn(**changed):
    given = {"key": KEY, "model": MODEL, "inputs": X, "targets": Y, "method": "map", "steps": 5} | changed
    data = (given.pop("inputs"), given.pop("targets"), *([given.pop("weights")] if "weights" in given else []))
    return credo.fit(given.pop("key"), given.pop("model"), data, given.pop("method"), progress=False, **given)


def calls(fit) -> list[tuple[str, object]]:
    """(what is wrong, a call that must end in a sentence)."""
    predicted = credo.predict(KEY, fit, X)
    found: list[tuple[str, object]] = []

    def add(function, name, values):
        found.extend(
            (f"{function.__name__}({name}={word})", lambda v=v: function(**{name: v})) for word, v in values.items()
        )

    def predict(key=KEY, fit=fit, inputs=X, **how):
        return credo.predict(key, fit, inputs, **how)

    def prior_predictive(key=KEY, model=MODEL, inputs=X, **how):
        return credo.prior_predictive(key, model, inputs, **how)

    def model(network=MODEL.network, prior=MODEL.prior, likelihood=MODEL.likelihood, temperature=1.0):
        return _learn(model=credo.Model(network, prior, likelihood, temperature))

    add(_learn, "key", KEYS)
    add(_learn, "model", WRONG)
    add(_learn, "inputs", {k: v for k, v in ROWS.items() if k not in ("dict", "wide")})
    add(_learn, "targets", TARGETS)
    add(
        _learn,
        "weights",
        {"short": np.ones(39), "minus": -np.ones(40), "nan": Y * NAN, "zero": np.zeros(40), "text": "x"},
    )
    add(_learn, "method", {k: v for k, v in WRONG.items() if k not in ("dict",)} | {"unknown": "hcm", "dict": {}})
    for name in ("steps", "batch_size", "capacity"):
        add(_learn, name, TRUE_COUNTS)
    add(_learn, "thin", COUNTS)
    add(_learn, "budget", {"text": "soon", "minus": -1, "zero": 0, "nan": NAN})
    add(predict, "key", KEYS)
    add(predict, "fit", WRONG)
    add(predict, "inputs", ROWS)
    add(predict, "num_samples", TRUE_COUNTS)
    add(predict, "memory", SCALES)
    add(predict, "mode", {"text": "x", "number": 3, "linearised": "linearised"})
    add(prior_predictive, "key", KEYS)
    add(prior_predictive, "model", WRONG)
    add(prior_predictive, "inputs", {k: v for k, v in ROWS.items() if k not in ("dict", "wide", "no columns")})
    add(prior_predictive, "num_samples", COUNTS)
    add(prior_predictive, "outputs", TRUE_COUNTS)
    for part in ("network", "prior", "likelihood"):
        add(model, part, WRONG | {"swapped": MODEL})
    add(model, "temperature", SCALES)
    for name in ("quantile", "interval"):
        found += [(f"{name}({w})", lambda n=name, v=v: getattr(predicted, n)(v)) for w, v in SHARES.items()]
    found += [(f"sample({w})", lambda v=v: predicted.sample(KEY, v)) for w, v in COUNTS.items()]
    found += [(f"sample(key={w})", lambda v=v: predicted.sample(v, 2)) for w, v in KEYS.items()]
    for name in ("log_prob", "cdf"):
        found += [(f"{name}({w})", lambda n=name, v=v: getattr(predicted, n)(v)) for w, v in TARGETS.items()]
    for name in ("rmse", "crps", "log_likelihood", "mae", "coverage"):
        score = getattr(credo.evaluation.metrics, name)
        found += [(f"{name}({w})", lambda s=score, v=v: s(predicted, v)) for w, v in TARGETS.items() if w != "huge"]
        found += [(f"{name}(weights={w})", lambda s=score, v=v: s(predicted, Y, v)) for w, v in WEIGHTS.items()]
    for name, values in {"normal": SCALES, "laplace": SCALES, "student_t": SCALES, "horseshoe": SCALES}.items():
        build = getattr(credo.priors, name)
        found += [(f"{name}({w})", lambda b=build, v=v: b(v)) for w, v in values.items() if w != "none"]
    found += [(f"gaussian({w})", lambda v=v: credo.likelihoods.gaussian(v)) for w, v in SCALES.items()]
    found += [(f"categorical({w})", lambda v=v: credo.likelihoods.categorical(v)) for w, v in COUNTS.items()]
    return found + applications(fit, predicted) + settings_of_methods() + scores_of_arrays()


def applications(fit, predicted) -> list[tuple[str, object]]:
    """What is built on fits: networks, decisions, recalibration, exports, searches, estimators, comparisons."""
    from credo import applications, estimators
    from credo.applications import class_utility, cvar, exponential, newsvendor, pinball, step_utility
    from credo.applications.effects import effects
    from credo.applications.optimise import Category, Float, Int, Optimizer, Space
    from credo.evaluation import recalibration

    found: list[tuple[str, object]] = []

    def add(name, function, values):
        few = {word: value for word, value in values.items() if word not in ("array", "2^31")}
        found.extend((f"{name}({word})", lambda v=value: function(v)) for word, value in few.items())

    numbers = NOT_NONE | {"word": "x"}
    add(
        "mlp",
        credo.networks.mlp,
        {w: v for w, v in numbers.items() if w not in ("list",)} | {"minus": [-1], "half": [1.5]},
    )
    add("mlp activation", lambda v: credo.networks.mlp([3], v), WRONG)
    add("shallow", credo.networks.shallow, {w: v for w, v in TRUE_COUNTS.items() if w != "zero"})
    add("decide utility", lambda v: credo.decide(predicted, v), WRONG)
    add("u(y)", lambda v: credo.decide(predicted, {"act": lambda y: v, "wait": lambda y: 0 * y}), UTILITIES)
    for name, values in {"under": SCALES, "over": SCALES, "bounds": BOUNDS}.items():
        add(f"newsvendor {name}", lambda v, n=name: newsvendor(**{"under": 1.0, "over": 1.0, n: v}), values)
    add("pinball", pinball, SHARES)
    add("step_utility", lambda v: step_utility({"act": (0.0, 1.0, v)}), UTILITIES)
    add("class_utility", lambda v: class_utility([[1.0, v]]), UTILITIES)
    add("cvar", cvar, {w: v for w, v in SHARES.items() if w != "one"})
    add("exponential", exponential, WRONG)
    for name in ("actions", "bounds", "risk", "over", "abstain"):
        few = {"actions": NAMES, "bounds": BOUNDS, "abstain": {w: v for w, v in BOUNDS.items() if w != "minus"}}.get(
            name, NOT_NONE
        )
        add(f"decide {name}", lambda v, n=name: credo.decide(predicted, lambda a, y: a - y, **{n: v}), few)
    add("temperature", lambda v: recalibration.temperature_scaling(predicted, v), TARGETS)
    add("conformal", lambda v: recalibration.split_conformal(v, Y), WRONG)
    reached = {w: v for w, v in TARGETS.items() if w != "huge"}
    add("conformal targets", lambda v: recalibration.split_conformal(predicted, v), reached)
    add("conformal coverage", lambda v: recalibration.split_conformal(predicted, Y, v), SHARES)
    add("conformal method", lambda v: recalibration.split_conformal(predicted, Y, method=v), NOT_NONE)
    add("conformal apply", recalibration.split_conformal(predicted, Y).apply, WRONG)
    add("effects key", lambda v: effects(v, fit), KEYS)
    add("effects", lambda v: effects(KEY, v), WRONG)
    add("effects inputs", lambda v: effects(KEY, fit, v), {w: v for w, v in ROWS.items() if w != "none"})
    for name in ("names", "groups", "grids", "outputs", "level"):
        values = NAMES if name in ("names", "outputs") else NOT_NONE
        add(f"effects {name}", lambda v, n=name: effects(KEY, fit, **{n: v}), values | {"list": [1, 2]})
    for name in ("num_samples", "most_rows", "most_points"):
        add(f"effects {name}", lambda v, n=name: effects(KEY, fit, **{n: v}), COUNTS)
    add("compare", lambda v: credo.compare(v, "y"), WRONG)
    add("compare target", lambda v: credo.compare(TABLE, v), WRONG)
    for name in ("folds", "seed", "steps", "budget", "methods", "baselines", "level"):
        values = NAMES if name in ("methods", "baselines") else {w: v for w, v in NOT_NONE.items() if w != "bytes"}
        add(f"compare {name}", lambda v, n=name: credo.compare(TABLE, "y", **{n: v}), values)
    for name in ("form", "levels", "block"):
        add(f"export {name}", lambda v, n=name: credo.export(fit, "never", **{"form": "numpy", n: v}), NOT_NONE)
    add("export", lambda v: credo.export(v, "never", "numpy"), WRONG)
    add("load", credo.load, WRONG)
    add("load_exported", credo.load_exported, WRONG)
    for kind in (Float, Int):
        add(f"{kind.__name__} low", lambda v, k=kind: k(v, 3), {w: v for w, v in WRONG.items() if w != "minus"})
        add(f"{kind.__name__} high", lambda v, k=kind: k(0, v), WRONG)
    add("Category", Category, {w: v for w, v in WRONG.items() if w != "list"})
    add("Space", Space, WRONG)
    space = Space({"x": Float(0, 1)})
    add("Optimizer", Optimizer, WRONG)
    for name, values in {
        "batch": COUNTS,
        "surrogate": WRONG,
        "acquisition": WRONG,
        "beta": WRONG,
        "seed": WRONG,
    }.items():
        add(f"Optimizer {name}", lambda v, n=name: Optimizer(space, **{n: v}), values)
    search = Optimizer(space, "random")
    add("ask", search.ask, TRUE_COUNTS)
    add(
        "tell",
        lambda v: search.tell([{"x": 0.5}], v),
        {w: v for w, v in WRONG.items() if w in ("text", "list", "object")},
    )
    add(
        "minimise",
        lambda v: Optimizer(space, "random").minimise(lambda p: p["x"], v),
        TRUE_COUNTS,
    )
    for estimator in (estimators.BayesianRegressor, estimators.BayesianClassifier):
        for name in ("method", "network", "prior", "likelihood"):
            values = {w: v for w, v in WRONG.items() if not (w == "none" or (name == "network" and w == "list"))}
            add(
                f"{estimator.__name__} {name}",
                lambda v, e=estimator, n=name: e(**{"method": "map", n: v}).fit(X, Y > 0),
                values,
            )
    add("acquisition", lambda v: applications.active.acquisition_scores(KEY, fit, X, v), WRONG)
    add("pool", lambda v: applications.active.acquisition_scores(KEY, fit, v), ROWS)
    add("choose", lambda v: applications.active.choose(KEY, fit, X, v), COUNTS)
    return found


def scores_of_arrays() -> list[tuple[str, object]]:
    """Each array, and each number, of the pure functions of `credo.metrics.arrays`."""
    n, m = 40, 3
    probs = np.full((n, 2), 0.5)
    draws, labels = np.zeros((m, n)), np.arange(n) % 2
    of_classes = {"probs": probs, "labels": labels, "weights": np.ones(n)}
    of_scores = {"scores": Y, "labels": labels, "weights": np.ones(n)}
    picked = {"probs": Y**2, "labels": labels, "weights": np.ones(n)}
    ends = {"low": Y, "high": Y + 1, "targets": Y}
    mixture = {"means": draws, "stds": draws + 1, "weights": np.full(m, 1 / m), "targets": Y}
    binned, alone = of_classes | {"bins": 5}, {"probs": probs, "labels": labels}
    kept = {"losses": Y, "confidence": Y, "weights": np.ones(n)}
    joint = {"draws": draws[..., None], "targets": X}
    right = {
        **dict.fromkeys(("ece", "adaptive_ece", "classwise_ece", "brier_decomposition"), binned),
        "brier": of_classes, "brier_terms": alone, "hits": alone,
        **dict.fromkeys(("auroc", "aupr"), of_scores), "tpr_at_fpr": of_scores | {"max_fpr": 0.1},
        "detection_rates": of_scores | {"threshold": 0.3}, "threshold_at_fpr": {"clean": Y, "max_fpr": 0.1},
        **dict.fromkeys(("recall", "precision"), picked | {"threshold": 0.3}), "lift": picked | {"share": 0.1},
        "best_threshold": {"probs": Y}, "covered": ends, "interval_score": ends | {"level": 0.9},
        "pit_shares": {"low": Y, "high": Y, "bins": 5}, "mean": {"values": Y, "weights": np.ones(n)},
        "root_mean": {"values": Y, "weights": np.ones(n)}, "crps_draws": {"draws": draws, "targets": Y},
        "crps_normal_mixture": mixture, "crps_normal_mixture_integral": mixture | {"cells": 4},
        "crps_two_samples": {"first": draws, "second": draws, "targets": Y}, "energy_draws": joint,
        "energy_two_samples": {"first": draws[..., None], "second": draws[..., None], "targets": X},
        "risk_coverage": kept, "aurc": kept,
    }  # fmt: skip
    one = {"bins": TRUE_COUNTS, "cells": COUNTS, "level": SHARES, "weights": WEIGHTS | {"zero": 0 * Y}, "fair": {}}
    parts = {w: v for w, v in SHARES.items() if w not in ("one", "zero")}
    found: list[tuple[str, object]] = []
    for name, given in right.items():
        function = getattr(credo.metrics.arrays, name)
        function(**given)
        for word in given:
            values = one.get(word, parts if word in ("share", "max_fpr") else ARRAYS)
            if word in ("threshold", "values"):  # of any shape
                values = {w: v for w, v in (UTILITIES | ARRAYS).items() if w in ("text", "complex", "masked", "object")}
            found += [
                (f"{name}({word}={w})", lambda f=function, g=given, n=word, v=v: f(**g | {n: v}))
                for w, v in values.items()
                if not (w == "none" and name in ("recall", "precision")) and w not in ("nan", "-inf")
            ]
    return found


def settings_of_methods() -> list[tuple[str, object]]:
    """Every hyper-parameter of every method that has a rule."""
    found: list[tuple[str, object]] = []
    for row in METHODS.values():
        made = row.load()
        method = made if dataclasses.is_dataclass(made) and not isinstance(made, type) else made()
        for field in dataclasses.fields(method):
            if field.type in ("int", int):
                values = {w: v for w, v in COUNTS.items() if w not in ("zero", "array")}
            elif field.type in ("float", float) and field.name in RULES:
                values = {w: v for w, v in WRONG.items() if w != "array"}
            elif field.type in ("bool", bool, "str", str):
                values = {w: v for w, v in WRONG.items() if w not in ("text", "array")}
            else:
                continue
            found += [
                (f"{row.name}({field.name}={w})", lambda m=method, f=field.name, v=v: _with(m, **{f: v}))
                for w, v in values.items()
            ]
    return found


def _with(method, **changed):
    return _learn(method=dataclasses.replace(method, **changed))


def _try(cases: list[tuple[str, object]]) -> list[str]:
    """What did not end in a sentence."""
    failed = []
    for name, call in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except (CredoError, PortableError) as error:
                if "\n" in str(error) or len(str(error)) < 15:
                    failed.append(f"{name}: no sentence: {error}")
                continue
            except Exception as error:
                failed.append(f"{name}: {type(error).__name__}: {str(error)[:80]}")
                continue
        failed.append(f"{name}: nothing was said")
    return failed


@pytest.mark.parametrize("temperature", [-1, 0.0, np.nan, np.inf, "hot", True])
def test_a_model_refuses_its_temperature_where_it_is_made(temperature):
    with pytest.raises(CredoError, match="temperature must be a positive finite number"):
        credo.Model(MODEL.network, MODEL.prior, MODEL.likelihood, temperature)
    with pytest.raises(CredoError, match="temperature must be a positive finite number"):
        MODEL.tempered(temperature)


def test_wrong_arguments_get_credos_sentence(fit):
    cases = calls(fit)
    chosen = np.random.default_rng(1).permutation(len(cases))[:300]
    assert "\n".join(_try([cases[i] for i in chosen])) == ""


@pytest.mark.full
def test_every_wrong_argument_gets_credos_sentence(fit):
    assert "\n".join(_try(calls(fit))) == ""
