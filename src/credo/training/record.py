"""What a fit leaves behind while it runs: metrics of every step and the draws that are kept."""

from typing import Any

import jax
import numpy as np

PyTree = Any


class Record:
    """Metrics [member, step] and draws [member, draw, ...] of one phase, in pieces as blocks deliver them."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, np.ndarray]] = []
        self.draws: list[list[np.ndarray]] = []
        self.treedef: Any = None
        self._saved = 0

    def add(self, metrics: dict[str, Any], draws: PyTree, num: int, kept: int, members: int) -> None:
        """Take `num` steps and `kept` draws of the first `members` members from a block's buffers."""
        self.metrics.append({k: np.asarray(v)[:members, :num] for k, v in metrics.items()})
        leaves, self.treedef = jax.tree.flatten(draws)
        # Slicing on the host: a slice on the device would compile a program for every length.
        self.draws.append([np.array(np.asarray(x)[:members, :kept]) for x in leaves])

    def clear(self) -> None:
        """Forget everything: the phase starts again."""
        self.metrics, self.draws, self._saved = [], [], 0

    def trace(self) -> dict[str, np.ndarray]:
        """Metrics over all steps so far [member, step]."""
        if not self.metrics:
            return {}
        return {k: np.concatenate([m[k] for m in self.metrics], axis=1) for k in self.metrics[0]}

    def all_draws(self) -> PyTree:
        """Draws so far, or None where none are kept."""
        if not self.draws or not self.draws[0]:
            return None
        return jax.tree.unflatten(self.treedef, [np.concatenate(x, axis=1) for x in zip(*self.draws)])

    def unsaved(self) -> dict[str, np.ndarray]:
        """The arrays that came since the last call, under names that `restore` reads."""
        new = slice(self._saved, len(self.metrics))
        metrics, draws = self.metrics[new], self.draws[new]
        self._saved = len(self.metrics)
        if not metrics:
            return {}
        arrays = {f"metric/{k}": np.concatenate([m[k] for m in metrics], axis=1) for k in metrics[0]}
        return arrays | {f"draw/{i}": np.concatenate(x, axis=1) for i, x in enumerate(zip(*draws))}

    def restore(self, arrays: dict[str, np.ndarray], treedef: Any) -> None:
        """Take back a stretch that `unsaved` gave."""
        self.metrics.append({k.removeprefix("metric/"): v for k, v in arrays.items() if k.startswith("metric/")})
        count = sum(k.startswith("draw/") for k in arrays)
        self.draws.append([arrays[f"draw/{i}"] for i in range(count)])
        self.treedef = treedef
        self._saved = len(self.metrics)
