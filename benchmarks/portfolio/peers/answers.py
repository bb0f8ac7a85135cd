"""What a rival says about new rows: a normal density for each, or probabilities of classes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .split import Split

LEAST = 1e-6  # of the targets' standard deviation: no noise is below it
Answer = dict[str, np.ndarray]


def normal(mean: Any, std: Any, split: Split) -> Answer:
    """N(mean, std²) at each row."""
    mean = np.asarray(mean, np.float64).reshape(-1)
    std = np.maximum(np.broadcast_to(np.asarray(std, np.float64), mean.shape), LEAST * split.y.std())
    return {"mean": mean, "std": std}


def spread(residuals: Any) -> float:
    """The noise that residuals of held-out rows tell, √(Σ r²/n)."""
    return float(np.sqrt(np.mean(np.square(residuals))))


def probabilities(probs: Any, classes: Any, split: Split) -> Answer:
    """Probabilities of all classes; those that a model has not seen have none."""
    columns = np.zeros((len(split.new), int(split.y.max()) + 1))
    columns[:, np.asarray(classes).astype(int)] = probs
    return {"probs": columns}


def with_held_out_noise(predict: Callable[[Any], Any], new: Any, held: Any, truth: np.ndarray, split: Split) -> Answer:
    """A point model with the noise of held-out residuals."""
    return normal(predict(new), spread(truth - np.asarray(predict(held)).reshape(-1)), split)
