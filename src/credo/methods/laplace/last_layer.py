"""The Bayesian last layer: features as a point, the layer on top of them exactly."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, at_mode
from credo.core.network import Variables
from credo.core.tree import Select, by_paths, leaf, struct, with_paths
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.likelihoods import Gaussian
from credo.methods.laplace.curvature import (
    Kronecker,
    Layer,
    find_taps,
    is_gaussian,
    local_prior,
    one_scale,
    output_layer,
    tapped,
)
from credo.methods.laplace.feature_regression import LOG_2PI, FeatureMoments, Rotated
from credo.methods.laplace.laplace import Laplace, LaplaceState, gaussian_posterior, single
from credo.methods.points.map import MAP, PointState
from credo.posteriors import GaussianWeights

ROUNDS = 100  # of the noise under a prior that is not normal
LEAST = 1e-6  # curvature of such a prior: where it has none, its slope alone counts


@struct
class LayerState:
    """The features' point and its optimiser; sums over rows; the last layer, once it is solved."""

    point: PointState = leaf()
    moments: FeatureMoments = leaf()
    mean: jax.Array = leaf()  # (W, b) of the last layer [out, in + 1]
    log_noise: jax.Array = leaf()  # log σ of each output
    spread: Any = leaf()
    log_evidence: jax.Array = leaf()
    scale: jax.Array = leaf()  # factor of the prior's precision [1]
    layer: Layer | None = None


