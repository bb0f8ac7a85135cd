"""Opening an exported predictor: JSON and arrays that NumPy reads, or a program that JAX compiles."""

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from credo.storage.archives import MOST_ARRAYS, document_digest, parse_arrays, read_file, read_json
from credo.storage.export.portable.cells import PortableError, as_columns, encode, unknown_cells
from credo.storage.export.portable.prediction import Computed, Mixture, Prediction
from credo.tables.encode.levels import Unknown, without_gaps

FORMAT, VERSION = "credo-predictor", 1
FILES = {"numpy": "predictor.npz", "stablehlo": "predictor.stablehlo"}
MOST_ROWS = 4096  # of one call of a program


class Predictor:
    """A fitted model without the library that fitted it.

    Attributes:
        document: everything about it but its numbers, as in predictor.json.
    """

    def __init__(self, document: dict[str, Any], content: Any):
        self.document, self._content = document, content

    def __repr__(self) -> str:
        return f"<credo predictor of {self.document['kind']}, form {self.document['form']}>"

    def predict(self, rows: Any) -> Prediction:
        """The predictive distribution at rows.

        Args:
            rows: array [n, …] like the inputs of the fit. For a fit on a table also its columns: a dict of them, a list
                of dicts (one for each row), or a table of pandas, polars or pyarrow.
        """
        try:
            inputs, unseen = self._inputs(rows)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, PortableError):
                raise
            raise PortableError(f"The rows are not like the inputs of this predictor ({_reason(error)}).") from error
        if self.document["form"] == "numpy":
            for column in unseen:
                warnings.warn(column.note(), stacklevel=2)
            return Prediction(self.document, Mixture(self.document, self._content, inputs, unseen))
        return Prediction(self.document, Computed(_call(self._content, inputs, self.document), self.document["levels"]))

    __call__ = predict

    def _inputs(self, rows: Any) -> tuple[Any, list[Unknown]]:
        document = self.document
        columns = as_columns(rows) if isinstance(document["inputs"], dict) and "shape" in document["inputs"] else None
        if columns is None:
            return self._standard(_checked(rows, document["inputs"])), []
        if document["encoder"] is not None:
            # A compiled program has no draws to be put at other categories.
            unseen = "zeros" if document["form"] == "numpy" else "error"
            inputs = encode(document["encoder"], columns, unseen)
            unknown = unknown_cells(document["encoder"], inputs)
            return _narrow(_checked(without_gaps(inputs, unknown), document["inputs"])), unknown
        if document["features"] is None:
            raise PortableError("This predictor knows no columns by name; give an array [rows, features].")
        lacking = [name for name in document["features"] if name not in columns]
        if lacking:
            raise PortableError(f"The rows have no column '{lacking[0]}', an input of the model.")
        inputs = np.stack([np.asarray(columns[name], float) for name in document["features"]], 1)
        return self._standard(_checked(inputs, document["inputs"])), []

    def _standard(self, inputs: Any) -> Any:
        """Inputs as the network saw them, where it saw them standardised."""
        if self.document["input_shift"] is None:
            return _narrow(inputs)
        shift, scale = (np.asarray(self.document[name], float) for name in ("input_shift", "input_scale"))
        return _narrow((inputs - shift) / scale)


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def load(folder: Any) -> Predictor:
    """Open a folder that `credo.export` wrote.

    Args:
        folder: the folder; `portable.py` in it has this function too, and needs NumPy alone (JAX and flatbuffers as
            well for the form "stablehlo").

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=20)
        >>> predictor = credo.load_exported(credo.export(fit, "line", form="numpy"))
        >>> predictor.predict([[0.5]]).std.shape
        (1,)
    """
    if not isinstance(folder, str | Path):
        raise PortableError(f"An exported predictor is a folder, got a {type(folder).__name__}.")
    folder = Path(folder)
    try:
        return _open_folder(folder)
    except PortableError:
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise PortableError(f"{folder} is not an exported predictor: it has no {missing}; check the path.") from error
    except Exception as error:  # whatever a damaged file makes of its reader
        raise PortableError(f"{folder} is not an exported predictor, or is damaged ({_reason(error)}).") from error


