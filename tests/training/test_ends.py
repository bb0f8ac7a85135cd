"""How a fit ends early: memory that is short, Ctrl-C, and a folder that another run writes to."""

import gc
import signal
import subprocess
import sys
import threading
import weakref

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import CredoError, InputError, OutOfMemory
from credo.memory import short_of_memory
from credo.storage.locks import locked
from credo.training import interrupt
from spilled import fitted, same

# ------------------------------------------------------------------------------------------------------------- memory


def test_short_memory_is_a_sentence():
    """Errors of NumPy and JAX that are real: nobody has 700 TiB."""
    with pytest.raises(MemoryError) as numpys:
        np.zeros((10**7, 10**7))
    with pytest.raises(RuntimeError) as jaxs:
        jax.numpy.zeros((10**7, 10**6))
    for error in (numpys.value, jaxs.value, MemoryError()):
        sentence = short_of_memory(error)
        assert sentence.startswith("Memory is short")
        assert "take a smaller network" in sentence
        assert "\n" not in sentence
    assert "728. TiB" in short_of_memory(numpys.value)
    assert short_of_memory(RuntimeError("RESOURCE")) is None


def test_a_fit_and_a_prediction_that_need_too_much(monkeypatch):
    def too_much(*_):
        return jax.numpy.zeros((10**7, 10**6))

    fit = fitted(2**28)
    monkeypatch.setattr("credo.core.predict.pad_rows", too_much)
    pred = credo.predict(jax.random.key(0), fit, np.zeros((4, 1)))
    with pytest.raises(OutOfMemory, match="Memory is short"):
        _ = pred.mean
    monkeypatch.setattr("credo.training.loop.run_block", too_much)
    with pytest.raises(OutOfMemory, match="Memory is short") as found:
        fitted(2**28)
    assert isinstance(found.value, CredoError)


# ------------------------------------------------------------------------------------------------------------- Ctrl-C
def press(*_):
    signal.raise_signal(signal.SIGINT)


def collect_and_wait():
    gc.collect()
    threading.Event().wait(60)


@pytest.fixture
def listening():
    """As under the command line; afterwards as before."""
    old = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupt.listen()
    yield
    for number, handler in old.items():
        signal.signal(number, handler)
    gc.callbacks.remove(interrupt._track_collector)
    interrupt._pending = False


def test_ctrl_c_before_the_first_block_ends_at_once(monkeypatch):
    blocks = []
    monkeypatch.setattr("credo.training.loop.Loop.begin_stage", press)
    before = signal.getsignal(signal.SIGINT)  # a shell starts its background jobs without one
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            fitted(2**28, callbacks=[blocks.append])
        assert blocks == []
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_an_end_by_the_system_leave_what_there_is(number, listening, monkeypatch):
    monkeypatch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)
    fit = fitted(2**28, callbacks=[lambda event: signal.raise_signal(number) and None])
    assert fit.outcome == "interrupted"
    assert fit.posterior.available > 0


def test_a_ctrl_c_in_the_garbage_collector_is_not_lost(listening):
    pressed = []

    def collected(phase, info):
        if not pressed:
            pressed.append(phase)
            press()

    gc.callbacks.append(collected)
    try:
        with pytest.raises(KeyboardInterrupt):
            collect_and_wait()
    finally:
        gc.callbacks.remove(collected)
    assert pressed


def test_a_ctrl_c_in_a_weak_reference_that_is_collected_is_not_lost(listening):
    """A large heap is swept for longer than the Ctrl-C waits, so that it comes again in the midst of it."""
    pressed = []

    class Ring:
        pass

    ring = Ring()
    ring.itself = ring
    watcher = weakref.ref(ring, lambda _: (pressed.append(1), press()))
    del ring
    with pytest.raises(KeyboardInterrupt):
        collect_and_wait()
    assert pressed
    assert watcher() is None


