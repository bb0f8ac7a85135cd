"""A distribution over weights that predicts with the network's linearisation at its centre."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import Draws, WeightPosterior
from credo.core.tree import leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import Refusal


@struct
class Linearised(WeightPosterior):
    """f(x) = f_c(x) + J_x (θ − c) with θ ~ q and c the mean of q, of each member: a Gaussian process for a normal q.

    Attributes:
        weights: q, a posterior over weights with `mean` and `points` (leading axis: member).
        mode: "linearised", or "sampled": the network itself at draws of θ.
    """

    weights: Any = leaf()
    mode: str = "linearised"

    @property
    def members(self) -> int:
        return self.weights.members

    @property
    def available(self) -> int | None:
        return self.weights.available

    def view(self, mode: str) -> "Linearised":
        """The same posterior, predicting as "linearised" or "sampled"."""
        if mode not in ("linearised", "sampled"):
            raise Refusal(f'mode must be "linearised" or "sampled", got {mode!r}.')
        return dataclasses.replace(self, mode=mode)

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        return self.weights.draw(key, member, index)

    def log_prob(self, params: PyTree) -> jax.Array:
        """log q(θ)."""
        return self.weights.log_prob(params)

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """Draws of f(x): functions, each the same at all inputs."""
        if self.mode == "sampled":
            return super().outputs(key, model, inputs, num)
        members, draws = self.num_draws(num)
        keys = jax.random.split(key, members * draws).reshape(members, draws)

        def one(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, PyTree]:
            member_keys, member = pair
            params = take(self.weights.mean, member) | take(self.weights.points, member)
            state = take(self.weights.state, member)
            centre = model.complete(params)["network"]
            run = lambda network: model.network.apply(Variables(network, state), inputs)[0]  # noqa: E731
            # The network is run once for each member; every draw is then one linear map.
            values, push = jax.linearize(run, centre)

            def one_draw(k: jax.Array) -> tuple[jax.Array, PyTree]:
                theta = model.complete(self.weights.draw(k, member, jnp.zeros((), jnp.int32)).params)
                return values + push(jax.tree.map(jnp.subtract, theta["network"], centre)), theta["likelihood"]

            return jax.lax.map(one_draw, member_keys)

        values, likelihood = jax.lax.map(one, (keys, jnp.arange(members)))
        return Draws(values, likelihood, None)
