"""What is exported: a fit with its key, its scales and its table, from whatever the user has."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator

from credo.errors import InputError
from credo.storage.run_directory.read import SavedRun, open_run
from credo.tables.score import prediction_key
from credo.training.fit import Fit


@dataclasses.dataclass(frozen=True)
class Subject:
    """A fit, and the maps from the user's rows and targets to its own.

    Attributes:
        fit: the fit.
        key: decides which weights are drawn, as in `credo.predict`.
        num_samples: draws; None as in `credo.predict`.
        shift, scale: targets are shift + scale · y with y as the fit saw them.
        input_shift, input_scale: likewise of inputs; None where the fit saw them as they are.
        encoder: how a table becomes inputs, as plain data, or None.
        features: names of the inputs, or None.
        labels: the user's names of the classes, or None.
        targets: names of several targets, or None.
    """

    fit: Fit
    key: jax.Array
    num_samples: int | None = None
    shift: Any = 0.0
    scale: Any = 1.0
    input_shift: Any = None
    input_scale: Any = None
    encoder: dict[str, Any] | None = None
    features: list[str] | None = None
    labels: list[Any] | None = None
    targets: list[str] | None = None

    def plain(self) -> dict[str, Any]:
        """The content of predictor.json beside the program or the numbers."""
        return {
            "kind": self.fit.model.likelihood.kind,
            "flat": self.fit.target_shape == (),
            "inputs": described_inputs(self.fit),
            **{
                name: _numbers(vars(self)[name]) for name in ("shift", "scale", "input_shift", "input_scale")
            },
            **{name: vars(self)[name] for name in ("encoder", "features", "labels", "targets")},
        }  # fmt: skip


def subject_of(source: Any, key: Any, num_samples: int | None, network: Any = None) -> Subject:
    """The subject of an export: a `Fit`, a run directory, or a fitted estimator."""
    if isinstance(source, str | Path):
        source = open_run(source, network)
    if isinstance(source, SavedRun):
        return _of_run(source, key, num_samples)
    if isinstance(source, Fit):
        return Subject(source, jax.random.key(0) if key is None else key, num_samples)
    if isinstance(source, BaseEstimator) and {"fit_", "input_scale_"} <= vars(source).keys():
        return _of_estimator(source, key, num_samples)
    raise InputError(
        f"export takes the result of credo.fit, a run directory or a fitted estimator, got {type(source).__name__}."
    )


def _of_run(run: SavedRun, key: Any, num_samples: int | None) -> Subject:
    encoder = run.encoder
    key = prediction_key(run.table.get("seed", 0)) if key is None else key
    if encoder is None:
        return Subject(run.fit, key, num_samples)
    regression = encoder.task == "regression"
    return Subject(
        run.fit, key, num_samples,
        encoder.target_shift if regression else 0.0, encoder.target_scale if regression else 1.0,
        encoder=encoder.to_config(), features=list(encoder.feature_names),
        labels=None if encoder.classes is None else list(encoder.classes),
        targets=None if isinstance(encoder.target, str) else list(encoder.target),
    )  # fmt: skip


def _of_estimator(estimator: Any, key: Any, num_samples: int | None) -> Subject:
    fit, inputs = estimator.fit_, estimator.input_scale_
    real = fit.model.likelihood.kind == "real"
    targets = vars(estimator).get("target_scale_")
    encoder = estimator.encoder_
    names = vars(estimator).get("feature_names_in_") if encoder is None else encoder.feature_names
    labels = vars(estimator).get("classes_")
    return Subject(
        fit, jax.random.key(estimator.predict_seed_) if key is None else key,
        estimator.num_samples if num_samples is None else num_samples,
        targets.shift if real and targets is not None else 0.0, targets.scale if real and targets is not None else 1.0,
        None if encoder else inputs.shift, None if encoder else inputs.scale, encoder.to_config() if encoder else None,
        None if names is None else [str(name) for name in names], None if labels is None else labels.tolist(),
    )  # fmt: skip


def described_inputs(fit: Fit) -> Any:
    """The shapes and types of one row's inputs as plain data: floats are single precision, as in `credo.predict`."""

    def one(shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
        canonical = jax.dtypes.canonicalize_dtype(dtype)
        return {"shape": list(shape), "dtype": str(canonical) if canonical.kind in "iu" else "float32"}

    def walk(shape: Any, dtype: Any) -> Any:
        if isinstance(shape, dict):
            return {name: walk(shape[name], dtype[name]) for name in shape}
        if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
            return one(shape, dtype)
        return [walk(s, d) for s, d in zip(shape, dtype)]

    return walk(fit.input_shape, fit.input_dtype)


def _numbers(value: Any) -> Any:
    return None if value is None else np.asarray(value, np.float64).tolist()