@struct
class LastLayer(Method):
    """Features from an optimiser, and the exact posterior of the last dense layer given them (C2).

    With Gaussian noise this is Bayesian linear regression on the features a: Λ = D + Σ a a'/σ², mean
    Λ⁻¹(D μ + Σ a y/σ²), for any number of outputs from one sum of a a', in double precision, with the exact log
    evidence in `fit.posterior.log_evidence`. Other likelihoods get the Laplace approximation of that layer, with its
    whole covariance. Bishop (2006), section 3.3; Snoek et al. (2015), Scalable Bayesian optimization using deep neural
    networks.

    Args:
        layer: globs that the last layer's kernel must match; None takes the layer whose output is the network's.
        prior_precision: "prior" keeps the model's prior; "evidence" multiplies its precision on this layer by the
            number that maximises the log evidence.
        noise_scale: "evidence" chooses σ by the evidence too (times its prior, where it has one), unless it is known;
            "map" keeps the optimiser's.
        features: "map" trains them with the last layer; "evidence" by the log evidence itself, the last layer
            integrated out, on all rows at once (Gaussian noise).
        learning_rate, optimiser, schedule: of the features' training, as in `MAP`.
        train: False takes the start's features.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([10], "tanh"), credo.priors.normal(), credo.likelihoods.gaussian())
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "last_layer", steps=200)
        >>> fit.posterior.structure, fit.posterior.log_evidence.shape
        ('last_layer', (1,))
    """

    layer: Select | None = None
    prior_precision: str = "prior"
    noise_scale: str = "evidence"
    features: str = "map"
    train: bool = True
    learning_rate: float = leaf(default=0.005)
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 5000
    step_field = "learning_rate"
    several_starts = True
    precision = "float64"

    def _map(self) -> MAP:
        return MAP(self.learning_rate, self.optimiser, self.schedule)

    def _laplace(self) -> Laplace:
        """The method for likelihoods without a closed form."""
        return Laplace(
            structure="last_layer", prior_precision=self.prior_precision, layer=self.layer, train=self.train,
            learning_rate=self.learning_rate, optimiser=self.optimiser, schedule=self.schedule,
        )  # fmt: skip

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        options = {
            "prior_precision": ("prior", "evidence"),
            "noise_scale": ("evidence", "map"),
            "features": ("map", "evidence"),
        }
        for name, choices in options.items():
            if vars(self)[name] not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, got {vars(self)[name]!r}.")
        if isinstance(model.likelihood, Gaussian):
            return model, at_mode(model)
        if self.features == "evidence":
            raise Refusal('features="evidence" needs Gaussian noise, for which the evidence has a closed form.')
        model, notes = self._laplace().prepare(model)
        return model, ["The last layer has no closed form under this likelihood: its Laplace approximation.", *notes]

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        rows = "full" if self.features == "evidence" else "random"
        first = (Phase("optimise", steps, rows, main=True),) if self.train else ()
        return (*first, Phase("curvature", 1, "sweep"), Phase("gaussian", 1, "none"))

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> LayerState | LaplaceState:
        variables = single(variables)
        if not isinstance(model.likelihood, Gaussian) or not one_scale(model, variables):
            return self._laplace().init(key, model, variables, data)
        if self.prior_precision == "evidence" and not is_gaussian(model, variables):
            raise Refusal('prior_precision="evidence" scales a normal prior, and this one is not normal.')
        layer = output_layer(find_taps(model, variables, data.inputs), self.layer)
        mean = layer.join(by_paths(variables.params["network"])).astype(jnp.result_type(float))
        outputs, width = mean.shape
        state = LayerState(
            self._map().init(key, model, variables, data), FeatureMoments.zeros(width, outputs, mean.dtype), mean,
            jnp.zeros(outputs, mean.dtype), None, jnp.zeros((), mean.dtype), jnp.ones(1, mean.dtype), layer,
        )  # fmt: skip
        shapes = jax.eval_shape(lambda s: self._solve(model, s)[0].spread, state)
        return dataclasses.replace(state, spread=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes))

    def step(self, noise: PyTree, model: Model, phase: Phase, state: Any, batch: Batch) -> tuple[Any, Info]:
        if isinstance(state, LaplaceState):
            return self._laplace().step(noise, model, phase, state, batch)
        if phase.name == "optimise":
            method = (
                ByEvidence(self.learning_rate, self.optimiser, self.schedule, self, state.layer)
                if self.features == "evidence"
                else self._map()
            )
            point, info = method.step(noise, model, phase, state.point, batch)
            point = jax.tree.map(lambda new, old: new.astype(old.dtype), point, state.point)
            return dataclasses.replace(state, point=point), info
        if phase.name == "curvature":
            variables = self._map().point(model, state.point)
            moments = add_rows(state.moments, model, variables, state.layer, batch)
            return dataclasses.replace(state, moments=moments), Info({"rows": moments.rows})
        return self._solve(model, state)

    def solution(
        self, model: Model, variables: Variables, layer: Layer, moments: FeatureMoments
    ) -> tuple[Rotated, jax.Array, jax.Array, jax.Array, jax.Array]:
        """(rotated moments, prior's root, prior's mean, scale, noise precisions) of the last layer."""
        dtype = moments.gram.dtype
        prior = local_prior(model, variables, layer.paths, "last_layer")
        root = jnp.sqrt(layer.join(prior.precision)[0]).astype(dtype)
        centre = layer.join(prior.centre).astype(dtype)
        rotated = Rotated.of(moments, root, centre)
        likelihood: Any = model.likelihood
        start = likelihood.log_sigma(model.complete(variables.params)["likelihood"])
        noise = jnp.exp(-2 * jnp.broadcast_to(jnp.asarray(start, dtype), moments.squares.shape))
        learned = bool(jax.tree.leaves(variables.params["likelihood"]))
        scale, noise = most_evidence(
            rotated, likelihood, jnp.ones((), dtype), noise, free_scale=self.prior_precision == "evidence",
            free_noise=learned and self.noise_scale == "evidence",
        )  # fmt: skip
        return rotated, root, centre, scale, noise

    def _solve(self, model: Model, state: LayerState) -> tuple[LayerState, Info]:
        layer = state.layer
        assert layer is not None
        variables = self._map().point(model, state.point)
        rotated, root, centre, scale, noise = self.solution(model, variables, layer, state.moments)
        evidence = rotated.log_evidence(scale, noise)
        std = jnp.sqrt(model.temperature / rotated.precision(scale, noise)).T.astype(root.dtype)
        basis_out = jnp.eye(len(noise), dtype=root.dtype)
        by_path = [{layer.kernel: x} for x in (rotated.basis, basis_out, root, std)]
        spread = Kronecker(by_path[0], by_path[1], by_path[2], by_path[3], (layer,))
        mean = centre + (rotated.basis @ rotated.mean(scale, noise)).T / root
        new = dataclasses.replace(
            state, mean=mean, log_noise=-0.5 * jnp.log(noise), spread=spread, log_evidence=evidence, scale=scale[None]
        )
        return new, Info({"log_evidence": evidence, "prior_scale": scale})

    def point(self, model: Model, state: Any) -> Variables:
        variables = self._map().point(model, state.point)
        if isinstance(state, LaplaceState):
            return variables
        return with_layer(variables, state.layer, state.mean, state.log_noise)

    def posterior(self, model: Model, state: Any, draws: PyTree) -> GaussianWeights:
        if isinstance(state, LaplaceState):
            return self._laplace().posterior(model, state, draws)
        return gaussian_posterior(jax.vmap(lambda s: self.point(model, s))(state), state, "last_layer")


