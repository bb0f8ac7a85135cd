"""A grid of models, attacks and scores, as one table that goes on where it stopped."""

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from credo.applications.detection.attacks import Attack, attack
from credo.applications.detection.result import Study
from credo.applications.detection.scores import CLASS_SCORES, suspicion
from credo.core.predict import predict
from credo.errors import InputError
from credo.storage.store import Store, open_store
from credo.training.config import plain


def study(
    key: jax.Array,
    fits: Mapping[str, Any],
    clean_validation: Any,
    clean_test: Any,
    labels: Any,
    *,
    attacks: Sequence[Attack | str] = (),
    others: Mapping[str, Any] | None = None,
    scores: Sequence[str] = CLASS_SCORES,
    baseline: str | None = None,
    max_fpr: float = 0.05,
    num_samples: int | None = None,
    level: float = 0.9,
    resamples: int = 1000,
    rows_at_once: int | None = None,
    folder: Any = None,
    callback: Callable[[str, str], Any] | None = None,
) -> Study:
    """Attack every model through its own predictive, and see what each score catches.

    Each model fixes a threshold of its own on clean validation rows. Positives of an attack are the rows of
    `clean_test` on which it succeeded against that model; positives of `others` are all rows of another data set.
    Intervals and the comparison with the baseline come from the bootstrap over images, the same images for both.

    Args:
        key: a JAX key.
        fits: fitted models of classes, by name.
        clean_validation: inputs for the thresholds.
        clean_test: inputs that are attacked.
        labels: the true classes of `clean_test`.
        attacks: each an `Attack` or text as in `Attack.parse`.
        others: inputs of other data sets, by name.
        scores: see `suspicion`.
        baseline: the model that others are compared with, score by score; the first where None.
        max_fpr: share of clean validation rows that may be flagged.
        num_samples: draws of θ, for attackers and predictives.
        level, resamples: of the intervals.
        rows_at_once: as in `attack`.
        folder: where to keep scores of what is done, to go on there after a stop.
        callback: called with the names of model and attack after each.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(300, 2)).astype("float32")
        >>> y = (x[:, 0] > 0).astype(int)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), "map", steps=100)
        >>> table = credo.applications.detection.study(
        ...     jax.random.key(1), {"map": fit}, x[:150], x[150:], y[150:], attacks=["fgsm:0.5"], scores=["entropy"]
        ... )
        >>> [row["attack"] for row in table.rows]
        ['fgsm']
    """
    hows = [Attack.parse(how) if isinstance(how, str) else how for how in attacks]
    others = dict(others or {})
    names = [*map(str, hows), *others]
    first = baseline or next(iter(fits), "")
    if not fits or not names or not scores:
        raise InputError("A study needs at least one model, one score, and one attack or other data set.")
    if first not in fits:
        raise InputError(f"The baseline {first!r} is not among the models: {', '.join(fits)}.")
    if len(set(names)) < len(names):
        raise InputError("Two attacks or data sets of a study have the same name.")
    settings = {
        "key": np.asarray(jax.random.key_data(key)).tolist(), "scores": list(scores), "num_samples": num_samples,
        "data": _digest(clean_validation, clean_test, labels, *others.values()),
    }  # fmt: skip
    with open_store(folder, "study.json", "a study", settings) as store:
        key_draws, key_attack, key_boot = jax.random.split(key, 3)
        measured: dict[str, dict[str, dict[str, np.ndarray]]] = {}
        for model, fit in fits.items():

            def measure(inputs: Any, fit: Any = fit) -> dict[str, np.ndarray]:
                predictive = predict(key_draws, fit, inputs, num_samples=num_samples)
                return {score: suspicion(predictive, score) for score in scores}

            clean = {f"validation {k}": v for k, v in measure(clean_validation).items()} | measure(clean_test)
            measured[model] = {"": _same(store, model, clean)}
            for how, name in [*zip(hows, names), *((None, name) for name in others)]:
                # Not all of an attack's settings are in its name, and a record is read only where all are the same.
                cell = name if how is None else f"{name} {hashlib.sha256(repr(how).encode()).hexdigest()[:8]}"
                stored = store.read(f"{model}--{cell}")
                if stored is not None:
                    measured[model][name] = stored[1]
                elif how is None:
                    measured[model][name] = measure(others[name])
                else:
                    hit = attack(key_attack, fit, clean_test, labels, how, num_samples=num_samples,
                                   rows_at_once=rows_at_once)  # fmt: skip
                    measured[model][name] = measure(hit.inputs) | {"success": hit.success, "open": hit.open}
                if stored is None:
                    store.write(f"{model}--{cell}", {}, measured[model][name])
                if callback is not None:
                    callback(model, name)
        table = Study.of(
            key_boot, measured, dict(zip(names, [*hows, *(None for _ in others)])), list(scores), first,
            max_fpr=max_fpr, level=level, resamples=resamples,
        )  # fmt: skip
        for note in store.notes:
            warnings.warn(note, RuntimeWarning, stacklevel=2)
        store.save(attacks=[plain(how) for how in hows], others=list(others), rows=table.rows)
        return table


def _same(store: Store, model: str, clean: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Clean scores are computed each time: where they differ from those kept, the model is another one."""
    stored = store.read(f"{model}--clean")
    if stored is None:
        store.write(f"{model}--clean", {}, clean)
        return clean
    if any(not np.allclose(stored[1].get(k, np.nan), v, rtol=1e-3, atol=1e-4) for k, v in clean.items()):
        raise InputError(f"{store.folder} holds scores of another model named {model!r}: name another folder.")
    return stored[1]


def _digest(*trees: Any) -> str:
    """A fingerprint of the data: a record belongs to them."""
    digest = hashlib.sha256()
    for x in jax.tree.leaves(trees):
        digest.update(np.ascontiguousarray(x).tobytes())
    return digest.hexdigest()[:16]
