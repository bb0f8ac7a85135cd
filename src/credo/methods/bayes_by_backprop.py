"""Bayes by Backprop: mean-field Gaussian variational inference by reparameterisation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, size, struct
from credo.errors import Refusal
from credo.methods.optimise import descend, fade, optimiser, tail_average
from credo.posteriors import MeanField

PyTree = Any


@struct
class MeanFieldState:
    """Variational parameters (mean, log std, points) as one vector where small, and the optimiser's memory.

    prior: (mean, log std, is-a-weight) of a Gaussian prior, laid out like the random parameters; None where the prior
    is not Gaussian or has hyper-parameters of its own, and the KL is then estimated from the draws.
    """

    step: jax.Array = leaf()
    values: PyTree = leaf()
    average: PyTree = leaf()
    averaged: jax.Array = leaf()  # over how many iterates
    memory: PyTree = leaf()
    network: PyTree = leaf()
    prior: PyTree = leaf()
    random: Layout | None = None  # the random parameters in one vector
    layout: Layout | None = None  # {"log_std", "mean", "points"} in one vector


@struct
class BayesByBackprop(Method):
    """Maximise E_q[log p(D|θ)] − β KL[q‖p] over q(θ) = Π_i N(θ_i; m_i, s_i²), with θ = m + s ε (B1, B2).

    The minibatch estimate scales the likelihood by N/M and leaves the KL alone, so the optimum does not depend on
    the batch size. The KL is closed form under a Gaussian prior and a Monte-Carlo estimate otherwise. Noise that is
    "learned" is a point; noise that is "inferred" joins q in its log. Blundell et al. (2015); Kingma et al. (2015)
    for the local reparameterisation.

    Args:
        learning_rate: size of the optimiser's steps; fades to a tenth over the second half of the fit, whose
            iterates are averaged.
        num_samples: K, draws of θ for each step.
        initial_std: s at the start, for every weight.
        beta: weight of the KL; 1 is Bayes.
        estimator: "weights" draws one θ for the whole batch; "local" draws the pre-activations of every row (lower
            variance; for networks of dense layers).

    Example:
        >>> import credo
        >>> credo.methods.BayesByBackprop(num_samples=2).beta
        1.0
    """

    learning_rate: float = leaf(default=0.005)
    num_samples: int = 1
    initial_std: float = leaf(default=0.05)
    beta: float = leaf(default=1.0)
    estimator: str = "weights"
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 20_000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.estimator not in ("weights", "local"):
            raise Refusal(f'estimator must be "weights" or "local", got {self.estimator!r}.')
        if self.estimator == "local" and not hasattr(model.network, "apply_local"):
            raise Refusal(
                "The local reparameterisation needs a network of dense layers, whose pre-activations are Gaussian; "
                f'{type(model.network).__name__} does not offer them: use estimator="weights".'
            )
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> MeanFieldState:
        random = {k: v for k, v in variables.params.items() if not (k == "likelihood" and model.likelihood.point)}
        points = {k: v for k, v in variables.params.items() if k not in random}
        layout = Layout.of(random)
        mean = layout.ravel(random)
        log_std = jax.tree.map(lambda m: jnp.full_like(m, jnp.log(self.initial_std)), mean)
        parts = {"log_std": log_std, "mean": mean, "points": points}
        whole = Layout.of(parts, limit=2 * size(random) + size(points) if layout.flat else -1)
        values = whole.ravel(parts)
        memory = optimiser(self.optimiser).init(values)
        prior = self._gaussian_prior(model, variables, random, layout)
        zero = jnp.zeros((), jnp.int32)
        return MeanFieldState(zero, values, values, zero, memory, variables.state, prior, layout, whole)

    def _gaussian_prior(self, model: Model, variables: Variables, random: PyTree, layout: Layout) -> PyTree:
        """(mean, log std, is-a-weight) of the prior, laid out like the random parameters; None where not Gaussian."""
        params = model.complete(variables.params)
        if jax.tree.leaves(params["prior"]):
            return None
        bound = model.prior.bind(model.network.info(params["network"]), params["prior"])
        moments = bound.gaussian() if hasattr(bound, "gaussian") else None
        if moments is None:
            return None
        zeros, ones = (jax.tree.map(f, random) for f in (jnp.zeros_like, jnp.ones_like))
        mean, std = (model.free(params | {"network": m})["network"] for m in moments)
        log_std = jax.tree.map(jnp.log, std)
        rows = (zeros | {"network": mean}, zeros | {"network": log_std}, zeros | {"network": ones["network"]})
        return tuple(layout.ravel(row) for row in rows)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: MeanFieldState) -> PyTree:
        """ε for K draws, and a key for what else is random inside the network."""
        key_eps, key_net = jax.random.split(key)
        mean = state.layout.unravel(state.values)["mean"]  # type: ignore[union-attr]
        leaves, treedef = jax.tree.flatten(mean)
        keys = jax.random.split(key_eps, len(leaves)) if len(leaves) > 1 else [key_eps]
        eps = [jax.random.normal(k, (self.num_samples, *m.shape), m.dtype) for k, m in zip(keys, leaves)]
        return jax.tree.unflatten(treedef, eps), key_net

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: MeanFieldState, batch: Batch
    ) -> tuple[MeanFieldState, Info]:
        def loss(values: PyTree) -> tuple[jax.Array, tuple[dict, PyTree]]:
            likelihood, prior, entropy, network = self._terms(noise, model, state, values, batch)
            # The bound of (p(D|θ)^{1/β} p(θ))^{1/T}, times β.
            bound = (likelihood + self.beta * prior) / model.temperature + self.beta * entropy
            metrics = {
                "loss": -bound / batch.num_data,
                "log_likelihood": likelihood / batch.num_data,
                "kl": -prior - entropy,
            }
            return metrics["loss"], (metrics, network)

        (_, (metrics, network)), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps, floor=0.1)
        values, memory = descend(self.optimiser, rate, gradient, state.memory, state.values)
        average, count = tail_average(state.average, state.averaged, values, state.step, phase.steps)
        state = dataclasses.replace(
            state, step=state.step + 1, values=values, average=average, averaged=count, memory=memory, network=network
        )
        return state, Info(metrics)

    def _terms(
        self, noise: PyTree, model: Model, state: MeanFieldState, values: PyTree, batch: Batch
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:
        """E_q[log p(D|θ)], E_q[log p(θ)], H[q] and the network's new state."""
        parts = state.layout.unravel(values)  # type: ignore[union-attr]
        mean, log_std = parts["mean"], parts["log_std"]
        std = jax.tree.map(jnp.exp, log_std)
        eps, key = noise

        def one(eps: PyTree, key: jax.Array) -> tuple[jax.Array, jax.Array, PyTree]:
            theta = jax.tree.map(lambda m, s, e: m + s * e, mean, std, eps)
            params = state.random.unravel(theta) | parts["points"]  # type: ignore[union-attr]
            variables = Variables(params, state.network)
            if self.estimator == "local":
                moments = [state.random.unravel(t)["network"] for t in (mean, std)]  # type: ignore[union-attr]
                outputs, network = model.network.apply_local(*moments, batch.inputs, key), state.network  # type: ignore[attr-defined]
                per_row = model.likelihood.log_prob(model.complete(params)["likelihood"], outputs, batch.targets)
            else:
                per_row, network = model.log_likelihood(variables, batch, key=key, train=True)
            prior = model.log_prior(params) if state.prior is None else self._rest_of_prior(model, params)
            return batch.total(per_row), prior, network

        if self.num_samples == 1:
            likelihood, prior, network = one(jax.tree.map(lambda e: e[0], eps), key)
        else:
            each = jax.vmap(one)(eps, jax.random.split(key, self.num_samples))
            likelihood, prior = each[0].mean(), each[1].mean()
            network = jax.tree.map(lambda x: x[0], each[2])
        if state.prior is not None:
            prior = prior + _expected_log_normal(mean, log_std, *state.prior)
        entropy = sum((x + 0.5 * jnp.log(2 * jnp.pi * jnp.e)).sum() for x in jax.tree.leaves(log_std))
        return likelihood, prior, entropy, network

    def _rest_of_prior(self, model: Model, params: PyTree) -> jax.Array:
        """log p of what is not a weight."""
        params = model.complete(params)
        return model.prior.log_hyperprior(params["prior"]) + model.likelihood.log_prior(params["likelihood"])

    def point(self, model: Model, state: MeanFieldState) -> Variables:
        parts = state.layout.unravel(state.average)  # type: ignore[union-attr]
        return Variables(state.random.unravel(parts["mean"]) | parts["points"], state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: MeanFieldState, draws: PyTree) -> MeanField:
        def one(state: MeanFieldState) -> tuple[PyTree, PyTree, PyTree, PyTree]:
            parts = state.layout.unravel(state.average)  # type: ignore[union-attr]
            std = jax.tree.map(jnp.exp, parts["log_std"])
            unravel = state.random.unravel  # type: ignore[union-attr]
            return unravel(parts["mean"]), unravel(std), parts["points"], state.network

        return MeanField(*jax.vmap(one)(state))


def _expected_log_normal(mean: PyTree, log_std: PyTree, loc: PyTree, log_scale: PyTree, where: PyTree) -> jax.Array:
    """E_q[log N(θ; loc, scale²)] for θ ~ N(mean, std²), summed over the entries that `where` marks with 1."""

    def one(m: jax.Array, r: jax.Array, a: jax.Array, b: jax.Array, w: jax.Array) -> jax.Array:
        square = (m - a) ** 2 + jnp.exp(2 * r)
        return (w * (-0.5 * square * jnp.exp(-2 * b) - b - 0.5 * jnp.log(2 * jnp.pi))).sum()

    return sum(jax.tree.leaves(jax.tree.map(one, mean, log_std, loc, log_scale, where)), jnp.zeros(()))
