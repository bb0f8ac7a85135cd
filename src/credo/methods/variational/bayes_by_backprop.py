"""Bayes by Backprop: Gaussian variational inference by reparameterisation."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.capabilities import FlipoutNetwork, LocalNetwork, capability, require
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.points.map import MEMORY
from credo.methods.points.optimise import averaged_step, descend, fade, optimiser
from credo.methods.variational.families import build_family, check_family
from credo.methods.variational.state import (
    VariationalState,
    expected_log_normal,
    gaussian_prior,
    rest_of_prior,
    split_points,
    start_state,
    weights_from_prior,
)

MEANS = ("start", "init", "prior", "map")
NEEDS = {"local": LocalNetwork, "flipout": FlipoutNetwork}  # estimator → what the network must offer


@struct
class BayesByBackprop(Method):
    """Maximise E_q[log p(D|θ)] − β KL[q‖p] over q, with θ = m + s ε for q(θ) = Π_i N(m_i, s_i²) (B1, B2, B4, B5).

    The minibatch estimate scales the likelihood by N/M and leaves the KL alone, so the optimum does not depend on
    the batch size. The KL is closed form under a Gaussian prior and a Monte-Carlo estimate otherwise. Noise that is
    "learned" is a point; noise that is "inferred" joins q in its log, and so do a prior's own hyper-parameters.
    Blundell et al. (2015); Kingma et al. (2015) for the local reparameterisation; Wen et al. (2018) for flipout;
    Roeder et al. (2017) for path gradients.

    Args:
        learning_rate: size of the optimiser's steps; fades to a tenth over the second half of the fit, whose
            iterates are averaged.
        num_samples: K, draws of θ (of each component) for each step.
        initial_std: s at the start, for every weight.
        beta: weight of the KL; 1 is Bayes.
        estimator: "weights" draws one θ for the whole batch; "local" draws the pre-activations of every row and
            "flipout" gives every row its own signs of the one perturbation (lower variance; mean field, for
            built-in networks). On convolutions "local" draws every position independently: exact for each alone.
        antithetic: draw ε in pairs ε, −ε: the gradient of the means then has no noise where log p is quadratic.
        mean: where the means start: "start" (the given start, or else the network's own initialisation), "init" (that
            initialisation even where a start is given), "prior" (a draw of the prior), "map" (a phase of MAP first).
            Of a mixture the first component starts there, the others at draws of their own.
        map_steps: length of that phase.
        kl_warmup: share of the steps, at most a half, over which β rises from 0 to its value; None: β from the start.
        family: "mean_field"; "low_rank", a diagonal plus `rank` columns; "full" covariance (up to 5,000 parameters);
            "kronecker", a matrix normal for each kernel; "mixture" of `components` mean fields.
        bound: of a mixture: "averaged" trains components independently, L = (1/S) Σ_s L_s; "joint" has the entropy of
            the whole mixture, a tighter bound.
        path_gradient: leave out the part of the gradient whose mean is 0, so that its noise dies out where q can
            equal the posterior.

    Example:
        >>> import credo
        >>> credo.methods.BayesByBackprop(num_samples=2, family="low_rank").beta
        1.0
    """

    learning_rate: float = leaf(default=0.005)
    num_samples: int = 1
    initial_std: float = leaf(default=0.05)
    beta: float = leaf(default=1.0)
    estimator: str = "weights"
    optimiser: str = "adam"
    schedule: str = "cosine"
    antithetic: bool = False
    mean: str = "start"
    map_steps: int = 2000
    kl_warmup: float | None = leaf(default=None)
    family: str = "mean_field"
    rank: int = 5
    components: int = 3
    bound: str = "averaged"
    path_gradient: bool = False

    default_steps = 20_000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        check_family(self.family, self.rank, self.components, self.bound)
        if self.mean not in MEANS:
            raise InputError(f"mean must be one of {', '.join(MEANS)}, got {self.mean!r}.")
        if self.antithetic and (self.num_samples % 2 or self.estimator == "local"):
            raise InputError('Antithetic pairs need an even num_samples and estimator="weights" or "flipout".')
        if self.kl_warmup is not None and not 0 < self.kl_warmup <= 0.5:
            raise InputError(
                f"kl_warmup is a share of the steps above 0 and at most 0.5, because the second half is averaged; "
                f"got {self.kl_warmup}."
            )
        self._check_estimator(model)
        return model, []

    def _check_estimator(self, model: Model) -> None:
        if self.estimator == "weights":
            return
        if self.estimator not in NEEDS:
            raise Refusal(f'estimator must be "weights", "local" or "flipout", got {self.estimator!r}.')
        if self.family != "mean_field" or self.path_gradient:
            raise Refusal(
                f'estimator="{self.estimator}" draws every row apart, which is known for family="mean_field" without '
                'path_gradient only: use estimator="weights".'
            )
        if capability(model.network, NEEDS[self.estimator]) is None:
            name = {"local": "local reparameterisation", "flipout": "flipout estimator"}[self.estimator]
            raise Refusal(
                f"The {name} needs a network that can draw every row's pre-activations, which "
                f'{type(model.network).__name__} does not offer: use estimator="weights".'
            )

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        main = Phase("optimise", steps, "random", main=True)
        return (Phase("map", self.map_steps, "random"), main) if self.mean == "map" else (main,)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> VariationalState:
        if self.estimator == "local" and model.fixed is not None:
            raise Refusal('Held weights have no spread to draw pre-activations from: use estimator="weights".')
        random, points = split_points(model, variables.params)
        family = build_family(self.family, random, model, variables.params, self.rank, self.components, self.bound)
        key_family, *keys = jax.random.split(key, family.components + 1)
        means = [self._mean(k, i, model, variables, data) for i, k in enumerate(keys)]
        parts = family.init(key_family, [family.random.ravel(m) for m in means], self.initial_std) | {"points": points}
        parts |= self._more_parts(family.random.ravel(means[0]))
        prior = None if self.path_gradient else gaussian_prior(model, variables, random, family.random)
        return start_state(self.optimiser, parts, variables.state, prior, family)

    def _more_parts(self, position: PyTree) -> dict[str, Any]:
        """Parameters that a subclass learns along with q."""
        return {}

    def init_from(self, key: jax.Array, model: Model, posterior: Any, data: Batch) -> VariationalState:
        state = super().init_from(key, model, posterior, data)
        parts = state.layout.unravel(state.values)
        values = state.layout.ravel(parts | state.family.parts(posterior))
        return dataclasses.replace(state, values=values, average=values)

    def _mean(self, key: jax.Array, component: int, model: Model, variables: Variables, data: Batch) -> PyTree:
        """The random parameters where one component starts."""
        if self.mean == "prior":
            variables = weights_from_prior(key, model, variables)
        elif self.mean == "init" or component > 0:
            variables = model.init(key, data)
        return split_points(model, variables.params)[0]

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: VariationalState) -> PyTree:
        """ε for K draws, and a key for random layers."""
        if phase.name == "map":
            return key
        key_eps, key_net = jax.random.split(key)
        parts = state.layout.unravel(state.values)  # type: ignore[union-attr]
        if self.estimator == "local" and state.prior is not None:
            others = {k: v for k, v in state.family.random.unravel(parts["mean"]).items() if k != "network"}
            if not jax.tree.leaves(others):  # only pre-activations are random: no normals for weights
                return None, key_net
        return state.family.noise(key_eps, parts, self.num_samples // (1 + self.antithetic)), key_net

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: VariationalState, batch: Batch
    ) -> tuple[VariationalState, Info]:
        if phase.name == "map":
            return self._map_step(noise, model, phase, state, batch)
        beta: Any = self.beta
        if self.kl_warmup is not None:
            beta = beta * jnp.minimum(1.0, (state.step + 1) / (self.kl_warmup * phase.steps))

        def loss(values: PyTree) -> tuple[jax.Array, tuple[dict, PyTree]]:
            likelihood, prior, entropy, network = self._terms(noise, model, state, values, batch)
            # The bound of (p(D|θ)^{1/β} p(θ))^{1/T}, times β.
            bound = (likelihood + beta * prior) / model.temperature + beta * entropy
            metrics = {
                "loss": -bound / batch.num_data,
                "log_likelihood": likelihood / batch.num_data,
                "kl": -prior - entropy,
            }
            return metrics["loss"], (metrics, network)

        (_, (metrics, network)), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        return averaged_step(self, phase, state, gradient, network), Info(metrics)

    def _terms(
        self, noise: PyTree, model: Model, state: VariationalState, values: PyTree, batch: Batch
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:
        """E_q[log p(D|θ)], E_q[log p(θ)], H[q] and the network's new state."""
        family, parts = state.family, state.layout.unravel(values)  # type: ignore[union-attr]
        eps, key = noise
        if eps is None:
            eps = jax.tree.map(lambda m: jnp.zeros((self.num_samples, *m.shape), m.dtype), parts["mean"])
        draws = family.draws(parts, self._pairs(eps))

        def draw_terms(theta: PyTree, key: jax.Array) -> tuple[jax.Array, jax.Array, PyTree]:
            params = family.random.unravel(theta) | parts["points"]
            per_row, network = self._log_likelihood(key, model, state, parts, params, batch)
            prior = model.log_prior(params) if state.prior is None else rest_of_prior(model, params)
            return batch.total(per_row), prior, network

        count = self.num_samples * family.components
        if count == 1:
            likelihood, prior, network = draw_terms(jax.tree.map(lambda x: x[0], draws), key)
        else:
            results = jax.vmap(draw_terms)(draws, jax.random.split(key, count))
            likelihood, prior = results[0].mean(), results[1].mean()
            network = jax.tree.map(lambda x: x[0], results[2])
        if state.prior is not None:
            prior = prior + expected_log_normal(*family.moments(parts), *state.prior) / family.components
        entropy = family.path_entropy if self.path_gradient else family.entropy
        return likelihood, prior, entropy(parts, draws), network

    def _pairs(self, eps: PyTree) -> PyTree:
        """ε and −ε, where draws come in pairs."""
        return jax.tree.map(lambda e: jnp.concatenate([e, -e]), eps) if self.antithetic else eps

    def _log_likelihood(
        self, key: jax.Array, model: Model, state: VariationalState, parts: PyTree, params: PyTree, batch: Batch
    ) -> tuple[jax.Array, PyTree]:
        """log p(y_n | x_n, θ) [n] by the chosen estimator, and the network's new state."""
        if self.estimator == "weights":
            return model.log_likelihood(Variables(params, state.network), batch, key=key, train=True)
        unravel = state.family.random.unravel
        mean = model.complete(unravel(parts["mean"]) | parts["points"])["network"]
        if self.estimator == "local":
            std = unravel(jax.tree.map(jnp.exp, parts["log_std"]))["network"]
            outputs = require(model.network, LocalNetwork).apply_local(mean, std, batch.inputs, key)
        else:
            moved = jax.tree.map(jnp.subtract, model.complete(params)["network"], mean)
            outputs = require(model.network, FlipoutNetwork).apply_flipout(mean, moved, batch.inputs, key)
        return model.likelihood.log_prob(model.complete(params)["likelihood"], outputs, batch.targets), state.network

    def _map_step(
        self, key: jax.Array, model: Model, phase: Phase, state: VariationalState, batch: Batch
    ) -> tuple[VariationalState, Info]:
        """A step of the means alone towards the mode; the last step resets the count and the optimiser's memory."""

        def loss(values: PyTree) -> tuple[jax.Array, PyTree]:
            parts = state.layout.unravel(values)  # type: ignore[union-attr]

            def log_joint(theta: PyTree) -> tuple[jax.Array, PyTree]:
                params = state.family.random.unravel(theta) | parts["points"]
                per_row, network = model.log_likelihood(Variables(params, state.network), batch, key=key, train=True)
                return (batch.total(per_row) + self.beta * model.log_prior(params)) / model.temperature, network

            total, network = jax.vmap(log_joint)(state.family.centres(parts))
            return -total.mean() / batch.num_data, jax.tree.map(lambda x: x[0], network)

        (value, network), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps)
        values, memory = descend(self.optimiser, rate, gradient, state.memory, state.values, MEMORY)
        last = state.step + 1 >= phase.steps
        fresh = optimiser(self.optimiser).init(values)
        memory = jax.tree.map(lambda a, b: jnp.where(last, a, b), fresh, memory)
        step = jnp.where(last, 0, state.step + 1)
        return dataclasses.replace(state, step=step, values=values, memory=memory, network=network), Info(
            {"loss": value}
        )

    def point(self, model: Model, state: VariationalState) -> Variables:
        parts = state.layout.unravel(state.average)  # type: ignore[union-attr]
        first = jax.tree.map(lambda x: x[0], state.family.centres(parts))
        return Variables(state.family.random.unravel(first) | parts["points"], state.network)

    def posterior(self, model: Model, state: VariationalState, draws: PyTree) -> Any:
        parts = jax.vmap(state.layout.unravel)(state.average)  # type: ignore[union-attr]
        return state.family.posterior(parts, state.network)