def test_a_ctrl_c_that_was_swallowed_ends_the_next_fit(listening):
    """As in a destructor, whose exceptions Python prints and forgets."""
    with pytest.raises(KeyboardInterrupt):
        press()
    with pytest.raises(KeyboardInterrupt):
        fitted(2**28)


def test_half_a_fit_is_no_cell_of_a_comparison(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40)})
    frame["y"] = 2 * frame["x"] + 1
    given = {"methods": "map", "baselines": "linear", "folds": 2, "steps": 400}
    whole = credo.compare(frame, "y", **given)
    monkeypatch.setattr("credo.training.loop.BLOCK_SECONDS", 0.0)
    update = credo.training.loop.Progress.update
    with monkeypatch.context() as patch:
        patch.setattr("credo.training.loop.Progress.update", lambda *a: (press(), update(*a)))
        with pytest.raises(KeyboardInterrupt):
            credo.compare(frame, "y", folder=tmp_path / "c", **given)
    assert not list(tmp_path.glob("c/cells/map-*"))
    again = credo.compare(frame, "y", folder=tmp_path / "c", **given)
    scores = [[row["log_likelihood"] for row in found.table] for found in (again, whole)]
    assert scores[0] == scores[1]


# -------------------------------------------------------------------------------------------------------------- locks
HOLD = """
import sys
from credo.storage.locks import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_another_process_is_refused_and_one_that_was_killed_holds_nothing(holder, tmp_path):
    place = tmp_path / "run"
    with pytest.raises(InputError, match="Another run is writing to"), locked(place):
        pass
    holder.kill()
    holder.wait()
    with locked(place):
        assert list(place.iterdir()) == []


def test_a_lock_leaves_nothing_behind(tmp_path):
    with locked(tmp_path / "a" / "b"), locked(tmp_path / "a" / "b"), locked(None):
        assert (tmp_path / "a" / "b").is_dir()
        refused = []

        def other():
            try:
                with locked(tmp_path / "a" / "b"):
                    pass
            except InputError as error:
                refused.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(refused) == 1
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"), locked(tmp_path / "file"):
        pass


def test_fits_comparisons_and_searches_hold_their_folder(holder, tmp_path):
    from credo.applications.active import learn
    from credo.applications.detection import study
    from credo.applications.optimise import Float, Optimizer, Space

    place, said = tmp_path / "run", "Another run is writing to"
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0)})
    with pytest.raises(InputError, match=said):
        fitted(2**28, checkpoint=place)
    with pytest.raises(InputError, match=said):
        credo.compare(frame, "y", methods="map", folds=2, folder=place)
    search = Optimizer(Space({"x": Float(0.0, 1.0)}), "random")
    with pytest.raises(InputError, match=said):
        search.minimise(lambda point: point["x"], 2, place)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
    with pytest.raises(InputError, match=said):
        learn(jax.random.key(0), model, np.zeros((9, 1)), np.zeros(9), "map", start=2, batch=1, budget=3, folder=place)
    rows, labels = np.zeros((9, 1)), np.zeros(9, int)
    with pytest.raises(InputError, match=said):
        study(
            jax.random.key(0), {"m": None}, rows, rows, labels, attacks=["fgsm:0.5"], scores=["entropy"], folder=place
        )
    assert list(place.iterdir()) == []


def test_threads_that_save_to_one_folder(tmp_path):
    """Each save is whole, and the last one stays."""
    fit, failed = fitted(2**28), []

    def save():
        try:
            fit.save(tmp_path / "run")
        except CredoError as error:
            failed.append(error)

    threads = [threading.Thread(target=save) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert same(credo.load(tmp_path / "run").posterior.params, fit.posterior.params)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_locked_checkpoint_is_that_of_an_unlocked_one(tmp_path):
    checkpoint = credo.Checkpoint(tmp_path / "c", every=0.0)
    assert same(fitted(2**28, checkpoint=checkpoint).posterior.params, fitted(2**28).posterior.params)
