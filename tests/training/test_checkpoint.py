"""Whatever happens to a checkpoint's files, a fit goes on to the same numbers or says a sentence."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import credo
from credo.errors import ArtifactError, CredoError, Unwritable
from credo.storage import sealed
from spilled import fitted, same

LIMIT = 1500  # bytes of draws in memory: the newest checkpoints count on a file of draws, too
EVERY = 0.0


class Killed(Exception):
    pass


def crash(event):
    if event.step >= 20:
        raise Killed


@pytest.fixture(scope="module", autouse=True)
def short_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def whole():
    return fitted(LIMIT, steps=24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fit of 24 draws that was killed after 20 of them; each block has a checkpoint."""
    place = tmp_path_factory.mktemp("checkpoint") / "c"
    with pytest.raises(Killed):
        fitted(LIMIT, steps=24, checkpoint=credo.Checkpoint(place, EVERY), callbacks=[crash])
    return place


@pytest.fixture
def copy(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "c")
    return tmp_path / "c"


def resumed(place, **options):
    return fitted(LIMIT, steps=24, checkpoint=credo.Checkpoint(place, 1e9), **options)


def records(place):
    return sorted((place / "state").iterdir())


def flipped(path, place=None):
    content = bytearray(path.read_bytes())
    place = len(content) // 2 if place is None else place
    content[place] ^= 16
    path.write_bytes(content)


def newest_files(place):
    saved = credo.Checkpoint(place).newest()
    return saved, [place / saved.carry, place / f"segments/{saved.host.segments[-1]}", records(place)[-1]]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["carry", "segment", "record"])
def test_the_checkpoint_before_a_damaged_one_is_used(which, copy, whole):
    flipped(newest_files(copy)[1][which])
    fit = resumed(copy)
    assert same(fit.posterior.params, whole.posterior.params)
    assert same(fit.trace, whole.trace)
    assert "The newest checkpoint was damaged" in str(fit.status)
    assert not whole.notes


def test_a_flipped_bit_among_stored_draws_is_found(copy, whole):
    draws = next((copy / "draws").iterdir())
    saved = credo.Checkpoint(copy).newest()
    last = saved.files[f"segments/{saved.host.segments[-1]}"]["draws"][0]
    flipped(draws, last["start"] + 3)
    fit = resumed(copy)
    assert same(fit.posterior.params, whole.posterior.params)
    assert "The newest checkpoint was damaged (draws/" in str(fit.status)
    shutil.rmtree(copy)


def test_damage_to_both_checkpoints_is_a_sentence(copy):
    flipped(min((copy / "segments").iterdir()))  # of the first draws: every checkpoint counts on it
    with pytest.raises(ArtifactError, match=r"damaged \(segments/.* is not what was written\).*fit again"):
        resumed(copy)


def test_only_what_two_checkpoints_name_is_kept(folder):
    assert len(records(folder)) == 2
    saved = credo.Checkpoint(folder).newest()
    assert len(list((folder / "carry").iterdir())) == 2
    assert {f"segments/{p.name}" for p in (folder / "segments").iterdir()} <= set(saved.files)


def test_links_pipes_and_devices_are_not_read(copy):
    """A link to an endless file would never be read to its end."""
    for path in records(copy):
        path.unlink()
        path.symlink_to("/dev/zero")
    with pytest.raises(ArtifactError, match="damaged"):
        resumed(copy)
    for path in records(copy):
        path.unlink()
        os.mkfifo(path)
    with pytest.raises(ArtifactError, match="is not a regular file"):
        resumed(copy)


def test_a_record_cannot_lead_out_of_its_folder(copy):
    """A record whose digest somebody made anew names no file elsewhere, and none of its parts breaks the reading."""
    path = records(copy)[-1]
    document = sealed.read_record(path)
    records(copy)[0].unlink()
    other = {"carry": "carry/../../x", "host": 3, "files": [], "number": "one", "format": None, "start": "starts/x"}
    hosts = [{"step": "one"}, {"notes": [1]}, {"other": 1}, {"segments": ["x"]}]
    cases = [*other.items(), *(("host", document["host"] | host) for host in hosts)]
    for name, value in cases:
        files = {"carry/../../x": {"sha256": ""}} | document["files"] if name == "carry" else document["files"]
        sealed.write_record(path, document | {"files": files, name: value})
        with pytest.raises(CredoError):
            resumed(copy)


def test_arrays_of_every_type_come_back(tmp_path):
    arrays = {"half": jax.numpy.ones((2, 3), "bfloat16"), "one": np.float64(2.0), "none": np.zeros((2, 0, 3))}
    found = sealed.read_arrays(tmp_path / "a", sealed.write_arrays(tmp_path / "a", arrays))
    for name, x in arrays.items():
        assert (found[name].dtype, found[name].shape) == (x.dtype, np.shape(x))
        np.testing.assert_array_equal(found[name], np.asarray(x))


# ------------------------------------------------------------------------------------------------- damage at random
def put(path, content):
    path.unlink()  # it may be a second name of the true file
    path.write_bytes(content)


def truncate(rng, path, others):
    put(path, path.read_bytes()[: rng.integers(path.stat().st_size)])


def flip(rng, path, others):
    content = bytearray(path.read_bytes())
    for _ in range(rng.integers(1, 4)):
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    put(path, content)


def delete(rng, path, others):
    path.unlink()


def link(rng, path, others):
    path.unlink()
    path.symlink_to(rng.choice([*map(str, others), "/dev/zero", "/nowhere", str(path)]))


def swap(rng, path, others):
    other = Path(rng.choice(others))
    one, two = path.read_bytes(), other.read_bytes()
    put(path, two)
    put(other, one)