@struct
class ByEvidence(MAP):
    """Features that maximise log p(Y | features) + log p(features): the last layer is integrated out at every step."""

    method: Any = leaf(default=None)
    layer: Layer | None = None

    def objective(self, model: Model, variables: Variables, batch: Batch, key: jax.Array) -> tuple[jax.Array, PyTree]:
        """The log evidence, with scale and noise at their best, and the log prior of all else."""
        layer = self.layer
        assert layer is not None
        kernel = layer.join(by_paths(variables.params["network"]))
        start = FeatureMoments.zeros(kernel.shape[1], kernel.shape[0], jnp.result_type(float))
        moments = add_rows(start, model, variables, layer, batch)
        fixed = jax.lax.stop_gradient(moments)
        _, root, centre, scale, noise = jax.lax.stop_gradient(
            self.method.solution(model, jax.lax.stop_gradient(variables), layer, fixed)
        )
        evidence = smooth_evidence(moments, root, centre, scale, noise)
        log_prior = model.log_prior(variables.params)
        layer_part = local_prior(model, variables, layer.paths, "last_layer").log_prob
        return (evidence + log_prior - layer_part) / model.temperature, variables.state


def most_evidence(
    rotated: Rotated, likelihood: Any, scale: jax.Array, noise: jax.Array, *, free_scale: bool, free_noise: bool
) -> tuple[jax.Array, jax.Array]:
    """(scale, β) that maximise log p(Y) + log p(log σ), with σ = β^{-½} under the likelihood's own prior.

    `Rotated.best` takes normal priors of u = log σ. Another one is replaced by the normal of its slope g and curvature
    −λ at the last u, N(u + g/λ, 1/λ), until u converges: there the slopes agree.
    """
    best = partial(rotated.best, free_scale=free_scale, free_noise=free_noise)
    if not likelihood.inferred:
        return best(scale, noise, prior=(0.0, 0.0))
    if likelihood.scale_prior is None or not free_noise:
        return best(scale, noise, prior=(likelihood.prior_loc, likelihood.prior_scale**-2.0))
    slope = jax.grad(lambda u: likelihood.log_prior({"log_scale": u}))

    def improve(state: Any) -> Any:
        count, scale, noise, _ = state
        u = -0.5 * jnp.log(noise)
        g, curvature = jax.jvp(slope, (u,), (jnp.ones_like(u),))
        weight = jnp.maximum(-curvature, LEAST)
        new_scale, new_noise = best(scale, noise, prior=(u + g / weight, weight))
        return count + 1, new_scale, new_noise, jnp.abs(jnp.log(new_noise) - jnp.log(noise)).max()

    close = jnp.finfo(noise.dtype).eps ** 0.5
    start = (jnp.zeros((), jnp.int32), scale, noise, jnp.full((), jnp.inf, noise.dtype))
    final = jax.lax.while_loop(lambda s: (s[0] < ROUNDS) & (s[3] > close), improve, start)
    return final[1], final[2]


def smooth_evidence(
    moments: FeatureMoments, root: jax.Array, centre: jax.Array, scale: jax.Array, noise: jax.Array
) -> jax.Array:
    """`Rotated.log_evidence` by Cholesky factors, whose derivatives exist where eigenvalues meet."""
    gram, cross, squares = moments.whitened(root, centre)

    def output_evidence(beta: jax.Array, r: jax.Array, square: jax.Array) -> jax.Array:
        lower = jnp.linalg.cholesky(beta * gram + scale * jnp.eye(len(root), dtype=gram.dtype))
        z = jax.scipy.linalg.solve_triangular(lower, beta * r, lower=True)
        size = len(root) * jnp.log(scale) - 2 * jnp.log(jnp.diagonal(lower)).sum()
        return 0.5 * (moments.rows * (jnp.log(beta) - LOG_2PI) + size - beta * square + z @ z)

    return jax.vmap(output_evidence)(noise, cross.T, squares).sum()


def add_rows(
    moments: FeatureMoments, model: Model, variables: Variables, layer: Layer | None, batch: Batch
) -> FeatureMoments:
    """The sums with the features and targets of one batch."""
    assert layer is not None
    run = tapped(model, variables, batch.inputs, (layer,))
    rows, targets = layer.augment(run.inputs[layer.kernel]), batch.targets
    if model.fixed is not None:  # a bias that is held is no feature's weight: it moves the targets
        targets = targets - (run.outputs - rows @ layer.join(by_paths(variables.params["network"])).T)
    return moments.add(rows, targets, batch.weight)


def with_layer(variables: Variables, layer: Layer | None, matrix: jax.Array, log_noise: jax.Array) -> Variables:
    """The variables with another last layer and noise."""
    assert layer is not None
    parts = {path: x.astype(jnp.float32) for path, x in layer.split(matrix).items()}
    params = variables.params | {"network": with_paths(variables.params["network"], parts)}
    if jax.tree.leaves(params["likelihood"]):
        old = params["likelihood"]["log_scale"]
        params["likelihood"] = {"log_scale": jnp.broadcast_to(log_noise, old.shape).astype(old.dtype)}
    return Variables(params, variables.state)
