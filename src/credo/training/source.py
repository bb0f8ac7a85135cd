"""Data for the loop: checked, padded to a bucket, on the device or streamed from the host."""

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch, bucket, pad_rows, pad_weights
from credo.core.model import Model
from credo.core.numeric import host_arrays, host_floats, host_targets, is_mapped
from credo.errors import InputError
from credo.training.arguments import phase_keys
from credo.training.batches import Order, random_rows, sweep_rows

RANDOM_ROWS = jax.jit(random_rows, static_argnums=2)


class Source:
    """The training data of one fit: host arrays, their sizes, and how the loop reads them."""

    def __init__(self, model: Model, data: Any, stream: bool | None = None, capacity: int | None = None):
        inputs, targets, weight = _split(data)
        self.inputs = host_arrays(inputs)
        self.targets = host_targets(model.likelihood, targets)
        self.target_shape = tuple(np.shape(targets)[1:])
        self.num_rows = self.num_given = len(self.targets)
        self.mask: np.ndarray | None = None  # which of the given rows have weight; None: all
        self._check_lengths()
        self.capacity = capacity or 0
        self.weight = _weights(weight, self.num_rows)
        if (self.weight == 0).any():
            self._select(self.weight > 0)
        leaves = jax.tree.leaves(self.inputs)
        self.bytes = sum(x.nbytes for x in [*leaves, self.targets])
        mapped = any(is_mapped(x) for x in leaves)
        self.streamed = (mapped or self.bytes > _device_room()) if stream is None else stream

    def _check_lengths(self) -> None:
        if 0 in self.targets.shape[1:]:
            raise InputError(f"Targets have no columns: their shape is {list(self.targets.shape)}.")
        if self.num_rows == 0:
            raise InputError("There are no rows to learn from: inputs and targets are empty.")
        for x in jax.tree.leaves(self.inputs):
            if x.ndim < 2:
                raise InputError(
                    f"Inputs must have shape [rows, features], got {list(x.shape)}; reshape with x[:, None]."
                )
            if 0 in x.shape[1:]:
                raise InputError(f"Inputs have no columns: their shape is {list(x.shape)}.")
            if len(x) != self.num_rows:
                raise InputError(f"Inputs have {len(x)} rows but targets have {self.num_rows}; they must agree.")

    def _select(self, mask: np.ndarray) -> None:
        self.mask = mask
        self.inputs = jax.tree.map(lambda x: x[mask], self.inputs)
        self.targets, self.weight = self.targets[mask], self.weight[mask]
        self.num_rows = len(self.targets)

    def on_device(self, sharding: Any = None) -> Batch:
        """All rows, padded to a bucket with rows that weigh nothing; only the first rows where data is streamed."""
        rows = min(self.num_rows, 1024) if self.streamed else self.num_rows
        length = bucket(rows if self.streamed else max(rows, self.capacity))
        arrays = jax.tree.map(lambda x: pad_rows(np.asarray(x[:rows]), length), self.inputs)
        batch = Batch(
            arrays, pad_rows(self.targets[:rows], length), pad_weights(self.weight[:rows], length),
            np.float32(self.num_rows),
        )  # fmt: skip
        return jax.device_put(batch, sharding)

    def stream(
        self, kind: str, keys: jax.Array, number: int, start: int, num: int, capacity: int, batch_size: int, plan: Order
    ) -> Batch:
        """The batches of steps start … start + num of the phase with this number, for every member
        [member, capacity, M, ...], read on the host."""
        steps = jnp.minimum(start + jnp.arange(capacity), start + max(num, 1) - 1)
        batch_keys = jax.vmap(lambda k: phase_keys(k, number)[1])(keys)
        if kind == "random":
            pairs = [RANDOM_ROWS(k, steps, batch_size, plan) for k in batch_keys]
        else:
            pairs = [sweep_rows(steps, batch_size, plan)] * len(batch_keys)
        rows, valid = (np.stack([np.asarray(p[i]) for p in pairs]) for i in (0, 1))
        weight = np.where(valid, self.weight[rows], 0.0).astype(np.float32)
        inputs = jax.tree.map(lambda x: np.asarray(x[rows.ravel()]).reshape(*rows.shape, *x.shape[1:]), self.inputs)
        num_data = np.full(rows.shape[:2], self.num_rows, np.float32)
        return Batch(inputs, self.targets[rows], weight, num_data, rows)


def _split(data: Any) -> tuple[Any, Any, Any]:
    if isinstance(data, Batch):
        return data.inputs, data.targets, data.weight
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise InputError("Data must be a pair (inputs, targets) or a triple (inputs, targets, weights).")
    return data[0], data[1], data[2] if len(data) == 3 else None


def _weights(weight: Any, rows: int) -> np.ndarray:
    if weight is None:
        return np.ones(rows, np.float32)
    array = host_floats(weight, "Weights").astype(np.float32)
    if array.shape != (rows,) or not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise InputError(f"Weights must be {rows} finite numbers of at least 0, not all 0.")
    return array


def _device_room() -> float:
    """Bytes that data may take on the device before it is streamed: a quarter of its memory."""
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return 0.25 * stats["bytes_limit"]
    return 0.25 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
