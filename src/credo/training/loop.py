"""The host's side of a fit: blocks one after another, with progress, retries, checkpoints and Ctrl-C."""

import dataclasses
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.batch import Batch
from credo.core.method import Method, Phase, main_phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import num_bytes
from credo.errors import InputError
from credo.memory import check_room
from credo.training.arguments import member_keys, numbers, precision, shared_program
from credo.training.batches import Order, order
from credo.training.block import BlockLayout, Carry, noise_bytes, one_member, plan_sizes, run_block, step_shapes
from credo.training.checkpoint import Checkpoint, Saved
from credo.training.clock import COMPILING
from credo.training.host import Host
from credo.training.interrupt import Interrupt
from credo.training.placement import Placement, device_room
from credo.training.progress import Progress
from credo.training.record import Record
from credo.training.source import Source
from credo.training.starts import start_members

BLOCK_SECONDS = 0.3  # aim of one block: progress moves and Ctrl-C answers within about this time
RETRIES = 8
BUDGET_SPENT = "The budget"  # what a note on a budget that was too short begins with
FEW_DRAWS = 25  # of a chain, below which a note says that the budget was too short
STREAM_BYTES = 2**26  # batches of one block that are read from the host at once


class Event(NamedTuple):
    """What callbacks see after every block; a callback that returns True ends the fit."""

    method: str
    phase: str
    step: int
    steps: int
    metrics: dict[str, float]
    seconds: float


@jax.jit
def points(method: Method, model: Model, state: Any) -> Variables:
    """The best single point of every member, as one program."""
    return jax.vmap(partial(method.point, model))(state)


