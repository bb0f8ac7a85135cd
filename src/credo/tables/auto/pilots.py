"""Short fits that decide what the size of a table cannot tell: how far the network may bend."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from credo.networks import Embedded, Piecewise
from credo.registry import NETWORKS, build_method
from credo.tables.auto.choice import FOLDS, LENGTH, PILOTS, START, Choice

if TYPE_CHECKING:
    import jax

    from credo.core.model import Model

DRAWS = 20  # of each fold, that say what is to be corrected


def pilot(
    choice: Choice,
    model_with: Callable[[dict[str, Any]], Model],
    tables: Sequence[Any],
    seeds: Sequence[int],
    groups: Any = None,
) -> list[Choice]:
    """The choice with the settings that predict best, out of its rivals, on each of several tables of equal size.

    Each rival is fitted to two thirds of the rows and scored on the others, three times over, by short chains; all
    folds of all tables run side by side as one program. The log-likelihood of rows that were not seen decides. What
    these rows say of the error bars is the choice's correction.

    Args:
        choice: from `choose`; without rivals it is returned as it is, and a shallow network has none.
        model_with: makes the model with a rival's settings.
        tables: (inputs, targets, weights) of the rows of each.
        seeds: of folds and fits, one for each table.
        groups: a number for the group of each row, where no group may lie on both sides; of a single table.
    """
    if not choice.rivals:
        return [choice] * len(tables)
    network = model_with(dict(choice.rivals[0])).network
    row = NETWORKS.row_of(network.network if isinstance(network, Embedded | Piecewise) else network)
    if row and row.prior:
        return [choice._replace(rivals=())] * len(tables)  # its usual prior is of another kind than the rivals
    folds = [_folds(len(table[1]), seed, groups) for table, seed in zip(tables, seeds)]
    if len(folds[0]) < 2:
        return [_with_usual_prior(choice, "All rows are of one group, which no short fit can hold out")] * len(tables)
    return _compare(choice, model_with, tables, folds, seeds)


def _compare(
    choice: Choice,
    model_with: Callable[[dict[str, Any]], Model],
    tables: Sequence[Any],
    folds: Sequence[list[Any]],
    seeds: Sequence[int],
) -> list[Choice]:
    models = [model_with(dict(rival)) for rival in choice.rivals]
    scored = [_scores(choice, model, tables, folds, seeds) for model in models]
    of = ", of standardised targets" if models[0].likelihood.kind == "real" else ""
    return [_with_best(choice, [scores[i] for scores in scored], of) for i in range(len(tables))]


def _with_best(choice: Choice, scored: list[tuple[float, Any]], of: str) -> Choice:
    scores = [score for score, _ in scored]
    best = max(range(len(scores)), key=lambda i: scores[i])
    if scores[best] == -math.inf:
        return _with_usual_prior(choice, f"Short fits with each of {len(scores)} {_kind(choice)} came to nothing")
    chosen = choice._replace(
        settings=choice.settings | choice.rivals[best], rivals=(), correction=_correction(scored[best][1])
    )
    if len(scores) == 1:
        return chosen
    words = ", ".join(f"{_describe(rival)} {_score(score)}" for rival, score in zip(choice.rivals, scores))
    return chosen._replace(
        why=f"{choice.why} Of {len(scores)} {_kind(choice)} {_describe(choice.rivals[best])} predicts best (nats for "
        f"each row that a short fit had not seen{of}: {words}).",
    )


def _correction(parts: Any) -> dict[str, Any] | None:
    """What the rows that short fits had not seen say of their error bars, as plain data."""
    from credo.evaluation.recalibration.unseen import at_frequencies, corrected
    from credo.tables.auto.honest import as_record

    if parts is None:
        return None
    frequencies = None
    if parts[0].likelihood.kind == "classes":
        import numpy as np

        labels, weight = np.concatenate([p.targets for p in parts]), np.concatenate([p.weight for p in parts])
        frequencies = at_frequencies(labels, weight, max(2, parts[0].outputs.shape[-1]))
    return as_record(corrected(parts, frequencies))


def _with_usual_prior(choice: Choice, reason: str) -> Choice:
    """The choice with the prior that its method has for every table."""
    return choice._replace(rivals=(), why=f"{choice.why} {reason}, so the prior is the usual one.")


def _kind(choice: Choice) -> str:
    return "models" if any("likelihood" in rival for rival in choice.rivals) else "priors"


def _describe(rival: dict[str, Any]) -> str:
    return " ".join(str(value) for value in rival.values())


def _score(score: float) -> str:
    return f"{score:.3f}" if score > -math.inf else "failed"


def _scores(
    choice: Choice, model: Model, tables: Sequence[Any], folds: Sequence[list[Any]], seeds: Sequence[int]
) -> list[tuple[float, Any]]:
    """Mean log-likelihood of the rows of all folds of each table, −∞ where a fit has come to nothing, and what the fits
    said of those rows."""
    import jax
    import numpy as np

    from credo.core.batch import Batch
    from credo.training.many import fit_many

    parts = [_cut(model, table, fold) for table, fold in zip(tables, folds)]
    training, held_out = (tuple(np.concatenate(x) for x in zip(*side)) for side in zip(*parts))
    inputs, targets, weights = training
    rows = (weights > 0).sum(1).astype(np.float32)
    method = build_method(choice.method, size=PILOTS, warmup=LENGTH, num_steps=LENGTH, longest=START)
    totals, draws = fit_many(
        jax.random.key(seeds[0]), method, model, Batch(inputs, targets, weights.astype(np.float32), rows), _held_out,
        extra=held_out, steps=LENGTH, batch_size=min(128, weights.shape[1]),
    )  # fmt: skip
    means = totals.reshape(len(tables), -1).sum(1) / held_out[2].reshape(len(tables), -1).sum(1)
    indices = iter(range(len(totals)))
    scored = []
    for mean, fold in zip(means, folds):
        parts = [_unseen(model, draws, held_out, next(indices)) for _ in fold]
        scored.append((float(mean), parts) if np.isfinite(mean) else (-np.inf, None))
    return scored


def _unseen(model: Model, draws: Any, held_out: Any, index: int) -> Any:
    """Rows of one fold, and the draws of the fit that had not seen them."""
    import jax
    import numpy as np

    from credo.evaluation.recalibration.unseen import Unseen

    outputs, params, log_weights = jax.tree.map(lambda x: np.asarray(x)[index], tuple(draws))
    shared = np.broadcast_to(log_weights[:, None], outputs.shape[:2])
    return Unseen(model.likelihood, params, outputs, shared, held_out[1][index], held_out[2][index])


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

    from credo.core.folds import group_folds

    if groups is not None:
        return group_folds(groups, FOLDS, seed)
    return list(np.random.default_rng(seed).permutation(rows)[: rows // FOLDS * FOLDS].reshape(FOLDS, -1))


def _held_out(key: jax.Array, model: Model, posterior: Any, new: Any) -> Any:
    """The log-likelihood of rows, and some of the draws at them."""
    import jax
    import jax.numpy as jnp

    from credo.core import mixture

    inputs, targets, weights = new
    draws = mixture.flatten(posterior.outputs(key, model, inputs, None))
    total = (weights * mixture.log_prob(model.likelihood, draws, targets)).sum()
    count = draws.outputs.shape[0]
    indices = jnp.linspace(0, count - 1, min(DRAWS, count)).astype(int)
    some_draws = jax.tree.map(lambda x: x[indices], draws)
    return total, some_draws._replace(log_weights=jax.nn.log_softmax(some_draws.log_weights))
