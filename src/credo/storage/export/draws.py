"""The draws behind a prediction, made once: those of `credo.predict` with the same key."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import ModalPosterior, ask
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import Draws, WeightPosterior
from credo.core.tree import by_paths, leaf, num_bytes, struct, take, with_paths
from credo.core.typing import PyTree
from credo.networks import MLP
from credo.posteriors import ActivationDropout, GaussianWeights, Linearised, Samples
from credo.posteriors.subset import SubsetPosterior

# Ways to predict with the network itself at every draw of the weights.
BY_NETWORKS = (WeightPosterior.outputs, GaussianWeights.outputs, Linearised.outputs)


class WeightDraws(NamedTuple):
    """Draws of weights, or of directions from a centre where a posterior predicts with the linearised network."""

    network: PyTree  # leaves [member, draw, …]; [member, …] where draws are linear
    moves: dict[str, jax.Array]  # deviations by path [member, draw, …]; empty where draws are networks
    likelihood: PyTree  # leaves [member, draw, …]
    state: PyTree  # leaves [member, …]
    log_weights: np.ndarray  # [member, draw]


@struct
class LinearisedDraws:
    """f(x) = f_c(x) + J_x δ with stored directions δ around the centre c of each member; leaves as in `WeightDraws`."""

    network: PyTree = leaf()
    moves: dict[str, Any] = leaf()
    likelihood: PyTree = leaf()
    state: PyTree = leaf()

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """All stored draws of f(x)."""

        def one(member: tuple[PyTree, dict[str, jax.Array], PyTree]) -> jax.Array:
            network, moves, state = member

            def run(values: dict[str, jax.Array]) -> jax.Array:
                return model.network.apply(Variables(with_paths(network, values), state), inputs)[0]

            outputs, push = jax.linearize(run, {path: x for path, x in by_paths(network).items() if path in moves})
            return jax.lax.map(lambda move: outputs + push(move), moves)

        values = jax.lax.map(one, jax.tree.map(jnp.asarray, (self.network, self.moves, self.state)))
        return Draws(values, self.likelihood, None)


def make_draws(posterior: Any, model: Model, key: jax.Array, num: int | None) -> WeightDraws | None:
    """The draws; None where the posterior does not predict by draws of weights."""
    if not isinstance(posterior, WeightPosterior) or ask(posterior, ModalPosterior).mode == "probit":
        return None
    members, draws = posterior.num_draws(num)
    linear = isinstance(posterior, GaussianWeights | Linearised) and posterior.mode == "linearised"
    weights = posterior.chosen_weights(num)
    log_weights = np.full((members, draws), -np.log(members * draws)) if weights is None else np.asarray(weights)
    if linear:
        keys = jax.random.split(key, members * draws).reshape(members, draws)
        around: Any = _around_mode if isinstance(posterior, GaussianWeights) else _around_mean
        network, moves, likelihood, state = around(posterior, model, keys)
        return WeightDraws(network, moves, likelihood, state, log_weights)
    plan = posterior._plan(key, num)
    if isinstance(posterior, ActivationDropout) and type(model.network) is MLP:
        params = _masked(posterior, model, plan)
    elif type(posterior).outputs in BY_NETWORKS or (isinstance(posterior, SubsetPosterior) and posterior.whole):
        params = posterior.draws(*plan).params if posterior.on_disk else _one_by_one(posterior, plan)
        params = jax.vmap(model.complete)(params)
    else:
        return None
    shaped = jax.tree.map(lambda x: x.reshape(members, draws, *x.shape[1:]), params)
    return WeightDraws(shaped["network"], {}, shaped["likelihood"], _state(posterior), log_weights)


def as_posterior(draws: WeightDraws) -> Samples | LinearisedDraws:
    """The draws as a posterior that predicts with all of them."""
    if draws.moves:
        return LinearisedDraws(draws.network, draws.moves, draws.likelihood, draws.state)
    params = {"network": draws.network, "likelihood": draws.likelihood}
    return Samples(params, draws.state, draws.log_weights)


def size_of_draws(posterior: Any, num: int | None) -> int:
    """Bytes of all draws of weights, without making them."""
    members, draws = posterior.num_draws(num)
    draw = jax.eval_shape(lambda p, k: p.draw(k, jnp.int32(0), jnp.int32(0)), posterior, jax.random.key(0))
    return members * draws * num_bytes(draw.params)


def _state(posterior: Any) -> PyTree:
    while isinstance(posterior, SubsetPosterior | Linearised):
        posterior = posterior.inner if isinstance(posterior, SubsetPosterior) else posterior.weights
    return posterior.state


@jax.jit
def _one_by_one(posterior: WeightPosterior, plan: tuple[jax.Array, ...]) -> PyTree:
    return jax.lax.map(lambda one: posterior.draw(*one).params, plan)


@jax.jit
def _around_mode(
    posterior: GaussianWeights, model: Model, keys: jax.Array
) -> tuple[PyTree, dict[str, jax.Array], PyTree, PyTree]:
    """θ* of each member, and draws of the Gaussian around it."""

    def one(pair: tuple[jax.Array, jax.Array]) -> tuple[PyTree, dict[str, jax.Array], PyTree]:
        member_keys, member = pair
        centre = model.complete(posterior.centre(member).params)
        spread = take(posterior.spread, member)
        network = by_paths(centre["network"])
        moves = jax.lax.map(spread.draw, member_keys)
        moves = {path: moves[path].astype(network[path].dtype) for path in spread.paths}
        repeated = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(member_keys), *jnp.shape(x))), centre["likelihood"])
        return centre["network"], moves, repeated

    return *jax.lax.map(one, (keys, jnp.arange(len(keys)))), posterior.state


@jax.jit
def _around_mean(
    posterior: Linearised, model: Model, keys: jax.Array
) -> tuple[PyTree, dict[str, jax.Array], PyTree, PyTree]:
    """The mean of each member, and the deviations of its draws."""
    weights = posterior.weights

    def one(pair: tuple[jax.Array, jax.Array]) -> tuple[PyTree, dict[str, jax.Array], PyTree]:
        member_keys, member = pair
        centre = model.complete(take(weights.mean, member) | take(weights.points, member))["network"]
        theta = jax.lax.map(lambda k: model.complete(weights.draw(k, member, jnp.int32(0)).params), member_keys)
        return centre, by_paths(jax.tree.map(lambda t, c: t - c, theta["network"], centre)), theta["likelihood"]

    return *jax.lax.map(one, (keys, jnp.arange(len(keys)))), weights.state


def _masked(posterior: ActivationDropout, model: Model, plan: tuple[jax.Array, ...]) -> PyTree:
    """Masks on hidden units as weights: a masked unit has zeros in the kernel of the next layer."""
    network: Any = model.network

    @jax.jit
    def one(plan: tuple[jax.Array, ...]) -> PyTree:
        params = model.complete(posterior.draw(*plan).params)
        layers, names = dict(params["network"]), network.layers()
        for i, (name, following) in enumerate(itertools.pairwise(names)):
            shape = (layers[name]["kernel"].shape[0], 1)
            keep = jax.random.bernoulli(jax.random.fold_in(plan[0], i), 1 - network.dropout, shape)[:, 0]
            kernel = layers[following]["kernel"] * jnp.where(keep, 1 / (1 - network.dropout), 0.0)
            layers[following] = layers[following] | {"kernel": kernel}
        return params | {"network": layers}

    return jax.lax.map(one, plan)
