"""The base of inference methods: hyper-parameters and a few pure functions."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax

from credo.core.batch import Batch
from credo.core.checks import check_settings
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError

State = Any


@struct
class Phase:
    """A stretch of steps of one kind.

    batch: "random" (a minibatch without replacement within each epoch), "sweep" (every row once, in order),
    "full" (all rows) or "none". `steps` is traced: another number of steps is the same program. Phases that give the
    same `program` share one compiled program; their `step` sees that name and cannot tell them apart. The user's steps,
    epochs or budget are those of the `main` phase, by default the last one. A phase with `until` ends early,
    once the metric of that name is 1 for every member. A phase with `share` that is not the main one takes no more than
    that share of a budget.
    """

    name: str
    steps: Any = leaf()
    batch: str = "random"
    keeps_draws: bool = False
    program: str | None = None
    main: bool = False
    until: str | None = None
    share: float | None = None


def main_phase(phases: tuple[Phase, ...]) -> int:
    """Index of the phase whose length the user's steps, epochs or budget set."""
    return next((i for i, phase in enumerate(phases) if phase.main), len(phases) - 1)


class Info(NamedTuple):
    """What a step reports: scalar metrics and, in phases that keep draws, a draw."""

    metrics: dict[str, jax.Array]
    draw: PyTree = None


class Method(ABC):
    """Base of all methods. A method is a `@struct`: fields are hyper-parameters, traced where marked `leaf()`.

    `init` and `step` see one member (chain, ensemble member); the loop maps them over members. `posterior` sees the
    states and draws of all members, with that leading axis.
    """

    default_steps: Any = 1000  # steps of the main phase where the user sets none
    lockstep: Any = True  # False: steps differ in length, so members run one after another per device
    step_field: ClassVar[str | None] = None  # the hyper-parameter that is lowered when a step turns non-finite
    several_starts: ClassVar[bool] = False  # True: every member needs a fresh start; a start from the user is refused
    members: Any = 1  # chains or ensemble members
    over: Any = "auto"  # how members are mapped: "vmap", "map", "devices" or "auto"
    parts: Any = ()  # methods that run instead, one after another, each from where the one before ended
    precision: ClassVar[str] = "float32"  # "float64": the loop runs it in a local double-precision context

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        """The model as this method sees it, with sentences on what changed; Refusal where mathematics forbids."""
        return model, []

    def check_weights(self, model: Model, weights: Any) -> None:  # noqa: B027  (most have nothing against any weights)
        """Refusal where the rows' weights (on the host) are such that mathematics forbids them."""

    @abstractmethod
    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        """The phases of a fit; `steps` is the length of the main one."""

    @abstractmethod
    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> State:
        """State of one member before the first step."""

    def init_from(self, key: jax.Array, model: Model, posterior: Any, data: Batch) -> State:
        """State of one member that starts at a Gaussian posterior (without its member axis): at its centre, unless the
        method can take up its spread, too."""
        start = Variables({**posterior.mean, **posterior.points}, posterior.state)
        return self.init(key, model, start, data)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: State) -> PyTree:
        """The randomness of one step. The loop draws it for many steps at once; `step` gets it in place of a key."""
        return key

    @abstractmethod
    def step(self, noise: PyTree, model: Model, phase: Phase, state: State, batch: Batch) -> tuple[State, Info]:
        """One step of one member."""

    def point(self, model: Model, state: State) -> Variables:
        """The best single point of one member's state: where a following method starts."""
        raise TypeError(f"{type(self).__name__} has no single point")

    @abstractmethod
    def posterior(self, model: Model, state: State, draws: PyTree) -> Any:
        """The posterior from the states and draws of all members (leading axes: member; member, draw)."""

    def failure(self, posterior: Any) -> str | None:
        """A sentence where a fit that ran to its end came to no usable posterior; it has then failed."""
        return None

    def smaller_step(self, factor: float = 0.1) -> "Method | None":
        """The same method with a smaller step, or None where it has none to lower."""
        value = None if self.step_field is None else vars(self)[self.step_field]
        if value is None or self.step_field is None:
            return None
        return dataclasses.replace(self, **{self.step_field: factor * value})  # type: ignore[type-var]

    def notes(self, trace: dict[str, Any]) -> list[str]:
        """Sentences for `status` after a fit, from the trace of metrics [member, step]."""
        return []

    def remarks(self, phases: dict[str, dict[str, Any]]) -> list[str]:
        """Further sentences for `status`, from the traces of every phase of this method by name."""
        return []


class PartsMethod(Method):
    """A method that is only its `parts`: the loop runs those instead."""

    def _in_parts(self, *_: Any) -> Any:
        raise TypeError(f"{type(self).__name__} runs as its parts.")

    phases = init = step = posterior = _in_parts  # type: ignore[assignment]


def checked_method(method: Any) -> Method:
    """A method whose hyper-parameters keep to their rules, or a sentence."""
    if not isinstance(method, Method):
        raise InputError(f"A method is one of credo.methods or its name, got a {type(method).__name__}.")
    check_settings(method)
    return method
