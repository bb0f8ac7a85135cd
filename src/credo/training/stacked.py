"""`stacked`: several fits as one, a weighted mixture of their posteriors."""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from credo.core.capabilities import StoredPosterior, ask
from credo.core.mixture import Flat
from credo.core.model import Model
from credo.core.pieces import PIECE_BYTES
from credo.core.predict import FEW_ROWS, is_shape, output_shapes
from credo.errors import InputError, Refusal
from credo.likelihoods import Mixed
from credo.posteriors import Samples, Stacked, StackPart
from credo.posteriors.stacked import SIXTEENTHS
from credo.training.config import plain
from credo.training.fit import Fit
from credo.training.placement import on_one_device

SILENT = 0.01  # of the stack: notes of parts of less weight are left out
SHARED = ("beta", "temperature", "num_data", "key")  # settings of the heaviest part that stand for the whole


class Share(NamedTuple):
    """One fit of a stack, by name, with its weight."""

    name: str
    weight: float
    fit: Fit


def stacked(fits: Sequence[Fit], weights: Sequence[float], names: Sequence[str] | None = None) -> Fit:
    """Several fits of the same targets as one: p(y | x, D) = Σ_c w_c p_c(y | x, D), by models of their own.

    Networks, priors, likelihoods and methods may differ; inputs and the kind of targets may not. Weights come from what
    each fit said of rows that it had not seen: `credo.diagnostics.best_mixture`. Parts of weight 0 are left out. Yao,
    Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions.

    Args:
        fits: results of `credo.fit` or `credo.load`, or stacks.
        weights: one for each fit, at least 0; their sum does not matter.
        names: what each fit is called; None: by its method.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> def fit(width):
        ...     model = credo.Model(credo.networks.mlp(width), credo.priors.normal(), credo.likelihoods.gaussian())
        ...     return credo.fit(jax.random.key(0), model, (x, x[:, 0] ** 2), "map", steps=20)
        >>> both = credo.stacked([fit([]), fit([8])], [1, 3])
        >>> both.config["settings"]["weights"], credo.predict(jax.random.key(1), both, x).mean.shape
        ({'map 1': 0.25, 'map 2': 0.75}, (40,))
    """
    fits = list(fits)
    labels = _names(fits) if names is None else list(names)
    shares = [Share(name, float(w), fit) for name, w, fit in zip(labels, _normalised(weights, fits), fits)]
    used = [share for share in shares if share.weight > 0]
    main = max(used, key=lambda share: share.weight).fit
    parts, read = zip(*map(_part, used))
    likelihood, kinds = _likelihood(used, parts)
    log_shares = np.log([share.weight for share in used]).astype(np.float32)
    posterior = Stacked(parts, log_shares, tuple(math.ceil(SIXTEENTHS * share.weight) for share in used), kinds)
    outcomes = [share.fit.outcome for share in used]
    notes = [f"{share.name}: {note}" for share in used if share.weight >= SILENT for note in share.fit.notes]
    model = dataclasses.replace(main.model, likelihood=likelihood)
    return dataclasses.replace(
        main, posterior=posterior, model=model, outcome=next((x for x in outcomes if x != "finished"), "finished"),
        notes=(_describe(shares), *(x for x in read if x), *notes), config=_config(shares, main, model),
        timing=_timing(fits), loop=None, known=None, parts=tuple(used),
    )  # fmt: skip


def _normalised(weights: Sequence[float], fits: list[Fit]) -> np.ndarray:
    """Weights that sum to 1, of fits that can be mixed."""
    if not fits:
        raise InputError("A stack has at least one fit, got none.")
    for fit in fits:
        if not isinstance(fit, Fit):
            raise InputError(f"A stack is of results of credo.fit or credo.load, got a {type(fit).__name__}.")
    shares = np.asarray(weights, np.float64)
    if shares.shape != (len(fits),) or not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum() > 0:
        raise InputError(f"A stack of {len(fits)} fits has as many weights, at least 0 and not all 0, got {weights}.")
    for other in fits[1:]:
        _check_alike(fits[0], other)
    return shares / shares.sum()


def _check_alike(one: Fit, other: Fit) -> None:
    """A sentence where one mixture cannot hold the two."""
    facts = {
        "inputs of shape": [fit.input_shape for fit in (one, other)],
        "inputs of type": [fit.input_dtype for fit in (one, other)],
        "targets of shape": [fit.target_shape for fit in (one, other)],
        "targets that are": [fit.model.likelihood.kind for fit in (one, other)],
    }
    for what, (first, second) in facts.items():
        if first != second:
            raise InputError(f"All fits of a stack see the same rows: one has {what} {first}, another {second}.")