def grow(rng, path, others):
    put(path, path.read_bytes() + bytes(rng.integers(0, 256, 5, np.uint8)))


def folder_instead(rng, path, others):
    path.unlink()
    path.mkdir()


DAMAGES = (truncate, flip, delete, link, swap, grow, folder_instead)


def contents(saved):
    """All that a resumed fit starts from, as bytes; the draws of files too."""
    arrays = {name: {k: v.tobytes() for k, v in saved.arrays(name).items()} for name in saved.files}
    draws = {}
    for known in saved.files.values():
        for part in known.get("draws", ()):
            content = (saved.folder / "draws" / part["file"]).read_bytes()
            draws[part["start"]] = content[part["start"] : part["stop"]]
    return saved.host, saved.carry, saved.start, arrays, draws


@pytest.mark.parametrize("cases", [300, pytest.param(5000, marks=pytest.mark.full)])
def test_damage_at_random(cases, folder, tmp_path):
    """Damage is found or without effect: what is read is one of the two checkpoints as they were written, bit for bit.

    A damaged folder either gives exactly such a checkpoint, which the tests above resume to the same numbers, or a
    sentence, or nothing where all records are gone, and then the fit starts anew.
    """
    true = []
    for number in (0, 1):  # the newest, then the one before it
        place = tmp_path / f"true{number}"
        shutil.copytree(folder, place)
        for path in records(place)[2 - number :]:
            path.unlink()
        true.append(contents(credo.Checkpoint(place).newest()))
    assert true[0] != true[1]
    seed = 7 if cases == 300 else np.random.SeedSequence().entropy
    rng, found = np.random.default_rng(seed), {"newest": 0, "before": 0, "anew": 0, "sentence": 0}
    for case in range(cases):
        place = tmp_path / str(case)
        shutil.copytree(folder, place, copy_function=os.link)
        files = sorted(p for p in place.rglob("*") if p.is_file())
        for _ in range(rng.integers(1, 3)):
            path = Path(rng.choice([str(p) for p in files if p.is_file() and not p.is_symlink()]))
            DAMAGES[rng.integers(len(DAMAGES))](rng, path, [str(p) for p in files if p.is_file() and p != path])
        try:
            saved = credo.Checkpoint(place).newest()
        except CredoError:
            found["sentence"] += 1
        else:
            if saved is None:
                assert not records(place), (seed, case)
                found["anew"] += 1
            else:
                read = contents(saved)
                assert read in true, (seed, case)
                found["newest" if read == true[0] else "before"] += 1
        shutil.rmtree(place)
    assert min(found["newest"], found["before"], found["sentence"]) > cases // 50, found


# ------------------------------------------------------------------------------------------------------- a full disk
def test_a_disk_that_fills_up_at_any_write_leaves_the_checkpoint_before(folder, whole, tmp_path, monkeypatch):
    """Each file of a save in turn cannot be written: one sentence, and what was there before goes on."""
    for failing in range(3):
        place = tmp_path / str(failing)
        shutil.copytree(folder, place)
        count, replace = [0], os.replace

        def full(source, target, place=place, count=count, failing=failing, replace=replace):
            if str(target).startswith(str(place)):
                count[0] += 1
                if count[0] == failing + 1:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            with pytest.raises(Unwritable, match=r"No space left on device; make room"):
                fitted(LIMIT, steps=24, checkpoint=credo.Checkpoint(place, EVERY))
        assert not list(place.rglob(".*"))
        assert same(resumed(place).posterior.params, whole.posterior.params)


LIMITED = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
import credo, numpy as np, jax
from credo.errors import CredoError
from spilled import fitted
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import credo.training.loop as loop
loop.BLOCK_SECONDS = 0.0
fitted(2**28, steps=24)  # what is compiled is in the cache before files are limited
jax.config.update("jax_enable_compilation_cache", False)
for limit in map(int, sys.argv[3].split(",")):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        fitted(2**28, steps=24, checkpoint=credo.Checkpoint(f"{sys.argv[1]}/{limit}", 0.0))
        print("finished", flush=True)
    except CredoError as error:
        print(error, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
"""


def test_files_that_may_not_grow(tmp_path):
    """The system's own refusals, at several sizes."""
    limits = (0, 60, 400, 1200, 10**6)
    command = [
        sys.executable,
        "-c",
        LIMITED,
        str(tmp_path),
        str(Path(__file__).parents[1] / "support"),
        ",".join(map(str, limits)),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == len(limits)
    assert lines[-1] == "finished"
    refused = [line for line in lines if "File too large; make room" in line]
    assert len(refused) == len(limits) - 1
    whole = fitted(2**28, steps=24)
    for limit in limits:
        place = tmp_path / str(limit)
        again = fitted(2**28, steps=24, checkpoint=credo.Checkpoint(place, 1e9))
        assert same(again.posterior.params, whole.posterior.params)


def test_a_folder_that_is_removed_is_written_anew(folder, whole, tmp_path):
    """Between two saves somebody removes the folder: the next save is whole, with draws that lay in a file."""
    place = tmp_path / "c"
    shutil.copytree(folder, place)

    def remove(event):
        if event.step == 21:
            shutil.rmtree(place)

    fit = fitted(LIMIT, steps=24, checkpoint=credo.Checkpoint(place, EVERY), callbacks=[remove])
    assert same(fit.posterior.params, whole.posterior.params)
    saved = credo.Checkpoint(place).newest()
    assert saved.trouble == ""
    assert saved.host.step == 24
    assert same(resumed(place).posterior.params, whole.posterior.params)