@dataclasses.dataclass
class Loop:
    """One fit under way. `stages` are (method, model) pairs that run one after another on the same members."""

    stages: list[tuple[Method, Model]]
    source: Source
    placement: Placement
    key: jax.Array
    steps: int | None
    epochs: float | None
    budget: float | None
    batch_size: int
    thin: int
    start: Any  # Variables or a posterior, with the member axis; None: fresh
    callbacks: tuple[Callable[[Event], Any], ...]
    checkpoint: Checkpoint | None
    host: Host
    shown: bool | None = None
    left_out: np.ndarray | None = None  # rows that each member does not see [member, row]; None: all see all

    def __post_init__(self) -> None:
        self.records: dict[tuple[int, int], Record] = {}
        self.carry: Any = None
        self._began = time.perf_counter()
        self._last_save = self._began
        self._data: Batch | None = None
        self._compiled = COMPILING.seconds
        self._phase_start: Any = None  # the carry at step 0 of the phase
        self._start_saved: tuple[int, int] | None = None  # the phase whose start the checkpoint holds

    # ------------------------------------------------------------------ set-up
    def data(self) -> Batch:
        """The rows on the device (shared by all members)."""
        if self._data is None:
            self._data = self.source.on_device(self.placement.shared)
        return self._data

    def method(self, stage: int) -> Method:
        """The method of a stage, with the step size lowered so far. Its numbers are traced, hence arrays."""
        method: Method | None = self.stages[stage][0]
        for _ in range(self.host.lowered):
            method = method.smaller_step() if method is not None else None
        return numbers(method)

    def phases(self, stage: int) -> tuple[Phase, ...]:
        """Phases of a stage; only the last stage takes the user's number of steps."""
        method = self.stages[stage][0]
        last = stage == len(self.stages) - 1
        steps = self.steps if last and self.steps is not None else method.default_steps
        phases = method.phases(self.source.num_rows, steps)
        if last and self.epochs is not None:
            main = main_phase(phases)
            if phases[main].batch != "random":
                raise InputError("epochs counts passes over minibatches; this method uses all rows: give steps.")
            count = max(1, round(self.epochs * -(-self.source.num_rows // self.batch_size)))
            counted = dataclasses.replace(phases[main], steps=count)
            phases = (*phases[:main], counted, *phases[main + 1 :])
        # Only here is the batch size known, and with it the length of a sweep.
        sweep = -(-self.source.num_rows // self.batch_size)
        phases = tuple(dataclasses.replace(p, steps=sweep) if p.batch == "sweep" else p for p in phases)
        full = self.batch_size >= self.source.num_rows and not self.source.streamed
        return tuple(
            dataclasses.replace(p, batch="full") if full and p.batch in ("random", "sweep") else p for p in phases
        )

    @cached_property
    def _keys(self) -> np.ndarray:
        """Raw keys [stage, member]."""
        return np.asarray(member_keys(self.key, len(self.stages), self.placement.padded))

    def begin_stage(self) -> None:
        """Put every member at its start: fresh, given, or where the stage before ended."""
        stage = self.host.stage
        method, model = self.method(stage), numbers(self.stages[stage][1])
        start = self.start
        if stage > 0:
            before, before_model = self.method(stage - 1), numbers(self.stages[stage - 1][1])
            with precision(before):
                start = points(before, before_model, self.carry.state)
        keys = jax.ShapeDtypeStruct((self.placement.padded, 2), np.uint32)  # shapes before anything is allocated
        rest = (self.data(), start, self._left_out())
        with precision(method):
            # What a step takes lies beside what it gives. An allocator that cannot have so much may end the process.
            check_room(2 * num_bytes(start_members.eval_shape(method, model, keys, *rest)), device_room())
            carry = start_members(method, model, self._keys[stage], *rest)
            self.carry = jax.device_put(carry, self.placement.by_member)

    def _left_out(self) -> np.ndarray | None:
        """The rows that each member does not see, with padded members and rows, as on the device."""
        if self.left_out is None:
            return None
        index = np.arange(self.placement.padded) % len(self.left_out)
        missing = self.data().weight.shape[0] - self.left_out.shape[1]
        return np.pad(self.left_out[index], ((0, 0), (0, missing)))

    def state(self) -> Any:
        """The state of every member, without the padded ones."""
        members, padded = self.placement.members, self.placement.padded
        return self.carry.state if members == padded else jax.tree.map(lambda x: x[:members], self.carry.state)

    # ------------------------------------------------------------------ running
    def run(self) -> None:
        """Run to the end, to the end of the budget, or until it is stopped."""
        host = self.host
        with Progress(self.shown) as bar, Interrupt() as interrupt:
            if self.carry is None:
                self.begin_stage()
            while host.stage < len(self.stages):
                phases = self.phases(host.stage)
                while host.phase < len(phases):
                    with precision(self.stages[host.stage][0]):
                        self._run_phase(phases, bar, interrupt)
                    if host.outcome != "running":
                        return
                    host.phase, host.step, host.steps = host.phase + 1, 0, 0
                if host.stage + 1 == len(self.stages):
                    break
                host.stage, host.phase, host.lowered = host.stage + 1, 0, 0
                self.begin_stage()
        host.outcome = "finished"

    def _layout(self, method: Method, model: Model, phase: Phase) -> BlockLayout:
        if self.source.streamed and phase.batch == "full":
            raise InputError("This method needs all rows on the device at once, and they do not fit: use minibatches.")
        placement, data = self.placement, self.data()
        member = one_member(self.carry)
        noise, info = step_shapes(self.batch_size, method, model, phase, data, member, placement.mesh)
        rows = jax.tree.leaves((data.inputs, data.targets))
        batched = phase.batch in ("random", "sweep")
        gathered = sum(num_bytes(x) // x.shape[0] for x in rows) * self.batch_size if batched else 0
        thin = self.thin if phase.keeps_draws else 1
        draw_bytes = num_bytes(info.draw) * placement.padded if phase.keeps_draws else 0
        check_room(noise_bytes(noise) + gathered + draw_bytes, device_room())
        bulk, capacity = plan_sizes(noise_bytes(noise) + gathered, draw_bytes, thin)
        streamed = self.source.streamed and batched
        if streamed:
            capacity = max(bulk, min(capacity, STREAM_BYTES // max(1, gathered * placement.padded) // bulk * bulk))
        leaves, treedef = jax.tree.flatten(info.draw)
        draw = (treedef, tuple((x.shape, x.dtype) for x in leaves)) if phase.keeps_draws else None
        return BlockLayout(
            self.batch_size if batched else 0, bulk, capacity, thin, placement.padded, placement.over, method.lockstep,
            placement.mesh, streamed, tuple(sorted(info.metrics)), draw,
        )  # fmt: skip

    def _run_phase(self, phases: tuple[Phase, ...], bar: Progress, interrupt: Interrupt) -> None:
        host, phase, name = self.host, phases[self.host.phase], phases[self.host.phase].name
        method, model = self.method(host.stage), numbers(self.stages[host.stage][1])
        counted = host.stage == len(self.stages) - 1 and host.phase == main_phase(phases)
        timed, longest = self.budget is not None and counted, int(phase.steps)
        capped = None if counted or self.budget is None or phase.share is None else phase.share * self.budget
        host.steps = host.steps or (10**9 if timed else int(phase.steps))
        plan = order(self.source.num_rows, self.batch_size)
        keeps, phase = phase.keeps_draws, numbers(shared_program(phase, phases))
        layout = self._layout(method, model, phase)
        path = None if self.checkpoint is None else self.checkpoint.draws(host.stage, host.phase)
        record = self.records.setdefault((host.stage, host.phase), Record(path))
        unit, rate = layout.bulk * layout.thin, 0.0
        num = unit
        if host.step == 0:
            self._phase_start, host.before = self.carry, self._elapsed() - self._compiling()
        bar.phase(name, host.step, host.steps)
        while host.step < host.steps:
            num = min(num, host.steps - host.step, layout.capacity)
            sized = dataclasses.replace(phase, steps=np.int32(host.steps))
            data = self._block_data(layout, phase, plan, num)
            before, compiled = time.perf_counter(), COMPILING.seconds
            position = (np.int32(x) for x in (host.phase, host.step, num))
            output = run_block(layout, method, model, sized, plan, *position, data, self.carry)
            interrupt.nothing_to_lose = False
            finite = bool(np.asarray(output.finite)[: self.placement.members].all())
            wall = time.perf_counter() - before
            seconds = max(wall - (COMPILING.seconds - compiled), 0.01 * wall)
            if not finite:
                method = self._lower(name)
                if host.outcome != "running":
                    return
                continue
            num_draws = -(-num // layout.thin) if keeps else 0
            if not record.add(output.metrics, output.draws if keeps else None, num, num_draws, self.placement.members):
                host.outcome, host.notes = "stopped by the disk", [*host.notes, record.trouble]
                return
            self.carry = output.carry
            host.step += num
            ended = phase.until is not None and record.end_at(phase.until)
            if ended:
                host.steps = host.step = host.step - ended + 1
            rate = num / seconds if rate else 0.6 * num / seconds  # the first block warms up
            elapsed = self._elapsed()
            if timed and self.budget is not None and not ended:
                remaining = self.budget - (elapsed - self._compiling())
                host.steps = host.step + max(0, int(remaining * rate) // unit * unit) if remaining > 0 else host.step
            if capped is not None and not ended:
                remaining = capped - (elapsed - self._compiling())
                host.steps = min(longest, host.step + max(0, int(remaining * rate) // unit * unit))
            means = {k: float(np.mean(v)) for k, v in record.metrics[-1].items()}
            bar.update(host.step, host.steps, rate, means)
            event = Event(type(method).__name__, name, host.step, host.steps, means, elapsed)
            stops = [call(event) for call in self.callbacks]  # every callback is called
            if any(stops):
                host.outcome = "stopped by a callback"
            elif interrupt.requested:
                host.outcome = "interrupted"
            self._maybe_save(host.outcome == "interrupted")
            if host.outcome != "running":
                return
            num = max(unit, int(rate * BLOCK_SECONDS) // unit * unit)
        if timed and keeps and -(-host.step // layout.thin) < FEW_DRAWS:
            host.notes.append(self._too_short(-(-host.step // layout.thin)))

    def _too_short(self, draws: int) -> str:
        return (
            f"{BUDGET_SPENT} of {self.budget:g} s was spent when each chain had {draws} draw{'s' * (draws != 1)}: "
            f"{self.host.before:.1f} s had gone, compilation aside, before the first of them; give a larger budget or "
            "a shorter warm-up."
        )

    def _block_data(self, layout: BlockLayout, phase: Phase, plan: Order, num: int) -> Batch:
        if not layout.streamed:
            return self.data()
        batch = self.source.stream(
            phase.batch, self.carry.key, self.host.phase, self.host.step, num, layout.capacity, self.batch_size, plan
        )
        return jax.device_put(batch, self.placement.by_member)

    def _lower(self, phase: str) -> Method:
        """Go back to the start of the phase with a smaller step, or give up with a sentence.

        No later point would do: the length of blocks depends on the machine, and the last finite state may already be
        beyond rescue.
        """
        host = self.host
        smaller = self.stages[host.stage][0].smaller_step()
        if smaller is None or host.lowered >= RETRIES:
            host.outcome = "failed"
            host.notes.append(
                f"The {phase} phase turned non-finite and smaller steps did not help: check the scale "
                "of inputs and targets, and the prior."
            )
            return self.method(host.stage)
        host.lowered += 1
        self.carry, host.step = self._phase_start, 0
        self.records[host.stage, host.phase].clear()
        host.segments = [s for s in host.segments if not s.startswith(f"{host.stage}-{host.phase}-")]
        method = self.method(host.stage)
        value = vars(method).get(str(method.step_field))
        size = "" if value is None else f" to {float(value):.3g}"
        host.notes.append(
            f"The {phase} phase turned non-finite; it began again with {method.step_field or 'the step size'} "
            f"lowered{size}."
        )
        return method

    # ------------------------------------------------------------------ saving
    def _elapsed(self) -> float:
        return self.host.seconds + time.perf_counter() - self._began

    def _compiling(self) -> float:
        """Seconds that all processes spent compiling; a budget does not count them."""
        return self.host.compiling + COMPILING.seconds - self._compiled

    def _maybe_save(self, force: bool) -> None:
        if self.checkpoint is None:
            return
        now = time.perf_counter()
        if force or now - self._last_save >= self.checkpoint.every:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of this moment."""
        host = self.host
        assert self.checkpoint is not None
        host.saves += 1
        segments: dict[str, Any] = {}
        draws: dict[str, dict[str, Any]] = {}
        if self.checkpoint.lost():
            host.segments, self._start_saved = [], None
            for record in self.records.values():
                record.forget_saved()
        for (stage, phase), record in self.records.items():  # a phase that has ended may have unsaved steps, too
            record.stretch = None
            if segment := record.unsaved():
                name = f"{stage}-{phase}-{host.saves:012d}"
                segments[name] = segment
                if record.stretch is not None:
                    draws[name] = {"file": record.file} | record.stretch._asdict()
        host.segments += segments
        current = (host.stage, host.phase)
        start, self._start_saved = None if self._start_saved == current else self._phase_start, current
        saved = dataclasses.replace(host, seconds=self._elapsed(), compiling=self._compiling(), outcome="running")
        self.checkpoint.save(self.carry, start, saved, segments, draws)
        self._last_save = time.perf_counter()

    def resume(self, saved: Saved) -> None:
        """Go on from a checkpoint: its position, state, trace and draws."""
        assert self.checkpoint is not None
        host = self.host = saved.host
        self._start_saved = (host.stage, host.phase)
        with precision(self.stages[host.stage][0]):
            like = self._like(host.stage)
            self.carry = jax.device_put(saved.tree(saved.carry, like), self.placement.by_member)
            self._phase_start = jax.device_put(saved.tree(saved.start, like), self.placement.by_member)
        for name in host.segments:
            stage, phase, _ = name.split("-")
            key = (int(stage), int(phase))
            record = self.records.setdefault(key, Record(self.checkpoint.draws(*key)))
            record.restore(saved.arrays(f"segments/{name}"), self._draw_structure(*key))
        if saved.trouble:
            host.notes.append(
                f"The newest checkpoint was damaged ({saved.trouble}): the fit went on from the one before it."
            )

    def _like(self, stage: int) -> Carry:
        """The structure of a stage's carry, without computing it."""
        start = self.start
        keys = jax.ShapeDtypeStruct((self.placement.padded, 2), np.uint32)
        carry: Any = None
        for s in range(stage + 1):
            method, model = self.method(s), numbers(self.stages[s][1])
            if s:
                before, before_model = self.method(s - 1), numbers(self.stages[s - 1][1])
                with precision(before):
                    start = points.eval_shape(before, before_model, carry.state)
            with precision(method):
                carry = start_members.eval_shape(method, model, keys, self.data(), start, self._left_out())
        return carry

    def _draw_structure(self, stage: int, phase: int) -> Any:
        method, model = self.method(stage), numbers(self.stages[stage][1])
        member = one_member(self._like(stage))
        phases = self.phases(stage)
        kind = numbers(shared_program(phases[phase], phases))
        with precision(method):
            mesh = self.placement.mesh
            info = step_shapes(self.batch_size, method, model, kind, self.data(), member, mesh)[1]
        return jax.tree.structure(info.draw if phases[phase].keeps_draws else None)
