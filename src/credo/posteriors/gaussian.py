"""A Gaussian over weights around a mode, and three ways to predict with it."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import IndependentSpread, LogitLikelihood, MarginalPosterior, ask, offers
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.parts import Arrays, replace_arrays, select_arrays
from credo.core.posterior import Draws, WeightPosterior
from credo.core.tree import Select, by_paths, leaf, path_string, paths, struct, take, with_paths
from credo.core.typing import PyTree
from credo.errors import NoDensity, Refusal

MODES = ("linearised", "sampled", "probit")


@struct
class GaussianWeights(WeightPosterior):
    """q(θ) = N(θ*, Σ), or an equal mixture of several of them (leading axis: member).

    It predicts with the network's linearisation at θ*, f(x) + J_x δ with δ ~ N(0, Σ), unless it is asked for another
    `view`: "sampled" is the network itself at draws of θ, which needs Σ to be small; "probit" (classes) is one set of
    logits f / √(1 + π/8 diag(J Σ J')), in closed form. Immer, Korzepa and Bauer (2021), Improving predictions of
    Bayesian neural nets via local linearization; MacKay (1992) for the probit.

    Attributes:
        mean: θ*, `{"network": weights}`.
        spread: Σ in its structure (`credo.methods.laplace.curvature`); weights that are not in it are points.
        points: parameters that are points: noise, hyper-parameters.
        state: frozen statistics of the network.
        log_evidence: the approximation of log p(D) [member].
        prior_scale: factor of the prior's precision [member, group]; 1 where the prior stayed.
        structure: the structure of Σ: "full", "kfac", "diagonal", "last_layer" or "low_rank".
        mode: how it predicts.
    """

    mean: PyTree = leaf()
    spread: Any = leaf()
    points: PyTree = leaf()
    state: PyTree = leaf()
    log_evidence: Any = leaf(default=None)
    prior_scale: Any = leaf(default=None)
    structure: str = "full"
    mode: str = "linearised"

    def view(self, mode: str) -> "GaussianWeights":
        """The same posterior, predicting as "linearised", "sampled" or "probit"."""
        if mode not in MODES:
            raise Refusal(f"mode must be one of {', '.join(MODES)}, got {mode!r}.")
        return dataclasses.replace(self, mode=mode)

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """One for each member under "probit", which draws nothing."""
        return (self.members, 1) if self.mode == "probit" else super().num_draws(num)

    def centre(self, member: Any) -> Variables:
        """θ* of a member, with all its points."""
        return Variables(take(self.mean, member) | take(self.points, member), take(self.state, member))

    def draw(self, key: jax.Array, member: jax.Array, index: jax.Array) -> Variables:
        variables = self.centre(member)
        network = _shifted_by(variables.params["network"], take(self.spread, member).draw(key))
        return Variables(variables.params | {"network": network}, variables.state)

    def log_prob(self, params: PyTree) -> jax.Array:
        """log (1/S) Σ_s N(θ; θ*_s, Σ_s)."""
        points = set(paths(self.mean["network"])) - set(self.spread.paths)
        if points:
            raise NoDensity(
                f"'{min(points)}' is a point of this posterior, so it has no density over all weights; take a "
                "structure that covers them."
            )
        values = by_paths(params["network"])

        def one(mean: PyTree, spread: Any) -> jax.Array:
            return spread.log_prob({path: values[path] - x for path, x in by_paths(mean).items()})

        log_probs = jax.vmap(one)(self.mean["network"], self.spread)
        return jax.scipy.special.logsumexp(log_probs) - math.log(self.members)

    def product(self) -> tuple[PyTree, PyTree] | None:
        """Means and standard deviations of the weights where they are independent, else None."""
        network = take(self.mean["network"], 0)
        spread = take(self.spread, 0)
        independent = ask(spread, IndependentSpread).independent
        if self.members > 1 or not independent or set(spread.paths) != set(paths(network)):
            return None
        return network, jax.tree_util.tree_map_with_path(lambda path, x: spread.std[path_string(path)], network)

    def marginal(self, select: Select) -> "GaussianWeights":
        """The distribution of the weights that the globs match, by path."""
        mean = select_arrays(self.mean, select)
        names = tuple(mean["network"])
        if not set(names) <= set(self.spread.paths) or not offers(self.spread, MarginalPosterior):
            raise NoDensity(
                f'structure="{self.structure}" has no density of {", ".join(names)}: take another structure.'
            )
        spread = self._spread(lambda spread: spread.marginal(names))
        return GaussianWeights(mean, spread, {}, {}, structure=self.structure, mode=self.mode)

    def renewed(self, mean: Arrays, std: Arrays) -> "GaussianWeights":
        """The same with the weights at these paths N(mean, std²) instead, independent of all others."""
        spread = self._spread(lambda spread: spread.renewed(std))
        return dataclasses.replace(self, mean=replace_arrays(self.mean, mean), spread=spread)

    def _spread(self, function: Callable[[Any], Any]) -> Any:
        """The function of every member's spread, in its precision: outside of a program it stays on the host."""
        if not any(isinstance(x, np.ndarray) and x.dtype == np.float64 for x in jax.tree.leaves(self.spread)):
            return jax.vmap(function)(self.spread)
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, jax.vmap(function)(self.spread))

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """Draws of f(x): functions, each the same at all inputs."""
        if self.mode == "sampled":
            return super().outputs(key, model, inputs, num)
        if self.mode == "probit" and model.likelihood.kind != "classes":
            raise Refusal('mode="probit" is for classes; for real and count targets take "linearised" or "sampled".')
        if self.mode == "probit" and not ask(model.likelihood, LogitLikelihood).logits:
            raise Refusal('mode="probit" is for outputs that are logits of classes; take "linearised" or "sampled".')
        members, draws = self.num_draws(num)
        keys = jax.random.split(key, members * draws).reshape(members, draws)
        values = jax.lax.map(lambda pair: self._member(model, inputs, *pair), (keys, jnp.arange(members)))
        likelihood = jax.vmap(lambda m: model.complete(self.centre(m).params)["likelihood"])(jnp.arange(members))
        spread = jax.tree.map(lambda x: jnp.broadcast_to(x[:, None], (members, draws, *x.shape[1:])), likelihood)
        return Draws(values, spread, None)

    def _member(self, model: Model, inputs: PyTree, keys: jax.Array, member: jax.Array) -> jax.Array:
        """[draw, n, out] of one member."""
        variables, spread = self.centre(member), take(self.spread, member)
        network = variables.params["network"]

        def run(values: dict[str, jax.Array]) -> jax.Array:
            params = variables.params | {"network": with_paths(network, values)}
            return model.outputs(Variables(params, variables.state), inputs)[0]

        weights = {path: x for path, x in by_paths(network).items() if path in spread.paths}
        if self.mode == "probit":
            variance = spread.variance(model, variables, inputs)
            return (run(weights) / jnp.sqrt(1 + math.pi / 8 * variance))[None]
        # The network is run once; every draw is then one linear map.
        outputs, push = jax.linearize(run, weights)

        def one(key: jax.Array) -> jax.Array:
            deviation = spread.draw(key)
            return outputs + push({path: deviation[path].astype(x.dtype) for path, x in weights.items()})

        group = None if jax.default_backend() == "cpu" else min(32, len(keys))
        return jax.lax.map(one, keys, batch_size=group)


def _shifted_by(tree: PyTree, deviation: dict[str, jax.Array]) -> PyTree:
    def one(path: Any, x: jax.Array) -> jax.Array:
        delta = deviation.get(path_string(path))
        return x if delta is None else x + delta.astype(x.dtype)

    return jax.tree_util.tree_map_with_path(one, tree)
