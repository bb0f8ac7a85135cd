"""Short fits that decide what the size of a table cannot tell: how far the network may bend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from credo.auto.choice import Choice, choose_for, settle, without_likelihood

if TYPE_CHECKING:
    import jax

    from credo.core.model import Model
    from credo.data.encoder import TableEncoder

FOLDS = 3
# Of a pilot: chains, their draws and path lengths, and steps to their starting points.
CHAINS, LENGTH, START = 2, 25, 1_000


def chosen_for(
    encoder: TableEncoder,
    data: Any,
    network: str | None,
    settings: Mapping[str, Any],
    budget: Any,
    seed: int,
    groups: Any = None,
) -> Choice:
    """The choice for a table that an encoder has learned, after its pilot.

    Args:
        encoder: the learned encoder of the table.
        data: (inputs, targets, weights), encoded.
        network, settings, budget: what the user said.
        seed: of the pilot.
        groups: a number for the group of each row; the pilot holds out whole groups.
    """
    from credo.recipes import MODEL_OPTIONS, table_model

    choice = choose_for(encoder, len(data[1]), network, budget)
    said = settle(choice, network, settings, None, None, budget)
    options = {name: value for name, value in said["settings"].items() if name in MODEL_OPTIONS}
    if "prior" in settings:
        return choice._replace(rivals=())
    choice = without_likelihood(choice) if "likelihood" in settings else choice
    return compete(
        choice, lambda rival: table_model(encoder, said["network"], options | rival, choice.method), data, seed, groups
    )


def compete(
    choice: Choice, model_with: Callable[[dict[str, Any]], Model], data: Any, seed: int, groups: Any = None
) -> Choice:
    """The choice with the settings that predict best, out of its rivals.

    Each rival is fitted to two thirds of the rows and scored on the others, three times over, by short chains; all
    folds run side by side as one program. The log-likelihood of rows that were not seen decides.

    Args:
        choice: from `choose`; without rivals it is returned as it is, and a shallow network has none.
        model_with: makes the model with a rival's settings.
        data: (inputs, targets, weights) of a table's rows.
        seed: of folds and fits.
        groups: a number for the group of each row, where no group may lie on both sides.
    """
    from credo.networks.shallow import Shallow

    if len(choice.rivals) < 2:
        return choice
    if isinstance(model_with(dict(choice.rivals[0])).network, Shallow):
        return choice._replace(rivals=())  # its usual prior is of another kind than the rivals
    folds = _folds(len(data[1]), seed, groups)
    if len(folds) < 2:
        return _usual(choice, "All rows are of one group, which no short fit can hold out")
    return _decided(choice, model_with, [data], [folds], [seed])[0]


def compete_each(
    choice: Choice, model_with: Callable[[dict[str, Any]], Model], tables: Sequence[Any], seeds: Sequence[int]
) -> list[Choice]:
    """`compete` on each of several tables of equal size, all of them side by side."""
    if len(choice.rivals) < 2:
        return [choice] * len(tables)
    folds = [_folds(len(table[1]), seed) for table, seed in zip(tables, seeds)]
    return _decided(choice, model_with, tables, folds, seeds)


def _decided(
    choice: Choice,
    model_with: Callable[[dict[str, Any]], Model],
    tables: Sequence[Any],
    folds: Sequence[list[Any]],
    seeds: Sequence[int],
) -> list[Choice]:
    models = [model_with(dict(rival)) for rival in choice.rivals]
    found = [_scores(choice, model, tables, folds, seeds) for model in models]
    of = ", of standardised targets" if models[0].likelihood.kind == "real" else ""
    return [_taken(choice, [scores[i] for scores in found], of) for i in range(len(tables))]


def _taken(choice: Choice, scores: list[float], of: str) -> Choice:
    best = max(range(len(scores)), key=lambda i: scores[i])
    if scores[best] == -math.inf:
        return _usual(choice, f"Short fits with each of {len(scores)} {_kind(choice)} came to nothing")
    words = ", ".join(f"{_words(rival)} {_score(score)}" for rival, score in zip(choice.rivals, scores))
    return choice._replace(
        settings=choice.settings | choice.rivals[best],
        rivals=(),
        why=f"{choice.why} Of {len(scores)} {_kind(choice)} {_words(choice.rivals[best])} predicts best (nats for each "
        f"row that a short fit had not seen{of}: {words}).",
    )


def _usual(choice: Choice, reason: str) -> Choice:
    """The choice with the prior that its method has for every table."""
    return choice._replace(rivals=(), why=f"{choice.why} {reason}, so the prior is the usual one.")


def _kind(choice: Choice) -> str:
    return "models" if any("likelihood" in rival for rival in choice.rivals) else "priors"


def _words(rival: dict[str, Any]) -> str:
    return " ".join(str(value) for value in rival.values())


def _score(score: float) -> str:
    return f"{score:.3f}" if score > -math.inf else "failed"


def _scores(
    choice: Choice, model: Model, tables: Sequence[Any], folds: Sequence[list[Any]], seeds: Sequence[int]
) -> list[float]:
    """Mean log-likelihood of the rows of all folds of each table; −∞ where a fit has come to nothing."""
    import jax
    import numpy as np

    from credo.core.batch import Batch
    from credo.registry import build_method
    from credo.training.many import fit_many

    parts = [_cut(model, table, own) for table, own in zip(tables, folds)]
    given, held = (tuple(np.concatenate(x) for x in zip(*side)) for side in zip(*parts))
    inputs, targets, weights = given
    rows = (weights > 0).sum(1).astype(np.float32)
    method = build_method(choice.method, size=CHAINS, warmup=LENGTH, num_steps=LENGTH, longest=START)
    found = fit_many(
        jax.random.key(seeds[0]), method, model, Batch(inputs, targets, weights.astype(np.float32), rows), _held_out,
        extra=held, steps=LENGTH, batch_size=min(128, weights.shape[1]),
    )  # fmt: skip
    totals = found.reshape(len(tables), -1).sum(1) / held[2].reshape(len(tables), -1).sum(1)
    return [float(total) if np.isfinite(total) else -np.inf for total in totals]


def _cut(model: Model, table: Any, folds: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs, targets and weights [fold, row, …] of the rows to learn from, and of those to score."""
    import numpy as np

    from credo.core.numeric import host_array, host_targets

    inputs, targets, weights = (np.asarray(part) for part in table)
    columns = (np.asarray(host_array(inputs)), host_targets(model.likelihood, targets), weights)
    rest = [np.concatenate([f for j, f in enumerate(folds) if j != i]) for i in range(len(folds))]
    return _stacked(columns, rest), _stacked(columns, folds)


