"""Checkpoints of credo (safetensors and JSON, with digests) beside Orbax: time, a kill while saving, a flipped bit.

    PYTHON -m benchmarks.checkpoints [--megabytes 1 100 1000] [--passes 5] [--kills 20] [--flips 40] [--folder DIR]

PYTHON is that of an environment with credo and orbax-checkpoint. Both sides save and restore the same tree of arrays;
the two take turns and the least time of all passes counts. A saved state is complete when the call is over and the
files are with the operating system (credo: with the disk); restored arrays are those of JAX. Kills: a process saves one
state after another and gets SIGKILL at a random moment; what is restored then must be a state that was saved. Flips:
one bit in one file of the newest state is changed; either it is noticed, or other numbers come back.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.training.checkpoint import Checkpoint
from credo.training.host import Host

LEAVES = 10


@cache
def base(megabytes: float) -> np.ndarray:
    """Numbers that do not compress [leaf, row, 64]."""
    rows = int(megabytes * 1e6 / 4 / LEAVES / 64)
    return np.random.default_rng(0).normal(size=(LEAVES, rows, 64)).astype(np.float32)


def state(megabytes: float, step: int) -> dict[str, jax.Array]:
    """The arrays of a step, other ones for every step."""
    return {f"layer_{i}": jnp.asarray(x + np.float32(step)) for i, x in enumerate(base(megabytes))}


class Credo:
    """A carry as a fit saves it; the carry at the start of the phase is written once."""

    def __init__(self, folder: Path):
        self.checkpoint = Checkpoint(folder)
        self.checkpoint.newest()

    def save(self, step: int, tree: Any) -> None:
        first = tree if step == 1 else None
        self.checkpoint.save(tree, first, Host(saves=step, step=step), {}, {})

    def restore(self, like: Any) -> tuple[int, Any]:
        saved = self.checkpoint.newest()
        assert saved is not None
        return saved.host.step, jax.device_put(saved.tree(saved.carry, like))


class Orbax:
    """The same by Orbax's manager: two are kept, and the call waits until the state is on disk."""

    def __init__(self, folder: Path):
        import orbax.checkpoint as ocp

        self.args = ocp.args
        self.manager = ocp.CheckpointManager(
            folder, options=ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
        )

    def save(self, step: int, tree: Any) -> None:
        self.manager.save(step, args=self.args.StandardSave(tree))
        self.manager.wait_until_finished()

    def restore(self, like: Any) -> tuple[int, Any]:
        step = self.manager.latest_step()
        return step, self.manager.restore(step, args=self.args.StandardRestore(like))


FORMS = {"credo": Credo, "orbax": Orbax}


def timed(form: str, folder: Path, megabytes: float, step: int) -> dict[str, float]:
    """Seconds of the step's save and of a restore."""
    tree = jax.block_until_ready(state(megabytes, step))
    like = jax.eval_shape(lambda: tree)
    store = FORMS[form](folder)
    if step == 2:  # what is set up once is no part of a save
        store.save(1, tree)
    began = time.perf_counter()
    store.save(step, tree)
    saved = time.perf_counter() - began
    again = FORMS[form](folder)
    began = time.perf_counter()
    restored_step, arrays = jax.block_until_ready(again.restore(like))
    restored = time.perf_counter() - began
    assert restored_step == step
    assert all(np.array_equal(arrays[name], tree[name]) for name in tree)
    return {"save": saved, "restore": restored}


def seconds(megabytes: float, passes: int, folder: Path) -> dict[str, dict[str, float]]:
    """The least seconds of each side."""
    times: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for number in range(passes):
        for form in FORMS:
            times[form].append(timed(form, folder / form, megabytes, number + 2))
    shutil.rmtree(folder)
    return {form: {what: min(one[what] for one in ones) for what in ones[0]} for form, ones in times.items()}


def killed(form: str, megabytes: float, folder: Path, rng: random.Random) -> str:
    """What is restored after a SIGKILL in the middle of a save."""
    command = [sys.executable, "-m", "benchmarks.checkpoints", "--saver", form, "--folder", str(folder)]
    process = subprocess.Popen([*command, "--megabytes", str(megabytes)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    steps = [float(process.stdout.readline().split()[1]) for _ in range(3)]
    time.sleep(rng.uniform(0, 2 * max(steps)))
    process.send_signal(signal.SIGKILL)
    complete = 3 + len(process.stdout.readlines())
    process.wait()
    return outcome(form, folder, megabytes, complete)


def outcome(form: str, folder: Path, megabytes: float, complete: int) -> str:
    """Which state comes back, in a word."""
    like = jax.eval_shape(lambda: state(megabytes, 0))
    try:
        step, arrays = FORMS[form](folder).restore(like)
    except Exception as error:  # whatever a library raises is what is counted
        return f"refused ({type(error).__name__})"
    expected = state(megabytes, step)
    if not all(np.array_equal(arrays[name], expected[name]) for name in expected):
        return "OTHER NUMBERS"
    return "newest" if step >= complete else "one before"


def flipped(form: str, megabytes: float, folder: Path, rng: random.Random) -> str:
    """What is restored after one bit of the newest state has changed."""
    store = FORMS[form](folder)
    for step in (1, 2, 3):
        store.save(step, state(megabytes, step))
    newest = {"credo": "*/*3", "orbax": "3/**/*"}[form]
    files = [p for p in folder.glob(newest) if p.is_file() and p.stat().st_size and p.parent.name != "starts"]
    path = rng.choices(files, [path.stat().st_size for path in files])[0] if rng.random() < 0.5 else rng.choice(files)
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return outcome(form, folder, megabytes, 3)


def saver(form: str, megabytes: float, folder: Path) -> None:
    """Save one state after another until somebody stops it."""
    store = FORMS[form](folder)
    for step in range(1, 10_000):
        tree = jax.block_until_ready(state(megabytes, step))
        began = time.perf_counter()
        store.save(step, tree)
        print(step, time.perf_counter() - began, flush=True)


def main() -> None:
    """Run all, print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--flips", type=int, default=40)
    parser.add_argument("--folder", type=Path, help="where states are written; a new one by default")
    parser.add_argument("--saver", choices=FORMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.saver:
        saver(options.saver, options.megabytes[0], options.folder)
        return
    folder, rng = Path(tempfile.mkdtemp(dir=options.folder)), random.Random(0)
    for megabytes in options.megabytes:
        times = seconds(megabytes, options.passes, folder / "time")
        ratio = {what: times["credo"][what] / times["orbax"][what] for what in ("save", "restore")}
        print(json.dumps({"megabytes": megabytes, **times, "credo / orbax": ratio}), flush=True)
    for name, one, count, megabytes in (
        ("kills", killed, options.kills, 100.0),
        ("flips", flipped, options.flips, 1.0),
    ):
        for form in FORMS:
            outcomes = Counter(one(form, megabytes, folder / f"{name}-{form}-{i}", rng) for i in range(count))
            print(json.dumps({name: form, **outcomes}), flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
