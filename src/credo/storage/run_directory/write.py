"""Run directories: all of a fit as data alone, written atomically.

config.json             settings of the fit; where the table and its split came from
metrics.json            scores and times
status.json             the outcome in sentences
diagnostics.json        R-hat, effective sample sizes and alarms
model.json              model and posterior as trees that name arrays
posterior.safetensors   those arrays
trace.safetensors       metrics of every step
encoder.json            how a table becomes arrays (runs on tables)
heldout.safetensors     encoded rows that were held out (runs on tables)
versions.json           format number, versions of what wrote it, digests of the files above
checkpoint              state of a run that is not finished, and its job

Reports and pictures of effects that commands write here belong to the fit: a new fit removes them. All else in the
folder is the user's and stays.
"""

import dataclasses
import hashlib
import json
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.tree import take
from credo.errors import Refusal
from credo.storage import serialisation as codec
from credo.storage.archives import read_json
from credo.storage.atomic_write import replaced_folder
from credo.storage.run_directory.read import FORMAT, open_run, shapes_of
from credo.storage.tensors import write_tensors
from credo.training.fit import Fit

PACKAGES = ("jax", "jaxlib", "numpy", "optax", "blackjax", "safetensors")
# Commands write these into a run, about its fit: beside another fit they would mislead.
PAGES = ("report.html", "effects.html", "effects.png", "effects_[0-9]*.png")
FILES = (
    "config.json", "metrics.json", "status.json", "diagnostics.json", "model.json", "posterior.safetensors",
    "trace.safetensors", "encoder.json", "heldout.safetensors", "versions.json", "checkpoint", *PAGES,
)  # fmt: skip


def save_fit(
    fit: Fit,
    folder: Any,
    *,
    encoder: Any = None,
    metrics: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
    heldout: dict[str, np.ndarray] | None = None,
    keep: tuple[str, ...] = (),
) -> None:
    """Write a run directory; an earlier run of that name is replaced when the new one is complete, and what else its
    folder held stays.

    Args:
        fit: what to save.
        folder: where; its parent is made.
        encoder: the table encoder of a run on a table.
        metrics: scores, beside the times of the fit.
        extra: facts about the table, for config.json.
        heldout: encoded rows that were held out.
        keep: names inside an earlier folder of this name that move to the new one.
    """
    arrays: codec.Arrays = {}
    model = _encode_model(fit, arrays)
    documents: dict[str, Any] = {
        "config.json": {"fit": fit.config, "table": extra or {}},
        "metrics.json": dict(metrics or {}) | fit.timing,
        "status.json": {"ok": fit.status.ok, "outcome": fit.outcome, "notes": fit.notes, "timing": fit.timing},
        "diagnostics.json": fit.diagnostics.to_plain(),
        "model.json": model,
    }
    if encoder is not None:
        documents["encoder.json"] = encoder.to_config()
    tensors = {"posterior.safetensors": arrays, "trace.safetensors": _traces(fit)}
    if heldout:
        tensors["heldout.safetensors"] = {k: np.asarray(v) for k, v in heldout.items()}
    with replaced_folder(folder, is_run=is_run, keep=keep, stale=FILES) as building:
        digests = {}
        for name, document in documents.items():
            digests[name] = _write(building / name, _json(document))
        for name, group in tensors.items():
            digests[name] = write_tensors(building / name, group)
        checked = {name: digests[name] for name in digests if name != "metrics.json"}
        _write(building / "versions.json", _json(versions() | {"digests": checked}))


def versions() -> dict[str, Any]:
    """The format number and the versions of what runs now."""
    return {"format": FORMAT, "credo": credo.__version__} | installed(*PACKAGES)


def installed(*packages: str) -> dict[str, str]:
    """The versions of Python and of those packages that are there."""
    result = {"python": platform.python_version()}
    for name in packages:
        with suppress(PackageNotFoundError):
            result[name] = version(name)
    return result


def is_run(folder: Path) -> bool:
    """Did credo write this folder, as a run, finished or not? Other programs write a versions.json, too."""
    written, job = _document(folder / "versions.json"), _document(folder / "checkpoint" / "job.json")
    finished = isinstance(written.get("format"), int) and {"credo", "digests"} <= written.keys()
    return finished or {"table", "digest", "method"} <= job.keys()


def _document(path: Path) -> dict[str, Any]:
    """What a JSON file holds by name; nothing where it is no such file."""
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _encode_model(fit: Fit, arrays: codec.Arrays) -> dict[str, Any]:
    try:
        bare: Any = dataclasses.replace(fit.model, network=None)  # type: ignore[arg-type]
        model = codec.encode(bare, arrays, "model")
        posterior = codec.encode(fit.posterior, arrays, "posterior")
    except codec.Unsavable as error:
        raise Refusal(f"This fit cannot be saved: {error}.") from error
    description = None
    try:
        network = None if _adapted(fit.model) else codec.encode(fit.model.network, arrays, "model/network")
    except codec.Unsavable:
        network = None
    if network is None:
        description = {"class": type(fit.model.network).__name__, "parameters": _parameters(fit)}
    return {
        "model": model,
        "network": network,
        "described": description,
        "posterior": posterior,
        "input_shape": codec.encode(fit.input_shape, arrays),
        "input_dtype": codec.encode(fit.input_dtype, arrays),
        "target_shape": list(fit.target_shape),
        "phases": list(fit.phases),
        "main_phase": _main(fit),
    }


def _adapted(model: Model) -> bool:
    """Networks from adapters are the user's code, whatever their fields are."""
    return type(model.network).__module__.startswith("credo.adapters")


def _parameters(fit: Fit) -> dict[str, list[int]] | None:
    """Paths and shapes of the network's parameters, None where the posterior has no weights."""
    if not isinstance(fit.posterior, WeightPosterior):
        return None

    def one(posterior: Any, model: Model) -> Any:
        return model.complete(take(posterior.sample(jax.random.key(0), 1), 0))["network"]

    return shapes_of(jax.eval_shape(one, fit.posterior, fit.model))


def _traces(fit: Fit) -> dict[str, np.ndarray]:
    main = _main(fit)
    phases = dict(fit.phases) | {main: fit.trace}
    return {f"phase/{p}/{k}": np.asarray(v, order="C") for p, trace in phases.items() for k, v in trace.items()}


def _main(fit: Fit) -> str:
    """The phase whose metrics are the fit's trace: the last one unless another is."""
    names = list(fit.phases) or ["fit"]
    return next((name for name, trace in fit.phases.items() if trace is fit.trace), names[-1])


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=1, default=str) + "\n").encode()


def _write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def load(folder: Any, network: Any = None) -> Fit:
    """A fit from its run directory; its predictions are those of the fit that was saved.

    Args:
        folder: a run directory.
        network: the network, where it was the user's own (from an adapter) and hence is not in the files.

    Example:
        >>> import jax, credo, numpy as np, tempfile
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=20)
        >>> fit.save(tempfile.mkdtemp())
    """
    return open_run(folder, network).fit
