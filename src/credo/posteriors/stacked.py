"""A stack: one posterior that is a weighted mixture of several, each with a model of its own."""

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.mixture import Flat, flatten
from credo.core.model import Model
from credo.core.posterior import Draws, WeightPosterior
from credo.core.short import Card, plural
from credo.core.tree import leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import NoDensity, Refusal

SIXTEENTHS = 16  # a part gives its weight's share of its draws, rounded up to sixteenths: few programs for all weights


@struct
class StackPart:
    """One part of a stack: a model, and what was learned about it."""

    model: Model = leaf()
    posterior: Any = leaf()


@struct
class Stacked(Card):
    """p(f | D) = Σ_c w_c p_c(f | D), each part with its own network, prior and noise; `credo.stacked` makes it.

    Draws are those of all parts one after another, of one member, and log weights are log w_c + those within part c. A
    part of natural size N_c gives ⌈w_c N_c⌉ draws (in sixteenths), so that a stack costs no more than its dearest part
    and has the Monte Carlo error of its parts on average.

    Attributes:
        parts: models and posteriors.
        log_shares: log w [part], normalised wherever they are used; −∞ leaves a part out.
        sixteenths: how many sixteenths of its draws each part gives.
        kinds: the part of the `Mixed` likelihood that each one has; () where all have the same likelihood.
    """

    parts: tuple[StackPart, ...] = leaf()
    log_shares: Any = leaf()
    sixteenths: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()

    def _facts(self) -> dict[str, str]:
        names = (type(part.posterior).__name__ for part in self.parts)
        return {"parts": plural(len(self.parts), "part"), "posteriors": ", ".join(dict.fromkeys(names))}

    # ------------------------------------------------------------------ draws
    def asked(self, num: int | None) -> list[int | None]:
        """Draws that each part is asked for; None asks for what is natural."""
        if num is not None:
            return [max(1, math.ceil(num * share / sum(self.sixteenths))) for share in self.sixteenths]
        natural = [math.prod(part.posterior.num_draws(None)) for part in self.parts]
        return [
            None if share == SIXTEENTHS else max(1, math.ceil(count * share / SIXTEENTHS))
            for count, share in zip(natural, self.sixteenths)
        ]

    def plan(self, key: jax.Array, num: int | None) -> list[tuple[StackPart, jax.Array, int | None]]:
        """Every part with its key and the draws that it is asked for."""
        keys = [key] if len(self.parts) == 1 else jax.random.split(key, len(self.parts))
        return list(zip(self.parts, keys, self.asked(num)))

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """One member, with the draws of all parts."""
        each = zip(self.parts, self.asked(num))
        return 1, sum(math.prod(part.posterior.num_draws(count)) for part, count in each)

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """f(x) under draws of every part, by the part's own model."""
        plan = self.plan(key, num)
        return self.joined([flatten(part.posterior.outputs(k, part.model, inputs, n)) for part, k, n in plan])

    def joined(self, drawn: list[Flat]) -> Draws:
        """Draws of every part at the same rows as draws of the stack.

        Args:
            drawn: by part; log weights [draw], or [draw, …] where those of one part differ from row to row.
        """
        width = max(flat.outputs.shape[-1] for flat in drawn)
        shares = jax.nn.log_softmax(jnp.asarray(self.log_shares))
        values = jnp.concatenate([_padded(flat.outputs, width) for flat in drawn])
        weights = jnp.concatenate([share + flat.log_weights for share, flat in zip(shares, drawn)])
        return Draws(values[None], jax.tree.map(lambda x: x[None], self._likelihood(drawn)), weights[None])

    def _likelihood(self, drawn: list[Flat]) -> PyTree:
        """The likelihood's parameters of all draws, leaves [draw, …]."""
        if not self.kinds:
            return jax.tree.map(lambda *x: jnp.concatenate(x), *(flat.params for flat in drawn))
        counts = [len(flat.outputs) for flat in drawn]
        which = jnp.asarray(np.repeat(self.kinds, counts), jnp.int32)
        parts = tuple(self._of_kind(kind, drawn) for kind in range(max(self.kinds) + 1))
        return {"which": which, "parts": parts}

    def _of_kind(self, kind: int, drawn: list[Flat]) -> PyTree:
        """The parameters of one likelihood [draw, …]; draws of others have those of its own first draw."""
        params_by_part = [flat.params if k == kind else None for k, flat in zip(self.kinds, drawn)]
        some_draw = take(next(params for params in params_by_part if params is not None), 0)

        def filled(count: int) -> PyTree:
            return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), some_draw)

        leaves = (filled(len(flat.outputs)) if p is None else p for p, flat in zip(params_by_part, drawn))
        return jax.tree.map(lambda *x: jnp.concatenate(x), *leaves)

    # ------------------------------------------------------------------ other views of it
    def joint_at(self, blocks: Iterable[PyTree]) -> "Stacked":
        """The stack of parts whose draws are one function at all these inputs."""
        if all(isinstance(part.posterior, WeightPosterior) for part in self.parts):
            return self
        block_list = list(blocks)  # each part goes over them
        return self._with_posteriors(lambda posterior: posterior.joint_at(block_list))

    def view(self, mode: str) -> "Stacked":
        """The stack whose parts predict in this way, those that can; refused where none can."""
        refused: list[Refusal] = []

        def viewed(posterior: Any) -> Any:
            try:
                return posterior.view(mode)
            except Refusal as error:
                refused.append(error)
                return posterior

        stack = self._with_posteriors(viewed)
        if len(refused) == len(self.parts):
            raise Refusal(f"No part of this stack predicts with mode={mode!r}. {refused[0]}")
        return stack

    def _with_posteriors(self, change: Callable[[Any], Any]) -> "Stacked":
        parts = [dataclasses.replace(part, posterior=change(part.posterior)) for part in self.parts]
        return dataclasses.replace(self, parts=tuple(parts))

    def sample(self, key: jax.Array, num: int) -> NoReturn:
        """Refused: its parts have different weights."""
        raise Refusal("A stack is of several networks and has no weights of its own; sample the posterior of a part.")

    def log_prob(self, params: PyTree) -> NoReturn:
        """Refused, likewise."""
        raise NoDensity("A stack is of several networks and has no density over weights; ask the posterior of a part.")


def _padded(outputs: jax.Array, width: int) -> jax.Array:
    """Outputs [K, n, out] with zeros behind them up to `width`."""
    gap = [(0, 0)] * (outputs.ndim - 1) + [(0, width - outputs.shape[-1])]
    return jnp.pad(outputs, gap)
