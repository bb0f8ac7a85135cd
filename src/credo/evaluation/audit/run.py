"""The truth audit: every method on every problem, measured against the posterior that it claims to approximate (G4)."""

import dataclasses
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from credo.core.capabilities import StoredPosterior, ask
from credo.core.draws import function_draws
from credo.core.mixture import flatten
from credo.core.posterior import Draws
from credo.core.programs import tidy
from credo.errors import InputError, Refusal
from credo.evaluation.audit.claims import FLAGGED, Chains, judge, judge_chains
from credo.evaluation.audit.measures import NUM_SAMPLES, measure_draws
from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.problems import problems as all_problems
from credo.evaluation.audit.truth import function_values, weighted_moments, weighted_quantiles
from credo.registry import ROWS, Row, build_method, did_you_mean, find
from credo.training.fit import fit
from credo.training.interrupt import part_of_more
from credo.training.warn import unwarned

FINISHED_SHARE = 0.1  # of the mappings allowed: no method runs the programs of another on another problem
DRAWS = 1000  # of each chain, for methods that keep draws
MORE, LONGEST = 4, 64  # times as many draws, until functions have converged; and times `DRAWS` at most
# Of two equal modes that no chain leaves, all chains start in one with probability 2^(1 − chains), and R-hat cannot see
# it: with so many, that is less likely than the false alarms allowed.
MANY_CHAINS = 12
MEASURES = (
    "mean_error", "std_ratio", "w1", "w1_function", "total_variation", "agreement", "coverage_90", "credible_90",
    "regret",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Band:
    """Mean and central 90 % of the function values by one method [n, C], for pictures."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclasses.dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        rows: one dict for each method and problem, JSON types only; see `credo.evaluation.audit.measures.measure`.
        problems: the problems by name.
        bands: (method, problem) → what the method says at the problem's inputs.
    """

    rows: list[dict[str, Any]]
    problems: dict[str, Problem]
    bands: dict[tuple[str, str], Band]

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of the rows."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def row(self, method: str, problem: str) -> dict[str, Any]:
        """The row of a method on a problem."""
        return next(r for r in self.rows if r["method"] == method and r["problem"] == problem)

    @property
    def broken(self) -> list[dict[str, Any]]:
        """Rows whose method misses its own claim."""
        return [row for row in self.rows if row["met"] is False]


def audit(
    methods: str | Sequence[Any] = "all",
    problems: Sequence[str] | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    tell: Callable[[dict[str, Any]], Any] | None = None,
) -> Audit:
    """Fit methods to problems whose posterior is known and measure how far they are from it.

    Args:
        methods: "all", or names of the registry; a method object is audited with its own settings.
        problems: names of problems; None takes all, or with `quick` those whose truth costs least to reach.
        quick: fewer draws and problems, for continuous integration.
        seed: the same seed gives the same numbers.
        tell: called with every row as soon as it is known.

    Example:
        >>> from credo.evaluation.audit import audit
        >>> result = audit(["map"], ["linear"], quick=True)
        >>> result.rows[0]["std_ratio"], result.rows[0]["met"]
        (0.0, True)
    """
    catalogue = all_problems()
    selected = _select(problems, catalogue, quick)
    entries = [_entry(m, quick) for m in ([r.name for r in ROWS] if methods == "all" else _listed(methods))]
    rows, bands = [], {}
    for problem in selected.values():
        for name, row, method in entries:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), _code(problem.name)), _code(name))
            prepared = _with_chains(method, problem) if row else method
            line, band = audit_one(
                key, name, row.exact_on if row else "", prepared, problem, quick, row.thin if row else 1
            )
            tidy(FINISHED_SHARE)
            rows.append(line)
            if band is not None:
                bands[name, problem.name] = band
            if tell is not None:
                tell(line)
    return Audit(rows, selected, bands)


