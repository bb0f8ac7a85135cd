"""`diagnose`: everything that tells whether a fit can be believed, as plain numbers that are saved with it."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.capabilities import StoredPosterior, ask
from credo.core.pieces import columns
from credo.core.posterior import WeightPosterior
from credo.core.typing import PyTree
from credo.evaluation.diagnostics.alarms import Alarm, find_alarms
from credo.evaluation.diagnostics.chains import LEAST_DRAWS, bfmi, chain_stats, rank_counts
from credo.evaluation.diagnostics.draw_weights import heard_chains, importance, kish, one_measure
from credo.evaluation.diagnostics.mode import off_mode
from credo.evaluation.diagnostics.of_parts import alarms_of_parts, heard_alarms, heard_parts, named
from credo.evaluation.diagnostics.probe import Probe, look, training_inputs
from credo.evaluation.diagnostics.weights import num_parameters, weight_draws
from credo.posteriors import Stacked

MOST_WEIGHTS = 64  # of each array that are looked at
MOST_ARRAYS = 24


@dataclasses.dataclass(frozen=True)
class Convergence:
    """The worst of a group of quantities.

    Attributes:
        space: "function", "noise" (its size at the inputs), "likelihood" (parameters of the noise), "log density" or
            "weights".
        name: of the group.
        count: quantities looked at.
        rhat: the largest R-hat.
        ess_bulk, ess_tail: the smallest effective sample sizes.
        mcse_mean, mcse_std: the largest Monte-Carlo errors of a mean and of a standard deviation, as shares of that
            quantity's standard deviation.
    """

    space: str
    name: str
    count: int
    rhat: float
    ess_bulk: float
    ess_tail: float
    mcse_mean: float
    mcse_std: float


@dataclasses.dataclass(frozen=True)
class Diagnostics:
    """Whether a fit can be believed.

    Attributes:
        kind: "chains" (weighted ones, too), "distribution" (draws are made afresh), "weighted" (by importance, or
            chosen so; or particles of one measure), "ensemble", "point" or "stack" (of fits: rows and alarms are those
            of the parts, by name).
        members: chains or ensemble members; of stacked chains those that have weight; of a stack its parts.
        draws: kept draws of each, None where they are made afresh.
        num_parameters: numbers in one draw of θ, None for posteriors over functions.
        num_inputs: inputs at which functions were looked at.
        convergence: R-hat and effective sample sizes; functions first, because weights are not identified.
        divergences: transitions that diverged, None for methods that have none.
        transitions: how many there were.
        bfmi: E-BFMI of every chain.
        ranks: name → counts of ranks [chain][bin], of the function value on which chains disagree most and of the
            log density.
        alarms: what speaks against the fit.
    """

    kind: str
    members: int
    draws: int | None
    num_parameters: int | None
    num_inputs: int
    convergence: tuple[Convergence, ...] = ()
    divergences: int | None = None
    transitions: int = 0
    bfmi: tuple[float, ...] = ()
    ranks: dict[str, list[list[int]]] = dataclasses.field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()

    def space(self, name: str) -> tuple[Convergence, ...]:
        """The groups of one space."""
        return tuple(c for c in self.convergence if c.space == name)

    def to_plain(self) -> dict[str, Any]:
        """JSON types; numbers that are not finite become null."""
        return _finite(dataclasses.asdict(self))

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> "Diagnostics":
        """What `to_plain` gave."""
        rows = [_row_from_plain(row) for row in plain["convergence"]]
        energy = tuple(math.nan if v is None else float(v) for v in plain["bfmi"])
        alarms = tuple(Alarm(**a) for a in plain["alarms"])
        return Diagnostics(**plain | {"convergence": tuple(rows), "bfmi": energy, "alarms": alarms})


def diagnose(key: jax.Array, fit: Any, inputs: PyTree | None = None, num: int | None = None) -> Diagnostics:
    """Chain diagnostics in function space, of the noise and of the weights, and alarms with advice.

    Weights are not identified (permute two hidden units and nothing changes), so chains are judged by their functions
    at given inputs. `fit.diagnostics` is this at up to 32 of the training inputs. Where chains are weighted, effective
    sample sizes are multiplied by Kish's 1/(S Σw²).

    Args:
        key: for posteriors whose draws are made afresh.
        fit: the result of `credo.fit` or `credo.load`.
        inputs: where functions are looked at; None takes training inputs, which a loaded fit no longer has.
        num: draws over all members; None takes all that are stored.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), credo.methods.HMC(chains=2), steps=500)
        >>> diagnostics = credo.diagnostics.diagnose(jax.random.key(1), fit, x)
        >>> diagnostics.kind, diagnostics.alarms
        ('chains', ())
    """
    if isinstance(fit.posterior, Stacked):
        return _diagnose_parts(key, fit, inputs, num)
    view = _view_of(key, fit, inputs, num)
    rows, ranks = _convergence_rows(key, fit, view, num) if view.kind == "chains" else ([], {})
    divergent = view.trace.get("divergent")
    return Diagnostics(
        view.kind, view.members, view.draws, num_parameters(fit),
        0 if view.probe is None else view.probe.values.shape[2], tuple(rows),
        None if divergent is None else int(np.sum(divergent)), 0 if divergent is None else int(np.size(divergent)),
        tuple(float(v) for v in bfmi(view.trace["energy"])) if "energy" in view.trace else (), ranks,
        _alarms(fit, view),
    )  # fmt: skip


def alarms_of(key: jax.Array, fit: Any) -> tuple[Alarm, ...]:
    """The alarms of `diagnose` alone, which look at functions and not at every weight."""
    if isinstance(fit.posterior, Stacked):
        return alarms_of_parts(heard_parts(fit))
    return _alarms(fit, _view_of(key, fit, None, None))


def _diagnose_parts(key: jax.Array, fit: Any, inputs: PyTree | None, num: int | None) -> Diagnostics:
    """Rows, ranks and alarms of each part that has weight; a loaded stack no longer has its parts' fits."""
    shares = heard_parts(fit)
    each = [s.fit.diagnostics if inputs is None else diagnose(key, s.fit, inputs, num) for s in shares]
    rows = [dataclasses.replace(r, name=f"{s.name}: {r.name}") for s, d in zip(shares, each) for r in d.convergence]
    ranks = {f"{s.name}: {name}": counts for s, d in zip(shares, each) for name, counts in d.ranks.items()}
    divergent = [d.divergences for d in each if d.divergences is not None]
    return Diagnostics(
        "stack", len(fit.posterior.parts), None, None, max((d.num_inputs for d in each), default=0), tuple(rows),
        sum(divergent) if divergent else None, sum(d.transitions for d in each), sum((d.bfmi for d in each), ()), ranks,
        tuple(named(alarm, s) for s, d in zip(shares, each) for alarm in heard_alarms(s, d.alarms)),
    )  # fmt: skip


