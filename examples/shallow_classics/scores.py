"""The table of scores as Markdown, and whether two samplers of one posterior agree."""

from typing import Any

import jax
import numpy as np
from answers import Answer
from figures import NAMES
from fits import Learned, Sampler
from scipy import stats

from credo.evaluation.diagnostics import chain_stats

HEAD = (
    "| method | log-likelihood | RMSE | seconds | compiling | R-hat | ESS | P(linear) | most likely nodes |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
LEGEND = """\
*log-likelihood*: mean log predictive density of rows that were not learned from, ± its standard error over rows.
*seconds*: of all fits of the row together, without *compiling*; programs that an earlier run has compiled come out of a
cache. *R-hat*, *ESS*: the largest and the smallest of function values at training inputs, the worst of all fits of the
row. *P(linear)*: posterior probability of no hidden node. Both samplers with a fixed number of nodes have the same
posterior: *gibbs and nuts* compares their means of f at training inputs, in standard errors of both chains together;
with {number} inputs, one comparison in a hundred would exceed {limit:.1f} by chance if inputs were independent and the
errors well known. Neither holds: two runs of one sampler with other keys have differed by 3 to 4 such errors, too.
"""
PROBES = 32


def page(command: str, settings: dict[str, Sampler], parts: list[str]) -> str:
    """All of `scores.md`."""
    limit = stats.norm.isf(0.01 / 2 / PROBES)
    said = [_settings(name, sampler) for name, sampler in settings.items()]
    said.append("- folds of a cross-validation: half the draws (`nuts`: two chains)")
    legend = LEGEND.format(number=PROBES, limit=limit)
    return "\n".join(["# Scores", "", f"Made by `{command}`.", "", *said, "", legend, *parts])


def _settings(name: str, sampler: Sampler) -> str:
    method = sampler.method
    nodes = f"up to {sampler.nodes}" if name == "reversible_jump" else f"{sampler.nodes}"
    return f"- `{name}`: {method.chains} chains, {method.warmup:,} + {sampler.steps:,} draws each, {nodes} hidden nodes"


def section(problem: Any, answers: dict[str, Answer]) -> str:
    """The part of one problem."""
    rows = [_row(NAMES[name], answer) for name, answer in answers.items()]
    truth = getattr(problem, "truth", None)
    if truth is not None:
        rows.append(_truth_row(problem))
    agree = agreement(answers["gibbs"].fits[0], answers["nuts"].fits[0])
    return "\n".join([f"## {problem.title}", "", problem.note, "", HEAD, *rows, "", agree, ""])


def _row(name: str, answer: Answer) -> str:
    rmse = np.sqrt(np.mean(answer.errors**2))
    seconds, compiling = (sum(getattr(f, k) for f in answer.fits) for k in ("seconds", "compiling"))
    cells = [name, _score(answer.log_likelihood), f"{rmse:.4g}", f"{seconds:.1f}"]
    fits = [f.fit for f in answer.fits]
    if fits[0] is None:
        return _line([*cells, *["–"] * 5])
    found = [f.diagnostics.space("function")[0] for f in fits]
    cells += [f"{compiling:.1f}", f"{max(r.rhat for r in found):.3f}", f"{min(r.ess_bulk for r in found):,.0f}"]
    if "nodes" not in fits[0].trace:
        return _line([*cells, "–", f"{fits[0].model.network.nodes().num} (fixed)"])
    counts = np.asarray(fits[0].trace["nodes"]).round().astype(int)
    shares = np.bincount(counts.ravel()) / counts.size
    return _line([*cells, _probability(shares[0], counts.size), f"{shares.argmax()} ({shares.max():.2f})"])


def _truth_row(problem: Any) -> str:
    function, sigma = problem.truth
    inputs, targets = problem.test
    errors = targets - function(inputs)
    rmse = np.sqrt(np.mean(errors**2))
    return _line(["(the true function and σ)", _score(stats.norm.logpdf(errors, 0, sigma)), f"{rmse:.4g}", *["–"] * 6])


def _score(values: np.ndarray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}".replace("-", "−")


def _probability(share: float, draws: int) -> str:
    return f"{share:.3g}" if share else f"no draw of {draws:,}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def agreement(one: Learned, other: Learned) -> str:
    """How far the means of f by two samplers of one posterior are apart, and how their spreads compare."""
    rows = np.unique(np.linspace(0, len(one.inputs) - 1, PROBES).round().astype(int))
    first, second = (_values(learned, one.inputs[rows]) for learned in (one, other))
    stat, stat_other = chain_stats(first), chain_stats(second)
    apart = np.abs(first.mean((0, 1)) - second.mean((0, 1)))
    error = np.sqrt(stat.mcse_mean**2 + stat_other.mcse_mean**2)
    ratio = stat.std / stat_other.std
    return (
        f"gibbs and nuts: means of f differ by at most {np.max(apart / error):.1f} standard errors "
        f"({np.max(apart / stat.std):.2f} posterior standard deviations); standard deviations of f have ratios between "
        f"{ratio.min():.2f} and {ratio.max():.2f}. Transitions of nuts that diverged: "
        f"{other.fit.diagnostics.divergences} of {other.fit.diagnostics.transitions:,}."
    )


def _values(learned: Learned, inputs: np.ndarray) -> np.ndarray:
    """f at these inputs [chain, draw, input]."""
    draws = _outputs(learned.fit.posterior, learned.fit.model, np.asarray(inputs, np.float32))
    return np.asarray(draws.values, np.float64)[..., 0]


@jax.jit
def _outputs(posterior: Any, model: Any, inputs: jax.Array) -> Any:
    return posterior.outputs(jax.random.key(0), model, inputs, None)
