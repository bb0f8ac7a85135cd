"""Reading a run directory; whatever is wrong with it is one sentence."""

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credo
from credo.core import mixture
from credo.core.checks import check_shapes, checked_path
from credo.core.model import Model
from credo.core.network import Network
from credo.core.numeric import has_nan
from credo.core.posterior import Posterior
from credo.core.predict import FEW_ROWS, is_shape, output_shapes
from credo.core.short import fields_in_short
from credo.core.tree import by_paths
from credo.errors import ArtifactError, InputError, Refusal
from credo.evaluation.diagnostics.diagnose import Diagnostics
from credo.storage import serialisation as codec
from credo.storage.archives import Damaged, read_json, regular_file
from credo.storage.tensors import read_tensors
from credo.training.fit import Fit

FORMAT = 1


@dataclasses.dataclass(frozen=True)
class SavedRun:
    """A run directory, read: the fit, and what a run on a table has beside it.

    table: where the data came from and how it was split; heldout: inputs, targets, weights and rows that were held out,
    encoded, and their groups where whole groups were. Both are empty, and `encoder` None, for runs on arrays.
    """

    folder: Path | None
    fit: Fit
    encoder: Any
    metrics: dict[str, Any]
    table: dict[str, Any]
    heldout: dict[str, np.ndarray]
    versions: dict[str, Any]

    __repr__ = fields_in_short


def open_run(folder: Any, network: Any = None) -> SavedRun:
    """Read a run directory, or raise ArtifactError with one sentence."""
    folder = Path(checked_path(folder, "A run"))
    try:
        return _read(folder, network)
    except (InputError, Refusal):
        raise
    except ArtifactError as error:
        text = str(error)
        if text[:1].isupper():
            raise
        raise ArtifactError(f"The run {folder} cannot be read: {text}.") from error
    except Exception as error:  # whatever a damaged file makes of its reader
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArtifactError(f"The run {folder} is damaged ({reason}); fit again.") from error


def _read(folder: Path, network: Any) -> SavedRun:
    versions = read_versions(folder)
    files = {name: _intact(folder, name, digest) for name, digest in versions["digests"].items()}
    documents = {name: read_json(path) for name, path in files.items() if name.endswith(".json")}
    metrics_file = folder / "metrics.json"
    metrics = read_json(metrics_file) if os.path.lexists(metrics_file) else {}
    tensors = {name: read_tensors(path) for name, path in files.items() if name.endswith(".safetensors")}
    encoder = None
    if "encoder.json" in documents:
        from credo.tables.encode.encoder import TableEncoder

        encoder = TableEncoder.from_config(documents["encoder.json"])
    fit = _fit(documents, tensors, network, folder)
    table = documents["config.json"]["table"]
    return SavedRun(folder, fit, encoder, metrics, table, tensors.get("heldout.safetensors", {}), versions)


def read_versions(folder: Path) -> dict[str, Any]:
    """What wrote a run directory; raises ArtifactError where it is none, unfinished or from the future."""
    if not folder.exists():
        raise ArtifactError(f"There is no run {folder}; check the path.")
    if not folder.is_dir():
        raise ArtifactError(f"{folder} is a file, not a run directory; name the folder that a fit wrote.")
    if not (folder / "versions.json").is_file():
        if (folder / "checkpoint" / "job.json").is_file():
            raise ArtifactError(f"The run {folder} is not finished; `credo resume {folder}` finishes it.")
        raise ArtifactError(f"The folder {folder} is not a credo run: it has no versions.json; check the path.")
    try:
        versions = read_json(folder / "versions.json")
    except (OSError, Damaged) as error:
        raise ArtifactError(f"The run {folder} is damaged (versions.json: {error}); fit again.") from error
    if not isinstance(versions, dict) or not isinstance(versions.get("format"), int):
        raise ArtifactError(f"The folder {folder} is not a credo run: its versions.json has no format number.")
    if versions["format"] > FORMAT:
        raise ArtifactError(
            f"The run {folder} has format {versions['format']}, written by credo {versions.get('credo')}, but this "
            f"credo ({credo.__version__}) reads up to {FORMAT}; install a newer credo."
        )
    return versions