def _stacked(columns: tuple[Any, ...], parts: list[Any]) -> tuple[Any, ...]:
    """The columns at these places [fold, row, …]; what a shorter fold lacks are rows that weigh nothing."""
    import numpy as np

    longest = max(len(part) for part in parts)
    places = np.stack([np.resize(part, longest) for part in parts])
    real = np.arange(longest) < np.array([len(part) for part in parts])[:, None]
    inputs, targets, weights = (x[places] for x in columns)
    return inputs, targets, np.where(real, weights, weights.dtype.type(0))


def _folds(rows: int, seed: int, groups: Any = None) -> list[Any]:
    """Places of equal numbers of rows, where one or two rows may be in none; or of whole groups."""
    import numpy as np

    from credo.data.group_folds import group_folds

    if groups is not None:
        return group_folds(groups, FOLDS, seed)
    return list(np.random.default_rng(seed).permutation(rows)[: rows // FOLDS * FOLDS].reshape(FOLDS, -1))


def _held_out(key: jax.Array, model: Model, posterior: Any, new: Any) -> jax.Array:
    from credo.core import mixture

    inputs, targets, weights = new
    draws = mixture.flatten(posterior.outputs(key, model, inputs, None))
    return (weights * mixture.log_prob(model.likelihood, draws, targets)).sum()
