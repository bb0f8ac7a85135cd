"""Variational inference whose prior and divergence are over functions, seen at measurement points."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import field_values, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.function_space.divergence import gaussian_kl, moments_of_draws
from credo.methods.function_space.spectral import spectral_score
from credo.methods.variational.bayes_by_backprop import BayesByBackprop
from credo.methods.variational.families import ENTROPY
from credo.methods.variational.state import VariationalState, rest_of_prior
from credo.posteriors import Linearised

DIVERGENCES = ("linearised", "spectral")


@struct
class FunctionSpaceState(VariationalState):
    """The variational state, and the box in which measurement points are drawn."""

    low: Any = leaf(default=None)
    high: Any = leaf(default=None)


@struct
class FunctionSpaceVI(BayesByBackprop):
    """Maximise E_q[log p(D | f)] − β KL[q(f_X) ‖ p(f_X)] over q(θ), with X some rows and some random points (F2).

    p(f) is a Gaussian process with the given kernel, or the functions of the prior over weights. Where X has
    all training inputs, and the divergence is exact, this is a lower bound of log p(D); with fewer points it need not
    be one, because KL at some points is at most KL of whole functions.

    "linearised": at X, q is N(f_m(X), J Σ J') with J the network's Jacobian at the mean of q (exact for networks that
    are linear in θ), and KL is that of Gaussians, output by output. The functions of a prior over weights are matched
    by their mean and covariance at X, from draws.
    "spectral": the gradient of KL alone, E[(∇ log q(f_X) − ∇ log p(f_X)) ∂f_X/∂φ], scores of q and of a prior over
    weights by the spectral Stein estimator, that of a Gaussian process in closed form.

    Under a temperature T the prior's functions are tempered as the likelihood is: KL is that to p(f_X)^{1/T}, which for
    a Gaussian N(m, K) is N(m, T K).

    Both compare functions plus noise of standard deviation `jitter` (in units of the prior's), so that differences as
    small as rounding do not count. Sun, Zhang, Shi and Grosse (2019), Functional variational
    Bayesian neural networks; Rudner et al. (2022), Tractable function-space variational inference; Burt et al. (2020)
    on when such a divergence is finite.

    Args:
        kernel: of the Gaussian-process prior (`credo.function_space`, or any function of two sets of inputs that
            is a pytree); None: the functions of the model's prior over weights.
        divergence: "linearised" or "spectral".
        points: random points of X, uniform in the box of the training inputs widened by `margin` of its size on all
            sides.
        rows: rows of the batch in X.
        margin: see points.
        prior_draws: functions of a prior over weights for each step.
        function_draws: functions of q for each step ("spectral").
        jitter: see above.
        family: of q; "low_rank" by default: mean field cannot be unsure between two clusters of data with one hidden
            layer, whatever it maximises (Foong et al., 2020).
        learning_rate, num_samples, initial_std, …: as for `bayes_by_backprop`.

    Example:
        >>> import credo
        >>> credo.methods.FunctionSpaceVI(kernel=credo.function_space.squared_exponential(1.0, 0.5)).points
        20
    """

    num_samples: int = 4
    family: str = "low_rank"
    rank: int = 10
    kernel: Any = leaf(default=None)
    divergence: str = "linearised"
    points: int = 20
    rows: int = 30
    margin: float = leaf(default=0.25)
    prior_draws: int = 300
    function_draws: int = 100
    jitter: float = leaf(default=0.005)

    default_steps = 8000

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        model, notes = super().prepare(model)
        if self.divergence not in DIVERGENCES:
            raise InputError(f"divergence must be one of {', '.join(DIVERGENCES)}, got {self.divergence!r}.")
        if self.points < 0 or self.rows < 0 or self.points + self.rows < 1:
            raise InputError(
                f"At least one measurement point is needed, got points={self.points} and rows={self.rows}."
            )  # fmt: skip
        if self.kernel is None and self.prior_draws < 2 * (self.points + self.rows):
            raise InputError(
                f"The prior's covariance at {self.points + self.rows} points needs at least twice as many prior_draws, "
                f"got {self.prior_draws}."
            )
        if self.family == "mixture" and self.divergence == "linearised":
            raise Refusal(
                'A mixture is not Gaussian where the network is linear either: use divergence="spectral", or another '
                "family."
            )
        if self.path_gradient or self.estimator != "weights":
            raise Refusal('Function-space divergences need whole draws: use estimator="weights" without path_gradient.')
        return model, notes

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> FunctionSpaceState:
        state = super().init(key, model, variables, data)
        low, high = _box(data, self.margin)
        fields = field_values(state)
        return FunctionSpaceState(**fields | {"prior": None}, low=low, high=high)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: Any) -> PyTree:
        if phase.name == "map":
            return key
        key_draws, key_functions = jax.random.split(key)
        return super().noise(key_draws, model, phase, state), key_functions

    def _terms(
        self, noise: PyTree, model: Model, state: Any, values: PyTree, batch: Batch
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:  # fmt: skip
        """E_q[log p(D|θ)], E_q[log p(ν)], H[q(ν)] − KL of functions, and the network's new state; ν are the random
        parameters that are not weights."""
        family, parts = state.family, state.layout.unravel(values)
        (eps, key_net), key = noise
        draws = family.draws(parts, self._pairs(eps))

        def draw_terms(theta: PyTree) -> tuple[jax.Array, jax.Array, PyTree]:
            params = family.random.unravel(theta) | parts["points"]
            if self.divergence == "linearised":
                outputs, network = self._linear_outputs(key_net, model, state, parts, theta, batch)
                noise_params = model.complete(params)["likelihood"]
                per_row = model.likelihood.log_prob(noise_params, outputs, batch.targets)
            else:
                variables = Variables(params, state.network)
                per_row, network = model.log_likelihood(variables, batch, key=key_net, train=True)
            return batch.total(per_row), rest_of_prior(model, params), network

        likelihood, rest, network = jax.vmap(draw_terms)(draws)
        key_points, key_prior, key_kl = jax.random.split(key, 3)
        locations = self._locations(key_points, state, batch)
        prior = self._prior(key_prior, model, state, parts, locations)
        measure = self._linearised if self.divergence == "linearised" else self._spectral
        kl = measure(key_kl, model, state, parts, locations, prior)
        entropy = self._rest_entropy(key_kl, state, parts)
        return likelihood.mean(), rest.mean(), entropy - kl, jax.tree.map(lambda x: x[0], network)

    def _rest_entropy(self, key: jax.Array, state: Any, parts: PyTree) -> jax.Array:
        """H[q(ν)] of inferred noise and of hyper-parameters, ½ log det 2πe C with C their covariance; of a mixture the
        mean over components, a lower bound."""
        family = state.family

        def rest(eps: PyTree) -> jax.Array:
            theta = family.draws(parts, jax.tree.map(lambda e: e[None], eps))
            params = jax.vmap(family.random.unravel)(theta)
            leaves = jax.tree.leaves({k: v for k, v in params.items() if k != "network"})
            rows = [x.reshape(family.components, -1) for x in leaves]
            return jnp.concatenate(rows, 1) if rows else jnp.zeros((1, 0))

        zero = jax.tree.map(lambda e: jnp.zeros_like(e[0]), family.noise(key, parts, 1))
        count = jax.eval_shape(rest, zero).shape[1]
        if not count:
            return jnp.zeros(())
        slopes = jax.tree.leaves(jax.jacrev(rest)(zero))
        root = jnp.concatenate([x.reshape(*x.shape[:2], -1) for x in slopes], 2)  # [component, number, noise]
        log_det = jnp.linalg.slogdet(root @ jnp.swapaxes(root, 1, 2))[1]
        return ENTROPY * count + 0.5 * log_det.mean()

    def _linear_outputs(
        self, key: jax.Array, model: Model, state: Any, parts: PyTree, theta: PyTree, batch: Batch
    ) -> tuple[jax.Array, PyTree]:
        """f_m(x) + J_x (θ − m), and the network's new state."""
        centre = jax.tree.map(lambda x: x[0], state.family.centres(parts))

        def run(position: PyTree) -> tuple[jax.Array, PyTree]:
            params = state.family.random.unravel(position) | parts["points"]
            return model.outputs(Variables(params, state.network), batch.inputs, key=key, train=True)

        shift = jax.tree.map(jnp.subtract, theta, centre)
        values, slope, network = jax.jvp(run, (centre,), (shift,), has_aux=True)
        return values + slope, network

    def _locations(self, key: jax.Array, state: Any, batch: Batch) -> PyTree:
        """X: random rows of the batch and random points of the box."""
        key_rows, key_box = jax.random.split(key)
        count = jax.tree.leaves(batch.inputs)[0].shape[0]
        # Padding weighs 0: such rows are chosen only where there are no others.
        order = jnp.argsort(jax.random.uniform(key_rows, (count,)) + (batch.weight <= 0))
        chosen = order[: min(self.rows, count)]
        chosen = jnp.where(batch.weight[chosen] > 0, chosen, order[0])
        rows = jax.tree.map(lambda x: x[chosen], batch.inputs)
        keys = _keys(key_box, batch.inputs)

        def uniform(k: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
            share = jax.random.uniform(k, (self.points, *low.shape))
            return (low + share * (high - low)).astype(low.dtype)

        drawn = jax.tree.map(uniform, keys, state.low, state.high)
        return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), rows, drawn)

    def _function(self, model: Model, state: Any, parts: PyTree, locations: PyTree) -> Any:
        """θ → f(X) [M, out]."""

        def outputs(theta: PyTree) -> jax.Array:
            params = state.family.random.unravel(theta) | parts["points"]
            return model.outputs(Variables(params, state.network), locations)[0]

        return outputs

    def _prior(self, key: jax.Array, model: Model, state: Any, parts: PyTree, locations: PyTree) -> Any:
        """K [M, M] of a Gaussian process, or functions of the prior over weights [S, M, out]."""
        if self.kernel is not None:
            return self.kernel(locations, locations)
        first = jax.tree.map(lambda x: x[0], state.family.centres(parts))
        params = jax.lax.stop_gradient(model.complete(state.family.random.unravel(first) | parts["points"]))
        info = model.network.info(params["network"])
        random = bool(jax.tree.leaves(params["prior"]))

        def draw(key: jax.Array) -> jax.Array:
            key_hyper, key_weights = jax.random.split(key)
            hyper = model.prior.sample_hyper(key_hyper, info) if random else params["prior"]
            weights = jax.tree.map(lambda w: w[0], model.prior.bind(info, hyper).sample(key_weights, 1))
            full = model.complete(model.free(params | {"network": weights}))["network"]
            return model.network.apply(Variables(full, state.network), locations)[0]

        return jax.vmap(draw)(jax.random.split(key, self.prior_draws))

    def _moments(self, prior: jax.Array, output: int) -> tuple[jax.Array, jax.Array, float]:
        if self.kernel is not None:
            return jnp.zeros(len(prior)), prior, 1.0
        return moments_of_draws(prior[..., output])

    def _linearised(
        self, key: jax.Array, model: Model, state: Any, parts: PyTree, locations: PyTree, prior: jax.Array
    ) -> jax.Array:
        function = self._function(model, state, parts, locations)
        zero = jax.tree.map(lambda e: jnp.zeros_like(e[0]), state.family.noise(key, parts, 1))

        def of_noise(eps: PyTree) -> jax.Array:
            draws = state.family.draws(parts, jax.tree.map(lambda e: e[None], eps))
            return function(jax.tree.map(lambda x: x[0], draws))

        # θ is affine in ε, so that ∂f/∂ε at 0 is J times a root of Σ, whatever the family.
        mean, jacobian = of_noise(zero), jax.jacrev(of_noise)(zero)
        total = jnp.zeros(())
        for output in range(mean.shape[1]):
            prior_mean, covariance, inflation = self._moments(prior, output)
            root = jnp.concatenate([x[:, output].reshape(len(mean), -1) for x in jax.tree.leaves(jacobian)], 1)
            ridge = (self.jitter**2 * jnp.diag(covariance).mean() + 1e-10) * jnp.eye(len(mean))
            tempered = model.temperature * covariance + ridge  # of p(f)^{1/T}
            total += gaussian_kl(mean[:, output], root @ root.T + ridge, prior_mean, tempered, inflation)
        return total

    def _spectral(
        self, key: jax.Array, model: Model, state: Any, parts: PyTree, locations: PyTree, prior: jax.Array
    ) -> jax.Array:
        """A number of value 0 whose gradient is that of KL."""
        key_eps, key_noise, key_prior = jax.random.split(key, 3)
        function = self._function(model, state, parts, locations)
        count, temperature = -(-self.function_draws // state.family.components), model.temperature
        values = jax.vmap(function)(state.family.draws(parts, state.family.noise(key_eps, parts, count)))
        total = jnp.zeros(())
        for output in range(values.shape[2]):
            prior_mean, covariance, _ = self._moments(prior, output)
            sigma = self.jitter * jnp.sqrt(jnp.diag(covariance).mean())
            noisy = values[..., output] + sigma * jax.random.normal(key_noise, values.shape[:2])
            at = jax.lax.stop_gradient(noisy)
            if self.kernel is not None:
                low = jnp.linalg.cholesky(temperature * covariance + (sigma**2 + 1e-10) * jnp.eye(len(covariance)))
                prior_score = -jax.scipy.linalg.cho_solve((low, True), (at - prior_mean).T).T
            else:
                draws = prior[..., output]
                # Noise of variance σ²/T before tempering is noise of σ² after it, as that of q.
                noise = sigma / jnp.sqrt(temperature) * jax.random.normal(key_prior, draws.shape)
                prior_score = spectral_score(draws + noise, at) / temperature
            pull = jax.lax.stop_gradient(spectral_score(at, at) - prior_score)
            surrogate = (pull * noisy).sum(1).mean()
            total += surrogate - jax.lax.stop_gradient(surrogate)
        return total

    def posterior(self, model: Model, state: Any, draws: PyTree) -> Any:
        weights = super().posterior(model, state, draws)
        return Linearised(weights) if self.divergence == "linearised" else weights


def _box(data: Batch, margin: Any) -> tuple[PyTree, PyTree]:
    """Lowest and highest value of every entry of the inputs, widened by a share of their distance."""
    if not all(jnp.issubdtype(x.dtype, jnp.floating) for x in jax.tree.leaves(data.inputs)):
        raise Refusal("Measurement points between the rows need inputs that are real numbers, not integers.")
    real = lambda x: _lead(data.weight > 0, x)  # noqa: E731
    low = jax.tree.map(lambda x: jnp.where(real(x), x, jnp.inf).min(0), data.inputs)
    high = jax.tree.map(lambda x: jnp.where(real(x), x, -jnp.inf).max(0), data.inputs)
    wide = jax.tree.map(lambda a, b: margin * (b - a), low, high)
    return jax.tree.map(jnp.subtract, low, wide), jax.tree.map(jnp.add, high, wide)


def _lead(mask: jax.Array, like: jax.Array) -> jax.Array:
    return mask.reshape(-1, *[1] * (like.ndim - 1))


def _keys(key: jax.Array, tree: PyTree) -> PyTree:
    leaves, treedef = jax.tree.flatten(tree)
    return jax.tree.unflatten(treedef, list(jax.random.split(key, len(leaves))))
