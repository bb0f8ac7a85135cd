"""Inference in the limit of infinite width: the network as a Gaussian process."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, at_mode
from credo.core.network import Variables
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.likelihoods import Gaussian
from credo.methods.function_space.infinite.kernels import Kernel
from credo.methods.function_space.infinite.laplace import Observations, find_mode, smooth_evidence
from credo.methods.function_space.infinite.limit import check_limit, limit
from credo.methods.function_space.infinite.posterior import FunctionPosterior
from credo.methods.function_space.infinite.process import from_bits, to_bits
from credo.methods.function_space.infinite.regression import TrainingPosterior, factor, regression, smooth_regression
from credo.methods.function_space.infinite.relevance import log_prior, log_prior_of_point, with_least_noise
from credo.methods.function_space.infinite.rows import TrainingRows, searched
from credo.methods.function_space.infinite.search import STILL, Search, climb

PRIOR_SCALES = ("prior", "evidence", "relevance")
CLOSE = 1e-5  # rise, relative, below which many relevances are at their maximum
MOST = 10_000  # rows × outputs: the factor of that many takes 0.8 GB and some ten seconds


@struct
class WideState:
    """What the evidence of some rows has chosen so far, and the posterior given that."""

    chosen: PyTree = leaf()  # {"scales": log factors of weight and bias variances, "likelihood": ν}, both maybe empty
    search: Search = leaf()
    solved: TrainingPosterior = leaf()
    rows: TrainingRows = leaf()
    some: TrainingRows = leaf()


@struct
class InfiniteWidth(Method):
    """The exact posterior over functions of a perceptron whose hidden layers are infinitely wide (F3).

    Under weights of variance σ²/fan_in the outputs of ever wider networks tend to a Gaussian process, whose covariance
    has a closed form for erf and relu (`credo.infinite.kernel`); the widths of the model's network do not matter. With
    Gaussian noise the posterior and the log evidence are exact, from one Cholesky factor in double precision. Other
    likelihoods get the Laplace approximation around the mode of the function values. Noise that is learned or inferred
    is taken at the maximum of the evidence. Neal (1996); Williams (1997); Lee et al. (2018); Rasmussen and Williams
    (2006), chapters 2 and 3.

    Takes all rows at once, up to 10,000 rows × outputs. Steps are those of the search for the maximum of the evidence,
    which ends by itself; where there is nothing to choose, one step is all.

    Args:
        prior_scale: "prior" keeps the model's prior; "evidence" multiplies all its weight variances by one number and
            all its bias variances by another, those of the greatest evidence. "relevance" also multiplies those of the
            weights of every input by a number of its own, whose root is half-Cauchy: the factors of irrelevant inputs
            tend to 0. The logarithms of the other factors, and of noise that is learned, are normal, of deviation 2,
            around where they start; copies of rows do not take part, and the noise that comes out is at least 0.7 times
            the median error of a row left out, so that draws of f describe targets well. MacKay (1994), Bayesian
            nonlinear modeling for the prediction competition; Neal (1996), section 1.3.3.
        search_rows: maximise the evidence of so many random distinct rows, which is quicker; the posterior is always
            that of all rows. None: of all.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([50, 50], "erf"), credo.priors.fan_in_normal(1.5), credo.likelihoods.gaussian(0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "infinite_width")
        >>> credo.predict(jax.random.key(1), fit, x).mean.shape, fit.posterior.log_evidence.shape
        ((40,), (1,))
    """

    prior_scale: str = "prior"
    search_rows: int | None = None

    default_steps = 100
    precision = "float64"

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.prior_scale not in PRIOR_SCALES:
            raise InputError(f"prior_scale must be one of {', '.join(PRIOR_SCALES)}, got {self.prior_scale!r}.")
        check_limit(model)
        if not isinstance(model.temperature, jax.core.Tracer) and model.temperature != 1.0:
            raise Refusal(
                "The limit is that of the prior as it is: at another temperature than 1 there is no closed form."
            )
        notes = []
        if not isinstance(model.likelihood, Gaussian):
            notes.append("Under this likelihood functions have no closed form: their Laplace approximation.")
        return model, notes + at_mode(model)

    def check_weights(self, model: Model, weights: Any) -> None:
        check_size(len(weights), 1)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("evidence", steps, "full", main=True, until="converged"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> WideState:
        outputs = model.likelihood.num_outputs(data.targets)
        check_size(data.weight.shape[0], outputs)
        double = jnp.result_type(float)
        scales = {} if self.prior_scale == "prior" else {name: jnp.zeros((), double) for name in ("weight", "bias")}
        if self.prior_scale == "relevance":
            scales["inputs"] = jnp.zeros(data.inputs.shape[-1], double)
        chosen = {
            "scales": scales,
            "likelihood": jax.tree.map(lambda x: x.astype(double), variables.params["likelihood"]),
        }
        real = jax.dtypes.issubdtype(data.targets.dtype, jnp.floating)
        rows = TrainingRows(
            jnp.asarray(data.inputs, double), data.targets.astype(double) if real else jnp.asarray(data.targets),
            jnp.asarray(data.weight, double),
        )  # fmt: skip
        some = searched(key, rows, self.search_rows) if self._searches_some else rows
        zero = jnp.zeros((len(some.weight), outputs), double)
        solved = TrainingPosterior(zero, zero, *jnp.zeros((2,), double))
        return WideState(chosen, Search.start(ravel_pytree(chosen)[0].astype(double)), solved, rows, some)

    def step(self, noise: PyTree, model: Model, phase: Phase, state: WideState, batch: Batch) -> tuple[WideState, Info]:
        if not jax.tree.leaves(state.chosen):
            state = dataclasses.replace(state, solved=self.solve(model, state.some, state.chosen, state.solved))
            return state, _info(state, jnp.ones((), bool))
        unravel = ravel_pytree(state.chosen)[1]

        def objective(vector: jax.Array) -> tuple[jax.Array, TrainingPosterior]:
            chosen = unravel(vector)
            value, solved = self.evidence(model, state, chosen)
            value = value + model.likelihood.log_prior(chosen["likelihood"]) + self._log_prior(model, state, chosen)
            return value, solved

        search, solved = climb(
            objective, state.search, state.solved, CLOSE if self.prior_scale == "relevance" else STILL
        )
        state = dataclasses.replace(state, chosen=unravel(search.at), search=search, solved=solved)
        return state, _info(state, search.done)

    @property
    def _searches_some(self) -> bool:
        return self.search_rows is not None or self.prior_scale == "relevance"

    def _log_prior(self, model: Model, state: WideState, chosen: PyTree) -> jax.Array:
        """Weak priors under which "relevance" maximises the evidence."""
        if self.prior_scale != "relevance" or not model.likelihood.point:
            return log_prior(chosen["scales"])
        start = model.likelihood.init(state.some.targets, state.some.weight)
        return log_prior(chosen["scales"]) + log_prior_of_point(chosen["likelihood"], start)

    def covariance(self, model: Model, rows: TrainingRows, chosen: PyTree) -> Kernel:
        """The kernel with the scales that are chosen so far."""
        scales = {name: jnp.exp(x) for name, x in chosen["scales"].items()}
        kernel = limit(model, rows.inputs.shape[-1])
        return kernel.scaled(scales["weight"], scales["bias"], scales.get("inputs")) if scales else kernel

    def solve(self, model: Model, rows: TrainingRows, chosen: PyTree, near: TrainingPosterior) -> TrainingPosterior:
        """The posterior at the rows, given what is chosen; `near` is where the search for a mode starts."""
        gram, params = self.covariance(model, rows, chosen)(rows.inputs), chosen["likelihood"]
        if isinstance(model.likelihood, Gaussian):
            return regression(gram, rows.targets, rows.weight, _log_sigma(model.likelihood, params))
        return find_mode(gram, Observations(model.likelihood, rows.targets, rows.weight), params, near.coefficients)

    def evidence(self, model: Model, state: WideState, chosen: PyTree) -> tuple[jax.Array, TrainingPosterior]:
        """log p(D) given what is chosen, differentiable in it, and the posterior at the rows."""
        gram, params = self.covariance(model, state.some, chosen)(state.some.inputs), chosen["likelihood"]
        if isinstance(model.likelihood, Gaussian):
            log_sigma = _log_sigma(model.likelihood, params)
            solved = smooth_regression(gram, state.some.targets, state.some.weight, log_sigma)
            return solved.log_evidence, solved
        rows = Observations(model.likelihood, state.some.targets, state.some.weight)
        solved = find_mode(*jax.lax.stop_gradient((gram, rows, params, state.solved.coefficients)))
        return smooth_evidence(gram, rows, params, solved), solved

    def failure(self, posterior: FunctionPosterior) -> str | None:
        numbers = (posterior.log_evidence, *(from_bits(posterior.bits[name]) for name in ("coefficients", "factor")))
        if all(np.isfinite(x).all() for x in numbers):
            return None
        return (
            "The covariance of these rows has no Cholesky factor in double precision: the noise is too small. "
            "Give a larger noise, or leave out rows that repeat."
        )

    def point(self, model: Model, state: WideState) -> Variables:
        raise Refusal("An infinitely wide network has functions and no weights, so no method can start at its weights.")

    def posterior(self, model: Model, state: WideState, draws: PyTree) -> FunctionPosterior:
        return jax.tree.map(lambda x: x[None], self._posterior(model, jax.tree.map(lambda x: x[0], state)))

    def _posterior(self, model: Model, state: WideState) -> FunctionPosterior:
        params, rows, solved = state.chosen["likelihood"], state.rows, state.solved
        kernel = self.covariance(model, rows, state.chosen)
        gram = kernel(rows.inputs)
        if self.prior_scale == "relevance" and isinstance(model.likelihood, Gaussian) and params:
            path = model.likelihood.path
            params = params | {path: with_least_noise(gram, rows.weight, params[path])}
        if self._searches_some:
            zero = jnp.zeros((len(rows.weight), solved.coefficients.shape[1]), rows.weight.dtype)
            near = solved._replace(mode=zero, coefficients=zero)
            solved = self.solve(model, rows, state.chosen | {"likelihood": params}, near)
        if isinstance(model.likelihood, Gaussian):
            sigma = jnp.exp(jnp.broadcast_to(_log_sigma(model.likelihood, params), rows.targets.shape[1:]))
            roots = (jnp.sqrt(rows.weight)[:, None] / sigma).T[..., None, None]
        else:
            roots = Observations(model.likelihood, rows.targets, rows.weight).roots(params, solved.mode)[None]
        relevance = {} if kernel.relevance is None else {"relevance": kernel.relevance}
        numbers = relevance | {
            "inputs": rows.inputs, "coefficients": solved.coefficients, "roots": roots,
            "factor": jax.vmap(lambda r: factor(gram, r))(roots), "weight": kernel.weight, "bias": kernel.bias,
        }  # fmt: skip
        no_scale = jnp.zeros((), rows.weight.dtype)
        scales = {name: jnp.exp(state.chosen["scales"].get(name, no_scale)) for name in ("weight", "bias")}
        return FunctionPosterior(
            params, solved.log_evidence, scales["weight"], scales["bias"],
            {name: to_bits(x) for name, x in numbers.items()}, kernel.activation, kernel.relevance,
        )  # fmt: skip


def check_size(rows: int, outputs: int) -> None:
    """Refusal where the Cholesky factor would be too large."""
    if rows * outputs > MOST:
        times = f" × {outputs} outputs" if outputs > 1 else ""
        raise Refusal(
            f"The exact posterior needs a matrix with one row for each of {rows:,} rows{times}, and {MOST:,} is the "
            "most that is sensible: take a random subset of the rows, or a finite network with another method."
        )


def _info(state: WideState, done: jax.Array) -> Info:
    return Info(
        {
            "log_evidence": state.solved.log_evidence, "converged": done.astype(jnp.float32),
            "newton_decrement": state.solved.decrement,
        }
    )  # fmt: skip


def _log_sigma(likelihood: Any, params: PyTree) -> jax.Array:
    return jnp.asarray(likelihood.log_sigma(params), jnp.result_type(float))
