"""A block: many steps of all members as one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.tree import all_finite, num_bytes, take
from credo.core.typing import PyTree
from credo.training.arguments import phase_keys
from credo.training.batches import Order, gather, random_rows, sweep_rows

BULK_BYTES = 2**21  # noise and batches of several steps are drawn at once, up to this much
BULK_STEPS = 256
BLOCK_STEPS = 8192  # steps of one call, at most
BLOCK_BYTES = 2**24  # draws of one call, at most


class Carry(NamedTuple):
    """What a member carries from block to block. Keys are raw data: they shard and save like any array."""

    key: jax.Array
    state: PyTree
    left_out: Any = None  # rows that the member does not see [rows on the device] bool; None: it sees all


class BlockLayout(NamedTuple):
    """The structure of a block program (all static)."""

    batch_size: int
    bulk: int  # steps whose noise and batches are drawn at once
    capacity: int  # steps of one call, at most; a multiple of `bulk` and `thin`
    thin: int
    members: int
    over: str  # "one", "vmap", "map" or "devices"
    lockstep: bool
    mesh: Mesh | None
    streamed: bool  # batches come from the host instead of being gathered on the device
    metrics: tuple[str, ...]  # names of a step's metrics
    draw: tuple[Any, tuple] | None  # structure and (shape, dtype) of the leaves of a draw, None where none is kept


class Output(NamedTuple):
    """What a block leaves: the new carry, metrics [member, capacity], draws [member, capacity / thin, ...]."""

    carry: Carry
    metrics: dict[str, jax.Array]
    draws: PyTree
    finite: jax.Array


def plan_sizes(step_bytes: int, draw_bytes: int, thin: int) -> tuple[int, int]:
    """(bulk, capacity) from the bytes of noise and rows that one step reads and of the draw that it stores."""
    bulk = 1
    while step_bytes and bulk < BULK_STEPS and 2 * bulk * step_bytes <= BULK_BYTES:
        bulk *= 2
    limit = max(1, BLOCK_BYTES // max(1, draw_bytes)) * thin if draw_bytes else BLOCK_STEPS
    unit = bulk * thin
    return bulk, max(1, min(BLOCK_STEPS, limit) // unit) * unit


def noise_bytes(noise: PyTree) -> int:
    """Bytes of a step's noise; keys are a few words and do not count."""
    return num_bytes([x for x in jax.tree.leaves(noise) if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)])


def _batches(batch_size: int, phase: Phase, data: Batch, plan: Order, key: jax.Array, steps: jax.Array) -> Batch | None:
    """The batches of these steps [s, M, ...], or None where every step sees the same rows."""
    if phase.batch == "random":
        rows, valid = random_rows(key, steps, batch_size, plan)
    elif phase.batch == "sweep":
        rows, valid = sweep_rows(steps, batch_size, plan)
    else:
        return None
    return gather(data, rows, valid)


# Each has its jit, hence is traced once for all fits of the same shapes: a second fit has its shapes at once, and the
# block program reuses the step that was traced to plan it.
@partial(jax.jit, inline=True)
def _step(
    method: Method, noise: PyTree, model: Model, phase: Phase, state: PyTree, batch: Batch
) -> tuple[PyTree, Info]:
    return method.step(noise, model, phase, state, batch)


@partial(jax.jit, static_argnames=("batch_size", "mesh"))
def _first_step(
    batch_size: int, mesh: Mesh | None, method: Method, model: Model, phase: Phase, data: Batch, carry: Carry
) -> tuple[PyTree, Info]:
    def member(shared: Any, carry: Carry) -> tuple[PyTree, Info]:
        method, model, phase, data = shared
        key = jax.random.wrap_key_data(carry.key)
        data = data.without(carry.left_out)
        noise = method.noise(key, model, phase, carry.state)
        if phase.batch in ("random", "sweep"):  # which rows these are does not change a shape
            data = gather(data, jnp.zeros(batch_size, jnp.int32), jnp.ones(batch_size, bool))
        return noise, _step(method, noise, model, phase, carry.state, data)[1]

    shared = (method, model, phase, data)
    if mesh is None:
        return member(shared, carry)
    # What is traced inside of a mesh is reused only inside of one.
    return jax.shard_map(member, mesh=mesh, in_specs=Spec(), out_specs=Spec(), check_vma=False)(shared, carry)


