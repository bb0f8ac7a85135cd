"""Runs that were killed, stopped or robbed of their table."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from credo.tables.brief import MOST

OPTIONS = ("--method", "bayes_by_backprop", "--network", "mlp:4", "--batch-size", "32", "--steps", "60000")
EVERY = ("--checkpoint-every", "0.05")
SAME = ("posterior.safetensors", "trace.safetensors", "heldout.safetensors", "encoder.json", "model.json")


def command(*args):
    return [sys.executable, "-c", "from credo.cli.main import main; main()", *map(str, args)]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["y"] = 10 + np.sin(3 * frame["a"]) + 0.1 * rng.normal(size=80)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def whole(table, credo, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    assert credo("fit", table, "--target", "y", *OPTIONS, "--out", out).exit_code == 0
    return out


@pytest.fixture(scope="module")
def killed(table, tmp_path_factory):
    """A run ended by SIGKILL after its first checkpoints, another by Ctrl-C and a third by the system's request."""
    made = {}
    for name, end in (("killed", signal.SIGKILL), ("stopped", signal.SIGINT), ("ended", signal.SIGTERM)):
        out = tmp_path_factory.mktemp(name) / "run"
        begun = command("fit", table, "--target", "y", *OPTIONS, *EVERY, "--out", out)
        process = subprocess.Popen(begun, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 120
        while not list(out.glob("checkpoint/state/[0-9]*")) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(end)
        stdout, stderr = process.communicate(timeout=60)
        made[name] = (out, process.returncode, stdout, stderr)
    return made


def copied(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


def test_a_killed_run_resumes_to_the_same_bits(credo, killed, whole, table, tmp_path):
    out, code, _, _ = killed["killed"]
    assert code == -signal.SIGKILL
    run = copied(out, tmp_path)
    assert not (run / "versions.json").exists()
    for refused in (credo("predict", run, table), credo("fit", table, "--target", "y", "--out", run)):
        assert refused.exit_code == 2
        assert "credo resume" in refused.stderr
    result = credo("resume", run)
    assert result.exit_code == 0, result.stderr
    for name in SAME:
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (run / "checkpoint").exists()
    again = credo("resume", run)
    assert again.exit_code == 0
    assert "nothing to resume" in again.stderr


def test_a_run_killed_before_its_first_checkpoint_starts_again(credo, killed, whole, tmp_path):
    run = copied(killed["killed"][0], tmp_path)
    shutil.rmtree(run / "checkpoint" / "state")
    shutil.rmtree(run / "checkpoint" / "segments", ignore_errors=True)
    assert credo("resume", run).exit_code == 0
    assert (run / SAME[0]).read_bytes() == (whole / SAME[0]).read_bytes()


@pytest.mark.parametrize("name", ["stopped", "ended"])
def test_ctrl_c_leaves_a_run_to_use_and_to_resume(name, credo, killed, whole, table, tmp_path):
    out, code, stdout, stderr = killed[name]
    assert code == 130
    assert "can be used as it is" in stderr
    assert "interrupted" in stdout
    assert len(stdout.splitlines()) <= MOST
    assert f"Next: credo resume {out}" in stdout
    run = copied(out, tmp_path)
    assert credo("evaluate", run, table).exit_code == 0
    assert credo("resume", run).exit_code == 0
    for name in SAME:
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize("case", ["changed", "gone"])
def test_another_table_is_not_resumed(case, credo, killed, table, tmp_path):
    run = copied(killed["killed"][0], tmp_path)
    hidden = table.with_name("hidden.csv")
    os.rename(table, hidden)
    try:
        if case == "changed":
            table.write_text(hidden.read_text() + "1,2,3,4\n")
        result = credo("resume", run)
    finally:
        os.replace(hidden, table)
    assert result.exit_code == 2
    assert case in result.stderr
    assert (run / "checkpoint" / "state").exists()


def test_a_damaged_job_is_a_sentence(credo, killed, tmp_path):
    run = copied(killed["killed"][0], tmp_path)
    path = run / "checkpoint" / "job.json"
    other_seed = path.read_text().replace('"seed": 0', '"seed": 1')
    for text in ('{"table": 3}', "[]", "[" * 100_000, other_seed):
        path.write_text(text)
        result = credo("resume", run)
        assert result.exit_code == 2
        assert "damaged" in result.stderr


def test_a_damaged_checkpoint_is_said_and_the_one_before_it_used(credo, killed, whole, tmp_path):
    run = copied(killed["killed"][0], tmp_path)
    records = sorted((run / "checkpoint" / "state").iterdir())
    records[-1].write_bytes(records[-1].read_bytes()[:-1])
    if len(records) == 1:  # killed at its first checkpoint
        result = credo("resume", run)
        assert result.exit_code == 2
        assert "fit again" in result.stderr
        return
    result = credo("resume", run, "--verbose")
    assert result.exit_code == 0, result.stderr
    assert "The newest checkpoint was damaged" in result.stdout
    assert "The newest checkpoint was damaged" in (run / "status.json").read_text()
    assert (run / SAME[0]).read_bytes() == (whole / SAME[0]).read_bytes()


def test_a_full_disk_at_the_end_loses_nothing(credo, killed, whole, tmp_path, monkeypatch):
    import errno
    from pathlib import Path

    run = copied(killed["killed"][0], tmp_path)
    write = Path.write_bytes

    def full(path, data):
        if path.name == "posterior.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        result = credo("resume", run)
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert credo("resume", run).exit_code == 0
    assert (run / SAME[0]).read_bytes() == (whole / SAME[0]).read_bytes()


def test_two_fits_at_once(credo, table, tmp_path):
    """The second one is told so, whatever state the first one is in; nothing of the first is touched."""
    from credo.storage.locks import locked

    held, refused = tmp_path / "run", []

    def second():
        begun = command("fit", table, "--target", "y", "--steps", "2", "--out", held)
        refused.append(subprocess.run(begun, capture_output=True, text=True, timeout=300))

    with locked(held):
        second()
        (held / "checkpoint").mkdir()
        (held / "checkpoint" / "job.json").write_text("{}")
        begun = command("resume", held)
        refused.append(subprocess.run(begun, capture_output=True, text=True, timeout=300))
    for result in refused:
        assert result.returncode == 2
        assert result.stderr.splitlines() == [
            f"Error: Another run is writing to {held}; wait until it has ended, or choose another folder."
        ]
    assert (held / "checkpoint" / "job.json").read_text() == "{}"


def test_a_folder_that_is_removed_during_the_fit_does_not_lose_it(credo, table, whole, tmp_path, monkeypatch):
    import credo.training.loop as loop

    out, update, removed = tmp_path / "new" / "run", loop.Progress.update, []

    def remove(*given):
        update(*given)
        if not removed:
            removed.append(1)
            shutil.rmtree(out.parent)

    monkeypatch.setattr(loop.Progress, "update", remove)
    result = credo("fit", table, "--target", "y", *OPTIONS, *EVERY, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert removed
    assert (out / SAME[0]).read_bytes() == (whole / SAME[0]).read_bytes()


def test_a_place_that_is_taken_during_the_fit_does_not_lose_it(credo, table, whole, tmp_path, monkeypatch):
    """Somebody removes the folder and puts another thing there after the last checkpoint: the run goes beside it."""
    from credo.tables import fitting

    out, scores = tmp_path / "run", fitting.held_out_scores

    def take(*given):
        shutil.rmtree(out)
        out.write_text("mine")
        return scores(*given)

    monkeypatch.setattr(fitting, "held_out_scores", take)
    result = credo("fit", table, "--target", "y", *OPTIONS, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert f"The run is in {out}-2." in result.stderr
    assert f"Saved in {out}-2." in result.stdout
    assert out.read_text() == "mine"
    assert (tmp_path / "run-2" / SAME[0]).read_bytes() == (whole / SAME[0]).read_bytes()


START = """
import sys, threading, signal, os
import credo.cli.start
threading.Timer(float(sys.argv.pop(1)), os.kill, (os.getpid(), signal.SIGINT)).start()
credo.cli.start.main()
"""


@pytest.mark.parametrize("moment", [0.01, 0.5])
def test_ctrl_c_while_modules_are_imported(moment, table, tmp_path):
    begun = [sys.executable, "-c", START, str(moment), "fit", str(table), "--target", "y", *OPTIONS]
    result = subprocess.run([*begun, "--out", tmp_path / "run"], capture_output=True, text=True, timeout=120)
    assert result.returncode == 130
    assert "Stopped" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run" / "versions.json").exists()
