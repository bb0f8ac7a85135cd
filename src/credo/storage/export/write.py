"""`export`: a fitted predictor as a folder that other programs can use."""

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.core.checks import checked_path, list_of, one_of, or_none, share, whole_number
from credo.errors import InputError
from credo.storage.archives import document_digest
from credo.storage.atomic_write import replaced_folder
from credo.storage.export.arrays import numbers
from credo.storage.export.assemble import assemble
from credo.storage.export.portable.load import FILES, FORMAT, VERSION
from credo.storage.export.stablehlo import program
from credo.storage.export.subject import subject_of
from credo.storage.run_directory.write import versions


def export(
    fit: Any,
    place: Any,
    form: str = "stablehlo",
    *,
    key: jax.Array | None = None,
    num_samples: int | None = None,
    mode: str | None = None,
    levels: Sequence[float] = (0.05, 0.5, 0.95),
    block: int = 64,
    platforms: Sequence[str] = ("cpu", "cuda"),
    network: Any = None,
) -> Path:
    """Write a predictor that needs neither credo nor the model's classes; `credo.load_exported` opens it.

    The folder holds predictor.json (scales, classes, the table's encoder), the numbers or the program, and portable.py,
    with which the predictor can be used where credo is not installed. Data only: nothing in it is unpickled.

    Args:
        fit: the result of `credo.fit` or `credo.load`, a run directory, or a fitted estimator. A run on a table takes
            its encoder along, so that the predictor takes rows of such a table.
        place: the folder to write, which must not be there yet.
        form: "stablehlo", a program for JAX, of any network and method; or "numpy", draws of the weights of a
            perceptron or shallow network, which NumPy alone predicts with.
        key: decides which weights are drawn: predictions are those of `credo.predict` with this key. None takes
            `jax.random.key(0)`, for a run that of `credo predict` and for an estimator its own.
        num_samples, mode: as in `credo.predict`.
        levels: of the quantiles of a program; the NumPy form gives every quantile.
        block: rows that a program computes at a time. More are faster on an accelerator, fewer for single rows.
        platforms: what a program is for; those after the first are left out where they cannot be made.
        network: the network of a run directory, where it was the user's own (see `credo.load`).

    Returns:
        The folder.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=20)
        >>> folder = credo.export(fit, "wave", form="numpy")
        >>> prediction = credo.load_exported(folder).predict(x)
        >>> bool(np.allclose(prediction.mean, credo.predict(jax.random.key(0), fit, x).mean, rtol=1e-5, atol=1e-6))
        True
    """
    place = Path(checked_path(place, "place"))
    _check(place, form, num_samples, levels, block, platforms)
    subject = subject_of(fit, key, num_samples, network)
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "form": form} | subject.plain()
    if form == "numpy":
        described, arrays = numbers(subject, mode)
        document |= described
        content = _npz(arrays)
    else:
        content, exported_platforms = program(subject, mode, levels, block, platforms)
        document |= {"levels": [float(level) for level in levels], "block": block, "platforms": exported_platforms}
    document |= {"digest": hashlib.sha256(content).hexdigest(), "versions": versions()}
    document = json.loads(json.dumps(document))  # as a reader will find it
    document["document_digest"] = document_digest(document)
    with replaced_folder(place, is_run=lambda _: False) as folder:
        (folder / FILES[form]).write_bytes(content)
        (folder / "predictor.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        (folder / "portable.py").write_text(assemble(), encoding="utf-8")
    return place


def _check(
    place: Path, form: str, num_samples: int | None, levels: Sequence[float], block: int, platforms: Sequence[str]
) -> None:
    one_of(form, FILES, "form")
    if place.is_file() or (place.is_dir() and any(place.iterdir())):
        raise InputError(f"{place} exists; choose another place for the export, or remove it.")
    or_none(whole_number, num_samples, "num_samples")
    if not [share(level, "Each of levels") for level in list_of(levels, "levels")]:
        raise InputError("levels has no level between 0 and 1.")
    whole_number(block, "block")
    if not platforms:
        raise InputError("platforms names no platform.")


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
