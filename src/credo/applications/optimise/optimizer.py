"""Ask and tell: the search for the smallest value of an objective that is dear to evaluate."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credo.applications.optimise import record
from credo.applications.optimise.acquisition import checked
from credo.applications.optimise.batches import propose
from credo.applications.optimise.belief import Fitted
from credo.applications.optimise.record import Evaluation
from credo.applications.optimise.space import Point, Space
from credo.applications.optimise.surrogate import find_surrogate
from credo.core.checks import positive, whole_number
from credo.core.programs import tidy
from credo.errors import ArtifactError, InputError
from credo.storage.locks import locked

MOST_WORDS = 300  # letters of a message that is kept
SHUN = 0.02  # half the side of the cube around a failed point in which nothing is proposed
# The smallest regret of all surrogates in `benchmarks/optimisation.py`, and one of the quickest.
SURROGATE = "gp"


class Exhausted(InputError):
    """Every point of a finite space has been asked for."""


class Optimizer:
    """Bayesian optimisation (H1): a surrogate says what is believed of the objective, an acquisition where to look.

    The first points fill the space evenly (scrambled Sobol). Everything is a function of the seed and of what was told:
    a search that was saved and loaded goes on as if it had not been stopped.

    Args:
        space: what is searched.
        surrogate: "gp", "random", the name of any method, a `Surrogate` or a `GaussianProcess`.
        acquisition: "log_ei", "ei", "ucb" or "thompson".
        batch: points of each `ask`.
        initial: points before the surrogate is asked; None: 2 (d + 1) for d settings, at least 5.
        maximise: look for the largest value instead.
        noisy: evaluations of one point differ, so that a point may be asked for again.
        beta: of "ucb", m + β s.
        seed: of everything that is random.

    Example:
        >>> from credo.applications.optimise import Float, Optimizer, Space
        >>> search = Optimizer(Space({"x": Float(-1, 2)}), initial=4)
        >>> for _ in range(8):
        ...     points = search.ask()
        ...     search.tell(points, [(p["x"] - 0.3) ** 2 for p in points])
        >>> bool(abs(search.best.point["x"] - 0.3) < 0.05)
        True
    """

    def __init__(
        self,
        space: Space,
        surrogate: Any = SURROGATE,
        acquisition: str = "log_ei",
        batch: int = 1,
        initial: int | None = None,
        maximise: bool = False,
        noisy: bool = False,
        beta: float = 2.0,
        seed: int = 0,
    ):
        if not isinstance(space, Space):
            raise InputError('The space is a Space: Space({"x": Float(0, 1)}).')
        self.space, self.acquisition = space, checked(acquisition)
        random = isinstance(surrogate, str) and surrogate == "random"
        self.surrogate = None if random else find_surrogate(surrogate)
        self.batch, self.initial = whole_number(batch, "batch"), whole_number(initial or _initial(space), "initial")
        self.maximise, self.noisy = bool(maximise), bool(noisy)
        self.beta, self.seed = positive(beta, "beta"), whole_number(seed, "seed", 0)
        self._named = surrogate if isinstance(surrogate, str) else None
        self.history: list[Evaluation] = []
        self.pending: list[Point] = []

    # ------------------------------------------------------------------ ask
    def ask(self, count: int | None = None) -> list[Point]:
        """The next points to evaluate; those that were asked for before and not told yet are taken into account."""
        count = self.batch if count is None else whole_number(count, "count")
        points = self._first(count)
        if len(points) < count:
            points += self._next(count - len(points), points)
        if not points:
            raise Exhausted(
                f"All {self.space.count} points of the space have been asked for: take the best, or a larger space."
            )
        self.pending += points
        return [dict(point) for point in points]

    def _first(self, count: int) -> list[Point]:
        """Points that fill the space, up to `initial` of them; all of them for random search."""
        done = len(self.history) + len(self.pending)
        usable = sum(not e.failed for e in self.history)
        if self.surrogate is not None and done >= self.initial and usable:
            return []
        until = done + count if self.surrogate is None or not usable else min(done + count, self.initial)
        return self._fresh(until - done)

    def _fresh(self, count: int) -> list[Point]:
        """Points of the space's own sequence that were not asked for before."""
        used = self._used_keys()
        most = self.space.count
        target, num = len(self.history) + len(self.pending) + count, 64
        points: list[Point] = []
        while count > 0:
            points = []
            for point in self.space.decode(self.space.sample(num, self.seed)):
                if self.space.key(point) not in used | {self.space.key(p) for p in points}:
                    points.append(point)
                if len(points) == count:
                    return points
            if most is not None and len(used) + len(points) >= most:
                break
            if num > 8 * max(target, most or 64):  # a range of few numbers has no more than these
                break
            num *= 2
        if most is not None and len(points) < count:  # what the sequence has not hit yet
            excluded = used | {self.space.key(p) for p in points}
            rest = [p for p in self.space.decode(self.space.every()) if self.space.key(p) not in excluded]
            points += rest[: count - len(points)]
        return points

    def _next(self, count: int, before: list[Point]) -> list[Point]:
        """Points by surrogate and acquisition."""
        if self.surrogate is None:
            return []
        if self.space.count is not None and not self.noisy and len(self._used_keys()) + len(before) >= self.space.count:
            return []
        step = len(self.history) + len(self.pending) + len(before)
        rng = np.random.default_rng([self.seed, 1, step])
        fitted = self.fitted()
        pending = self.space.code([*self.pending, *before])
        rows = propose(
            rng, fitted, self.space, self._data()[0], pending, count, self.acquisition, self.beta, self._allowed
        )
        points = self.space.decode(rows)
        if len(points) < count:  # no candidate was left: anything that was not asked for
            pending_before, self.pending = self.pending, [*self.pending, *before, *points]
            try:
                points += self._fresh(count - len(points))
            finally:
                self.pending = pending_before
        return points

    def fitted(self) -> Fitted:
        """What the surrogate believes now, of gains: the value, or minus the value where the smallest is wanted."""
        if self.surrogate is None:
            raise InputError("Random search has no surrogate.")
        x, gains = self._data()
        if not len(x):
            raise InputError("There are no values yet: tell some first.")
        # Without a value the surrogate would ask for the neighbours of a failed point again and again.
        failed = self.space.code([e.point for e in self.history if e.failed])
        x, gains = np.concatenate([x, failed]), np.concatenate([gains, np.full(len(failed), np.median(gains))])
        return self.surrogate.fit(jax.random.fold_in(jax.random.key(self.seed), len(self.history)), x, gains)

    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and gains of evaluations that gave a value."""
        usable = [e for e in self.history if not e.failed]
        return self.space.code([e.point for e in usable]), self.sign * np.array([e.value for e in usable])

    @property
    def sign(self) -> float:
        """gain = sign · value; only here the direction of the search counts."""
        return 1.0 if self.maximise else -1.0

    def _used_keys(self) -> set[tuple[Any, ...]]:
        return {self.space.key(p) for p in [*(e.point for e in self.history), *self.pending]}

    def _allowed(self, rows: np.ndarray) -> np.ndarray:
        """Which rows may be proposed: none twice (unless noisy), none close to one that failed."""
        allowed = np.ones(len(rows), bool)
        repeats = [e.point for e in self.history if e.failed or not self.noisy]
        for row in self.space.code(repeats):
            allowed &= np.abs(rows - row).max(1) > 1e-9
        for row in self.space.code([e.point for e in self.history if e.failed]):
            if self.space.count is None:
                allowed &= np.abs(rows - row).max(1) > SHUN
        return allowed

    # ------------------------------------------------------------------ tell
    def tell(self, points: Sequence[Point] | Point, values: Any, messages: Sequence[str] | None = None) -> None:
        """Say what the objective was at points; they need not have been asked for.

        A value that is NaN, infinite or None is a failed evaluation: the surrogate sees the median of the values there,
        which is nothing to look for, and neither the point nor its close neighbours are proposed again.
        """
        if isinstance(points, dict):
            points, values = [points], [values]
        numbers = list(values) if np.ndim(values) else [values]
        if len(numbers) != len(points):
            raise InputError(f"There are {len(points)} points and {len(numbers)} values; give one for each.")
        evaluations = []
        for i, (point, value) in enumerate(zip(points, numbers)):
            message = messages[i] if messages else ""
            evaluations.append(Evaluation(self.space.checked(point), _value(value), message))
        for evaluation in evaluations:
            keys = [self.space.key(p) for p in self.pending]
            if self.space.key(evaluation.point) in keys:
                self.pending.pop(keys.index(self.space.key(evaluation.point)))
            self.history.append(evaluation)

    @property
    def best(self) -> Evaluation:
        """The evaluation with the best value; of noisy ones the point with the best posterior mean."""
        usable = [e for e in self.history if not e.failed]
        if not usable:
            raise InputError("There is no best point before a value was told.")
        gains = self.sign * np.array([e.value for e in usable])
        if self.noisy and self.surrogate is not None and len(usable) >= self.initial:
            gains = self.fitted().moments(self.space.code([e.point for e in usable]))[0]
        return usable[int(np.argmax(gains))]

    @property
    def best_so_far(self) -> np.ndarray:
        """The best value after each evaluation [n]; NaN before the first that gave one."""
        gains = np.array([np.nan if e.failed else self.sign * e.value for e in self.history])
        return self.sign * np.fmax.accumulate(gains) if len(gains) else gains

    # ------------------------------------------------------------------ loop and files
    def minimise(
        self,
        objective: Callable[[Point], float],
        evaluations: int,
        folder: Any = None,
        progress: Callable[["Optimizer"], Any] | None = None,
        failures: str = "raise",
    ) -> Evaluation:
        """Ask, evaluate, tell, until there are so many evaluations (with maximise=True for the largest value).

        Points that were asked for and not told, as after Ctrl-C, come first. Gives the best evaluation, or the last one
        where all failed. A space of which every point was evaluated ends the search.

        Args:
            objective: a function of a point.
            evaluations: in all, those of the history included.
            folder: where to save after each evaluation.
            progress: called after each evaluation with this object.
            failures: "raise" what the objective raises (the point stays pending), or "record" it and go on: whatever
                it is, but for Ctrl-C.
        """
        if failures not in ("raise", "record"):
            raise InputError(f'failures is "raise" or "record", got {failures!r}.')
        with locked(folder):
            return self._minimise(objective, evaluations, folder, progress, failures)

    def _minimise(
        self, objective: Callable[[Point], float], evaluations: int, folder: Any,
        progress: Callable[["Optimizer"], Any] | None, failures: str,
    ) -> Evaluation:  # fmt: skip
        evaluations = whole_number(evaluations, "evaluations")
        while len(self.history) < evaluations:
            if not self.pending:
                try:
                    self.ask(min(self.batch, evaluations - len(self.history)))
                except Exhausted:
                    if not self.history:
                        raise
                    break
                if folder is not None:
                    self.save(folder)
            point, message = self.pending[0], ""
            try:
                value = _value(objective(dict(point)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # sys.exit() in a script is one, too
                if failures == "raise":
                    raise
                value, message = math.nan, in_words(error)
            self.tell([point], [value], [message])
            tidy()
            if folder is not None:
                self.save(folder)
            if progress is not None:
                progress(self)
        return self.history[-1] if all(e.failed for e in self.history) else self.best

    @property
    def settings(self) -> dict[str, Any]:
        """What makes this search what it is, as plain data."""
        return {
            "space": self.space.to_data(),
            "surrogate": self._named or f"object: {self.surrogate.name}",  # type: ignore[union-attr]
            "acquisition": self.acquisition, "batch": self.batch, "initial": self.initial, "maximise": self.maximise,
            "noisy": self.noisy, "beta": self.beta, "seed": self.seed,
        }  # fmt: skip

    def save(self, folder: Any) -> None:
        """Write the search to a folder, as JSON."""
        record.write(Path(folder), self.settings, self.history, self.pending)

    @staticmethod
    def load(folder: Any, surrogate: Any = None) -> "Optimizer":
        """A saved search. A surrogate that was given as an object must be given again."""
        space, settings, history, pending = record.read(Path(folder))
        named = settings.pop("surrogate", "")
        if surrogate is None:
            if str(named).startswith("object: "):
                raise InputError(f"The search in {folder} had a surrogate of its own: load it with surrogate=….")
            surrogate = named
        try:
            search = Optimizer(surrogate=surrogate, **(settings | {"space": space}))
        except TypeError as error:
            raise ArtifactError(f"{folder} holds a search with settings that are not known here: {error}.") from error
        search.history, search.pending = history, pending
        return search

    def plot(self, *others: "Optimizer") -> Any:
        """A figure of the best value so far against evaluations, of this search and others; in one or two settings
        also of what the surrogate believes (`credo.report.optimise`)."""
        from credo.report.optimise import plot

        return plot([self, *others])


def in_words(error: BaseException) -> str:
    """What an exception says, in one line; some cannot even be printed.

    Example:
        >>> in_words(ValueError("too hot"))
        'ValueError: too hot'
    """
    kind = type(error).__name__
    try:
        lines = f"{kind}: {error}".strip().splitlines()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"{kind}, which cannot be printed"
    return lines[0][:MOST_WORDS].removesuffix(":")


def _initial(space: Space) -> int:
    num = max(5, 2 * (len(space.dimensions) + 1))
    return num if space.count is None else min(num, max(1, space.count // 2))


def _value(value: Any) -> float:
    """A number; NaN for what is none."""
    if value is None:
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    except (TypeError, ValueError) as error:
        raise InputError(f"A value of the objective is a number, got {value!r}.") from error
    return number if math.isfinite(number) else math.nan