class _View(NamedTuple):
    """A fit's kind, and its functions at some inputs; trace and probe are those of the chains that carry weight."""

    kind: str
    members: int
    draws: int | None
    heard: np.ndarray | None
    trace: Mapping[str, Any]
    probe: Probe | None


def _view_of(key: jax.Array, fit: Any, inputs: PyTree | None, num: int | None) -> _View:
    if inputs is None:
        inputs = training_inputs(fit)
    probe = None if inputs is None else look(key, fit, inputs, num)
    kind, members, draws = _kind(fit.posterior)
    trace = fit.trace if kind == "chains" else {}
    heard = heard_chains(fit.posterior) if kind == "chains" else None
    if heard is not None:
        members, trace = len(heard), {name: np.asarray(x)[heard] for name, x in trace.items()}
        probe = None if probe is None else probe.only(heard)
    return _View(kind, members, draws, heard, trace, probe)


def _alarms(fit: Any, view: _View) -> tuple[Alarm, ...]:
    config = fit.config
    return (
        *off_mode(fit),
        *find_alarms(
            view.probe, view.trace, chains=view.kind == "chains", point=view.kind in ("point", "ensemble"),
            num_data=int(config.get("num_data", 0)), likelihood=fit.model.likelihood,
            importance=importance(fit.posterior),
            temperature=float(config.get("temperature", 1.0)) * float(config.get("beta", 1.0)),
        ),
    )  # fmt: skip


