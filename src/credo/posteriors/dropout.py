"""Dropout posteriors: input rows of weights are masked at random, or activations by the network itself."""

from collections.abc import Mapping
from typing import Any

import jax

from credo.core.capabilities import MaskedNetwork, require
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import Draws, WeightPosterior
from credo.core.tree import by_paths, leaf, path_string, struct, take
from credo.core.typing import PyTree
from credo.errors import NoDensity

Rows = tuple[tuple[str, int], ...]  # paths of the kernels that are masked, each with the axis of its inputs


def with_masks(weights: PyTree, masks: Mapping[str, jax.Array], rows: Rows) -> PyTree:
    """The network's weights, each masked kernel multiplied along its input axis by the mask of its path."""
    axes = dict(rows)

    def one(path: Any, x: jax.Array) -> jax.Array:
        name = path_string(path)
        if name not in masks:
            return x
        shape = [1] * x.ndim
        shape[axes[name]] = -1
        return x * masks[name].reshape(shape)

    return jax.tree_util.tree_map_with_path(one, weights)


def num_units(weights: PyTree, rows: Rows) -> dict[str, int]:
    """Inputs of each masked kernel."""
    shapes = {path: x.shape for path, x in by_paths(weights).items()}
    return {name: shapes[name][axis] for name, axis in rows}


@struct
class WeightDropout(WeightPosterior):
    """θ_l = W_l diag(z_l) / (1 − π_l) with z_lj ~ Bernoulli(1 − π_l) for every input j of every masked kernel l.

    params: W and all other parameters, which are points; rates: π by path; state: frozen statistics; all with a
    leading member axis. Gal and Ghahramani (2016).
    """

    params: PyTree = leaf()
    rates: PyTree = leaf()
    state: PyTree = leaf()
    rows: Rows = ()

    @property
    def available(self) -> int | None:
        """One point where nothing is masked."""
        return None if self.rows else 1

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        params, rates = take(self.params, member), take(self.rates, member)
        units = num_units(params["network"], self.rows)
        masks = {}
        for k, (name, count) in zip(jax.random.split(key, len(units)), units.items()):
            keep = jax.random.bernoulli(k, 1 - rates[name], (count,))
            masks[name] = keep / (1 - rates[name])
        network = with_masks(params["network"], masks, self.rows)
        return Variables(params | {"network": network}, take(self.state, member))

    def log_prob(self, params: PyTree) -> jax.Array:
        raise NoDensity("Masked weights take finitely many values and have no density; fit another posterior for one.")


@struct
class ActivationDropout(WeightPosterior):
    """W is a point; a draw is the network under one draw of its own masks, the same at all inputs.

    params: all parameters; state: frozen statistics; both with a leading member axis.
    """

    params: PyTree = leaf()
    state: PyTree = leaf()

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        """The weights themselves: what is random is inside the network."""
        return Variables(take(self.params, member), take(self.state, member))

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """f(x) of the network under `num` draws of its masks, one key for each draw."""
        members, draws = self.num_draws(num)

        def one(plan: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, PyTree]:
            variables = self.draw(*plan)
            params = model.complete(variables.params)
            masked = require(model.network, MaskedNetwork)
            values = masked.apply_masked(Variables(params["network"], variables.state), inputs, plan[0])
            return values, params["likelihood"]

        # A CPU is busy with one draw; an accelerator needs several at a time.
        group = None if jax.default_backend() == "cpu" else min(32, members * draws)
        values, likelihood = jax.lax.map(one, self._plan(key, num), batch_size=group)
        shaped = jax.tree.map(lambda x: x.reshape(members, draws, *x.shape[1:]), (values, likelihood))
        return Draws(shaped[0], shaped[1], None)

    def log_prob(self, params: PyTree) -> jax.Array:
        raise NoDensity("Masks on activations are no distribution over weights; fit another posterior for a density.")
