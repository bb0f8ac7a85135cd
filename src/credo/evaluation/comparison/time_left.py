"""How long a comparison takes, in a sentence: by the budget at first, then by what the folds took."""

from collections.abc import Mapping, Sequence

from credo.core.short import plural
from credo.evaluation.baselines import BASELINES

Cell = tuple[str, int]


def at_first(remaining: Sequence[Cell], durations: Mapping[Cell, float], budget: float | None, jobs: int) -> str:
    """What will be run, and an estimate of how long it takes.

    Args:
        remaining: model and fold of the fits that are to come.
        durations: seconds of those that were done before.
        budget: seconds of one fit.
        jobs: fits that run side by side.

    Example:
        >>> at_first([("map", 0), ("map", 1), ("hmc", 0), ("hmc", 1)], {}, 60.0, 1)
        '4 fits: 2 models on 2 folds. About 4 min, beside compilation and what a budget does not end.'
    """
    models, folds = {model for model, _ in remaining}, {fold for _, fold in remaining}
    stored = f", beside {len(durations)} that are kept from before" if durations else ""
    first = f"{len(remaining)} fits: {plural(len(models), 'model')} on {plural(len(folds), 'fold')}{stored}."
    measured = expected(remaining, durations, jobs)
    if measured is not None:
        return f"{first} About {in_words(measured)}, by what was done before."
    if budget is not None:
        networks = sum(model not in BASELINES for model, _ in remaining)
        spent = networks * budget / jobs
        return f"{first} About {in_words(spent)}, beside compilation and what a budget does not end."
    return f"{first} How long they take is told after the first fold."


def expected(remaining: Sequence[Cell], durations: Mapping[Cell, float], jobs: int) -> float | None:
    """Seconds that the fits to come take, by the last fit of each model; None where a model has none yet.

    The first fit of a model compiles and later ones do not, so the last one tells most.
    """
    last: dict[str, float] = {}
    for (model, _), seconds in durations.items():
        last[model] = seconds
    if not all(model in last for model, _ in remaining):
        return None
    return sum(last[model] for model, _ in remaining) / max(1, min(jobs, len(remaining)))


def in_words(seconds: float) -> str:
    """A time as a person says it: "40 s", "12 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
