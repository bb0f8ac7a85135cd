"""From the size of a table to a method and its settings.

The choice is a function of the task, the size of the table, the network if one is given, the time and the kind of
machine: the same table gets the same choice everywhere. `benchmarks/auto.py` fits candidates, on other tables than
those on which `credo benchmark tables` measures `auto` itself (that of patients is the same one, in other folds). What
size cannot tell a pilot decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from credo.errors import InputError

if TYPE_CHECKING:
    from credo.core.model import Model
    from credo.data.encoder import TableEncoder

AUTO = "auto"
SECONDS = 60.0  # what a fit may take where no budget is given
SHARE = 0.6  # of it for chains; the rest is compilation and the way to their starting points
# Seconds of a gradient: so many, and one for each RATES of rows times parameters. Measured on two cores of a processor
# and, for one table of 7,373 rows, on an H200; those of TPUs are a guess.
OVERHEAD = {"cpu": 3e-4, "gpu": 3e-5, "tpu": 3e-5}
RATES = {"cpu": 6e9, "gpu": 4e11, "tpu": 2e11}
BATCHES = 2.5  # how much faster minibatches go through wide layers
CHAINS, MEMBERS = 8, 5
SHORTEST, LONGEST = 25, 100  # draws of a chain, and steps of its paths
FEWEST, MOST = 2_000, 200_000  # steps of an ensemble
EPOCHS = 300  # of an ensemble, at most: later ones change nothing
DEEP, WIDE = "mlp:32,32,32:tanh", "mlp:100,100,100"
ROBUST = "heteroscedastic_t:0.01"
# Widths of the prior that compete: rows decide by themselves once there are many, and cannot where there are few.
SCALES, CLASS_SCALES = (1.0, 3.0), (1.0, 4.0)
# The network of chains for classes, and the likelihood that competes where some labels may be wrong.
CLASSES = ("mlp:16,16:tanh", "mislabelled")
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
    """

    method: str
    network: str
    settings: dict[str, Any]
    steps: int
    batch_size: int
    why: str
    rivals: tuple[dict[str, Any], ...] = ()


def choose(
    task: str,
    rows: int,
    features: int,
    *,
    outputs: int = 1,
    network: str | None = None,
    parameters: int | None = None,
    seconds: float | None = None,
    device: str | None = None,
) -> Choice:
    """The choice for a table.

    Chains from the members of an ensemble, as long as the time allows chains of 25 draws; else an ensemble on
    minibatches. The noise of numbers depends on the inputs and has tails that the residuals decide; whether labels of
    classes may be wrong the pilot decides.

    Args:
        task: "regression", "binary", "multiclass" or "count".
        rows: rows to learn from.
        features: columns after encoding.
        outputs: targets, or classes.
        network: in words, where it is given.
        parameters: of that network, where it has no words.
        seconds: for the fit.
        device: "cpu", "gpu" or "tpu"; None is where JAX runs.

    Example:
        >>> choose("regression", 400, 10, device="cpu").method
        'ensemble_chains'
        >>> choose("regression", 1_000_000, 10, device="cpu").method
        'deep_ensemble'
    """
    if rows < 1:
        raise InputError("There are no rows to learn from.")
    device = _device() if device is None else device
    allowed = SECONDS if seconds is None else seconds
    options: dict[str, Any] = {"likelihood": ROBUST} if task == "regression" else {}
    deep = CLASSES[0] if task in ("binary", "multiclass") else DEEP
    size = parameters or count(network or deep, task, features, outputs)
    device = device if device in RATES else "cpu"
    gradients = SHARE * allowed / (OVERHEAD[device] + rows * size / RATES[device])
    length = int(min(LONGEST, (gradients / (2 * CHAINS)) ** 0.5))
    place = {"cpu": "a processor", "gpu": "a GPU", "tpu": "a TPU"}[device]
    of = f"{rows:,} rows of {features:,} inputs and {size:,} parameters"
    if length >= SHORTEST:
        return Choice(
            "ensemble_chains", network or deep, {"warmup": length, "num_steps": length} | options, length,
            min(128, rows),
            f"ensemble_chains, because {of} leave time on {place} for {CHAINS} chains of {length} draws, each from a "
            "mode of its own.",
            _rivals(task) if LEAST_ROWS <= rows <= PILOT_ROWS else (),
        )  # fmt: skip
    size = parameters or count(network or WIDE, task, features, outputs)
    batch = min(128 if rows < 50_000 else 512, rows)
    work = SHARE * allowed / (OVERHEAD[device] + batch * size * MEMBERS / (BATCHES * RATES[device]))
    steps = int(min(MOST, max(FEWEST, min(work, EPOCHS * rows / batch))))
    return Choice(
        "deep_ensemble", network or WIDE, options | {"size": MEMBERS}, steps, batch,
        f"deep_ensemble, because {of} are too many for chains in {allowed:.0f} s on {place}: {MEMBERS} networks learn "
        "from minibatches.",
    )  # fmt: skip


