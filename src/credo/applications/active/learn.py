"""The loop: fit, choose rows, ask for their labels, fit again."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from credo.applications.active.acquisition import ACQUISITIONS
from credo.applications.active.batches import choose
from credo.applications.active.result import ActiveLearning
from credo.core.batch import bucket
from credo.core.model import Model
from credo.core.numeric import host_arrays
from credo.core.predict import predict
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.evaluation import metrics
from credo.registry import build_method
from credo.storage.store import open_store
from credo.training.config import plain
from credo.training.fit import Fit, fit
from credo.training.interrupt import part_of_more


def learn(
    key: jax.Array,
    model: Model,
    pool: PyTree,
    labels: Any,
    method: Any = "deep_ensemble",
    *,
    acquisition: str = "bald",
    start: int | np.ndarray = 20,
    batch: int = 10,
    budget: int = 100,
    test: tuple[PyTree, Any] | None = None,
    candidates: int | None = None,
    num_samples: int | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    batch_size: int | None = None,
    folder: Any = None,
    callback: Callable[[ActiveLearning], Any] | None = None,
    progress: bool | None = False,
) -> ActiveLearning:
    """Label the rows that tell most: fit to the labelled ones, score the others, ask for labels, again.

    Every fit starts afresh, so that the order in which labels came does not matter to it; all fits share one compiled
    program. With a folder the run goes on where an earlier one with the same settings stopped.

    Args:
        key: a JAX key.
        model: network, prior and likelihood.
        pool: inputs of all rows that may be labelled.
        labels: an array with one target for each row (they are looked at only when asked for), or a function from row
            numbers to targets.
        method: a method, its class or its registry name.
        acquisition: see `acquisition_scores` and `choose`.
        start: rows that are labelled first: how many, at random, or their numbers.
        batch: rows that are labelled in each round.
        budget: labels in all, the first ones included.
        test: (inputs, targets) to score every fit on.
        candidates: score only so many unlabelled rows of each round, drawn at random; None: all of them.
        num_samples: draws of θ, for scores and choices.
        steps, epochs, batch_size: of each fit, as in `credo.fit`.
        folder: where to keep the record; it is written after every round.
        callback: called after every round with the record so far.
        progress: show bars.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
        >>> model = credo.Model(credo.networks.mlp([10]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> result = credo.applications.active.learn(
        ...     jax.random.key(0), model, x, x[:, 0] > 0, start=10, batch=5, budget=20, steps=300, test=(x, x[:, 0] > 0)
        ... )
        >>> result.sizes
        [10, 15, 20]
    """
    method = build_method(method)
    pool = host_arrays(pool, "The pool's inputs")
    total = len(jax.tree.leaves(pool)[0])
    first = _first_rows(key, start, total)
    if acquisition not in ACQUISITIONS:
        raise InputError(f"Unknown acquisition {acquisition!r}; choose one of {', '.join(ACQUISITIONS)}.")
    if batch < 1 or not len(first) <= budget <= total:
        raise InputError(
            f"The budget lies between the first labels, {len(first)}, and the rows of the pool, {total}, and a batch "
            f"has at least one row; got budget={budget}, batch={batch}."
        )
    ask = labels if callable(labels) else lambda rows: np.asarray(labels)[rows]
    settings = {
        "key": np.asarray(jax.random.key_data(key)).tolist(), "method": plain(method), "acquisition": acquisition,
        "first": first.tolist(), "batch": batch, "candidates": candidates, "num_samples": num_samples, "steps": steps,
        "epochs": epochs, "batch_size": batch_size, "rows": total, "scored": test is not None,
    }  # fmt: skip
    with open_store(folder, "active.json", "active learning", settings) as store:
        result = ActiveLearning.read(store) or ActiveLearning(acquisition, [int(r) for r in first], [], {}, [])
        if len(result.rows) < budget and result.sizes[-1:] == [len(result.rows)]:
            result.forget_last()  # the budget was smaller then: the last fit is needed again, to choose
        targets = np.asarray(ask(np.array(result.rows)))
        if len(targets) != len(result.rows):
            raise InputError(f"Asked for the labels of {len(result.rows)} rows and got {len(targets)}.")
        options: dict[str, Any] = {"steps": steps, "epochs": epochs, "batch_size": batch_size, "progress": progress}
        options["capacity"] = bucket(budget)
        while not result.sizes or result.sizes[-1] < budget:
            began = time.perf_counter()
            # The number of labels identifies a round: a resumed run draws what it would have drawn.
            key_fit, key_score, key_choice = jax.random.split(jax.random.fold_in(key, len(result.rows)), 3)
            data = (jax.tree.map(lambda x: x[result.rows], pool), targets)
            with part_of_more():
                result.fit = fit(key_fit, model, data, method, **options)
            result.sizes.append(len(result.rows))
            if test is not None:
                _score(result, key_score, result.fit, test, num_samples)
            more = min(batch, budget - len(result.rows))
            if more:
                new = _choose_rows(key_choice, result, pool, more, acquisition, candidates, num_samples)
                answers = np.asarray(ask(new))
                if len(answers) != len(new):
                    raise InputError(f"Asked for the labels of {len(new)} rows and got {len(answers)}.")
                targets = np.concatenate([targets, answers])
                result.rows += [int(r) for r in new]
            result.seconds.append(time.perf_counter() - began)
            result.write(store)
            if callback is not None:
                callback(result)
        return result


def _first_rows(key: jax.Array, start: int | np.ndarray, total: int) -> np.ndarray:
    if np.ndim(start) == 0:
        if not 1 <= int(start) <= total:
            raise InputError(f"The first labels are at least one and at most those of the pool, {total}; got {start}.")
        return np.asarray(jax.random.permutation(jax.random.fold_in(key, 0), total)[: int(start)])
    rows = np.asarray(start, int)
    if len(rows) == 0 or len(set(rows.tolist())) < len(rows) or rows.min() < 0 or rows.max() >= total:
        raise InputError(f"start names different rows of the pool, from 0 to {total - 1}, at least one.")
    return rows


def _choose_rows(
    key: jax.Array, result: ActiveLearning, pool: PyTree, size: int, acquisition: str, candidates: int | None,
    num_samples: int | None,
) -> np.ndarray:  # fmt: skip
    """Numbers of the rows to label next."""
    key_rows, key_choice = jax.random.split(key)
    total = len(jax.tree.leaves(pool)[0])
    unlabelled = np.setdiff1d(np.arange(total), result.rows)
    if candidates is not None and candidates < len(unlabelled):
        sample = np.asarray(jax.random.permutation(key_rows, len(unlabelled)))[: max(candidates, size)]
        unlabelled = unlabelled[np.sort(sample)]
    if acquisition == "random":
        return unlabelled[np.asarray(jax.random.permutation(key_choice, len(unlabelled)))[:size]]
    rows = jax.tree.map(lambda x: x[unlabelled], pool)
    return unlabelled[choose(key_choice, result.fit, rows, size, acquisition, num_samples=num_samples)]


def _score(result: ActiveLearning, key: jax.Array, fitted: Fit, test: tuple[PyTree, Any], num: int | None) -> None:
    predictive = predict(key, fitted, test[0], num_samples=num)
    names = ("accuracy", "log_likelihood") if predictive.kind == "classes" else ("rmse", "log_likelihood")
    for name in names:
        value = float(vars(metrics)[name](predictive, np.asarray(test[1])))
        result.scores.setdefault(name, []).append(value)
