"""Gradients of a model timed on this machine, as chains run them: side by side, spread over its devices."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from credo.core.batch import Batch, bucket, pad_rows, pad_weights
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout
from credo.tables.auto.speed import BATCH, Speed
from credo.training.arguments import numbers
from credo.training.clock import COMPILING

ENOUGH = 0.04  # seconds that a count of gradients must take to be believed
MOST = 4096  # gradients


def measured(model: Model, data: Any, chains: int, clock: Callable[[], float] = time.perf_counter) -> Speed:
    """What a gradient of so many chains takes, compilation aside.

    Args:
        model: of the fit.
        data: (inputs, targets, weights), encoded.
        chains: how many.
        clock: seconds.
    """
    inputs, targets, weights = data
    targets, before = model.likelihood.prepare(np.asarray(targets)), COMPILING.seconds
    devices = jax.local_devices()
    mesh = Mesh(np.array(devices[: min(len(devices), chains)]), ("member",))
    keys = jax.random.key_data(jax.random.split(jax.random.key(0), -(-chains // mesh.size) * mesh.size))

    def seconds(count: int) -> float:
        length = bucket(count)
        rows = jax.tree.map(lambda x: pad_rows(np.asarray(x[:count], np.float32), length), inputs)
        mass = pad_weights(np.asarray(weights[:count], np.float32), length)
        batch = Batch(rows, pad_rows(targets[:count], length), mass, np.float32(count))
        return timed(lambda steps: jax.block_until_ready(_steps(mesh, numbers(model), batch, keys, steps)), clock)

    full = seconds(len(targets))
    batch = full if len(targets) <= 2 * BATCH else min(full, seconds(BATCH))
    return Speed(full, batch, chains, COMPILING.seconds - before)


def timed(run: Callable[[np.int32], Any], clock: Callable[[], float]) -> float:
    """Seconds of one of the steps that `run` takes so many of; the first call, which compiles, does not count."""
    run(np.int32(1))
    steps = 1
    while True:
        began = clock()
        run(np.int32(steps))
        taken = clock() - began
        if taken >= ENOUGH or steps >= MOST:
            return taken / steps
        steps *= 4


@partial(jax.jit, static_argnums=0)
def _steps(mesh: Mesh, model: Model, batch: Batch, keys: jax.Array, steps: Any) -> Any:
    def local(model: Model, batch: Batch, steps: Any, keys: jax.Array) -> Any:
        return jax.vmap(partial(_chain, model, batch, steps))(keys)

    specs = (Spec(), Spec(), Spec(), Spec("member"))
    mapped = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=Spec("member"), check_vma=False)
    return mapped(model, batch, steps, keys)


def _chain(model: Model, batch: Batch, steps: Any, key: jax.Array) -> Any:
    """Gradients one after another, of one chain."""
    variables = model.init(jax.random.wrap_key_data(key), batch)
    layout = Layout.of(variables.params)

    def loss(values: Any) -> jax.Array:
        return -model.log_joint(Variables(layout.unravel(values), variables.state), batch)[0]

    def step(_: Any, values: Any) -> Any:
        return jax.tree.map(lambda x, g: x - 1e-9 * g, values, jax.grad(loss)(values))

    return jax.lax.fori_loop(0, steps, step, layout.ravel(variables.params))
