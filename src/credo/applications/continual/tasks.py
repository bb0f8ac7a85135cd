"""Tasks: rows to learn from and rows to be judged by, all of one shape."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.model import Model
from credo.core.numeric import host_arrays, host_targets
from credo.core.typing import PyTree
from credo.errors import InputError


class Task(NamedTuple):
    """One task: rows to learn from, and test rows that are only ever scored."""

    inputs: PyTree
    targets: Any
    test_inputs: PyTree = None
    test_targets: Any = None

    @property
    def num_rows(self) -> int:
        """Rows to learn from."""
        return len(np.asarray(self.targets))

    def rows(self, which: np.ndarray) -> tuple[PyTree, np.ndarray]:
        """Some of the rows to learn from."""
        return jax.tree.map(lambda x: x[which], self.inputs), np.asarray(self.targets)[which]


def check_tasks(model: Model, tasks: Sequence[Any]) -> list[Task]:
    """The tasks, or a sentence that names the first that does not fit the others or the likelihood."""
    if not tasks:
        raise InputError("There are no tasks to learn.")
    checked: list[Task] = []
    for number, arrays in enumerate(tasks):
        if not isinstance(arrays, tuple | list) or len(arrays) not in (2, 4):
            raise InputError(
                f"Task {number} must be (inputs, targets) or (inputs, targets, test inputs, test targets)."
            )
        task = Task(*arrays)
        task = task._replace(inputs=host_arrays(task.inputs, f"The inputs of task {number}"))
        pairs = [("", task.inputs, task.targets)]
        if task.test_targets is not None:
            pairs.append(("test ", task.test_inputs, task.test_targets))
        for part, inputs, targets in pairs:
            _same_shapes(checked[0].inputs if checked else task.inputs, inputs, f"The {part}inputs of task {number}")
            try:
                host_targets(model.likelihood, targets)
            except InputError as problem:
                raise InputError(f"The {part}targets of task {number} do not fit: {problem}") from None
        checked.append(task)
    return checked


def _same_shapes(first: PyTree, inputs: PyTree, name: str) -> None:
    shapes = [jax.tree.map(lambda x: tuple(np.shape(x)[1:]), tree) for tree in (first, inputs)]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"{name} have rows of shape {shapes[1]}, those of the first task {shapes[0]}; they must agree."
        )


def with_head(inputs: PyTree, head: int) -> PyTree:
    """Inputs as a network with several heads takes them, all rows of one head."""
    rows = len(jax.tree.leaves(inputs)[0])
    return {"inputs": inputs, "head": np.full((rows, 1), head, np.int32)}


def join_rows(parts: Sequence[tuple[PyTree, np.ndarray]]) -> tuple[PyTree, np.ndarray]:
    """Rows of several tasks one below the other."""
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)
