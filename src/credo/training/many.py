"""Fits of many data sets at once, as one compiled program: simulation studies and dispersed chains."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from credo.core.batch import Batch
from credo.core.method import Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.numeric import host_array, host_arrays
from credo.core.programs import tidy
from credo.core.tree import num_bytes, take
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.memory import memory_explained
from credo.methods.combine import stages
from credo.training.arguments import numbers, precision
from credo.training.batches import order
from credo.training.block import BlockLayout, Carry, noise_bytes, plan_sizes, run_member, step_shapes

Use = Callable[[jax.Array, Model, Any, PyTree], PyTree]


class StudyLayout(NamedTuple):
    """The structure of a study (all static).

    use: `use(key, model, posterior, extra)` turns each posterior into what is kept of it, inside the program.
    """

    use: Use
    num_rows: int
    steps: int | None
    thin: int
    group: int  # fits that run side by side, for methods whose members may run in lock-step
    batch_size: int | None  # rows of a step, None: all of them


def fit_many(
    key: jax.Array,
    method: Method,
    model: Model,
    data: Batch,
    use: Use,
    *,
    extra: PyTree = None,
    start: Variables | None = None,
    steps: int | None = None,
    thin: int = 1,
    group: int = 64,
    batch_size: int | None = None,
) -> PyTree:
    """Fit a method to each of S data sets of equal size, and keep what `use` makes of each posterior.

    The fits run on all devices; progress, retries and checkpoints are `credo.fit`'s alone.

    Args:
        key: a JAX key.
        method, model: as for `credo.fit`.
        data: a Batch whose arrays have a leading axis of length S.
        use: `use(key, model, posterior, extra)`, a pure function defined at the top of a module.
        extra: a tree with leading axis S, handed to `use` fit by fit.
        start: Variables with leading axis S; None starts afresh.
        steps, thin: as for `credo.fit`.
        group: fits that run side by side where the method allows it.
        batch_size: rows of a step of methods that take random batches; None: every step sees all rows.
    """
    if steps is None and method.parts:
        steps = method.default_steps
    parts = stages(method)
    prepared = [(numbers(part), numbers(part.prepare(model)[0])) for part in parts]
    data = data._replace(inputs=host_arrays(data.inputs), targets=host_array(data.targets, "Targets", finite=False))
    count, rows = data.targets.shape[:2]
    devices = jax.local_devices()[: max(1, min(len(jax.local_devices()), count))]
    padded = -(-count // len(devices)) * len(devices)
    index = np.minimum(np.arange(padded), count - 1)
    pad = partial(jax.tree.map, lambda x: np.asarray(x)[index])
    keys = jax.random.key_data(jax.random.split(key, padded))
    study = StudyLayout(use, rows, steps, thin, group, None if batch_size is None else min(batch_size, rows))
    mesh = Mesh(np.array(devices), ("fit",))
    arguments = (prepared, (keys, pad(data), pad(start), pad(extra)))
    double = next((part for part in parts if part.precision == "float64"), method)
    with (
        memory_explained(),
        precision(double),
    ):  # one program, hence one precision: arrays of single precision stay what they are
        results = _run(study, mesh, method.members, *arguments)
    tidy()
    return jax.tree.map(lambda x: np.asarray(x)[:count], results)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _run(study: StudyLayout, mesh: Mesh, members: int, prepared: Any, per_fit: PyTree) -> PyTree:
    fit_one = partial(_fit, study, members)
    lockstep = all(method.lockstep for method, _ in prepared)

    def local(prepared: Any, per_fit: PyTree) -> PyTree:
        return jax.lax.map(lambda x: fit_one(prepared, *x), per_fit, batch_size=study.group if lockstep else None)

    mapped = jax.shard_map(local, mesh=mesh, in_specs=(Spec(), Spec("fit")), out_specs=Spec("fit"), check_vma=False)
    return mapped(prepared, per_fit)


def _fit(
    study: StudyLayout,
    members: int,
    prepared: Any,
    raw_key: jax.Array,
    data: Batch,
    start: Variables | None,
    extra: PyTree,
) -> PyTree:
    key_fit, key_use = jax.random.split(jax.random.wrap_key_data(raw_key))
    if start is not None:
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (members, *x.shape)), start)
    posterior, model = None, None
    for i, (method, model) in enumerate(prepared):
        keys = jax.random.split(jax.random.fold_in(key_fit, i), members)
        steps = study.steps if i + 1 == len(prepared) and study.steps is not None else method.default_steps
        state, draws = _stage(study, method, model, data, keys, start, steps)
        start = None
        if i + 1 < len(prepared):
            start = jax.vmap(partial(method.point, model))(state)
        posterior = method.posterior(model, state, draws)
    return study.use(key_use, model, posterior, extra)  # type: ignore[arg-type]


def _stage(
    study: StudyLayout, method: Method, model: Model, data: Batch, keys: jax.Array, start: Variables | None, steps: int
) -> tuple[PyTree, PyTree]:
    """State and draws of all members after one method has run."""
    phases = _merged([_without_sweeps(p, study.batch_size) for p in method.phases(study.num_rows, steps)])

    def member(pair: tuple[jax.Array, Variables | None]) -> tuple[PyTree, PyTree]:
        key_init, key_method, key_run = jax.random.split(pair[0], 3)
        variables = model.init(key_init, data) if pair[1] is None else pair[1]
        state, draws = method.init(key_method, model, variables, data), None
        for i, (phase, skipped) in enumerate(phases):
            state, all_draws = _phase(study, method, model, phase, i, data, Carry(jax.random.key_data(key_run), state))
            first = -(-skipped // study.thin)
            draws = jax.tree.map(lambda x, f=first: x[f:], all_draws)
        return state, draws

    if len(keys) == 1:
        return jax.tree.map(lambda x: x[None], member(take((keys, start), 0)))
    return jax.vmap(member)((keys, start)) if method.lockstep else jax.lax.map(member, (keys, start))


def _phase(
    study: StudyLayout, method: Method, model: Model, phase: Phase, number: int, data: Batch, carry: Carry
) -> tuple[PyTree, PyTree]:
    size = study.batch_size or study.num_rows
    plan = order(study.num_rows, size)
    noise, info = step_shapes(size, method, model, phase, data, carry)
    steps = int(phase.steps)
    rows = jax.tree.leaves((data.inputs, data.targets))
    gathered = sum(num_bytes(x) // x.shape[0] for x in rows) * size if phase.batch == "random" else 0
    bulk, _ = plan_sizes(noise_bytes(noise) + gathered, 0, 1)
    leaves, treedef = jax.tree.flatten(info.draw)
    draw = (treedef, tuple((x.shape, x.dtype) for x in leaves)) if phase.keeps_draws else None
    unit = bulk * study.thin
    capacity = -(-steps // unit) * unit
    layout = BlockLayout(
        size, bulk, capacity, study.thin, 1, "one", method.lockstep, None, False, tuple(sorted(info.metrics)), draw
    )
    index, first, num = (jnp.asarray(x, jnp.int32) for x in (number, 0, steps))
    output = run_member(layout, method, model, phase, plan, index, first, num, data, carry)
    draws = jax.tree.map(lambda x: x[: steps // study.thin], output.draws)
    return output.carry.state, draws


def _without_sweeps(phase: Phase, batch_size: int | None) -> Phase:
    """One step on all rows is a whole sweep; so are random batches of all rows."""
    if phase.batch == "sweep":
        return dataclasses.replace(phase, batch="full", steps=1)
    full = phase.batch == "random" and batch_size is None
    return dataclasses.replace(phase, batch="full") if full else phase


def _merged(phases: list[Phase]) -> list[tuple[Phase, int]]:
    """(phase, steps whose draws are thrown away): phases that share a program run as one long phase, compiled once."""
    merged: list[tuple[Phase, int]] = []
    for phase in phases:
        previous = merged[-1][0] if merged else None
        if previous is None or phase.program is None or previous.name != phase.program:
            name = phase.program or phase.name
            merged.append((dataclasses.replace(phase, name=name), 0))
            continue
        if previous.keeps_draws:
            raise Refusal("Only the last phase of a shared program may keep draws.")
        joined = dataclasses.replace(phase, name=previous.name, steps=int(previous.steps) + int(phase.steps))
        merged[-1] = (joined, int(previous.steps) if phase.keeps_draws else 0)
    return merged