def _intact(folder: Path, name: str, digest: str) -> Path:
    path = folder / Path(name).name  # a name cannot lead out of the run
    if not os.path.lexists(path):
        raise ArtifactError(f"The run {folder} lacks {name}; restore the file or fit again.")
    with regular_file(path).open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise ArtifactError(
                f"The file {path} is damaged: it is not what the fit wrote; restore it from a copy or fit again."
            )
    return path


def _fit(documents: dict[str, Any], tensors: dict[str, Any], network: Any, folder: Path) -> Fit:
    document, arrays = documents["model.json"], tensors["posterior.safetensors"]
    input_shape = codec.decode(document["input_shape"], arrays)
    target_shape = tuple(document["target_shape"])
    model = codec.decode(document["model"], arrays)
    posterior = codec.decode(document["posterior"], arrays)
    if not isinstance(model, Model) or not isinstance(posterior, Posterior):
        raise ArtifactError("it holds no model and posterior")
    dtypes = codec.decode(document["input_dtype"], arrays)
    if document["network"] is None:
        network = _user_network(network, document["described"], folder)
        _check_user_network(network, document["described"], model, input_shape, dtypes, target_shape)
    elif network is not None:
        raise InputError(f"The run {folder} holds its own network; load it without network=.")
    else:
        network = codec.decode(document["network"], arrays)
    trace: dict[str, dict[str, np.ndarray]] = {name: {} for name in document["phases"]}
    for key, value in tensors["trace.safetensors"].items():
        phase, _, metric = key.removeprefix("phase/").rpartition("/")
        trace.setdefault(phase, {})[metric] = value
    status, diagnostics = documents["status.json"], documents.get("diagnostics.json")
    main = trace[document.get("main_phase", list(trace)[-1])] if trace else {}
    fit = Fit(
        posterior, dataclasses.replace(model, network=network), main, status["outcome"], tuple(status["notes"]),
        documents["config.json"]["fit"], trace, status["timing"], target_shape, input_shape, dtypes,
        known=Diagnostics.from_plain(diagnostics) if diagnostics is not None else None,
    )  # fmt: skip
    _check_predicts(fit)
    return fit


def _check_predicts(fit: Fit) -> None:
    """Raise where model and posterior do not fit together, or hold NaN."""
    if has_nan((fit.posterior, fit.model)):
        raise ArtifactError("its posterior holds NaN, so that it would predict nothing else")
    inputs = jax.tree.map(
        lambda s, d: jax.ShapeDtypeStruct((FEW_ROWS, *s), d), fit.input_shape, fit.input_dtype, is_leaf=is_shape
    )
    draws = output_shapes(jax.random.key(0), fit.posterior, fit.model, inputs, None)
    summary = mixture.class_summary if fit.model.likelihood.kind == "classes" else mixture.moments
    summary.eval_shape(fit.model.likelihood, draws)


def _user_network(network: Any, described: dict[str, Any], folder: Path) -> Any:
    if network is None:
        raise InputError(
            f"The run {folder} was made with your own network ({described['class']}), which is code and not in the "
            "files: pass it, credo.load(run, network=…)."
        )
    if not isinstance(network, Network):
        raise InputError(f"network= expects what the model was made with, such as credo.from_flax(…), got {network!r}.")
    return network


def _check_user_network(
    network: Any, described: dict[str, Any], model: Model, shape: Any, dtypes: Any, target_shape: tuple[int, ...]
) -> None:
    """Raise where the user's network has other parameters than the saved one."""
    expected = described["parameters"]
    if expected is None:
        return
    inputs = jax.tree.map(
        lambda s, d: jax.ShapeDtypeStruct((1, *s), d), shape, dtypes, is_leaf=lambda x: isinstance(x, tuple)
    )
    outputs = model.likelihood.num_outputs(np.zeros((1, *(target_shape or (1,)))))
    params = jax.eval_shape(lambda k, x: network.init(k, x, outputs).params, jax.random.key(0), inputs)
    check_shapes(shapes_of(params), expected, "The parameters of the given network", "the run")


def shapes_of(tree: Any) -> dict[str, list[int]]:
    """Shapes of the arrays of a tree, by path."""
    return {path: list(x.shape) for path, x in by_paths(tree).items()}
