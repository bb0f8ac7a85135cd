"""Damaged and forged files: one sentence each, never a traceback, a signal, a wait or other numbers in silence.

Run directories, exported predictors and records of long runs, spoilt in seeded ways: 300 in `make test`.
"""

import contextlib
import hashlib
import json
import signal
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import credo
from benchmarks.records import Records
from credo.applications.active.result import ActiveLearning
from credo.applications.optimise import record as searches
from credo.applications.optimise.record import Evaluation
from credo.applications.optimise.space import Space
from credo.errors import CredoError
from credo.storage.archives import document_digest
from credo.storage.export.portable.cells import PortableError
from credo.storage.store import Store
from credo.tables.job import Job, read_job
from damage import copied, files_of, spoil_bytes, spoil_document, spoil_place

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 40)[:, None]
NEW = np.array([[0.3], [0.7]])
LIMIT = 60  # seconds: reading a pipe or an endless file would never end


@contextlib.contextmanager
def awake():
    """An alarm for what would wait for ever."""

    def ring(*_):
        raise TimeoutError("the reader waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def sentence(error: BaseException) -> None:
    assert "\n" not in str(error)
    assert len(str(error)) > 20


# ---------------------------------------------------------------------- run directories
@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a sampler, which keeps its draws, on numbers."""
    model = credo.Model(credo.networks.mlp([3]), credo.priors.normal(1.0), credo.likelihoods.gaussian())
    fit = credo.fit(KEY, model, (X, X[:, 0]), credo.methods.HMC(chains=1, warmup=5), steps=4, progress=False)
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit.save(folder)
    return folder, credo.predict(KEY, credo.load(folder), NEW).mean


def _forged(folder: Path, name: str) -> None:
    """Put the digest right, as who wants to harm would do."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        versions = json.loads((folder / "versions.json").read_text())
        versions["digests"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / "versions.json").write_text(json.dumps(versions))


def _spoilt(rng: np.random.Generator, folder: Path) -> tuple[Path, bool, str]:
    """One file of the folder spoilt: which, whether its document was changed as JSON, and how."""
    files = files_of(folder)
    path = files[int(rng.integers(len(files)))]
    kind = rng.integers(5)
    if kind == 4:
        return path, False, spoil_place(rng, path)
    if kind >= 2 and path.suffix == ".json":
        return path, True, spoil_document(rng, path)
    return path, False, spoil_bytes(rng, path)


def _runs(seed: int, count: int, run, place: Path) -> None:
    folder, expected = run
    rng = np.random.default_rng(seed)
    for _ in range(count):
        spoilt = copied(folder, place / "run")
        path, _, how = _spoilt(rng, spoilt)
        forged = rng.random() < 0.5 and path.name != "versions.json" and path.is_file() and not path.is_symlink()
        if forged:
            _forged(spoilt, path.name)
        case = f"{path.name}: {how}{', forged' if forged else ''}"
        with awake():
            try:
                fit = credo.load(spoilt)
                found = credo.predict(KEY, fit, NEW).mean
            except CredoError as error:
                sentence(error)
                continue
            except BaseException as error:
                raise AssertionError(f"{case} ends in {error!r}") from error
        assert np.isfinite(found).all(), case
        if not forged:
            np.testing.assert_array_equal(found, expected, err_msg=case)


# ---------------------------------------------------------------------- exported predictors
@pytest.fixture(scope="module")
def exported(tmp_path_factory, run):
    """The run as numbers for NumPy and as a program."""
    fit, place = credo.load(run[0]), tmp_path_factory.mktemp("exports")
    for form in ("numpy", "stablehlo"):
        credo.export(fit, place / form, form, platforms=("cpu",))
        (place / form / "portable.py").unlink()  # a program, which nobody reads as data
    return place, {form: credo.load_exported(place / form).predict(NEW).mean for form in ("numpy", "stablehlo")}


def _exports(seed: int, count: int, exported, place: Path) -> None:
    folder, expected = exported
    rng = np.random.default_rng(seed)
    for i in range(count):
        form = "stablehlo" if i % 8 == 7 else "numpy"
        spoilt = copied(folder / form, place / "export")
        path, as_json, how = _spoilt(rng, spoilt)
        forged = as_json and rng.random() < 0.5
        if forged:
            with contextlib.suppress(ValueError, AttributeError, TypeError, RecursionError):
                document = json.loads(path.read_text())
                path.write_text(json.dumps(document | {"document_digest": document_digest(document)}))
        case = f"{form} {path.name}: {how}{', forged' if forged else ''}"
        with awake(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = np.asarray(credo.load_exported(spoilt).predict(NEW).mean, float)
            except PortableError as error:
                sentence(error)
                continue
            except BaseException as error:
                raise AssertionError(f"{case} ends in {error!r}") from error
        if not forged:
            np.testing.assert_array_equal(found, expected[form], err_msg=case)


# ---------------------------------------------------------------------- records
SPACE = Space.from_data({"a": {"type": "float", "low": 0, "high": 1}, "k": {"type": "int", "low": 1, "high": 9}})
SETTINGS = {"seed": 0, "names": ["a"], "space": SPACE.to_data()}
CELL = {"refused": "", "ok": True}, {"log_likelihood": np.arange(5.0), "crps": np.ones(5)}
JOB = Job(table="t.csv", digest="0", target=["y"], method="map")


def store_of(place: Path) -> Store:
    return Store(place, "store.json", "a study", SETTINGS)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """One of each kind of record that a long run leaves."""
    place = tmp_path_factory.mktemp("records") / "all"
    store_of(place / "compare").write("map", *CELL)
    searches.write(place / "search", SETTINGS, [Evaluation({"a": 0.5, "k": 2}, 1.0)], [{"a": 0.1, "k": 3}])
    ActiveLearning("bald", [1, 2], [2], {"rmse": [0.5]}, [1.0]).write(store_of(place / "active"))
    Records(place / "benchmark").write("uci-1", {"score": 1.0})
    JOB.write(place / "job")
    return place


def _read_store(place: Path) -> None:
    store = store_of(place / "compare")
    found = store.read("map")
    assert bool(store.notes) == (found is None and (place / "compare" / "cells" / "map.record").exists())
    assert found is None or (found[0] == CELL[0] and np.array_equal(found[1]["log_likelihood"], np.arange(5.0)))
    store.write("map", *CELL)  # computed again
    assert store.read("map")[0]["ok"]


READERS = {
    "compare": _read_store,
    "search": lambda place: searches.read(place / "search"),
    "active": lambda place: ActiveLearning.read(store_of(place / "active")),
    "benchmark": lambda place: Records(place / "benchmark").read("uci-1"),
    "job": lambda place: read_job(place / "job"),
}


def _records(seed: int, count: int, records: Path, place: Path) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = list(READERS)[int(rng.integers(len(READERS)))]
        copied(records / name, place / name)
        path, _, how = _spoilt(rng, place / name)
        case = f"{name} {path.name}: {how}"
        with awake():
            try:
                READERS[name](place)
            except CredoError as error:
                sentence(error)
            except BaseException as error:
                raise AssertionError(f"{case} ends in {error!r}") from error


def test_damaged_runs(run, tmp_path):
    _runs(1, 110, run, tmp_path)


def test_damaged_exports(exported, tmp_path):
    _exports(2, 90, exported, tmp_path)


def test_damaged_records(records, tmp_path):
    _records(3, 100, records, tmp_path)


@pytest.mark.full
def test_many_more(run, exported, records, tmp_path):
    seeds = np.random.SeedSequence()
    print(f"entropy {seeds.entropy}")
    one, two, three = (int(s) for s in seeds.generate_state(3))
    _runs(one, 2000, run, tmp_path)
    _exports(two, 1500, exported, tmp_path)
    _records(three, 1500, records, tmp_path)


# ---------------------------------------------------------------------- NaN
def test_weights_that_are_nan_never_predict_in_silence(run, tmp_path):
    fit = credo.load(run[0])
    fit.posterior = jax.tree.map(lambda x: np.full_like(x, np.nan), fit.posterior)
    with pytest.warns(RuntimeWarning, match="NaN at 2 of 2 inputs"):
        _ = credo.predict(KEY, fit, NEW).mean
    fit.save(tmp_path / "run")
    with pytest.raises(CredoError, match="NaN"):
        credo.load(tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        credo.export(fit, tmp_path / "export", "numpy")
    with pytest.raises(PortableError, match="NaN"):
        credo.load_exported(tmp_path / "export")
