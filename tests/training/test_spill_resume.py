"""Draws on disk survive a crash, a kill and a full disk, bit for bit."""

import errno
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import credo
from credo.core import draw_file
from credo.errors import ArtifactError
from credo.training import record
from credo.training.record import Record
from spilled import STEPS, fitted, same


def test_a_full_disk_keeps_what_was_drawn(monkeypatch):
    write, left = draw_file.DrawFile._write, [3]

    def full(self, draws, place):
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        write(self, draws, place)

    monkeypatch.setattr(draw_file.DrawFile, "_write", full)
    monkeypatch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)  # many short blocks
    disk = fitted(200)
    whole = fitted(2**28)
    count = disk.posterior.available
    assert 0 < count < STEPS
    assert disk.outcome == "stopped by the disk"
    assert [note for note in disk.notes if "No space left on device; make room" in note]
    assert same(disk.posterior.params, jax.tree.map(lambda x: x[:, :count], whole.posterior.params))
    assert next(iter(disk.trace.values())).shape == (3, count)
    left[0] = 1000  # somebody made room
    assert same(disk.extend(STEPS - count).posterior.params, whole.posterior.params)


class Killed(Exception):
    pass


@pytest.mark.full
def test_resume_after_a_crash_is_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)

    def crash(at):
        def call(event):
            if event.step >= at:
                raise Killed

        return call

    folder = tmp_path / "c"
    for at in (3, 12, 13, 20):  # before draws go to disk, and after
        with pytest.raises(Killed):
            fitted(1500, steps=24, checkpoint=credo.Checkpoint(folder, every=0.0), callbacks=[crash(at)])
    resumed = fitted(1500, steps=24, checkpoint=credo.Checkpoint(folder, every=0.0))
    assert resumed.posterior.on_disk
    whole = fitted(2**28, steps=24)
    assert same(resumed.posterior.params, whole.posterior.params)
    assert same(resumed.trace, whole.trace)
    again = fitted(1500, steps=24, checkpoint=credo.Checkpoint(folder, every=0.0))
    assert same(again.posterior.params, whole.posterior.params)
    assert same(resumed.posterior.params, whole.posterior.params)
    # Of draws that lie in a file, a segment has none.
    saved = credo.Checkpoint(folder).newest()
    last = saved.arrays(f"segments/{saved.host.segments[-1]}")
    assert "file" in last
    assert last["draw/0"].shape[1] == 0
    file = next((folder / "draws").iterdir())
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ArtifactError, match="damaged"):
        fitted(1500, steps=24, checkpoint=credo.Checkpoint(folder, every=0.0))


def test_a_phase_that_starts_again_leaves_the_checkpoint_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SPILL_BYTES", 0)

    def block(value):
        return {"m": np.full((1, 4), value)}, {"w": np.full((1, 4, 3), value, np.float32)}, 4, 4, 1

    kept = Record(tmp_path / "0-0")
    kept.add(*block(1.0))
    saved = kept.unsaved()
    kept.clear()
    kept.add(*block(2.0))
    assert (kept.all_draws()["w"] == 2).all()
    back = Record(tmp_path / "0-0")
    back.restore(saved, kept.treedef)  # killed before the next save
    assert (back.all_draws()["w"] == 1).all()
    back.restore(kept.unsaved(), kept.treedef)
    assert (back.all_draws()["w"] == 2).all()


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import numpy as np, jax, credo
from spilled import fitted
print("ready", flush=True)
fit = fitted(3000, steps=16_000, checkpoint=credo.Checkpoint(sys.argv[1], every=0.05),
             callbacks=[lambda event: print("block", flush=True)])
assert fit.posterior.on_disk
np.savez(sys.argv[1] + ".npz", *[np.array(x) for x in jax.tree.leaves(fit.posterior.params)])
"""


@pytest.mark.full
def test_resume_after_a_kill_is_bit_for_bit(tmp_path):
    folder = tmp_path / "c"
    command = [sys.executable, "-c", SCRIPT, str(folder), str(Path(__file__).parents[1] / "support")]
    killed = 0
    for moment in np.random.default_rng(5).uniform(0.05, 0.3, size=6):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while (line := process.stdout.readline()) and line.strip() != "block":
            pass
        if not line:  # a fast machine needs fewer kills to reach the end
            assert process.wait() == 0
            break
        deadline = time.monotonic() + 60
        while not list((folder / "draws").glob("*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert killed >= 3
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
    with np.load(f"{folder}.npz") as found:
        whole = jax.tree.leaves(fitted(2**28, steps=16_000).posterior.params)
        assert all(np.array_equal(found[f"arr_{i}"], x) for i, x in enumerate(whole))