def _rivals(task: str) -> tuple[dict[str, Any], ...]:
    scales = SCALES if task in ("regression", "count") else CLASS_SCALES
    priors: tuple[dict[str, Any], ...] = tuple({"prior": f"fan_in_normal:{scale:g}"} for scale in scales)
    return priors if scales is SCALES else (*priors, priors[-1] | {"likelihood": CLASSES[1]})


def without_likelihood(choice: Choice) -> Choice:
    """The choice where the user has named a likelihood: no rival brings another one."""
    return choice._replace(rivals=tuple(rival for rival in choice.rivals if "likelihood" not in rival))


def choose_for(encoder: TableEncoder, rows: int, network: str | None = None, budget: Any = None) -> Choice:
    """The choice for a table that an encoder has learned."""
    from credo.training.fit import seconds

    targets = 1 if isinstance(encoder.target, str) else len(encoder.target)
    return choose(
        encoder.task, rows, len(encoder.feature_names), outputs=len(encoder.classes or ()) or targets, network=network,
        seconds=None if budget is None else seconds(budget),
    )  # fmt: skip


def choose_for_model(model: Model, data: Any, budget: Any = None) -> Choice:
    """The choice for a model of the user's own; its network and likelihood stay."""
    import jax
    import numpy as np

    from credo.core.numeric import host_arrays, host_targets
    from credo.training.fit import seconds

    inputs, targets = host_arrays(data[0]), host_targets(model.likelihood, data[1])
    one = jax.tree.map(lambda x: np.asarray(x[:1]), inputs)
    outputs = model.likelihood.num_outputs(targets)
    made = jax.eval_shape(lambda x: model.network.init(jax.random.key(0), x, outputs).params, one)
    size = sum(math.prod(x.shape) for x in jax.tree.leaves(made))
    features = sum(math.prod(x.shape[1:]) for x in jax.tree.leaves(one))
    task = {"real": "regression", "counts": "count", "classes": "multiclass"}[model.likelihood.kind]
    allowed = None if budget is None else seconds(budget)
    choice = choose(task, len(targets), features, outputs=outputs, parameters=size, seconds=allowed)
    own = {name: value for name, value in choice.settings.items() if name != "likelihood"}
    return choice._replace(settings=own, rivals=())


def settle(
    choice: Choice,
    network: str | None,
    settings: Mapping[str, Any],
    steps: int | None,
    batch_size: int | None,
    budget: Any,
) -> dict[str, Any]:
    """The choice, with all that the user said in its place.

    Example:
        >>> chosen = choose("regression", 400, 10, device="cpu")
        >>> settle(chosen, None, {"noise": 0.5, "warmup": 10, "num_steps": 5}, 20, None, None)["settings"]
        {'warmup': 10, 'num_steps': 5, 'noise': 0.5}
    """
    own = dict(choice.settings)
    if "noise" in settings:  # belongs to likelihoods whose noise does not depend on the inputs
        own.pop("likelihood", None)
    return {
        "method": choice.method,
        "network": network or choice.network,
        "settings": own | dict(settings),
        "steps": steps if steps is not None or budget is not None else choice.steps,
        "batch_size": choice.batch_size if batch_size is None else batch_size,
    }


def count(network: str, task: str, features: int, outputs: int = 1) -> int:
    """Parameters of a network in words, on so many inputs.

    Example:
        >>> count("mlp:50", "count", 3)
        251
    """
    from credo.networks.mlp import MLP
    from credo.recipes import parse_network

    found = parse_network(network)
    hidden = found.widths if isinstance(found, MLP) else (found.num_nodes,)
    heads = {"regression": 2 * outputs, "multiclass": outputs}.get(task, 1)
    widths = [features, *hidden, heads]
    return sum((a + 1) * b for a, b in itertools.pairwise(widths))


def _device() -> str:
    import jax

    return jax.default_backend()
