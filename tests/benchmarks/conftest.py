"""A folder with tiny sets in place of the public ones, and the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

CHAINS = {"size": 2, "warmup": 2, "num_steps": 2, "longest": 20}


@pytest.fixture(scope="session")
def tiny():
    """Options under which `auto` takes a few steps."""
    return ["--steps", "2", *(word for name, value in CHAINS.items() for word in ("--set", f"{name}={value}"))]


@pytest.fixture(scope="session")
def benchmark():
    """`benchmark("uci", …)` runs `python -m benchmarks uci …`; anything but a clean exit is an error."""

    def call(*args):
        result = CliRunner().invoke(app, [*map(str, args)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (folder / "uci_regression").mkdir()
    for name, units in (("yacht", 1.0), ("energy", 1000.0)):  # the same rows in other units
        own = np.random.default_rng(1)
        x = own.normal(size=(40, 3)) * [1, 10, 100]
        y = units * (np.sin(x[:, 0]) + 0.1 * x[:, 1] + 0.2 * own.normal(size=40) + 5)
        order = np.array([own.permutation(40) for _ in range(3)])
        np.savez(folder / "uci_regression" / f"{name}.npz", X=x, y=y, train_idx=order[:, :36], test_idx=order[:, 36:])
    (folder / "airfoil").mkdir()
    np.savez(folder / "airfoil" / "airfoil.npz", data=rng.normal(size=(60, 6)))
    for name in ("mnist", "fashion_mnist"):
        (folder / name).mkdir()
        images = {
            f"x_{part}": rng.integers(256, size=(n, 28, 28)).astype(np.uint8)
            for part, n in (("train", 24), ("test", 6))
        }
        labels = {f"y_{part}": np.arange(n) % 10 for part, n in (("train", 24), ("test", 6))}
        np.savez(folder / name / f"{name}.npz", **images, **labels)
    return folder
