"""The work itself, the same for every library: sizes, settings and synthetic data. Needs numpy only."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Sizes:
    """How much work a case does; ``Sizes().quick()`` is the same shape of work, only short."""

    inputs: int = 8
    # mean-field VI: MLP 8-50-1, relu
    num_data: int = 1000
    batch_size: int = 32
    hidden: int = 50
    learning_rate: float = 1e-3
    steps: int = 40_000
    eager_steps: int = 500  # for libraries that dispatch every step from Python
    # independent fits
    fits: int = 20
    fits_timed_one_by_one: int = 5
    steps_per_fit: int = 2000
    # HMC, full batch, the same network
    chains: int = 4
    leapfrogs: int = 100
    step_size: float = 1e-3
    hmc_draws: int = 300
    # NUTS: MLP 8-10-1, tanh
    nuts_data: int = 500
    nuts_hidden: int = 10
    nuts_test_points: int = 50
    warmup: int = 500
    draws: int = 500
    # prediction: 784-100-10 classifier
    pixels: int = 784
    classes: int = 10
    predict_hidden: int = 100
    predict_inputs: int = 10_000
    predict_draws: int = 1000
    # deep ensemble: MLP 8-50-50-2, relu, heteroscedastic noise
    ensemble: int = 10
    ensemble_epochs: int = 100
    # stochastic-gradient samplers: 784-100-10 classifier, relu, one chain, every tenth draw kept
    image_rows: int = 10_000
    image_batch: int = 500
    image_steps: int = 2000
    image_thin: int = 10
    langevin_step: float = 1e-7
    hamiltonian_step: float = 1e-4
    hamiltonian_friction: float = 100.0
    repeats: int = 3

    @property
    def ensemble_steps(self) -> int:
        """Steps of one member."""
        return self.ensemble_epochs * -(-self.num_data // self.batch_size)

    def quick(self) -> "Sizes":
        """A few steps of everything: proves that a case runs, measures nothing."""
        return replace(
            self,
            steps=200,
            eager_steps=20,
            fits=4,
            fits_timed_one_by_one=2,
            steps_per_fit=100,
            hmc_draws=4,
            warmup=20,
            draws=10,
            predict_inputs=200,
            predict_draws=20,
            ensemble=3,
            ensemble_epochs=2,
            image_steps=20,
            repeats=2,
        )


def regression(sizes: Sizes, rows: int | None = None, seed: int = 0) -> tuple[Floats, Floats]:
    """Inputs [n, 8] and targets [n]: a sine of the first input with noise 0.1."""
    rng = np.random.default_rng(seed)
    n = sizes.num_data if rows is None else rows
    x = rng.standard_normal((n, sizes.inputs), dtype=np.float32)
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(n, dtype=np.float32)
    return x, y.astype(np.float32)


def nuts_regression(sizes: Sizes) -> tuple[Floats, Floats, Floats]:
    """Training inputs and targets, and the test inputs where f(x) is followed."""
    x, y = regression(sizes, sizes.nuts_data + sizes.nuts_test_points)
    return x[: sizes.nuts_data], y[: sizes.nuts_data], x[sizes.nuts_data :]


def images(sizes: Sizes, rows: int, seed: int = 0) -> tuple[Floats, NDArray[np.int32]]:
    """Uniform pixels [n, 784] with random class labels."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, sizes.pixels), dtype=np.float32)
    return x, rng.integers(0, sizes.classes, rows).astype(np.int32)


def image_weights(sizes: Sizes, seed: int = 0) -> dict[str, Floats]:
    """Weights of the 784-100-10 net."""
    rng = np.random.default_rng(seed)
    widths = (sizes.pixels, sizes.predict_hidden, sizes.classes)
    first, second = (rng.standard_normal((a, b), dtype=np.float32) / a**0.5 for a, b in pairwise(widths))
    return {
        "first": first.astype(np.float32),
        "first_bias": np.zeros(widths[1], np.float32),
        "second": second.astype(np.float32),
        "second_bias": np.zeros(widths[2], np.float32),
    }


def start_weights(sizes: Sizes, seed: int = 0) -> dict[str, Any]:
    """Weights of the 8-50-1 net with unit-variance activations, and the log noise scale."""
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((sizes.inputs, sizes.hidden), dtype=np.float32) / sizes.inputs**0.5
    second = rng.standard_normal(sizes.hidden, dtype=np.float32) / sizes.hidden**0.5
    return {
        "first": first.astype(np.float32),
        "first_bias": np.zeros(sizes.hidden, np.float32),
        "second": second.astype(np.float32),
        "second_bias": np.zeros((), np.float32),
        "log_noise": np.asarray(-1.0, np.float32),
    }
