"""`fit`: from a model, data and a method to a posterior."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from credo.core.checks import checked_key, or_none, positive, whole_number
from credo.core.method import Method, checked_method, main_phase
from credo.core.model import Model, checked_model
from credo.core.network import Variables
from credo.core.programs import tidy
from credo.core.short import Card
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal, Unwritable
from credo.memory import memory_explained
from credo.methods.combine import stages as stages_of
from credo.registry import build_method
from credo.storage.locks import locked
from credo.training.arguments import precision
from credo.training.budget import seconds as seconds
from credo.training.checkpoint import Checkpoint, check_fingerprint
from credo.training.clock import COMPILING
from credo.training.config import describe
from credo.training.facts import facts, nothing_to_start_from, nothing_under_way
from credo.training.fingerprint import fingerprint
from credo.training.host import Host
from credo.training.left_out import Folds, folds_of, left_out
from credo.training.loop import BUDGET_SPENT, Event, Loop, points
from credo.training.placement import place
from credo.training.source import Source
from credo.training.starts import start_values
from credo.training.status import Status
from credo.training.warn import warn

LARGEST = 2**31 - 1  # what a compiled program counts with


@dataclasses.dataclass(repr=False)
class Fit(Card):
    """The result of a fit.

    Attributes:
        posterior: what was learned; `credo.predict` asks it.
        model: the model as the method saw it.
        trace: metrics of the main phase, name → [member, step].
        outcome: how it ended; `status` says it in sentences, with alarms.
        notes: what happened on the way, in sentences.
        config: every setting, as plain data.
        phases: metrics of every phase, name → metrics.
        timing: seconds in all, compiling and running; steps.
    """

    posterior: Any
    model: Model
    trace: dict[str, np.ndarray]
    outcome: str
    notes: tuple[str, ...]
    config: dict[str, Any]
    phases: dict[str, dict[str, np.ndarray]]
    timing: dict[str, float]
    target_shape: tuple[int, ...]
    input_shape: Any
    input_dtype: Any = "float32"  # like input_shape, of the inputs' types
    loop: Loop | None = dataclasses.field(default=None, repr=False)
    known: Any = dataclasses.field(default=None, repr=False)  # Diagnostics, once computed or read from a file
    rings: Any = dataclasses.field(default=None, repr=False, init=False)  # alarms of this very posterior
    parts: tuple[Any, ...] = dataclasses.field(default=(), repr=False)  # of a stack: its fits, by name and weight

    def _facts(self) -> dict[str, str]:
        return facts(self)

    @property
    def status(self) -> Status:
        """Did it work, in sentences. Alarms are computed when first read."""
        return Status.of(self.outcome, self.notes, lambda: tuple(str(a) for a in self.alarms))

    @property
    def alarms(self) -> tuple[Any, ...]:
        """What speaks against the fit (`credo.diagnostics.Alarm`), computed once; empty where nothing does."""
        if self.known is not None:
            return self.known.alarms
        if self.rings is None:
            from credo.evaluation.diagnostics.diagnose import alarms_of

            self.rings = alarms_of(jax.random.key(0), self)
        return self.rings

    @property
    def diagnostics(self) -> Any:
        """R-hat, effective sample sizes and alarms (`credo.evaluation.diagnostics.Diagnostics`), computed once.

        Functions are evaluated at up to 32 training inputs; `credo.evaluation.diagnostics.diagnose` takes others.
        """
        if self.known is None:
            from credo.evaluation.diagnostics import diagnose

            self.known = diagnose(jax.random.key(0), self)
        return self.known

    def summary(self) -> str:
        """Method, sizes, time, convergence, alarms and notes as text.

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
            >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=50)
            >>> print(fit.summary().splitlines()[0])
            map: 16 parameters, 40 rows
        """
        from credo.evaluation.diagnostics.summary import summary

        return summary(self)

    def plot(self, inputs: PyTree | None = None, targets: Any = None, which: str | None = None) -> Any:
        """A figure of Matplotlib: how the fit went or, at inputs, what it predicts there.

        Args:
            inputs: where to predict; along them where there is one column.
            targets: what was observed there.
            which: the name of a figure; None: the first. The error of a wrong name lists all.

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
            >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", steps=50)
            >>> type(fit.plot()).__name__
            'Figure'
        """
        from credo.report.plots import one_figure

        return one_figure(self, inputs, targets, which)

    def to_arviz(self, inputs: PyTree | None = None, targets: Any = None) -> Any:
        """Draws, statistics and predictions as ArviZ's data: xarray's `DataTree` with ArviZ 1, `InferenceData` before.

        Args:
            inputs: adds function values and posterior predictive draws at these inputs.
            targets: adds the log likelihood of these targets, one for each input.

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
            >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), steps=50)
            >>> fit.to_arviz(x, x[:, 0]).log_likelihood["y"].dims
            ('chain', 'draw', 'row')
        """
        from credo.evaluation.diagnostics import to_arviz

        return to_arviz(self, inputs, targets)

    def extend(self, steps: int) -> "Fit":
        """The same fit with `steps` more draws per chain, without starting again."""
        loop = self.loop
        if loop is None:
            raise InputError(nothing_under_way(self))
        if loop.checkpoint is not None:
            raise InputError("A fit with a checkpoint is extended by fitting again with more steps.")
        phases = loop.phases(len(loop.stages) - 1)
        if not phases[-1].keeps_draws:
            raise Refusal("extend adds draws, and this method keeps none: fit again with start=fit.")
        host = loop.host
        host.phase, host.outcome = len(phases) - 1, "running"
        done = loop.records[host.stage, host.phase].trace()
        host.step = next(iter(done.values())).shape[1]
        loop.steps = host.step + steps
        loop.epochs = loop.budget = None  # the length is now a number of steps
        host.notes = [note for note in host.notes if not note.startswith(BUDGET_SPENT)]
        host.steps = loop.steps
        began = time.perf_counter() - self.timing["seconds_fit"]
        compiled = COMPILING.seconds - self.timing["seconds_compile"]
        config = self.config | {"steps": loop.steps, "epochs": None, "budget": None}
        extended = _finish(loop, config, began, compiled)
        if "correction" in config:
            from credo.tables.auto.honest import with_correction

            extended = with_correction(extended, config["correction"])
        warn(extended)
        return extended

    def point(self) -> Variables:
        """The best single point of every member (leading axis: member)."""
        if self.loop is None:
            raise InputError(nothing_to_start_from(self))
        method, model = self.loop.stages[-1]
        return points(method, model, self.loop.state())

    def save(self, folder: Any) -> None:
        """Write a run directory: data only, whole or not at all."""
        from credo.storage.run_directory.write import save_fit

        save_fit(self, folder)


def fit(
    key: jax.Array,
    model: Model,
    data: Any,
    method: Any = "bayes_by_backprop",
    *,
    steps: int | None = None,
    epochs: float | None = None,
    budget: str | float | None = None,
    batch_size: int | None = None,
    thin: int = 1,
    start: Any = None,
    folds: Folds | None = None,
    capacity: int | None = None,
    callbacks: Sequence[Callable[[Event], Any]] = (),
    checkpoint: Any = None,
    mesh: Any = None,
    stream: bool | None = None,
    progress: bool | None = None,
) -> Fit:
    """Infer the posterior of a model's parameters.

    Chains that diverge or do not agree raise one `credo.ConvergenceWarning`, with the sentence that `fit.status` has.

    Args:
        key: a JAX key; the same key, data and settings give the same numbers.
        model: network, prior and likelihood.
        data: (inputs, targets) or (inputs, targets, weights); arrays or memory maps.
        method: a method, its class or its registry name; "auto" chooses one by the numbers of rows and parameters.
        steps: steps of the main phase, per chain (draws, for samplers). One of steps, epochs and budget.
        epochs: passes over the data instead.
        budget: time instead ("60s", "5m"), compilation aside: the main phase ends with it, warm-up is done in full.
        batch_size: rows of a minibatch; None takes all rows up to 512 and 128 beyond.
        thin: keep every thin-th draw.
        start: Variables, a parameter tree or a Fit to start from; or a Gaussian posterior, whose spread variational
            methods take up, too.
        folds: K, or the row indices of each of K folds: member m does not see fold m mod K, so that every row
            has members that have not seen it (`credo.recalibration.unseen_by_fold`). None: all see all.
        capacity: rows to make room for: fits of fewer rows and the same capacity share one program.
        callbacks: functions of an Event, called after every block; True stops the fit.
        checkpoint: a folder (or Checkpoint) to save to; if it holds this very run, the run goes on from there.
        mesh: a jax Mesh over whose first axis members are spread.
        stream: read batches from the host; None decides by size.
        progress: show a bar; None shows it on a terminal.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([10]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "map", steps=200)
        >>> fit.status.ok
        True
    """
    began, compiled = time.perf_counter(), COMPILING.seconds
    checked_key(key), checked_model(model)
    notes: list[str] = []
    resolved: Any = None
    seconds_left = None if budget is None else seconds(budget)
    if isinstance(method, str) and method == "auto":
        from credo.tables.auto.case import of_model
        from credo.tables.auto.resolution import resolve

        resolved = resolve(
            of_model(model, data), settings={"prior": model.prior, "likelihood": model.likelihood}, steps=steps,
            batch_size=batch_size, budget=budget, seed=int(np.asarray(jax.random.key_data(key)).ravel()[-1]),
            begun=(began, compiled), measure=checkpoint is None,
        )  # fmt: skip
        notes, method, seconds_left = [f"Method: {resolved.why}"], resolved.method, resolved.budget
        batch_size = resolved.words["batch_size"]
        steps = resolved.words["steps"] if epochs is None else steps
    method = checked_method(build_method(method))
    if sum(v is not None for v in (steps, epochs, budget)) > 1:
        raise InputError("Give one of steps, epochs and budget, not several.")
    steps, batch_size = or_none(whole_number, steps, "steps"), or_none(whole_number, batch_size, "batch_size")
    thin, capacity = whole_number(thin, "thin"), or_none(whole_number, capacity, "capacity")
    epochs = or_none(positive, epochs, "epochs")
    if steps is None and epochs is None and budget is None and method.parts:
        steps = method.default_steps
    parts = stages_of(method)
    stages = []
    for part in parts:
        prepared, sentences = part.prepare(model)
        stages.append((part, prepared))
        notes += sentences
    source = Source(stages[-1][1], data, stream, capacity)
    for part, prepared in stages:
        part.check_weights(prepared, source.weight)
    placement = place(method.members, method.over, all(p.lockstep for p in parts), mesh)
    mask = None if folds is None else _left_out(folds, method, source, key)
    size = batch_size or (source.num_rows if source.num_rows <= 512 and not source.streamed else 128)
    size = min(size, source.num_rows)
    config = describe(method, model) | {
        "steps": steps, "epochs": epochs, "budget": None if budget is None else seconds(budget), "batch_size": size,
        "thin": thin, "num_data": source.num_rows, "key": np.asarray(jax.random.key_data(key)).tolist(),
    }  # fmt: skip
    if mask is not None:
        config["folds"] = len(folds_of(mask))
    loop = Loop(
        stages, source, placement, key, steps, epochs, seconds_left, size, thin,
        start_values(_point(start), isinstance(start, Fit), parts[0], method, model, placement), tuple(callbacks),
        Checkpoint.of(checkpoint), Host(notes=notes), progress, mask,
    )  # fmt: skip
    with memory_explained(), locked(None if loop.checkpoint is None else loop.checkpoint.folder):
        if loop.checkpoint is not None:
            loop.host.fingerprint = fingerprint(config, method, model, loop.start, source, mask)
            saved = loop.checkpoint.newest()
            if saved is not None:
                check_fingerprint(saved.host.fingerprint, loop.host.fingerprint, loop.checkpoint.folder)
                loop.resume(saved)
        fitted = _finish(loop, config, began, compiled)
    if resolved is not None:
        from credo.tables.auto.honest import checked

        fitted = checked(fitted, resolved.correction)
    warn(fitted)
    return fitted


def _point(start: Any) -> Any:
    return start.point() if isinstance(start, Fit) else start


def _left_out(folds: Folds, method: Method, source: Source, key: jax.Array) -> np.ndarray:
    """The rows that every member leaves out [member, row]."""
    if source.streamed:
        raise Refusal("Rows that are read from disk as they are needed cannot be left out by folds: leave `folds` out.")
    seed = int(np.asarray(jax.random.key_data(key)).ravel()[-1])
    return left_out(folds, method.members, source.num_given, seed, source.mask)


def _finish(loop: Loop, config: dict[str, Any], began: float, compiled: float) -> Fit:
    loop.run()
    host = loop.host
    method, model = loop.stages[-1]
    phases = loop.phases(len(loop.stages) - 1)
    last = loop.records.get((len(loop.stages) - 1, len(phases) - 1))
    if (
        host.stage < len(loop.stages) - 1
        or last is None
        or not last.metrics
        or (phases[-1].keeps_draws and last.all_draws() is None)
    ):
        if host.outcome == "interrupted":
            raise KeyboardInterrupt
        if host.outcome == "failed":
            raise Refusal(host.notes[-1])
        if host.outcome == "stopped by the disk":
            raise Unwritable(host.notes[-1])
        raise Refusal(f"The fit was {host.outcome} before it had anything to give.")
    names = [p.name for p in phases]
    traces = {names[p]: r.trace() for (s, p), r in loop.records.items() if s == len(loop.stages) - 1 and p < len(names)}
    trace = traces[names[main_phase(phases)]]
    with precision(method):
        state = loop.state()
        draws = last.all_draws()
        posterior = _posterior(method, model, state) if draws is None else method.posterior(model, state, draws)
        if method.precision == "float64":
            posterior = jax.tree.map(np.asarray, posterior)  # outside of the context JAX would round them
    failure = method.failure(posterior)
    if failure is not None:
        host.outcome, host.notes = "failed", [*host.notes, failure]
    total = host.seconds + time.perf_counter() - began
    compiling = host.compiling + COMPILING.seconds - compiled
    timing = {"seconds_fit": total, "seconds_compile": compiling, "seconds_run": max(0.0, total - compiling)}
    timing["steps"] = int(next(iter(trace.values())).shape[1])
    notes = tuple(dict.fromkeys([*host.notes, *method.notes(trace), *method.remarks(traces)]))
    shapes = jax.tree.map(lambda x: tuple(x.shape[1:]), loop.source.inputs)
    dtypes = jax.tree.map(lambda x: str(x.dtype), loop.source.inputs)
    tidy()
    return Fit(
        posterior, model, trace, host.outcome, notes, config, traces, timing, loop.source.target_shape, shapes, dtypes,
        loop,
    )  # fmt: skip


@jax.jit
def _posterior(method: Method, model: Model, state: Any) -> Any:
    """A posterior that needs no stored draws, as one program instead of many small ones."""
    return method.posterior(model, state, None)
