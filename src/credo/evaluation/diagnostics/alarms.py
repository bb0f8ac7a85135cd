"""Signs that a posterior should not be believed, each with the number that shows it and what to do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from credo.core.capabilities import FlooredLikelihood, ask
from credo.core.likelihood import has_posterior
from credo.evaluation.diagnostics.chains import bfmi, chain_stats
from credo.evaluation.diagnostics.draw_weights import Importance, kish
from credo.evaluation.diagnostics.probe import Probe
from credo.evaluation.diagnostics.steady import Steadiness, steadiness
from credo.methods.population.pareto_smoothing import good_shape

RHAT = 1.05  # Vehtari et al. (2021) ask for 1.01; the largest of many values passes that by chance
LEAST_ESS = 100  # below, the error of a mean is more than a tenth of its standard deviation
LEAST_BFMI = 0.3
LEAST_DISTINCT = 8
SAME = 0.005  # a spread that varies less than this from input to input is constant
BY_CHANCE = 1e-4  # how often chains that agree may seem apart, at one value
MOST_APART = 16  # quantities on which chains disagree that are looked at one chain at a time
FIXED_ESS = 20  # of one chain, below which it says nothing about what chance does


@dataclass(frozen=True)
class Alarm:
    """id: a short word; found: what was seen, with its number; advice: what to do."""

    id: str
    found: str
    advice: str

    def __str__(self) -> str:
        return f"{self.found}; {self.advice}."


def find_alarms(
    probe: Probe | None, trace: Mapping[str, Any], *, chains: bool, point: bool, num_data: int, temperature: float,
    likelihood: Any, importance: Importance | None = None,
) -> list[Alarm]:  # fmt: skip
    """Everything that speaks against a fit; empty where nothing does.

    Args:
        probe: the fit's functions at some inputs, None where there are none to look at.
        trace: metrics of the phase that kept the draws [member, step].
        chains: are the draws those of Markov chains?
        point: is each member one point by construction?
        num_data: N.
        temperature: T of the model.
        likelihood: of the model.
        importance: what importance sampling tells of its weights.
    """
    alarms = [*_energy(trace), *_unfinished(trace)] if chains else [*_weights(importance)]
    if probe is None:
        return alarms
    alarms += _convergence(probe, trace) if chains else []
    alarms += _noise(probe, likelihood)
    if not point:
        alarms += [*_collapsed(probe, num_data, temperature)] or [*_constant(probe), *_prior(probe)]
    return alarms


def _energy(trace: Mapping[str, Any]) -> Iterator[Alarm]:
    divergent = int(np.sum(trace["divergent"])) if "divergent" in trace else 0
    if divergent:
        total = int(np.size(trace["divergent"]))
        yield Alarm(
            "divergences",
            f"{divergent} of {total} transitions diverged: the posterior has places that this step size cannot follow",
            "raise target_acceptance towards 0.99 or lower step_size",
        )
    if "energy" in trace and np.shape(trace["energy"])[1] >= 20:
        lowest = float(np.nanmin(bfmi(trace["energy"])))
        if lowest < LEAST_BFMI:
            yield Alarm(
                "energy",
                f"The lowest E-BFMI of a chain is {lowest:.2f} (below {LEAST_BFMI:g}): its momenta are too weak to "
                "reach all energies of the posterior",
                "lengthen the warm-up, or use a prior with lighter tails",
            )


def _unfinished(trace: Mapping[str, Any]) -> Iterator[Alarm]:
    """A population that is still on its way from the prior to the posterior."""
    reached = float(np.min(trace["exponent"][:, -1])) if "exponent" in trace else 1.0
    if reached < 1:
        yield Alarm(
            "unfinished",
            f"The population stands at p(θ)^(1−λ) p(θ, D)^λ with λ = {reached:.2g}, which is not the posterior",
            "run more steps, or lower ess",
        )


def _weights(weights: Importance | None) -> Iterator[Alarm]:
    """Importance weights that a few draws dominate."""
    if weights is None:
        return
    good = good_shape(weights.draws)
    if weights.k >= good:
        yield Alarm(
            "weights",
            f"IMPORTANCE SAMPLING FAILED: k-hat of the weights is {weights.k:.2f} (above {good:.2f}) "
            f"and the {weights.draws} draws are worth {weights.worth:.1f}",
            "do not use this posterior: take a proposal closer to it (tails=5, a richer fit) or a sampler",
        )
    elif weights.worth < LEAST_ESS:
        yield _few(f"{weights.draws} weighted draws are worth only {weights.worth:.0f}", weights.worth)


def _few(what: str, worth: float) -> Alarm:
    return Alarm(
        "low_ess",
        f"The {what}: means are uncertain by more than a tenth of their spread",
        f"run {int(np.ceil(LEAST_ESS / max(worth, 1.0))) + 1} times as many draws",
    )


def _convergence(probe: Probe, trace: Mapping[str, Any]) -> Iterator[Alarm]:
    """Chains that disagree about functions or the size of the noise: modes where each has settled, else too few draws.

    The log density joins the search for a trend: it drifts where any part of the posterior does. Parameters of the
    noise count by their effect on predictions: neither data nor predictions distinguish 20 degrees of freedom from 40.
    """
    members, draws = probe.values.shape[:2]
    numbers = {"function values": probe.values.reshape(members, draws, -1)}
    if probe.noise is not None:
        numbers["the size of the noise"] = probe.noise.reshape(members, draws, -1)
    chains = np.concatenate(list(numbers.values()), 2)
    names = np.repeat(list(numbers), [x.shape[2] for x in numbers.values()])
    stats = chain_stats(chains)
    moving = (stats.std > 0) & np.isfinite(stats.rhat)
    if not moving.any():
        return
    rhat, names = stats.rhat[moving], names[moving]
    size = kish(probe.log_weights) * np.minimum(stats.ess_bulk, stats.ess_tail)[moving]
    worst, least, of = float(rhat.max()), float(size.min()), names[rhat.argmax()]
    if worst > RHAT:
        order = np.argsort(-rhat)[: min(MOST_APART, int((rhat > RHAT).sum()))]
        alarm = _apart(chains[:, :, moving][:, :, order], trace, of, worst, least)
        if alarm is not None:
            yield alarm
            return
    if least < LEAST_ESS:
        of = names[size.argmin()]
        yield _few(f"{members * draws} draws are worth only {least:.0f} independent ones for {of}", least)


def _apart(chains: np.ndarray, trace: Mapping[str, Any], of: str, worst: float, least: float) -> Alarm | None:
    """What R-hat above its bound means for chains of values by falling R-hat; None where chance alone explains it."""
    density = trace.get("log_density")
    trend = steadiness(chains, None if density is None else np.asarray(density)[:, :, None])
    if not trend.moving and trend.worth > min(FIXED_ESS, chains.shape[1] / 4) and worst <= _by_chance(chains):
        return None
    if trend.steady:
        return _modes(of, worst, trend)
    return _unconverged(of, worst, least, trend)


def _by_chance(apart: np.ndarray) -> float:
    """An R-hat that chance hardly exceeds among steady chains as short as these.

    Half chains worth m draws have means that vary by 1/m of the variance, so R̂² ≈ 1 + χ²_ν/(νm) for c chains that
    agree, with ν = 2c − 1.
    """
    from scipy.special import chdtri

    freedom = 2 * len(apart) - 1
    quantile = float(chdtri(freedom, BY_CHANCE)) / freedom
    worth = float(np.nanmedian([chain_stats(chain[None]).ess_bulk for chain in apart]))
    return float(np.sqrt(1 + quantile / max(0.5 * worth, 1.0)))


def _modes(of: str, worst: float, trend: Steadiness) -> Alarm:
    return Alarm(
        "modes",
        f"Chains settled in different modes: R-hat of {of} is {worst:.2f}, though none of the {trend.of} chains drifts "
        f"and each is worth {trend.worth:.0f} independent draws or more",
        "more draws will not help: predictions average over the modes that were found; use more chains, a smaller "
        "network or a tighter prior",
    )


def _unconverged(of: str, worst: float, least: float, trend: Steadiness) -> Alarm:
    each_chain, all_chains = (
        ("the chain", "the chain still drifts") if trend.of == 1 else ("each chain", "the chains drift")
    )
    drift = all_chains if trend.moving == trend.of else f"{trend.moving} of {trend.of} chains still drift"
    short = f"{each_chain} is too short to tell a slow movement from a mode of its own"
    return Alarm(
        "unconverged",
        f"The chains have not converged: R-hat of {of} is {worst:.2f} (above {RHAT:g}), the draws are worth "
        f"{least:.0f} independent ones, and {drift if trend.moving else short}",
        "predictions average over what the chains have found; give them more time, such as a budget of 5m, or a longer "
        "warm-up",
    )


def _noise(probe: Probe, likelihood: Any) -> Iterator[Alarm]:
    """Noise that fell to the floor which the likelihood sets, or to nothing beside the functions themselves."""
    size = np.sqrt(probe.aleatoric)
    floor = ask(likelihood, FlooredLikelihood).floor
    if floor is not None:
        floor = float(floor)
        share = float((size < 1.1 * floor).mean())
        if share > 0.5:
            yield Alarm(
                "noise_bound",
                f"The noise is at its floor of {floor:.3g} at {100 * share:.0f} % of the inputs looked at",
                "the network knows rows by heart: tighten the prior, use a smaller network or gaussian noise",
            )
    elif likelihood.kind == "real" and (likelihood.point or has_posterior(likelihood)):
        spread = float(np.ptp(probe.mean)) if len(probe.mean) > 1 else 0.0
        if size.min() < 1e-3 * spread:
            yield Alarm(
                "noise_bound",
                f"The learned noise fell to {size.min():.2g}, less than a thousandth of what the function varies",
                "give a known noise, or tighten the prior; targets without noise need no likelihood that learns it",
            )


def _collapsed(probe: Probe, num_data: int, temperature: float) -> Iterator[Alarm]:
    """Less spread than even one free parameter leaves: the mean of Var[f(x_n)] is σ²p/N for p of them, times T."""
    spread, noise = float(probe.epistemic.mean()), float(probe.aleatoric.mean())
    least = noise * temperature / max(num_data, 1)
    if noise > 0 and spread < 0.01 * least:
        yield Alarm(
            "collapsed",
            f"The posterior collapsed to a point: functions spread by {np.sqrt(spread):.2g}, and {num_data} rows with "
            f"noise {np.sqrt(noise):.2g} leave at least {np.sqrt(least):.2g}",
            "train for longer from wider starts, check beta and the temperature, or use another method",
        )


def _constant(probe: Probe) -> Iterator[Alarm]:
    std = probe.std
    size = std.mean(0)
    if probe.distinct < LEAST_DISTINCT or probe.values.shape[0] * probe.values.shape[1] < 10 or not (size > 0).all():
        return
    change = float((std.std(0) / size).max())
    if change < SAME:
        yield Alarm(
            "constant",
            f"What the model does not know is the same everywhere: the spread of its functions varies by {change:.1e} "
            f"of itself over {probe.distinct} inputs",
            "the inputs do not reach the outputs: check the scale of the inputs, and whether hidden units are dead",
        )


def _prior(probe: Probe) -> Iterator[Alarm]:
    """Functions that spread like those of the prior, around the prior's mean, at the very training inputs."""
    if probe.prior_mean is None or probe.prior_std is None or not (probe.prior_std > 0).all():
        return
    ratio = float(np.exp(np.median(np.log(np.maximum(probe.std, 1e-30) / probe.prior_std))))
    shift = float(np.sqrt((((probe.mean - probe.prior_mean) / probe.prior_std) ** 2).mean()))
    if 0.85 < ratio < 1.18 and shift < 0.25:
        yield Alarm(
            "prior",
            f"The posterior is the prior: functions spread {ratio:.2f} times as widely and lie {shift:.2f} prior "
            "standard deviations away, at the training inputs",
            "the data taught it nothing: train for longer, lower beta or the noise, or use a smaller network",
        )
