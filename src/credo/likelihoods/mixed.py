"""Several likelihoods side by side: every draw of a stack of fits names the one that it belongs to."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import NamedLikelihood, NormalLikelihood, ask
from credo.core.likelihood import has_posterior
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal

BLOCK = 32  # draws in one call: those of one part lie side by side
Function = Callable[..., jax.Array]  # of a likelihood, its ν and its f


@struct
class Mixed:
    """p(y | f, ν) = p_c(y | f, ν_c), where c = ν["which"] is the part of the draw; `credo.stacked` makes it.

    ν is {"which": c, "parts": (ν_0, ν_1, …)}, and f is padded with zeros to the widest part. The ν_j of the other parts
    may be any values: nothing depends on them.

    Args:
        parts: likelihoods of one kind of targets.
        widths: how many outputs each of them has.

    Example:
        >>> import jax.numpy as jnp
        >>> from credo.likelihoods import Mixed, gaussian, student_t
        >>> mixed = Mixed((gaussian(0.1), student_t(4.0, noise=0.5)), (1, 1))
        >>> f = jnp.zeros((1, 1))
        >>> [round(float(mixed.variance({"which": c, "parts": ({}, {})}, f)[0, 0]), 3) for c in (0, 1)]
        [0.01, 0.5]
    """

    parts: tuple[Any, ...] = leaf()
    widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # JAX rebuilds objects with all kinds of leaves.
        if isinstance(self.parts, tuple) and len(self.widths) != len(self.parts):
            raise InputError(f"widths are the numbers of outputs of {len(self.parts)} parts, got {self.widths}.")

    # ------------------------------------------------------------------ what it is
    @property
    def kind(self) -> str:
        """What targets all parts describe."""
        return self.parts[0].kind

    @property
    def normal(self) -> bool:
        """Is every part normal?"""
        return all(ask(part, NormalLikelihood).normal for part in self.parts)

    @property
    def point(self) -> bool:
        """Is anything learned as a point?"""
        return any(bool(part.point) for part in self.parts)

    @property
    def inferred(self) -> bool:
        """Has any part a prior on ν?"""
        return any(has_posterior(part) for part in self.parts)

    @property
    def learns(self) -> str:
        """What the parts learn, in words."""
        return " or ".join(dict.fromkeys(ask(part, NamedLikelihood).learns for part in self.parts))

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """Targets that every part takes."""
        return reduce(lambda checked, part: part.prepare(checked), self.parts, targets)

    def num_outputs(self, targets: Any) -> int:
        """Those of the widest part."""
        return max(self.widths)

    def init(self, targets: jax.Array, weight: jax.Array) -> PyTree:
        """Refused: its parts are fitted, each on its own."""
        self._refuse()

    def log_prior(self, params: PyTree) -> jax.Array:
        """Refused, likewise."""
        self._refuse()

    def sample_prior(self, key: jax.Array, targets: jax.Array) -> PyTree:
        """Refused, likewise."""
        self._refuse()

    def inferring(self) -> "Mixed":
        """Refused, likewise."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Refusal("A stack is not fitted itself: fit its parts, each with its own likelihood, and stack them.")

    # ------------------------------------------------------------------ the density of y
    def _of(self, params: PyTree, outputs: jax.Array, function: Function) -> jax.Array:
        """The function of the draw's part; the others are called at f = 0, so that their gradients are not NaN."""
        which = params["which"]
        values = []
        for c, (part, width, nu) in enumerate(zip(self.parts, self.widths, params["parts"])):
            f = outputs[..., :width]
            values.append(function(part, nu, jnp.where(which == c, f, jnp.zeros_like(f))))
        dtype = jnp.result_type(*values)
        result = values[0].astype(dtype)
        for c, other in enumerate(values[1:], 1):
            result = jnp.where(which == c, other.astype(dtype), result)
        return result

    def over_draws(self, function: Function, params: PyTree, outputs: jax.Array, *mapped: Any) -> jax.Array:
        """The function of each draw's part [K, …]: draws go in blocks, and a block calls only its own parts."""
        arguments = (params, outputs, *mapped)
        count = len(outputs)
        blocks = -(-count // BLOCK)
        indices = np.minimum(np.arange(blocks * BLOCK), count - 1).reshape(blocks, BLOCK)
        values = jax.lax.map(lambda block: self._block(function, *block), jax.tree.map(lambda x: x[indices], arguments))
        return values.reshape(-1, *values.shape[2:])[:count]

    def _block(self, function: Function, params: PyTree, outputs: jax.Array, *mapped: Any) -> jax.Array:
        which = params["which"]
        result: Any = None
        for c, (part, width, nu) in enumerate(zip(self.parts, self.widths, params["parts"])):
            in_part = which == c
            f = jnp.where(_like(in_part, outputs), outputs, 0)[..., :width]
            call = jax.vmap(partial(function, part))
            shape = jax.eval_shape(call, nu, f, *mapped)
            values = jax.lax.cond(in_part.any(), call, partial(_nothing, shape), nu, f, *mapped)
            result = values if result is None else jnp.where(_like(in_part, values), values, result)
        return result

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log p_c(y | f, ν_c) [n]."""
        return self._of(params, outputs, lambda part, nu, f: part.log_prob(nu, f, targets))

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """E_c[y | f, ν_c]."""
        return self._of(params, outputs, lambda part, nu, f: part.mean(nu, f))

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Var_c[y | f, ν_c]."""
        return self._of(params, outputs, lambda part, nu, f: part.variance(nu, f))

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """P_c(Y ≤ y | f, ν_c)."""
        return self._of(params, outputs, lambda part, nu, f: part.cdf(nu, f, targets))

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One draw of y for every row."""
        return self._of(params, outputs, lambda part, nu, f: part.sample(key, nu, f))

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """log p_c(class | f, ν_c) of every class [n, C]."""
        return self._of(params, outputs, lambda part, nu, f: part.log_probs(nu, f))

    def entropy(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """H[p_c] in nats [n], of classes."""
        return self._of(params, outputs, lambda part, nu, f: part.entropy(nu, f))


def _like(mask: jax.Array, values: jax.Array) -> jax.Array:
    """[draw] as [draw, 1, …], beside values [draw, …]."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def _nothing(shape: jax.ShapeDtypeStruct, *_: Any) -> jax.Array:
    return jnp.zeros(shape.shape, shape.dtype)