def _kind(posterior: Any) -> tuple[str, int, int | None]:
    members = int(posterior.num_draws(None)[0])
    stored = ask(posterior, StoredPosterior).available
    if stored is None:
        return "distribution", members, None
    if one_measure(posterior):
        return "weighted", members, int(stored)
    if stored == 1:
        return ("point" if members == 1 else "ensemble"), members, 1
    return "chains", members, int(stored)


def _convergence_rows(
    key: jax.Array, fit: Any, view: _View, num: int | None
) -> tuple[list[Convergence], dict[str, list[list[int]]]]:
    """Rows of the table, functions first, and ranks to draw."""
    probe, trace, heard = view.probe, view.trace, view.heard
    rows, ranks, share = [], {}, 1.0
    if probe is not None:
        rows.append(_worst("function", "function values", probe.values))
        rows += [] if probe.noise is None else [_worst("noise", "size of the noise", probe.noise)]
        rows += [_worst("likelihood", name, x) for name, x in probe.likelihood.items()]
        ranks["function value"] = _ranks_of_worst(probe.values)
    if "log_density" in trace:
        values = np.asarray(trace["log_density"])
        rows.append(_worst("log density", "log density", values[:, :, None]))
        ranks["log density"] = rank_counts(values).tolist()
    if isinstance(fit.posterior, WeightPosterior):
        arrays = [(n, x) for n, x in weight_draws(key, fit, num).items() if not n.startswith("likelihood/")]
        rows += [_worst("weights", name, x, heard) for name, x in arrays[:MOST_ARRAYS]]
        weights = fit.posterior.chosen_weights(num)
        share = kish(weights if heard is None else np.asarray(weights)[heard])
    return [_reweighted(row, share) for row in rows], {name: counts for name, counts in ranks.items() if counts}


def _reweighted(row: Convergence, share: float) -> Convergence:
    """The row where weights leave this share of the draws."""
    root = math.sqrt(share)
    return dataclasses.replace(
        row, ess_bulk=share * row.ess_bulk, ess_tail=share * row.ess_tail,
        mcse_mean=row.mcse_mean / root, mcse_std=row.mcse_std / root,
    )  # fmt: skip


def _worst(space: str, name: str, values: np.ndarray, heard: np.ndarray | None = None) -> Convergence:
    """The worst of the quantities of one array [chain, draw, ...], of an even selection where there are many."""
    flat = values.reshape(*values.shape[:2], -1)
    limit = MOST_WEIGHTS if space == "weights" else flat.shape[2]
    flat = columns(flat, np.unique(np.linspace(0, flat.shape[2] - 1, limit).round().astype(int)))
    flat = flat if heard is None else flat[heard]
    stats = chain_stats(flat)
    moving = stats.std > 0
    if values.shape[1] < LEAST_DRAWS or not moving.any():
        return Convergence(space, name, flat.shape[2], *[math.nan] * 5)
    share = np.where(moving, stats.std, 1.0)
    largest = [stats.rhat, stats.mcse_mean / share, stats.mcse_std / share]
    rhat, mean, std = (float(np.nanmax(x[moving], initial=0.0)) or math.nan for x in largest)
    bulk, tail = (float(np.nanmin(x[moving], initial=math.inf)) for x in (stats.ess_bulk, stats.ess_tail))
    return Convergence(space, name, flat.shape[2], rhat, bulk, tail, mean, std)


def _ranks_of_worst(values: np.ndarray) -> list[list[int]]:
    """Ranks of the one function value on which chains disagree most."""
    flat = values.reshape(*values.shape[:2], -1)
    rhat = chain_stats(flat).rhat
    if values.shape[1] < LEAST_DRAWS or np.isnan(rhat).all():
        return []
    return rank_counts(flat[:, :, int(np.nanargmax(rhat))]).tolist()


def _row_from_plain(plain: dict[str, Any]) -> Convergence:
    numbers: dict[str, Any] = {name: math.nan if value is None else value for name, value in plain.items()}
    return Convergence(**numbers)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
