"""Files that appear whole or not at all, and the store of cells that long runs go on from."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from credo.errors import ArtifactError, InputError, Unwritable
from credo.storage.atomic_write import replaced_file, write_file
from credo.storage.store import Store, open_store

SETTINGS = {"seed": 0, "scores": ("a", "b"), "steps": None}


def store(place, **changed):
    return Store(place, "study.json", "a study", SETTINGS | changed)


def full_disk(source, target):
    raise OSError(28, "No space left on device")


def test_a_file_that_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    write_file(tmp_path / "new" / "a.txt", "one")

    def stop():
        with replaced_file(tmp_path / "new" / "a.txt") as part:
            part.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop()
    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(Unwritable, match=r"Cannot write .*a\.txt: No space left on device; make room"):
        write_file(tmp_path / "new" / "a.txt", b"two")
    assert [(p.name, p.read_text()) for p in (tmp_path / "new").iterdir()] == [("a.txt", "one")]


def test_threads_that_write_one_file_leave_one_of_their_texts(tmp_path):
    texts, start = [str(i) * 50_000 for i in range(8)], threading.Barrier(8)

    def write(text):
        start.wait()
        write_file(tmp_path / "a", text)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, texts))
    assert (tmp_path / "a").read_text() in texts
    assert len(list(tmp_path.iterdir())) == 1


def test_cells_come_back_where_the_settings_are_the_same(tmp_path):
    first = store(tmp_path)
    assert first.read("map-0") is None
    assert not first.path.exists()  # nothing is written before there is a cell
    arrays = {"rows": np.arange(3.0), "flags": np.array([True, False]), "none": np.zeros((0, 2), np.int8)}
    first.write("map-0", {"seconds": 1.5}, arrays)
    first.save(table=[1, 2])
    again = store(tmp_path)
    facts, found = again.read("map-0")
    assert (facts, again.content, again.notes) == ({"seconds": 1.5}, {"table": [1, 2]}, [])
    assert all(np.array_equal(found[name], x) and found[name].dtype == x.dtype for name, x in arrays.items())
    with pytest.raises(InputError, match=r"holds a study with other settings \(scores, seed\): name another folder"):
        store(tmp_path, seed=1, scores=["a"])
    assert Store(tmp_path, "study.json", "a study").settings["seed"] == 0


def test_cells_whose_names_look_alike_are_apart_and_stay_in_the_folder(tmp_path):
    kept = store(tmp_path / "in")
    names = ["l∞ ≤ 0.3", "l2 ≤ 0.3", "l  0.3", "../../out", "/etc/x", "..", "x" * 400, "x" * 401]
    for i, name in enumerate(names):
        kept.write(name, {"i": i}, {"x": np.full(2, i)})
    assert [kept.read(name)[0]["i"] for name in names] == list(range(len(names)))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("which", ["record", "safetensors"])
def test_a_cell_of_another_time_is_computed_again(which, tmp_path):
    """A kill between the two files of a cell leaves arrays that the record does not know."""
    kept = store(tmp_path)
    kept.write("a", {"i": 1}, {"x": np.ones(3)})
    path = tmp_path / "cells" / f"a.{which}"
    before = path.read_bytes()
    kept.write("a", {"i": 2}, {"x": np.zeros(3)})
    path.write_bytes(before)
    assert kept.read("a") is None
    assert "kept of a was damaged" in kept.notes[0]
    kept.write("a", {"i": 2}, {"x": np.zeros(3)})
    assert kept.read("a")[0] == {"i": 2}


def test_what_is_no_record_is_a_sentence(tmp_path):
    for text in ("[]", "{", json.dumps({"settings": 3}), json.dumps({"other": {}})):
        (tmp_path / "study.json").write_text(text)
        with pytest.raises(ArtifactError, match="damaged or not a record of a study: remove it"):
            store(tmp_path)


def test_one_run_at_a_time_and_none_without_a_folder(tmp_path):
    with open_store(tmp_path, "study.json", "a study", SETTINGS), ThreadPoolExecutor(1) as pool:

        def other():
            with open_store(tmp_path, "study.json", "a study", SETTINGS):
                pass

        with pytest.raises(InputError, match="Another run is writing"):
            pool.submit(other).result()
    with open_store(None, "study.json", "a study", SETTINGS) as nowhere:
        nowhere.write("a", {}, {"x": np.ones(2)})
        nowhere.save(done=True)
        assert nowhere.read("a") is None
