"""Combinators: methods made of methods."""

import dataclasses
from typing import Any

import jax

from credo.core.batch import Batch
from credo.core.method import Info, Method, PartsMethod, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Select, field_values, leaf, selected, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.posteriors import SubsetPosterior


@struct
class Replicate(PartsMethod):
    """`copies` independent runs of a method from different starts and on different batches, as one computation."""

    method: Any = leaf()
    copies: int = 1
    over: Any = "auto"

    @property
    def members(self) -> int:
        return self.copies * self.method.members

    @property
    def parts(self) -> tuple[Method, ...]:
        return (self.method,)

    @property
    def default_steps(self) -> int:
        return self.method.default_steps


@struct
class Then(PartsMethod):
    """`first`, then `second` started where `first` ended, member by member."""

    first: Any = leaf()
    second: Any = leaf()

    @property
    def members(self) -> int:
        return max(self.first.members, self.second.members)

    @property
    def parts(self) -> tuple[Method, ...]:
        return (self.first, self.second)

    @property
    def default_steps(self) -> int:
        return self.second.default_steps


@struct
class SubsetState:
    """The inner method's state, and the values of the parameters that are held."""

    inner: Any = leaf()
    held: PyTree = leaf()


@struct
class Subset(Method):
    """A method on the parameters that `select` matches, all others held where they start."""

    method: Any = leaf()
    select: Select = "*"

    @property
    def members(self) -> int:
        return self.method.members

    @property
    def default_steps(self) -> int:
        return self.method.default_steps

    @property
    def lockstep(self) -> bool:
        return self.method.lockstep

    @property
    def over(self) -> Any:
        return self.method.over

    @property
    def parts(self) -> tuple[Method, ...]:
        return tuple(Subset(part, self.select) for part in self.method.parts)

    @property
    def precision(self) -> str:  # type: ignore[override]
        return self.method.precision

    @property
    def several_starts(self) -> bool:  # type: ignore[override]
        return self.method.several_starts

    @property
    def step_field(self) -> str | None:  # type: ignore[override]
        return self.method.step_field

    def _inside(self, model: Model, held: PyTree) -> Model:
        """The model that also holds what the user froze before."""
        return dataclasses.replace(model, fixed=model.complete(held))

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        return self.method.prepare(model)

    def check_weights(self, model: Model, weights: Any) -> None:
        self.method.check_weights(model, weights)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return self.method.phases(num_data, steps)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> SubsetState:
        chosen = selected(variables.params, self.select)
        if not any(jax.tree.leaves(chosen)):
            raise InputError(f"No parameter path matches {self.select!r}.")
        held = jax.tree.map(lambda c, x: None if c else x, chosen, variables.params)
        inside = self._inside(model, held)
        free = Variables(inside.free(variables.params), variables.state)
        return SubsetState(self.method.init(key, inside, free, data), held)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: SubsetState) -> PyTree:
        return self.method.noise(key, self._inside(model, state.held), phase, state.inner)

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: SubsetState, batch: Batch
    ) -> tuple[SubsetState, Info]:
        inner, info = self.method.step(noise, self._inside(model, state.held), phase, state.inner, batch)
        return SubsetState(inner, state.held), info

    def point(self, model: Model, state: SubsetState) -> Variables:
        inside = self._inside(model, state.held)
        free = self.method.point(inside, state.inner)
        return Variables(model.free(inside.complete(free.params)), free.state)

    def posterior(self, model: Model, state: SubsetState, draws: PyTree) -> SubsetPosterior:
        return SubsetPosterior(self.method.posterior(model, state.inner, draws), state.held)

    def smaller_step(self, factor: float = 0.1) -> "Subset | None":
        inner = self.method.smaller_step(factor)
        return None if inner is None else Subset(inner, self.select)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        return self.method.notes(trace)

    def remarks(self, phases: dict[str, dict[str, Any]]) -> list[str]:
        return self.method.remarks(phases)


def replicate(method: Any, copies: int, over: str = "auto") -> Replicate:
    """Chains, a deep ensemble, a mixture of posteriors: `copies` runs of any method.

    Args:
        method: a method or its registry name.
        copies: how many.
        over: "devices" spreads them over all devices, "vmap" and "map" stay on one; "auto" chooses.
    """
    if copies < 1:
        raise InputError(f"replicate needs at least 1 copy, got {copies}.")
    if over not in ("auto", "vmap", "map", "devices"):
        raise InputError(f'over must be "auto", "vmap", "map" or "devices", got {over!r}.')
    return Replicate(_resolve(method), int(copies), over)


def then(first: Any, second: Any) -> Then:
    """One method after another, the second started where the first ended (MAP, then Laplace; ensemble, then chains)."""
    return Then(_resolve(first), _resolve(second))


def subset(method: Any, select: Select) -> Subset:
    """A method on the parameters whose paths match the globs of `select` (`"output/*"`), the others held fixed.

    The held values are those of the start: give `fit(start=...)`, or put it second in `then`.
    """
    return Subset(_resolve(method), select if isinstance(select, str) else tuple(select))


def stages(method: Method) -> tuple[Method, ...]:
    """The plain methods that run one after another inside a method."""
    if not method.parts:
        return (method,)
    return tuple(stage for part in method.parts for stage in stages(part))


def _resolve(method: Any) -> Method:
    from credo.registry import build_method

    return build_method(method)


def refine(method: Any, sampler: str = "hamiltonian", refinement: int = 5, **settings: Any) -> Method:
    """Variational inference refined by a sampler: `vis` with the settings of a `bayes_by_backprop`.

    Args:
        method: a `BayesByBackprop`: the family of q_0 and how it is learned.
        sampler: "hamiltonian", "langevin", "leapfrog" or "gradient".
        refinement: T, how many steps of the sampler are learned.
        settings: further settings of `VIS`.

    Example:
        >>> import credo
        >>> credo.refine(credo.methods.BayesByBackprop(family="full"), "langevin", 10).family
        'full'
    """
    from credo.methods.variational.bayes_by_backprop import BayesByBackprop
    from credo.methods.variational.vis import VIS

    if type(method) is not BayesByBackprop:
        raise InputError(f"refine expects credo.methods.BayesByBackprop(…), got {type(method).__name__}.")
    return VIS(**field_values(method), sampler=sampler, refinement=refinement, **settings)
