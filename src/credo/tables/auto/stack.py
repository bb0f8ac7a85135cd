"""Several models of one table, each fitted to the same folds and mixed by what it says of rows that it had not seen.

Each member of an ensemble leaves out one fold of the rows, so that one fit tells what it would say of new rows and is
the fit that predicts as well: nothing is fitted twice. A Gaussian process leaves each row out in closed form. The
weights maximise Σ_n log Σ_c w_c p_c(y_n | D without the fold of n); what the mixture says of these rows corrects its
error bars. Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.mixture import Flat
from credo.evaluation.diagnostics.best_mixture import best_mixture
from credo.evaluation.recalibration.cross_fit import log_densities, unseen_alone, unseen_by_fold
from credo.evaluation.recalibration.members import disagreement
from credo.evaluation.recalibration.unseen import Correction, Unseen, at_frequencies, corrected
from credo.methods.function_space.infinite.posterior import FunctionPosterior
from credo.posteriors import Stacked
from credo.training.stacked import stacked

if TYPE_CHECKING:
    from credo.training.fit import Fit

PSEUDO_ROWS = 2.0  # for each model: few rows name a winner by chance
LEAST_WEIGHT = 0.02  # below which a model is left out: it would cost more than it tells


class Candidate(NamedTuple):
    """One model of the set, fitted.

    Attributes:
        name: in words.
        fit: the fit.
        unseen: what it says of the rows of each fold, not having seen them.
        density: log p of these rows, fold after fold.
    """

    name: str
    fit: Fit
    unseen: list[Unseen]
    density: np.ndarray

    @classmethod
    def of(cls, name: str, fit: Fit, folds: Sequence[np.ndarray]) -> Candidate:
        """A fit with these folds, or one of a Gaussian process, with what it says of rows."""
        alone = isinstance(fit.posterior, FunctionPosterior)
        unseen = unseen_alone(fit, folds) if alone else unseen_by_fold(fit)
        return cls(name, fit, unseen, log_densities(unseen))

    @property
    def score(self) -> float:
        """Nats of a row."""
        weight = np.concatenate([part.weight for part in self.unseen])
        return float(np.average(np.nan_to_num(self.density, nan=-np.inf), weights=weight))


def mixed(parts: Sequence[Candidate]) -> tuple[Fit, list[Candidate], np.ndarray]:
    """The mixture that predicts rows best, the parts that are in it, and their weights."""
    weight = np.concatenate([part.weight for part in parts[0].unseen])
    density = np.stack([part.density for part in parts])
    weights = best_mixture(density, weights=weight, pseudo_rows=PSEUDO_ROWS * len(parts))
    chosen = [i for i in range(len(parts)) if weights[i] >= min(LEAST_WEIGHT, weights.max())]
    parts, weights = [parts[i] for i in chosen], weights[chosen] / weights[chosen].sum()
    if len(parts) == 1:
        return parts[0].fit, parts, weights
    return stacked([part.fit for part in parts], weights, [part.name for part in parts]), parts, weights


def correction(fit: Fit, parts: Sequence[Candidate], weights: Sequence[float] | np.ndarray) -> Correction:
    """What the rows of all folds say of the error bars of a fit that `mixed` gave."""
    folds = zip(*(part.unseen for part in parts))
    unseen = [joined(fit, list(fold)) if len(parts) > 1 else fold[0] for fold in folds]
    frequencies = None
    if unseen[0].likelihood.kind == "classes":
        labels = np.concatenate([part.targets for part in unseen])
        weight = np.concatenate([part.weight for part in unseen])
        frequencies = at_frequencies(labels, weight, max(2, max(part.outputs.shape[-1] for part in unseen)))
    real = unseen[0].likelihood.kind == "real"
    narrower = disagreement([part.fit for part in parts], weights) if real else 0.0
    return corrected(unseen, frequencies, narrower=narrower)


def joined(fit: Fit, parts: list[Unseen]) -> Unseen:
    """What the parts of a stack say of one fold, as what the stack says of it."""
    stack = fit.posterior
    assert isinstance(stack, Stacked)
    drawn = [Flat(jnp.asarray(part.outputs), part.params, jnp.asarray(part.log_weights)) for part in parts]
    draws = jax.tree.map(lambda x: np.asarray(x)[0], stack.joined(drawn))
    return parts[0]._replace(
        likelihood=fit.model.likelihood, params=draws.likelihood, outputs=draws.values,
        log_weights=draws.log_weights, members=0,
    )  # fmt: skip