def audit_one(
    key: jax.Array, name: str, exact_on: str, method: Any, problem: Problem, quick: bool = False, thin: int = 1
) -> tuple[dict[str, Any], Band | None]:
    """One row: a method on a problem. A refusal is a row without measures and with the reason."""
    key_fit, key_draw = jax.random.split(key)
    line: dict[str, Any] = {"method": name, "problem": problem.name} | dict.fromkeys(MEASURES)
    line |= dict.fromkeys(("z", "z_bound", "rhat", "effective", "met", "seconds", "seconds_compile", "note"))
    began = time.perf_counter()
    try:
        steps = _steps(method, quick)
        steps = steps and steps * thin
        with unwarned(), part_of_more():
            fitted = fit(key_fit, problem.model, problem.data, method, steps=steps, thin=thin, progress=False)
    except Refusal as refusal:
        return line | {"note": str(refusal)}, None
    distribution = ask(fitted.posterior, StoredPosterior).available is None
    most = LONGEST * steps if steps and exact_on == "posterior" and problem.unimodal else 0
    fitted, draws, chains = _converged(key_draw, fitted, problem, NUM_SAMPLES if distribution else None, most)
    likelihood = fitted.model.likelihood
    line |= {"seconds": fitted.timing["seconds_run"], "seconds_compile": fitted.timing["seconds_compile"]}
    line |= measure_draws(likelihood, draws, problem)
    if chains is not None:
        line |= {"z": chains.z, "z_bound": chains.bound, "rhat": chains.rhat, "effective": chains.effective}
    if exact_on:
        line["met"] = judge(exact_on, problem, line)
    if not fitted.status.ok:
        line["note"] = str(fitted.status)
    line["seconds_total"] = time.perf_counter() - began
    values, weights = function_values(likelihood, flatten(draws))
    low, high = weighted_quantiles(values, weights, np.array([0.05, 0.95]))
    return line, Band(weighted_moments(values, weights)[0], low, high)


def _converged(
    key: jax.Array, fitted: Any, problem: Problem, num: int | None, most: int
) -> tuple[Any, Draws, Chains | None]:
    """The fit with more draws until R-hat of functions is small, at most `most` steps; with them, what chains say.

    A claim on many draws is tested once there are many. Chains grow by R-hat, which does not know the truth, and so the
    false alarms of the test stay what they are.
    """
    while True:
        draws = function_draws(key, fitted, problem.places, num)
        chains = None if num else judge_chains(fitted.model.likelihood, draws, problem.truth)
        steps = fitted.config["steps"] or most
        if chains is None or chains.rhat <= FLAGGED or steps >= most:
            return fitted, draws, chains
        with unwarned(), part_of_more():
            fitted = fitted.extend((MORE - 1) * steps)


def _with_chains(method: Any, problem: Problem) -> Any:
    """The method with enough chains to see every mode of the problem."""
    few = {f.name for f in dataclasses.fields(method)} & {"chains"} and method.chains < MANY_CHAINS
    return dataclasses.replace(method, chains=MANY_CHAINS) if few and not problem.unimodal else method


def _steps(method: Any, quick: bool) -> int | None:
    from credo.methods.combine import stages

    last = stages(method)[-1]
    if not last.phases(64, 1)[-1].keeps_draws:
        return None
    return DRAWS // 2 if quick else DRAWS


def _entry(method: Any, quick: bool) -> tuple[str, Row | None, Any]:
    if not isinstance(method, str):
        from credo.registry import method_name

        return method_name(method), None, build_method(method)
    row = find(method)
    return row.name, row, row.load()(**(row.quick_settings() if quick else {}))


def _listed(methods: str | Sequence[Any]) -> Sequence[Any]:
    return methods.split(",") if isinstance(methods, str) else methods


def _select(names: Sequence[str] | None, catalogue: dict[str, Problem], quick: bool) -> dict[str, Problem]:
    if names is None:
        return {n: p for n, p in catalogue.items() if not quick or p.quick}
    for name in names:
        if name not in catalogue:
            raise InputError(
                f"Unknown problem {name!r}.{did_you_mean(name, catalogue)} There are: {', '.join(catalogue)}."
            )
    return {name: catalogue[name] for name in names}


def _code(name: str) -> int:
    """A number for a name, so that a row's key does not depend on what else is audited."""
    return zlib.crc32(name.encode())
