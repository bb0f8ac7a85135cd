"""What is compared: the table, its folds, the models and what each may spend."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from credo.core.checks import names_of, or_none, whole_number
from credo.errors import InputError
from credo.evaluation.baselines import BASELINES
from credo.evaluation.comparison.folds import check_folds, group_codes
from credo.evaluation.comparison.folds import find_folds as find_folds
from credo.registry import METHODS, did_you_mean
from credo.tables.auto import AUTO
from credo.tables.columns.roles import rows_with_targets, without_columns
from credo.tables.encode.learning import plain_target, target_names
from credo.tables.encode.targets import choose_task
from credo.tables.model import parse_network
from credo.tables.prepare import check_duration
from credo.tables.read import parse
from credo.tables.read.source import read_source
from credo.tables.rows.copies import copies_note, copies_of

USUAL = (AUTO, "map", "bayes_by_backprop", "deep_ensemble", "last_layer", "laplace", "ensemble_chains")


def find_models(methods: str | Sequence[str] | None, baselines: str | Sequence[str] | bool) -> list[str]:
    """The names to compare: methods of the registry (None: some of each kind; "all"), then baselines.

    Example:
        >>> find_models("map, hmc", ["linear"])
        ['map', 'hmc', 'linear']
    """
    if methods is None:
        names = list(USUAL)
    elif isinstance(methods, str):
        words = [word.strip() for word in methods.split(",") if word.strip()]
        names = [AUTO, *METHODS] if words == ["all"] else words
    else:
        names = names_of(methods, "methods")
    beside = list(BASELINES) if baselines is True else [] if baselines is False else baselines
    names += [word.strip() for word in beside.split(",")] if isinstance(beside, str) else names_of(beside, "baselines")
    for name in names:
        if name != AUTO and name not in METHODS and name not in BASELINES:
            valid = [AUTO, *METHODS, *BASELINES]
            raise InputError(
                f"Unknown method {name!r}.{did_you_mean(name, valid)} `credo methods` lists the methods; the baselines "
                f"are {', '.join(BASELINES)}."
            )
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        raise InputError("A comparison needs at least two models.")
    return names


class Plan:
    """A comparison that is checked as far as can be before the first fit."""

    def __init__(
        self, table: Any, target: str | list[str], methods: Any, baselines: Any, task: str, missing: str,
        folds: int, seed: int, network: str | None, settings: dict[str, Any] | None, steps: int | None,
        budget: str | float | None, groups: str | None, drop: Sequence[str] = (),
    ):  # fmt: skip
        self.models = find_models(methods, baselines)
        folds, seed = whole_number(folds, "Folds"), whole_number(seed, "seed", 0, 2**32 - 1)
        steps, allowed = or_none(whole_number, steps, "steps"), check_duration(steps, budget)
        if network is not None:
            parse_network(network)
        names = target_names(target)
        target = plain_target(names)
        frame, read_notes = read_source(table)
        frame, target_notes = rows_with_targets(parse.named_frame(frame), names, missing)
        frame, _ = without_columns(frame, drop, names, (groups,))
        resolved, why = choose_task(frame, target, task)
        if resolved == "classification" and not isinstance(target, str):
            raise InputError("Several targets need --task regression, not classification; name one target.")
        if groups is not None and groups in target_names(target):
            raise InputError(f"Column '{groups}' is the target; choose another column for --split-by.")
        self.folds = find_folds(frame, target, resolved, folds, seed, groups)
        copies = copies_note(copies_of(frame))
        self.frame = frame if groups is None else frame.drop(columns=[groups])
        exact = task if task in ("binary", "multiclass") else resolved
        self.how: dict[str, Any] = {
            "target": target, "task": exact, "missing": missing, "network": network, "settings": settings or {},
            "steps": steps, "budget": allowed, "seed": seed,
        }  # fmt: skip
        encoder = check_folds(self.frame, self.folds, self.how)
        self.task, self.target = encoder.task, target
        self.notes = [note for note in (*read_notes, *target_notes, why, copies, *encoder.notes) if note]
        self.split_by, self.groups = groups, None if groups is None else group_codes(frame, groups)

    def settings(self) -> dict[str, Any]:
        """What a stored cell depends on: the settings, and a digest of table and folds; not the list of models."""
        digest = hashlib.sha256()
        for part in (part for fold in self.folds for part in fold):
            digest.update(np.ascontiguousarray(part).tobytes())
        for column in self.frame.columns:
            digest.update(f"{column!r}{self.frame[column].to_list()!r}".encode())
        if self.groups is not None:
            digest.update(self.groups.tobytes())
        return self.how | {"table": digest.hexdigest()[:24]}
