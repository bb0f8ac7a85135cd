"""Optuna with credo's surrogates: a sampler for its studies."""

from typing import Any

from credo.applications.optimise.dimensions import Category, Dimension, Float, Int
from credo.applications.optimise.optimizer import SURROGATE, Optimizer
from credo.applications.optimise.space import Space
from credo.errors import InputError


def _base() -> Any:
    try:
        from optuna.samplers import BaseSampler
    except ImportError as error:
        raise InputError("CredoSampler needs Optuna: pip install 'credo[optuna]'.") from error
    return BaseSampler


def dimension_of(distribution: Any) -> Dimension | None:
    """Optuna's distribution as a dimension; None where it has steps that no dimension has, or only one value."""
    kind = type(distribution).__name__
    if distribution.single():
        return None
    if kind == "FloatDistribution" and distribution.step is None:
        return Float(distribution.low, distribution.high, distribution.log)
    if kind == "IntDistribution" and distribution.step == 1:
        return Int(distribution.low, distribution.high, distribution.log)
    if kind == "CategoricalDistribution" and all(isinstance(c, str | bool | int | float) for c in distribution.choices):
        return Category(distribution.choices)
    return None


def CredoSampler(
    surrogate: Any = SURROGATE, acquisition: str = "log_ei", initial: int | None = None, seed: int = 0, **options: Any
) -> Any:
    """A sampler for `optuna.create_study(sampler=…)`: the settings that all trials share are chosen together.

    Settings that not every trial has, and those with steps, are drawn at random. Trials that failed or were pruned
    without a value are points that failed; those that run are pending.

    Args:
        surrogate, acquisition, initial, seed, options: of `Optimizer`.

    Example:
        >>> from credo.applications.optimise.optuna_sampler import CredoSampler
        >>> study = optuna.create_study(sampler=CredoSampler("gp"))  # doctest: +SKIP
    """
    base = _base()
    import optuna

    class Sampler(base):  # type: ignore[valid-type, misc]
        """See `CredoSampler`."""

        def __init__(self) -> None:
            self._shared = optuna.search_space.IntersectionSearchSpace()
            self._random = optuna.samplers.RandomSampler(seed=seed)

        def reseed_rng(self) -> None:
            self._random.reseed_rng()

        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            shared = self._shared.calculate(study)
            return {name: values for name, values in shared.items() if dimension_of(values) is not None}

        def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
            if not search_space:
                return {}
            dimensions = {name: dimension_of(values) for name, values in search_space.items()}
            maximise = study.direction == optuna.study.StudyDirection.MAXIMIZE
            search = Optimizer(
                Space(dimensions),  # type: ignore[arg-type]
                surrogate, acquisition, initial=initial, maximise=maximise, seed=seed, **options,
            )  # fmt: skip
            for other in study.get_trials(deepcopy=False):
                if other.number == trial.number or not search_space.keys() <= other.params.keys():
                    continue
                try:
                    point = search.space.checked({name: other.params[name] for name in search_space})
                except InputError:
                    continue  # a trial of another range
                if other.state.is_finished():
                    complete = other.state == optuna.trial.TrialState.COMPLETE
                    search.tell(point, other.value if complete else None)
                else:
                    search.pending.append(point)
            return search.ask(1)[0]

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    return Sampler()
