"""Settings that the UCI study tries for each method: the best in cross-validation of the training rows is taken."""

from typing import Any, NamedTuple


class Choice(NamedTuple):
    """One setting of a method: its own settings, the model's, and how long it runs."""

    settings: tuple[tuple[str, Any], ...] = ()
    scale: float = 2.0  # of the fan-in prior
    likelihood: str = "gaussian"
    noise: float | str = "learned"
    steps: int | None = None
    batch_size: int | None = None
    widths: tuple[int, ...] = (50,)
    activation: str = "relu"
    floor: float = 1e-3  # of heteroscedastic noise, in standard deviations of the target


GRID: dict[str, list[Choice]] = {
    "map": [Choice(scale=s) for s in (0.5, 1.0, 2.0, 4.0)],
    "bayes_by_backprop": [Choice(scale=s, steps=n) for s in (1.0, 2.0, 4.0) for n in (20_000, 60_000)],
    "deep_ensemble": [
        *(
            Choice((("adversarial", 0.01),), likelihood="heteroscedastic", steps=n, batch_size=b)
            for b, n in ((32, 400), (32, 800), (32, 1500), (None, 1500), (None, 5000))
        ),
        *(
            Choice(likelihood="heteroscedastic", steps=n, batch_size=b)
            for b, n in ((32, 1500), (32, 5000), (None, 400))
        ),
        *(Choice(scale=s, steps=5000) for s in (0.5, 1.0, 2.0)),
    ],
    "mc_dropout": [
        *(Choice((("rate", r),), 16.0, steps=60_000) for r in (0.005, 0.02, 0.05)),
        *(Choice((("rate", r),), 4.0, "student_t", steps=20_000) for r in (0.05, 0.1, 0.2)),
    ],
    "laplace": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "last_layer": [Choice(scale=s) for s in (0.25, 0.5, 1.0, 2.0)],
    "swag": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    "ivon": [Choice(scale=s) for s in (1.0, 2.0, 4.0)],
    # One configuration for all sets, that of `credo.tables.model`: nothing is chosen. Some targets lie on a grid, which
    # invites spikes: no noise below a hundredth of the target's standard deviation.
    "ensemble_chains": [
        Choice(
            scale=3.0, likelihood="heteroscedastic", batch_size=128, widths=(32, 32, 32), activation="tanh", floor=0.01
        )
    ],
}