def one_member(carry: Carry) -> Carry:
    """Shapes of the carry of one member, from those of all."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype, weak_type=x.weak_type), carry)


def step_shapes(
    batch_size: int, method: Method, model: Model, phase: Phase, data: Batch, carry: Carry, mesh: Mesh | None = None
) -> tuple[PyTree, Info]:
    """Shapes of the noise and the info of one step of one member; `mesh`: over which members are spread."""
    return _first_step.eval_shape(batch_size, mesh, method, model, phase, data, carry)


def _buffers(layout: BlockLayout, members: tuple[int, ...] = ()) -> tuple[jax.Array, PyTree]:
    """Room for the metrics and the draws of a block."""
    metrics = jnp.zeros((*members, layout.capacity, len(layout.metrics)), jnp.float32)
    if layout.draw is None:
        return metrics, None
    shape = (*members, layout.capacity // layout.thin)
    return metrics, jax.tree.unflatten(layout.draw[0], [jnp.zeros((*shape, *s), d) for s, d in layout.draw[1]])


def run_member(
    layout: BlockLayout, method: Method, model: Model, phase: Phase, plan: Order, number: jax.Array, start: jax.Array,
    num: jax.Array, data: Batch, carry: Carry, buffers: Any = None,
) -> Output:  # fmt: skip
    """`num` steps of one member, from step `start` of phase `number`. Step s of a phase uses the same noise and
    rows however the steps are cut into blocks. `buffers` for metrics and draws are empty ones, or made here."""
    step_key, batch_key = phase_keys(carry.key, number)
    data = data if layout.streamed else data.without(carry.left_out)
    noise_of = jax.vmap(lambda k, s: method.noise(k, model, phase, s), (0, None))
    metrics, draws = _buffers(layout) if buffers is None else buffers

    def run_bulk(i: jax.Array, loop: tuple[PyTree, jax.Array, PyTree]) -> tuple[PyTree, jax.Array, PyTree]:
        done = i * layout.bulk
        steps = start + done + jnp.arange(layout.bulk)
        keys = jax.vmap(partial(jax.random.fold_in, step_key))(steps)
        noise = noise_of(keys, loop[0])
        if layout.streamed:
            batches = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, done, layout.bulk), data)
        else:
            batches = _batches(layout.batch_size, phase, data, plan, batch_key, steps)

        def take_step(j: Any, loop: tuple[PyTree, jax.Array, PyTree]) -> tuple[PyTree, jax.Array, PyTree]:
            state, metrics, draws = loop
            batch = data if batches is None else take(batches, j)
            state, info = _step(method, take(noise, j), model, phase, state, batch)
            row = jnp.stack([jnp.asarray(info.metrics[n], jnp.float32) for n in layout.metrics])
            metrics = jax.lax.dynamic_update_index_in_dim(metrics, row, done + j, 0)
            if draws is not None:  # the last draw of every `thin` stays
                slot = (done + j) // layout.thin
                draws = jax.tree.map(lambda b, x: jax.lax.dynamic_update_index_in_dim(b, x, slot, 0), draws, info.draw)
            return state, metrics, draws

        if layout.bulk == 1:  # without an inner loop the batch is used where it lies, not copied out of a stack of one
            return take_step(0, loop)
        return jax.lax.fori_loop(0, jnp.minimum(layout.bulk, num - done), take_step, loop)

    rounds = -(-num // layout.bulk)
    state, metrics, draws = jax.lax.fori_loop(0, rounds, run_bulk, (carry.state, metrics, draws))
    named = {name: metrics[:, i] for i, name in enumerate(layout.metrics)}
    return Output(carry._replace(state=state), named, draws, all_finite(state))


@partial(jax.jit, static_argnames="layout")
def run_block(
    layout: BlockLayout, method: Method, model: Model, phase: Phase, plan: Order, number: Any, start: Any, num: Any,
    data: Batch, carry: Carry,
) -> Output:  # fmt: skip
    """`num` ≤ capacity steps of every member. Members are the leading axis of `carry` (and of streamed data)."""
    shared = (method, model, phase, plan, number, start, num)

    def members(shared: Any, data: Batch, carry: Carry) -> Output:
        member: Any = partial(run_member, layout, *shared)

        if layout.over == "one":
            output = member(take(data, 0) if layout.streamed else data, take(carry, 0))
            return jax.tree.map(lambda x: x[None], output)
        if layout.lockstep and layout.over != "map":
            # A loop is batched once more for every round of values that turn out to be batched, so all are at once.
            buffers = _buffers(layout, (carry.key.shape[0],))
            return jax.vmap(member, (0 if layout.streamed else None, 0, 0))(data, carry, buffers)
        if layout.streamed:
            return jax.lax.map(lambda pair: member(*pair), (data, carry))
        return jax.lax.map(partial(member, data), carry)

    if layout.over != "devices":
        return members(shared, data, carry)
    axis = layout.mesh.axis_names[0]  # type: ignore[union-attr]
    specs = (Spec(), Spec(axis) if layout.streamed else Spec(), Spec(axis))
    mapped = jax.shard_map(members, mesh=layout.mesh, in_specs=specs, out_specs=Spec(axis), check_vma=False)
    return mapped(shared, data, carry)
