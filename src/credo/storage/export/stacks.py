"""The parts of a stack for exports: each with its name, its key, its draws and its likelihood."""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from credo.core.model import Model
from credo.core.posterior import Draws
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.likelihoods import Mixed
from credo.likelihoods.calibrated import Corrected
from credo.posteriors import Stacked
from credo.training.fit import Fit

T = TypeVar("T")


@struct
class FixedDraws:
    """A posterior that always gives `count` draws."""

    posterior: Any = leaf()
    count: int = 1

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """Those of `count`."""
        return self.posterior.num_draws(self.count)

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """`count` draws of f(x)."""
        return self.posterior.outputs(key, model, inputs, self.count)


def each_part(
    posterior: Stacked, fit: Fit, key: jax.Array, num: int | None, make: Callable[[Any, Model, jax.Array, Any], T]
) -> list[T]:
    """What `make` gives for posterior, model, key and draws of each part; the sentence of a refusal names the part.

    The model of a part has the part's likelihood, under the stack's corrections.
    """
    names = [part["name"] for part in fit.config.get("parts", ()) if part["weight"] > 0]
    results = []
    for c, (part, part_key, count) in enumerate(posterior.plan(key, num)):
        kind = posterior.kinds[c] if posterior.kinds else None
        model = dataclasses.replace(part.model, likelihood=likelihood_of(fit.model.likelihood, kind))
        try:
            results.append(make(part.posterior, model, part_key, count))
        except Refusal as error:
            name = names[c] if c < len(names) else f"number {c + 1}"
            raise Refusal(f"The part {name} of this stack cannot be exported: {error}") from error
    return results


def likelihood_of(likelihood: Any, kind: int | None) -> Any:
    """The likelihood of one part: that of a `Mixed` one, inside of the stack's corrections.

    Example:
        >>> from credo.likelihoods import Stretched, gaussian, student_t
        >>> mixed = Mixed((gaussian(0.1), student_t(4.0, noise=0.5)), (1, 1))
        >>> likelihood_of(Stretched(mixed, 2.0), 0).inner.scale
        0.1
    """
    if kind is not None and isinstance(likelihood, Mixed):
        return likelihood.parts[kind]
    if isinstance(likelihood, Corrected):
        return dataclasses.replace(likelihood, inner=likelihood_of(likelihood.inner, kind))  # type: ignore[type-var]
    return likelihood


def widths_of(likelihood: Any, kinds: tuple[int, ...]) -> list[int] | None:
    """How many outputs each part has; None where all have the same likelihood, and as many."""
    while isinstance(likelihood, Corrected):
        likelihood = likelihood.inner
    return [likelihood.widths[kind] for kind in kinds] or None
