"""The posterior protocol, and the base of all posteriors over weights."""

from abc import abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.short import Card, fields_in_short, is_array, plural
from credo.core.tree import size
from credo.core.typing import PyTree
from credo.errors import Refusal

OFFSET = 0.618034  # near no simple fraction, where rounding would decide between neighbours of equal weight


class Draws(NamedTuple):
    """Draws of network outputs. Leading axes: member (chain), draw."""

    values: jax.Array  # [member, draw, n, out]
    likelihood: PyTree  # the likelihood's parameters of each draw, leaves [member, draw, ...]
    log_weights: jax.Array | None  # [member, draw], normalised; None where all are equal


@runtime_checkable
class Posterior(Protocol):
    """Anything that can draw network outputs at new inputs. Posteriors are pytrees."""

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int) -> Draws:
        """About `num` draws of f(x) over all members."""
        ...

    def joint_at(self, blocks: Iterable[PyTree]) -> "Posterior":
        """The posterior of which one draw is one function at the inputs of all these blocks, even where `outputs` is
        called for one block after another with the same key."""
        ...

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """(members, draws per member) that `outputs` gives when asked for `num` (None: what is natural)."""
        ...

    def view(self, mode: str) -> "Posterior":
        """The posterior that predicts in another way; raises `credo.errors.Refusal` where it cannot."""
        ...


class WeightPosterior(Card):
    """A posterior over parameters. A subclass defines one draw of one member; the rest follows."""

    def _facts(self) -> dict[str, str]:
        params = jax.eval_shape(lambda q: q.draw(jax.random.key(0), 0, 0).params, self)
        stored = "made afresh" if self.available is None else f"{self.available:,} of each"
        storage = " (on disk)" if self.on_disk else ""
        weights = {} if self.log_weights is None else {"weights": "weighted"}
        return {
            "members": plural(self.members, "member"), "draws": f"draws {stored}{storage}",
            "parameters": plural(size(params), "parameter"),
        } | weights  # fmt: skip

    def __repr__(self) -> str:
        # JAX puts markers in place of leaves while it flattens trees, and may print them.
        complete = all(is_array(x) for x in jax.tree.leaves(self))
        return super().__repr__() if complete else fields_in_short(self)

    @property
    def members(self) -> int:
        """Length of the member axis, the first of every array."""
        return jax.tree.leaves(self)[0].shape[0]

    @property
    def available(self) -> int | None:
        """Stored draws per member, None where draws are made afresh."""
        return None

    @property
    def log_weights(self) -> jax.Array | None:
        """Log weights of stored draws [member, draw], or None where all weigh the same."""
        return None

    @property
    def on_disk(self) -> bool:
        """True where stored draws are memory maps. Such a posterior has `part` and `draw_bytes` (see `Samples`)."""
        return False

    def view(self, mode: str) -> Any:
        """The posterior that predicts in another way ("sampled", "linearised", "probit"), where it can."""
        if mode == "sampled":
            return self
        raise Refusal(f'This posterior predicts with mode="sampled" only, got {mode!r}.')

    def joint_at(self, blocks: Iterable[PyTree]) -> Any:
        """Itself: a draw of the weights is one function everywhere."""
        return self

    @abstractmethod
    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        """The draw with this index of this member."""

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """Draws are spread evenly over members, and are no more than are stored."""
        per_member = 200 if self.available is None else self.available
        if num is not None:
            per_member = max(1, -(-num // self.members))
            if self.available is not None:
                per_member = min(per_member, self.available)
        return self.members, per_member

    def chosen(self, num: int | None) -> Any:
        """Indices of the stored draws that are taken of each chain: evenly spaced, without replacement.

        Where draws are weighted and not all are asked for, evenly along Σ w instead, so that heavy ones come more than
        once (systematic resampling; Kitagawa, 1996).
        """
        _, draws = self.num_draws(num)
        stored = draws if self.available is None else self.available
        if self.log_weights is not None and draws < stored:
            return _systematic(self._pooled_log_weights(), draws)
        return np.minimum((np.arange(draws) * stored + stored - 1) // draws, stored - 1)

    def chosen_weights(self, num: int | None) -> jax.Array | None:
        """Normalised log weights of the draws that are taken [member, draw]; None where all weigh the same. Draws that
        were taken by weight weigh the same, unless chains differ at one index."""
        if self.log_weights is None:
            return None
        chosen = self.chosen(num)
        weights = jnp.asarray(self.log_weights)[:, chosen]
        if len(chosen) < self.log_weights.shape[1]:
            weights = weights - self._pooled_log_weights()[chosen]
        return weights - jax.scipy.special.logsumexp(weights)

    def _pooled_log_weights(self) -> jax.Array:
        """log Σ w over chains at each index [draw]: every chain gives its draws of the same indices."""
        return jax.scipy.special.logsumexp(jnp.asarray(self.log_weights), axis=0)

    def _plan(self, key: jax.Array, num: int | None) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Keys, members and draw indices [members × draws]."""
        members, draws = self.num_draws(num)
        member, index = jnp.meshgrid(jnp.arange(members), jnp.asarray(self.chosen(num)), indexing="ij")
        return jax.random.split(key, members * draws), member.ravel(), index.ravel()

    def draws(self, keys: jax.Array, members: jax.Array, index: jax.Array) -> Variables:
        """Several draws at once, with one leading axis."""
        return jax.vmap(self.draw)(keys, members, index)

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """Parameters with one leading axis over draws, chains flattened; drawn by weight where draws are weighted."""
        return self._sample(key, num) if self.on_disk else _one_program(self, key, num)

    def _sample(self, key: jax.Array, num: int) -> PyTree:
        weights = self.log_weights
        if weights is None:
            return self.draws(*self._plan(key, num)).params
        key_pick, key_draw = jax.random.split(key)
        # By the distribution function: Gumbel noise would need one number for every pair of a wanted and a stored draw.
        shares = jnp.exp(weights.ravel() - weights.max())
        flat_index = jax.random.choice(key_pick, shares.size, (num,), p=shares)
        index = (flat_index // weights.shape[1], flat_index % weights.shape[1])
        return self.draws(jax.random.split(key_draw, num), *index).params

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """f(x) under draws of the weights, made and used one group at a time so that weights never pile up."""
        members, draws = self.num_draws(num)

        def one(plan: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, PyTree]:
            variables = self.draw(*plan)
            values, _ = model.outputs(variables, inputs)
            return values, model.complete(variables.params)["likelihood"]

        plan = self._plan(key, num)
        # A CPU is busy with one draw; an accelerator needs several at a time.
        group = 1 if jax.default_backend() == "cpu" else min(32, members * draws)
        values, likelihood = jax.lax.map(one, plan, batch_size=None if group == 1 else group)
        values, likelihood = jax.tree.map(lambda x: x.reshape(members, draws, *x.shape[1:]), (values, likelihood))
        return Draws(values, likelihood, self.chosen_weights(num))


@partial(jax.jit, static_argnames="num")
def _one_program(posterior: WeightPosterior, key: jax.Array, num: int) -> PyTree:
    """Draws made at once: dozens of small programs would be compiled one after another."""
    return posterior._sample(key, num)


def _systematic(log_weights: jax.Array, num: int) -> Any:
    """Indices where Σ w passes (j + c)/num of its end, j = 0 … num − 1; on the host unless it is traced."""
    total = jnp.cumsum(jnp.exp(log_weights - log_weights.max()))
    indices = jnp.searchsorted(total, (jnp.arange(num) + OFFSET) / num * total[-1])
    return indices if isinstance(indices, jax.core.Tracer) else np.asarray(indices)