def _names(fits: list[Fit]) -> list[str]:
    """Methods by name, numbered where one comes more than once."""
    methods = [str(fit.config.get("method", "fit")) for fit in fits]
    counts: Counter[str] = Counter()
    labels = []
    for method in methods:
        counts[method] += 1
        labels.append(f"{method} {counts[method]}" if methods.count(method) > 1 else method)
    return labels


def _part(share: Share) -> tuple[StackPart, str | None]:
    """Model and posterior, in memory; draws on disk are thinned to what is held at once, and a sentence says so."""
    posterior = share.fit.posterior
    if not ask(posterior, StoredPosterior).on_disk:
        return on_one_device(StackPart(share.fit.model, posterior)), None
    members, stored = posterior.num_draws(None)
    num_draws = members * max(1, min(stored, PIECE_BYTES // max(1, posterior.draw_bytes * members)))
    weights = posterior.chosen_weights(num_draws)
    read = posterior.part(np.arange(members), posterior.chosen(num_draws))
    if weights is not None:
        if not isinstance(read, Samples):
            raise Refusal(f"Draws of {share.name} lie on disk and are weighted; keep fewer draws, so that memory does.")
        read = dataclasses.replace(read, weights=np.asarray(weights))
    note = f"{share.name}: {num_draws:,} of its {members * stored:,} draws, which lie on disk, are in the stack."
    return StackPart(share.fit.model, read), note if num_draws < members * stored else None


def _likelihood(shares: Sequence[Share], parts: Sequence[StackPart]) -> tuple[Any, tuple[int, ...]]:
    """The likelihood of all draws, and which of its parts is whose; () where all fits have the same one."""
    draws = [_shapes(share.fit, part) for share, part in zip(shares, parts)]
    firsts: list[int] = []  # the first fit with each likelihood
    kinds = []
    for c in range(len(parts)):
        same = (k for k, first in enumerate(firsts) if _same(parts[first], draws[first], parts[c], draws[c]))
        kinds.append(next(same, len(firsts)))
        if kinds[-1] == len(firsts):
            firsts.append(c)
    likelihoods = [parts[c].model.likelihood for c in firsts]
    _check_widths(parts, draws)
    if len(likelihoods) == 1:
        return likelihoods[0], ()
    return Mixed(tuple(likelihoods), tuple(int(draws[c].outputs.shape[-1]) for c in firsts)), tuple(kinds)


def _shapes(fit: Fit, part: StackPart) -> Flat:
    """Shapes of the draws of a part at some inputs."""
    inputs = jax.tree.map(
        lambda s, d: jax.ShapeDtypeStruct((FEW_ROWS, *s), d), fit.input_shape, fit.input_dtype, is_leaf=is_shape
    )
    return output_shapes(jax.random.key(0), part.posterior, part.model, inputs, None)


def _same(one: StackPart, shapes: Flat, other: StackPart, others: Flat) -> bool:
    """Have two parts one likelihood, all its numbers included, with parameters and outputs alike?"""
    likelihoods = [part.model.likelihood for part in (one, other)]
    structures: list[Any] = [jax.tree.structure(x) for x in likelihoods]
    if structures[0] != structures[1]:
        return False
    if not all(np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, likelihoods))):
        return False
    rows = [jax.tree.map(lambda x: x.shape[1:], (flat.params, flat.outputs)) for flat in (shapes, others)]
    return rows[0] == rows[1]


def _check_widths(parts: Sequence[StackPart], draws: Sequence[Flat]) -> None:
    """A sentence where predictions have several widths, such as of other classes."""
    means = [jax.eval_shape(jax.vmap(part.model.likelihood.mean), *flat[1::-1]) for part, flat in zip(parts, draws)]
    widths = sorted({mean.shape[-1] for mean in means})
    if len(widths) > 1:
        raise InputError(f"All fits of a stack predict the same: one has {widths[0]} columns, another {widths[-1]}.")


def _describe(shares: Sequence[Share]) -> str:
    """What the stack is, heaviest first."""
    order = sorted(shares, key=lambda share: -share.weight)
    return f"A stack: {', '.join(f'{100 * share.weight:.0f} % {share.name}' for share in order)}."


def _config(shares: Sequence[Share], main: Fit, model: Model) -> dict[str, Any]:
    """Settings of the stack as plain data, with those of every part."""
    each = [
        {"name": share.name, "weight": share.weight, "config": share.fit.config, "timing": share.fit.timing}
        for share in shares
    ]
    settings = {"type": "Stacked", "weights": {share.name: share.weight for share in shares}}
    shared = {name: main.config[name] for name in SHARED if name in main.config}
    return {"method": "stacked", "settings": settings, "model": plain(model)} | shared | {"parts": each}


def _timing(fits: Sequence[Fit]) -> dict[str, float]:
    """Times and steps of all parts together."""
    names = dict.fromkeys(name for fit in fits for name in fit.timing)
    return {name: sum(fit.timing.get(name, 0) for fit in fits) for name in names}