def _open_folder(folder: Path) -> Predictor:
    document = read_json(folder / "predictor.json")
    if document["format"] != FORMAT:
        raise KeyError("format")
    if document["version"] > VERSION:
        raise PortableError(f"The predictor {folder} was written by a newer credo; use the portable.py beside it.")
    if document.get("document_digest") != document_digest(document):
        raise PortableError(f"The file {folder / 'predictor.json'} is not what was exported; export again.")
    name = FILES[document["form"]]
    content = read_file(folder / name, MOST_ARRAYS)
    if hashlib.sha256(content).hexdigest() != document["digest"]:
        raise PortableError(f"The file {folder / name} is damaged: it is not what was exported; export again.")
    if document["form"] == "stablehlo":
        return Predictor(document, _program(content))
    arrays = parse_arrays(content)
    if any(x.dtype.kind == "f" and np.isnan(x).any() for x in arrays.values()):
        raise PortableError(f"The file {folder / name} holds NaN, so that it would predict nothing else; export again.")
    predictor = Predictor(document, arrays)
    _ = Prediction(document, Mixture(document, arrays, _narrow(_one_row(document["inputs"])))).mean  # a trial
    return predictor


def _one_row(expected: Any) -> Any:
    """One row of zeros like the inputs."""
    if isinstance(expected, list):
        return tuple(_one_row(part) for part in expected)
    if "shape" not in expected:
        return {name: _one_row(part) for name, part in expected.items()}
    return np.zeros((1, *expected["shape"]), expected["dtype"])


def _program(content: bytes) -> Any:
    try:
        import jax
        from jax import export
    except ImportError as error:
        raise PortableError('The form "stablehlo" needs JAX; install jax, or export with form="numpy".') from error
    try:
        exported = export.deserialize(bytearray(content))
    except ImportError as error:
        raise PortableError("JAX reads exported programs with flatbuffers; install flatbuffers.") from error
    run = jax.jit(exported.call)
    platform = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    if platform in exported.platforms:
        return run

    def on_cpu(inputs: Any) -> Any:
        with jax.default_device(jax.devices("cpu")[0]):
            return run(inputs)

    return on_cpu


def _call(program: Any, inputs: Any, document: dict[str, Any]) -> dict[str, np.ndarray]:
    """The program's answers; rows are padded to few lengths, since JAX compiles a program for each."""
    count, parts = _length(inputs), []
    limit = max(MOST_ROWS, document["block"])
    for start in range(0, count, limit):
        rows = min(limit, count - start)
        width = document["block"]
        while width < rows:
            width = min(2 * width, limit)
        indices = start + np.minimum(np.arange(width), rows - 1)
        answers = program(_map(lambda x, at=indices: x[at], inputs))
        parts.append({name: np.asarray(x)[:rows] for name, x in answers.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _map(function: Any, tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _map(function, value) for name, value in tree.items()}
    return tuple(_map(function, v) for v in tree) if isinstance(tree, tuple) else function(tree)


def _length(tree: Any) -> int:
    while isinstance(tree, dict | tuple):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return len(tree)


def _checked(rows: Any, spec: Any) -> Any:
    """Arrays of the shapes that the fit was trained on, or a sentence; `wanted` is a tree of shapes and types."""
    if isinstance(spec, list):
        return tuple(_checked(part, part_spec) for part, part_spec in zip(rows, spec, strict=True))
    if "shape" not in spec:
        return {name: _checked(rows[name], part_spec) for name, part_spec in spec.items()}
    if np.iscomplexobj(rows) or isinstance(rows, np.ma.MaskedArray):
        raise PortableError("Inputs are complex or masked; give real numbers without gaps.")
    try:
        numbers = np.asarray(rows, float) if spec["dtype"] == "float32" else np.asarray(rows)
        array = numbers.astype(float if spec["dtype"] == "float32" else spec["dtype"])
    except (TypeError, ValueError, OverflowError) as error:
        raise PortableError("Inputs must be numbers; a fit on arrays takes an array [rows, …].") from error
    if array.dtype.kind in "iu" and not np.array_equal(array, numbers):
        raise PortableError(f"Inputs hold numbers that are no {array.dtype}; the model was trained on such.")
    if list(array.shape[1:]) != spec["shape"]:
        expected, got = (", ".join(map(str, shape)) for shape in (spec["shape"], array.shape[1:]))
        raise PortableError(f"The model was trained on inputs of shape [n, {expected}], got [n, {got}].")
    if len(array) == 0:
        raise PortableError("There are no rows to predict.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise PortableError("Inputs contain NaN or infinite values; remove or replace those rows.")
    return array


def _narrow(tree: Any) -> Any:
    """Numbers in single precision, as the network saw them."""

    def one(x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "f" and not (np.abs(x) <= np.finfo(np.float32).max).all():
            raise PortableError("Inputs hold numbers beyond single precision (3.4e38); divide that column.")
        return x.astype(np.float32) if x.dtype.kind in "fb" else x

    return _map(one, tree)
