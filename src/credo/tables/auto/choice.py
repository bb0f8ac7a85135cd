"""From the size of a table to a method and its settings.

The choice is a function of the task, the size of the table, the network if one is given, the time and the kind of
machine: the same table gets the same choice everywhere. `benchmarks/auto.py` fits candidates, on other tables than
those on which `python -m benchmarks tables` measures `auto` itself (that of patients is the same one, in other folds).
What size cannot tell a pilot decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from credo.errors import InputError
from credo.tables.auto.speed import BATCH, OVERHEAD, RATES, Speed

AUTO = "auto"
EFFORTS = ("quick", "normal", "best")  # how many models are fitted and mixed, and for how long
QUICK_SECONDS = 4.0  # what a quick fit of a single model is planned for
SECONDS = 60.0  # what a fit is planned for where no budget is given
PATIENCE = 2.0  # times that much it may take with all that goes before its chains
SHARE = 0.6  # of the time for chains; the rest is the way to their starting points
BEFORE = 0.3  # of a budget that the pilot may take, and as much the starting points
SHORT = 8.0  # seconds; below, no chain is worth its compilation
FASTER = 20.0  # times that a machine may be faster than the rule
BATCHES = 2.5  # how much faster minibatches go through wide layers
CHAINS, MEMBERS = 8, 5
SHORTEST, LONGEST = 25, 100  # draws of a chain, and steps of its paths
FEWEST, MOST = 2_000, 200_000  # steps of an ensemble
EPOCHS = 300  # of an ensemble, at most: later ones change nothing
FOLDS, PILOTS, LENGTH, START = 3, 2, 25, 1_000  # of a pilot: folds, chains, their draws and path lengths, first steps
LEAST_START, START_STEPS = 1_000, 10_000  # steps to the starting points of chains
SMALL, SMALL_MEMBERS, HELD_OUT = 5_000, 10, 0.3  # rows below which an ensemble is of small networks, and its members
LARGE_HELD_OUT = 0.1
TIGHT = "fan_in_normal:1"  # the prior of an ensemble for more inputs than rows
DEEP, WIDE = "mlp:32,32,32:tanh", "mlp:100,100,100"
ROBUST = "heteroscedastic_t:0.01"
# Widths of the prior that compete: rows decide by themselves once there are many, and cannot where there are few.
SCALES, CLASS_SCALES = (1.0, 3.0), (1.0, 4.0)
# The network of chains for classes, and the likelihood that competes where some labels may be wrong.
CLASSES = ("mlp:16,16:tanh", "mislabelled")
LOOKED_UP = 8  # numbers of vectors of categories that take as long as a weight
LEAST_ROWS, PILOT_ROWS = 60, 5_000


class Choice(NamedTuple):
    """A method, and all that a fit of a table needs to know.

    Attributes:
        method: its name.
        network: in words, as `credo fit --network` has them.
        settings: of the method and the model, as `credo fit --set` has them.
        steps, batch_size: of the fit.
        why: one sentence.
        rivals: settings of which a pilot takes the best.
        seconds: that it will take, compilation aside.
        correction: of the likelihood, as `credo.recalibration.unseen` has it, once a pilot has seen what is to be
            corrected.
    """

    method: str
    network: str
    settings: dict[str, Any]
    steps: int
    batch_size: int
    why: str
    rivals: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0
    correction: dict[str, Any] | None = None

    def words(
        self, network: Any, settings: Mapping[str, Any], steps: int | None, batch_size: int | None, budget: Any
    ) -> dict[str, Any]:
        """The choice, with all that the user said in its place.

        Example:
            >>> chosen = choose("regression", 400, 10, device="cpu")
            >>> chosen.words(None, {"noise": 0.5, "warmup": 10, "num_steps": 5}, 20, None, None)["settings"]
            {'warmup': 10, 'num_steps': 5, 'noise': 0.5}
        """
        defaults = dict(self.settings)
        if "noise" in settings:  # belongs to likelihoods whose noise does not depend on the inputs
            defaults.pop("likelihood", None)
        return {
            "method": self.method,
            "network": self.network if network is None else network,
            "settings": defaults | dict(settings),
            "steps": steps if steps is not None or budget is not None else self.steps,
            "batch_size": self.batch_size if batch_size is None else batch_size,
        }


def choose(
    task: str,
    rows: int,
    features: int,
    *,
    outputs: int = 1,
    network: str | None = None,
    parameters: int | None = None,
    levels: tuple[int, ...] = (),
    seconds: float | None = None,
    device: str | None = None,
    speed: Speed | None = None,
) -> Choice:
    """The choice for a table.

    Chains from the members of an ensemble, as long as the time allows chains of 25 draws after the pilot and the
    starting points and there are no more inputs than rows; else an ensemble whose members stop early, each by rows of
    its own. The noise of numbers depends on the inputs and has tails that the residuals decide; whether labels of
    classes may be wrong the pilot decides.

    Args:
        task: "regression", "binary", "multiclass" or "count".
        rows: rows to learn from.
        features: columns after encoding.
        outputs: targets, or classes.
        network: in words, where it is given.
        parameters: of that network, where it has no words.
        levels: how many codes each of the features that are codes has.
        seconds: for everything; None plans for about a minute by rule, the same on every machine.
        device: "cpu", "gpu" or "tpu"; None is where JAX runs.
        speed: of gradients of 8 chains, where it was measured; None is by rule.

    Example:
        >>> choose("regression", 400, 10, device="cpu").method
        'ensemble_chains'
        >>> choose("regression", 400, 10, seconds=3, device="cpu").method
        'deep_ensemble'
    """
    if rows < 1:
        raise InputError("There are no rows to learn from.")
    device = device_of(device)
    options: dict[str, Any] = {"likelihood": ROBUST} if task == "regression" else {}
    deep = deep_network(task)
    size = parameters or count(network or deep, task, features, outputs, levels)
    speed = speed or Speed.by_rule(rows, size, device, CHAINS)
    machine = {"cpu": "a processor", "gpu": "a GPU", "tpu": "a TPU"}[device]
    size_words = f"{rows:,} rows of {features:,} inputs and {size:,} parameters"
    lengths = _lengths(task, rows, speed, seconds) if features <= rows else None
    if lengths is not None:
        length, start, rivals, total = lengths
        shorter = {} if start == START_STEPS else {"longest": start}
        return Choice(
            "ensemble_chains", network or deep, {"warmup": length, "num_steps": length} | shorter | options, length,
            min(BATCH, rows),
            f"ensemble_chains, because {size_words} leave time on {machine} for {CHAINS} chains of {length} draws, "
            "each from a mode of its own.", rivals, total,
        )  # fmt: skip
    allowed = SECONDS if seconds is None else seconds
    small = rows < SMALL or allowed < SECONDS / 2
    size = parameters or count(network or (deep if small else WIDE), task, features, outputs, levels)
    members = SMALL_MEMBERS if small else MEMBERS
    batch = min(BATCH if rows < 50_000 else 4 * BATCH, rows)
    step_seconds = members * (OVERHEAD[device] + batch * size / (BATCHES * RATES[device]))
    fewest = FEWEST if seconds is None else 1
    steps = int(min(MOST, max(fewest, min(SHARE * allowed / step_seconds, EPOCHS * rows / batch))))
    held_out = HELD_OUT if rows < 4 * SMALL else LARGE_HELD_OUT
    options |= {"size": members, "held_out": held_out}
    reason = f"too many for chains in {allowed:.0f} s on {machine}"
    if features > rows:
        options["prior"], reason = TIGHT, "more inputs than rows, which chains take too long for"
    return Choice(
        "deep_ensemble", network or (deep if small else WIDE), options, steps, batch,
        f"deep_ensemble, because {size_words} are {reason}: {members} networks learn from minibatches, and each stops "
        "where rows of its own are predicted best.",
        (), allowed if seconds is not None else steps * step_seconds,
    )  # fmt: skip


def _lengths(
    task: str, rows: int, speed: Speed, seconds: float | None
) -> tuple[int, int, tuple[dict[str, Any], ...], float] | None:
    """Length of chains, steps to their starts, rivals of the pilot and seconds in all; None where time is too short.

    Without a budget chains get their share of a minute, and what goes before them may take as long again.
    """
    if seconds is not None and seconds < SHORT:
        return None
    allowed = SECONDS * PATIENCE if seconds is None else seconds
    rivals = _rivals(task) if LEAST_ROWS <= rows <= PILOT_ROWS else ()
    pilot = pilot_seconds(speed, len(rivals))
    if seconds is not None and pilot > BEFORE * seconds:
        return None  # without a pilot nobody knows whether its error bars are honest
    if pilot > BEFORE * allowed:
        rivals, pilot = rivals[1:2], pilot_seconds(speed, min(1, len(rivals)))  # the usual prior
    start = START_STEPS
    room = allowed - pilot if seconds is None else BEFORE * allowed
    while start > LEAST_START and start * speed.batch > (BEFORE * allowed if seconds is None else room):
        start = max(LEAST_START, start // 2)
    time = SHARE * SECONDS if seconds is None else 0.95 * seconds - pilot - min(start * speed.batch, room)
    left = min(time, allowed - pilot - start * speed.batch)
    length = int(min(LONGEST, (max(left, 0.0) / (2 * speed.full)) ** 0.5))
    if length < SHORTEST:
        return None
    total = pilot + start * speed.batch + 2 * length**2 * speed.full
    return length, start, rivals, total if seconds is None else seconds


def pilot_seconds(speed: Speed, rivals: int) -> float:
    """Seconds of the short fits that compare so many rivals, each on two thirds of the rows."""
    chains = rivals * FOLDS * PILOTS / speed.chains
    return chains * (START * speed.batch + 2 * LENGTH**2 * max(2 / 3 * speed.full, speed.batch))


def deep_network(task: str) -> str:
    """The network of chains, in words."""
    return CLASSES[0] if task in ("binary", "multiclass") else DEEP


def worth_measuring(choice: Choice, rows: int, parameters: int, allowed: float | None, announced: bool) -> bool:
    """Is the speed of this machine worth its measurement: can chains be had, or is their time to be announced?

    Args:
        choice: by rule.
        rows: rows to learn from.
        parameters: of the network that chains would have.
        allowed: seconds of a budget.
        announced: whether somebody wants to know how long it takes.
    """
    if allowed is None:
        return announced and choice.method == "ensemble_chains"
    if allowed < SHORT:
        return False
    rule = Speed.by_rule(rows, parameters, "cpu", CHAINS)
    return 2 * SHORTEST**2 * rule.full < FASTER * allowed


def timed(choice: Choice, speed: Speed) -> Choice:
    """The choice with the seconds that it takes at a speed that was measured with 8 chains of the deep network.

    Never less than by rule: bare gradients side by side are up to six times as quick as those of chains.
    """
    if choice.method != "ensemble_chains":
        return choice
    length, start = choice.settings["warmup"], choice.settings.get("longest", START_STEPS)
    total = pilot_seconds(speed, len(choice.rivals)) + start * speed.batch + 2 * length**2 * speed.full
    return choice._replace(seconds=max(total, choice.seconds))


def _rivals(task: str) -> tuple[dict[str, Any], ...]:
    scales = SCALES if task in ("regression", "count") else CLASS_SCALES
    priors: tuple[dict[str, Any], ...] = tuple({"prior": f"fan_in_normal:{scale:g}"} for scale in scales)
    return priors if scales is SCALES else (*priors, priors[-1] | {"likelihood": CLASSES[1]})


def count(network: str, task: str, features: int, outputs: int = 1, levels: tuple[int, ...] = ()) -> int:
    """Parameters of a network in words, on so many inputs, of which some are codes of so many levels.

    A vector is looked up, and only its optimiser takes time: its numbers count an eighth of those of a kernel.

    Example:
        >>> count("mlp:50", "count", 3)
        251
    """
    from credo.networks.embedded import WIDTH
    from credo.tables.model import num_parameters, parse_network

    heads = {"regression": 2 * outputs, "multiclass": outputs}.get(task, 1)
    tables = sum(WIDTH * (1 + each) for each in levels) // LOOKED_UP
    return num_parameters(parse_network(network), features + (WIDTH - 1) * len(levels), heads) + tables


def device_of(device: str | None = None) -> str:
    """The kind of machine that is planned for: where JAX runs if none is named, a processor if it is an unknown one."""
    if device is None:
        import jax

        device = jax.default_backend()
    return device if device in RATES else "cpu"
