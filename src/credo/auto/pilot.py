"""Short fits that decide what the size of a table cannot tell: how far the network may bend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from credo.auto.choice import Choice, choose_for, settle

if TYPE_CHECKING:
    import jax

    from credo.core.model import Model
    from credo.data.encoder import TableEncoder

FOLDS = 3
# Of a pilot: chains, their draws and path lengths, and steps to their starting points.
CHAINS, LENGTH, START = 2, 25, 1_000


def chosen_for(
    encoder: TableEncoder, data: Any, network: str | None, settings: Mapping[str, Any], budget: Any, seed: int
) -> Choice:
    """The choice for a table that an encoder has learned, after its pilot.

    Args:
        encoder: the learned encoder of the table.
        data: (inputs, targets, weights), encoded.
        network, settings, budget: what the user said.
        seed: of the pilot.
    """
    from credo.recipes import MODEL_OPTIONS, table_model

    choice = choose_for(encoder, len(data[1]), network, budget)
    said = settle(choice, network, settings, None, None, budget)
    options = {name: value for name, value in said["settings"].items() if name in MODEL_OPTIONS}
    if "prior" in settings:
        return choice._replace(rivals=())
    return compete(
        choice, lambda rival: table_model(encoder, said["network"], options | rival, choice.method), data, seed
    )


def compete(choice: Choice, model_with: Callable[[dict[str, Any]], Model], data: Any, seed: int) -> Choice:
    """The choice with the settings that predict best, out of its rivals.

    Each rival is fitted to two thirds of the rows and scored on the others, three times over, by short chains; all
    folds run side by side as one program. The log-likelihood of rows that were not seen decides.

    Args:
        choice: from `choose`; without rivals it is returned as it is.
        model_with: makes the model with a rival's settings.
        data: (inputs, targets, weights) of a table's rows.
        seed: of folds and fits.
    """
    return compete_each(choice, model_with, [data], [seed])[0]


def compete_each(
    choice: Choice, model_with: Callable[[dict[str, Any]], Model], tables: Sequence[Any], seeds: Sequence[int]
) -> list[Choice]:
    """`compete` on each of several tables of equal size, all of them side by side."""
    if len(choice.rivals) < 2:
        return [choice] * len(tables)
    models = [model_with(dict(rival)) for rival in choice.rivals]
    found = [_scores(choice, model, tables, seeds) for model in models]
    of = ", of standardised targets" if models[0].likelihood.kind == "real" else ""
    return [_taken(choice, [scores[i] for scores in found], of) for i in range(len(tables))]


def _taken(choice: Choice, scores: list[float], of: str) -> Choice:
    best = max(range(len(scores)), key=lambda i: scores[i])
    words = ", ".join(f"{_words(rival)} {score:.3f}" for rival, score in zip(choice.rivals, scores))
    return choice._replace(
        settings=choice.settings | choice.rivals[best],
        rivals=(),
        why=f"{choice.why} Of {len(scores)} priors {_words(choice.rivals[best])} predicts best (nats for each row that "
        f"a short fit had not seen{of}: {words}).",
    )


def _words(rival: dict[str, Any]) -> str:
    return " ".join(str(value) for value in rival.values())


def _scores(choice: Choice, model: Model, tables: Sequence[Any], seeds: Sequence[int]) -> list[float]:
    """Mean log-likelihood of the rows of all folds of each table; −∞ where a fit has come to nothing."""
    import jax
    import numpy as np

    from credo.core.batch import Batch
    from credo.registry import build_method
    from credo.training.many import fit_many

    parts = [_cut(model, table, seed) for table, seed in zip(tables, seeds)]
    given, held = (tuple(np.concatenate(x) for x in zip(*side)) for side in zip(*parts))
    inputs, targets, weights = given
    rows = np.full(len(weights), weights.shape[1], np.float32)
    method = build_method(choice.method, size=CHAINS, warmup=LENGTH, num_steps=LENGTH, longest=START)
    found = fit_many(
        jax.random.key(seeds[0]), method, model, Batch(inputs, targets, weights.astype(np.float32), rows), _held_out,
        extra=held, steps=LENGTH, batch_size=min(128, weights.shape[1]),
    )  # fmt: skip
    totals = found.reshape(len(tables), FOLDS).sum(1) / held[2].reshape(len(tables), -1).sum(1)
    return [float(total) if np.isfinite(total) else -np.inf for total in totals]


def _cut(model: Model, table: Any, seed: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs, targets and weights [fold, row, …] of the rows to learn from, and of those to score."""
    import numpy as np

    inputs, targets, weights = (np.asarray(part) for part in table)
    targets = model.likelihood.prepare(targets)
    folds = _folds(len(targets), seed)
    held = np.stack(folds)
    rest = np.stack([np.concatenate([f for j, f in enumerate(folds) if j != i]) for i in range(FOLDS)])
    columns = (inputs, targets, weights)
    return tuple(x[rest] for x in columns), tuple(x[held] for x in columns)


def _folds(rows: int, seed: int) -> list[Any]:
    """Places of equal numbers of rows; one or two rows may be in none."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(rows)
    return list(order[: rows // FOLDS * FOLDS].reshape(FOLDS, -1))


def _held_out(key: jax.Array, model: Model, posterior: Any, new: Any) -> jax.Array:
    from credo.core import mixture

    inputs, targets, weights = new
    draws = mixture.flatten(posterior.outputs(key, model, inputs, None))
    return (weights * mixture.log_prob(model.likelihood, draws, targets)).sum()
