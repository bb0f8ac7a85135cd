"""The Laplace approximation: a Gaussian whose precision is the curvature of the log posterior at its mode."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, at_mode
from credo.core.network import Variables
from credo.core.numeric import host_targets
from credo.core.tree import Select, by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.laplace.curvature import (
    STRUCTURES,
    Spectrum,
    best_on_grid,
    best_scale,
    check_prior,
    first_sums,
    is_gaussian,
    layer_groups,
    local_prior,
    log_evidence,
    output_columns,
    scales_of,
    spread_paths,
)
from credo.methods.laplace.curvature.decrement import newton_decrement
from credo.methods.laplace.curvature.paths import Arrays, with_weights
from credo.methods.laplace.validation import held_out_score
from credo.methods.points.map import MAP, PointState
from credo.posteriors import GaussianWeights

CURVATURES = ("ggn", "fisher", "hessian")
PRECISIONS = ("prior", "evidence", "evidence_by_layer", "validation")
GRID = tuple(float(x) for x in np.logspace(-4, 4, 25))  # what "validation" multiplies the prior's precision by


@struct
class LaplaceState:
    """The point and its optimiser; the curvature so far; the Gaussian, once it is computed."""

    point: PointState = leaf()
    sums: Any = leaf()
    log_likelihood: jax.Array = leaf()  # of the rows whose curvature is in the sums
    gradient: Any = leaf()  # of that, by path, for the weights that get a spread
    spread: Any = leaf()
    log_evidence: jax.Array = leaf()
    scale: jax.Array = leaf()  # of the prior's precision, one for each group
    structure: str = "full"
    groups: tuple[tuple[str, ...], ...] = ()


@struct
class Laplace(Method):
    """q(θ) = N(θ*, (H + P)⁻¹): H is the curvature of the log likelihood at the mode θ*, P the prior's precision (C4).

    H is the generalised Gauss-Newton matrix Σ_n J_n'H_nJ_n, with H_n = −E ∂² log p/∂f∂f', in one pass over the data.
    Predictions linearise the network at θ* unless `credo.predict(mode=…)` says "sampled" or "probit". The posterior
    has `log_evidence` = log p(D|θ*) + log p(θ*) + P/2 log 2π − ½ log |H + P|. Noise, learned or inferred, is taken at
    its best value. Under a temperature T the covariance is T (H + P)⁻¹. A prior that is not normal enters by its second
    derivatives at θ*, and is refused where they are not positive. An alarm says where θ* is no mode: the Newton
    decrement ½ g'(H + P)⁻¹g, in `fit.phases["gaussian"]`, is what the log joint still lacks, in nats. MacKay (1992);
    Ritter et al. (2018) for Kronecker factors; Daxberger et al. (2021), Laplace Redux.

    Args:
        structure: "full", "kfac" (Kronecker factors for each dense layer), "diagonal", "last_layer" (the others are
            points) or "low_rank"; "auto" takes "full" up to 2,000 weights, beyond that "kfac" where all weights are in
            dense layers with one prior scale each, else "diagonal". `fit.posterior.structure` says which it was.
        curvature: "ggn", which is the Fisher matrix of these likelihoods; "fisher", its estimate from one target drawn
            from the model for each row, as many times cheaper as there are outputs; "hessian" ("full" and "low_rank"),
            whose negative eigenvalues count as 0.
        prior_precision: "prior" keeps the model's prior. "evidence" multiplies the precision of a normal prior by the
            number that maximises the log evidence, "evidence_by_layer" by one number for each layer; "validation" by
            the number of a grid with the best density of `held_out`. The mode stays where the model's prior put it.
        held_out: (inputs, targets) for "validation".
        layer: globs that the last layer's kernel must match, for structure="last_layer".
        rank: of "low_rank"; all other directions keep the prior.
        sweeps: passes over the data for "low_rank".
        train: False takes the start as the mode: `credo.fit(…, Laplace(train=False), start=fit)`.
        learning_rate, optimiser, schedule: of the search for the mode, as in `MAP`.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([10], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "laplace", steps=500)
        >>> fit.posterior.structure, fit.posterior.log_evidence.shape
        ('full', (1,))
        >>> bool((credo.predict(jax.random.key(1), fit, x).epistemic > 0).all())
        True
    """

    structure: str = "auto"
    curvature: str = "ggn"
    prior_precision: str = "prior"
    held_out: Any = leaf(default=None)
    layer: Select | None = None
    rank: int = 20
    sweeps: int = 5
    train: bool = True
    learning_rate: float = leaf(default=0.005)
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 5000
    step_field = "learning_rate"
    several_starts = True
    precision = "float64"  # log |H + P| and Cholesky factors lose their digits in single precision

    def _map(self) -> MAP:
        return MAP(self.learning_rate, self.optimiser, self.schedule)

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        for name, choices in (("structure", STRUCTURES), ("curvature", CURVATURES), ("prior_precision", PRECISIONS)):
            if vars(self)[name] not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, got {vars(self)[name]!r}.")
        if self.curvature == "hessian" and self.structure not in ("full", "low_rank"):
            raise Refusal('curvature="hessian" needs structure="full" or "low_rank": the others add up squares.')
        if self.curvature == "fisher" and self.structure == "low_rank":
            raise Refusal('structure="low_rank" multiplies by the exact matrix: take curvature="ggn".')
        if self.prior_precision == "evidence_by_layer" and self.structure == "low_rank":
            raise Refusal('structure="low_rank" has one scale for all layers: take prior_precision="evidence".')
        if (self.prior_precision == "validation") != (self.held_out is not None):
            raise InputError('prior_precision="validation" and held_out=(inputs, targets) belong together: give both.')
        if self.held_out is not None:
            host_targets(model.likelihood, self.held_out[1])
        check_prior(model.prior)
        return model, at_mode(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        phases = [Phase("optimise", steps, "random", main=True)] if self.train else []
        if self.structure == "low_rank":
            for i in range(self.sweeps):
                phases += [Phase(f"turn_{i}", 1, "none", program="turn")]
                phases += [Phase(f"sweep_{i}", 1, "sweep", program="curvature")]
        else:
            phases += [Phase("curvature", 1, "sweep")]
        return (*phases, Phase("gaussian", 1, "none"))

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> LaplaceState:
        variables = single(variables)
        exact = self.curvature == "hessian"
        structure, sums, taps = first_sums(
            key, self.structure, model, variables, data.inputs, exact=exact, rank=self.rank, select=self.layer
        )
        paths = spread_paths(structure, by_paths(variables.params["network"]), taps)
        groups = layer_groups(paths, taps) if self.prior_precision == "evidence_by_layer" else (paths,)
        if self.prior_precision != "prior" and not is_gaussian(model, variables):
            raise Refusal(
                f'prior_precision="{self.prior_precision}" scales a normal prior, and this one is not normal.'
            )
        zero = jnp.zeros((), jnp.result_type(float))
        values = by_paths(variables.params["network"])
        state = LaplaceState(
            self._map().init(key, model, variables, data), sums, zero,
            {path: jnp.zeros(values[path].shape, zero.dtype) for path in paths}, None, zero,
            jnp.ones(len(groups), zero.dtype), structure, groups,
        )  # fmt: skip
        shapes = jax.eval_shape(lambda s: self.gaussian(model, s)[0].spread, state)
        return dataclasses.replace(state, spread=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes))

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: LaplaceState, batch: Batch
    ) -> tuple[LaplaceState, Info]:
        if phase.name == "optimise":
            point, info = self._map().step(noise, model, phase, state.point, batch)
            # In double precision some of the optimiser's numbers are promoted; its state keeps its types.
            point = jax.tree.map(lambda new, old: new.astype(old.dtype), point, state.point)
            return dataclasses.replace(state, point=point), info
        if phase.name == "turn":
            prior = local_prior(model, self.point(model, state), state.groups[0], state.structure)
            turned = dataclasses.replace(
                state, sums=state.sums.turned(prior), log_likelihood=0 * state.log_likelihood,
                gradient=jax.tree.map(jnp.zeros_like, state.gradient),
            )  # fmt: skip
            return turned, Info({"log_likelihood": turned.log_likelihood})
        if phase.name == "curvature":
            return _add(self, noise, model, state, batch)
        return _gaussian(self, model, state)

    def add(self, key: jax.Array, model: Model, state: LaplaceState, batch: Batch) -> tuple[LaplaceState, Info]:
        """Add one batch's curvature, log likelihood and its gradient. A sweep sees every row once: no N scales it."""
        variables = self.point(model, state)
        params = model.complete(variables.params)["likelihood"]

        def roots(outputs: jax.Array) -> jax.Array:
            return output_columns(self.curvature, key, model.likelihood, params, outputs, batch.targets, batch.weight)

        sums = state.sums.add(model, variables, batch, roots)

        def log_likelihood(values: Arrays) -> jax.Array:
            per_row, _ = model.log_likelihood(with_weights(variables, values), batch)
            return jnp.where(batch.weight > 0, batch.weight * per_row, 0.0).sum(dtype=state.log_likelihood.dtype)

        weights = by_paths(variables.params["network"])
        total, slope = jax.value_and_grad(log_likelihood)({path: weights[path] for path in state.gradient})
        gradient = {path: g + slope[path].astype(g.dtype) for path, g in state.gradient.items()}
        new = dataclasses.replace(state, sums=sums, log_likelihood=state.log_likelihood + total, gradient=gradient)
        return new, Info({"log_likelihood": new.log_likelihood})

    def gaussian(self, model: Model, state: LaplaceState) -> tuple[LaplaceState, Info]:
        """From sums to the Gaussian: the prior's scale, the evidence, the covariance."""
        variables = self.point(model, state)
        paths = tuple(path for group in state.groups for path in group)
        values = {path: x for path, x in by_paths(variables.params["network"]).items() if path in paths}
        prior = local_prior(model, variables, paths, state.structure)
        spectrum = state.sums.spectrum(prior)
        scale = jnp.ones_like(state.scale)
        if self.prior_precision.startswith("evidence"):
            scale = best_scale(spectrum, prior, values, state.groups)
        elif self.prior_precision == "validation":
            scale = scale * self._best_on_held_out(model, variables, spectrum, state)
        evidence = log_evidence(spectrum, prior, values, state.log_likelihood, scale, state.groups)
        spread = spectrum.at(scales_of(scale, state.groups), model.temperature)
        new = dataclasses.replace(state, spread=spread, log_evidence=evidence, scale=scale)
        # The mode is that under the prior without the scale.
        unscaled = spectrum.at(scales_of(jnp.ones_like(scale), state.groups), model.temperature)
        metrics = {
            "log_evidence": evidence,
            "prior_scale": jnp.exp(jnp.log(scale).mean()),
            "newton_decrement": newton_decrement(model, variables, unscaled, state.gradient),
        }
        return new, Info(metrics)

    def _best_on_held_out(
        self, model: Model, variables: Variables, spectrum: Spectrum, state: LaplaceState
    ) -> jax.Array:
        def score(scale: jax.Array) -> jax.Array:
            scales = scales_of(scale * jnp.ones_like(state.scale), state.groups)
            return held_out_score(model, variables, spectrum.at(scales, model.temperature), *self.held_out)

        return best_on_grid(score, GRID, state.scale.dtype)

    def point(self, model: Model, state: LaplaceState) -> Variables:
        return self._map().point(model, state.point)

    def posterior(self, model: Model, state: LaplaceState, draws: PyTree) -> GaussianWeights:
        return gaussian_posterior(jax.vmap(lambda s: self.point(model, s))(state), state, state.structure)


# Each has its jit, hence is traced once for all fits of the same shapes.
@jax.jit
def _add(method: Laplace, key: jax.Array, model: Model, state: LaplaceState, batch: Batch) -> tuple[LaplaceState, Info]:
    return method.add(key, model, state, batch)


@jax.jit
def _gaussian(method: Laplace, model: Model, state: LaplaceState) -> tuple[LaplaceState, Info]:
    return method.gaussian(model, state)


def gaussian_posterior(points: Variables, state: Any, structure: str) -> GaussianWeights:
    """The Gaussian around the weights of every member; other parameters are points."""
    rest = {name: tree for name, tree in points.params.items() if name != "network"}
    mean = {"network": points.params["network"]}
    return GaussianWeights(mean, state.spread, rest, points.state, state.log_evidence, state.scale, structure)


def single(variables: Variables) -> Variables:
    """Variables in single precision: networks that do not name a type start in double precision in its context."""
    return jax.tree.map(lambda x: x.astype(jnp.float32) if x.dtype == jnp.float64 else x, variables)
