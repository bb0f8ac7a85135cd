"""Importance sampling: draws of a simpler distribution, weighted so that they represent the posterior."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc.resampling import systematic
from jax.scipy.special import logsumexp

from credo.core.batch import Batch
from credo.core.capabilities import CentredPosterior, FitResult, ask, offers
from credo.core.distribution import ParamDistribution
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.posterior import WeightPosterior
from credo.core.short import is_array
from credo.core.tree import leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.population.pareto_smoothing import good_shape, pareto_smooth
from credo.methods.population.prior_draws import check_drawable
from credo.methods.population.widened import draw_from, log_density_of
from credo.posteriors import Particles
from credo.registry import build_method


@struct
class WeightedState:
    """The state of the method that makes the proposal, the best draw so far, and a key for resampling."""

    inner: Any = leaf()
    best: Variables = leaf()
    log_joint: jax.Array = leaf()
    key: jax.Array = leaf()


@struct
class ImportanceSampling(Method):
    """E[F(θ)] ≈ Σ_k F(θ_k) w_k / Σ_k w_k with θ_k ~ q and w = p(θ, D) / q(θ) (D1).

    The largest weights are smoothed by a Pareto distribution, whose shape k̂ tells whether they can be believed. Below
    0.7 the error falls as draws are added. Above, a few draws outweigh all others and no number of them will do: a note
    in `fit.status` and an alarm say so. `fit.posterior` has `pareto_k`, `effective` (1/Σw²) and `log_evidence`
    = log (1/K) Σ w, of which p(D) is estimated without bias but for the smoothing.

    k̂ judges the draws that there are. A mode that q never visits leaves no trace in the weights: where there may be
    several, take "prior" or `SMC`, which see them all.

    Where q holds a parameter at a point (the noise under Laplace, or noise="learned"), the answer is the posterior
    given that point. Geweke (1989), Bayesian inference in econometric models using Monte Carlo integration; Vehtari et
    al. (2024), Pareto smoothed importance sampling.

    Args:
        proposal: q. "prior"; the posterior of a fit, or the fit; or a method (or its name) that is run first and whose
            posterior has a density, such as "laplace" or "bayes_by_backprop".
        inflate: q is spread out by this factor around its centre; for Gaussian q.
        tails: degrees of freedom of the multivariate Student-t that replaces a Gaussian q; 3 to 10 are wise.
        resample: give draws of equal weight, chosen by weight, instead of weighted ones.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(noise=0.5))
        >>> method = credo.methods.ImportanceSampling("laplace", tails=5.0)
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), method, steps=2000)
        >>> bool(fit.posterior.pareto_k < 0.7)
        True
    """

    proposal: Any = "laplace"
    inflate: float | None = leaf(default=None)
    tails: float | None = leaf(default=None)
    resample: bool = False
    source: Any = leaf(default=None)  # the distribution or the method, where `proposal` is not a name

    default_steps = 4000

    def __post_init__(self) -> None:
        proposal = self.proposal
        if isinstance(proposal, str):
            return
        # A name is structure and an object has numbers, which are traced: they cannot be one field.
        object.__setattr__(self, "source", proposal.posterior if offers(proposal, FitResult) else proposal)
        object.__setattr__(self, "proposal", "method" if isinstance(proposal, Method) else "given")

    def _inner(self) -> Method | None:
        """The method that makes q, None where there is none to run."""
        if self.proposal in ("prior", "given"):
            return None
        return self.source if self.proposal == "method" else build_method(self.proposal)

    @property
    def precision(self) -> str:  # type: ignore[override]
        inner = self._inner()
        arrays = jax.tree.leaves(self.source if self.proposal == "given" else None)
        double = any(is_array(x) and x.dtype == np.float64 for x in arrays)
        return inner.precision if inner is not None else "float64" if double else "float32"

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        self._check()
        inner = self._inner()
        if inner is not None:
            if inner.members != 1 or inner.phases(64, 1)[-1].keeps_draws:
                raise Refusal(
                    f"{type(inner).__name__} gives draws or several members, and a proposal needs one density: take "
                    '"laplace" or "bayes_by_backprop".'
                )
            return inner.prepare(model)
        return (model, []) if self.proposal == "given" else inferring(model)

    def _check(self) -> None:
        for name, value in (("inflate", self.inflate), ("tails", self.tails)):
            if value is not None and not float(value) > 0:
                raise InputError(f"{name} must be positive, got {value}.")
        if self.proposal == "prior" and (self.inflate is not None or self.tails is not None):
            raise Refusal("Only a Gaussian proposal can be widened; give the model a wider prior instead.")
        q = self.source
        if self.proposal != "given":
            return
        if not isinstance(q, WeightPosterior) or q.available is not None or not isinstance(q, ParamDistribution):
            raise Refusal(
                "The proposal has no density over weights, so that weights p/q cannot be had: give the posterior of a "
                'variational or Laplace fit, or "prior".'
            )
        centred = ask(q, CentredPosterior)
        if q.members > 1 and jax.tree.leaves((centred.points, centred.state)):
            raise Refusal(
                "Each member of this proposal has points of its own, hence is a proposal of its own: give one."
            )

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        weigh = Phase("weigh", steps, "full", keeps_draws=True)
        inner = self._inner()
        if inner is None:
            return (weigh,)
        before = inner.phases(num_data, inner.default_steps)
        return *(dataclasses.replace(phase, main=False) for phase in before), weigh

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> WeightedState:
        key_inner, key_draw, key_later = jax.random.split(key, 3)
        if self.proposal == "prior":
            check_drawable(model, variables)
        inner = self._inner()
        state = WeightedState(
            None if inner is None else inner.init(key_inner, model, variables, data), variables,
            jnp.asarray(-jnp.finfo(jnp.float32).max, jnp.float32), jax.random.key_data(key_later),
        )  # fmt: skip
        first = jax.eval_shape(lambda s: self._draw(key_draw, model, s, data)[0], state)
        best = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), first)
        return dataclasses.replace(state, best=best._replace(state=variables.state))

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: WeightedState) -> PyTree:
        inner = self._inner()
        return key if inner is None or phase.name == "weigh" else inner.noise(key, model, phase, state.inner)

    def _draw(
        self, key: jax.Array, model: Model, state: WeightedState, batch: Batch
    ) -> tuple[Variables, jax.Array, jax.Array]:
        """θ ~ q, log q(θ) and log p(θ, D)."""
        if self.proposal == "prior":
            variables = model.sample_prior(key, batch)._replace(state=state.best.state)
            log_q = model.log_prior(variables.params)
        else:
            inner = self._inner()
            q = self.source
            if inner is not None:
                q = inner.posterior(model, jax.tree.map(lambda x: x[None], state.inner), None)
            variables = draw_from(key, q, self.inflate, self.tails)
            log_q = log_density_of(q, variables.params, self.inflate, self.tails)
        return variables, log_q, model.log_joint(variables, batch)[0]

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: WeightedState, batch: Batch
    ) -> tuple[WeightedState, Info]:
        inner = self._inner()
        if phase.name != "weigh" and inner is not None:
            new, info = inner.step(noise, model, phase, state.inner, batch)
            return dataclasses.replace(state, inner=new), info
        variables, log_q, log_joint = self._draw(noise, model, state, batch)
        log_weight = log_joint - log_q
        log_weight = jnp.where(jnp.isnan(log_weight), -jnp.inf, log_weight)
        better = log_joint > state.log_joint
        best = jax.tree.map(lambda a, b: jnp.where(better, a, b), variables, state.best)
        state = dataclasses.replace(
            state, best=best, log_joint=jnp.where(better, log_joint, state.log_joint).astype(state.log_joint.dtype)
        )
        return state, Info({"log_weight": log_weight, "log_joint": log_joint}, (variables.params, log_weight))

    def point(self, model: Model, state: WeightedState) -> Variables:
        return state.best

    def posterior(self, model: Model, state: WeightedState, draws: PyTree) -> Particles:
        params, raw = draws
        weights, diagnostics = _weighed(raw)
        if not self.resample:
            return Particles(params, state.best.state, weights, *diagnostics)
        return Particles(self._resampled(state, params, weights), state.best.state, None, *diagnostics)

    def _resampled(self, state: WeightedState, params: PyTree, weights: jax.Array) -> PyTree:
        """As many draws of equal weight, chosen systematically, and in random order: they are no chain."""
        key_choose, key_order = jax.random.split(jax.random.wrap_key_data(jnp.asarray(state.key)[0]))
        chosen = systematic(key_choose, jnp.exp(weights).ravel(), weights.size)
        chosen = jax.random.permutation(key_order, chosen)
        flat = jax.tree.map(lambda x: jnp.asarray(x).reshape(-1, *x.shape[2:]), params)
        return jax.tree.map(lambda x: x.reshape(*weights.shape, *x.shape[1:]), take(flat, chosen))

    def notes(self, trace: dict[str, Any]) -> list[str]:
        values = np.asarray(trace["log_weight"], np.float64).ravel()
        psis = jax.tree.map(np.asarray, pareto_smooth(np.maximum(values, -1e30).astype(np.float32)))
        good = good_shape(values.size)
        if float(psis.k) < good:
            evidence = np.logaddexp.reduce(values) - np.log(values.size)
            return [
                f"k-hat of the weights is {float(psis.k):.2f} (below {good:.2f}): the {values.size} draws are worth "
                f"{float(psis.effective):.0f}, and the log evidence is {evidence:.2f}."
            ]
        return [
            f"IMPORTANCE SAMPLING FAILED: k-hat of the weights is {float(psis.k):.2f} (above {good:.2f}) and the "
            f"{values.size} draws are worth {float(psis.effective):.1f}; do not use this posterior, take a proposal "
            "closer to it (tails=5, a richer fit) or a sampler."
        ]


@jax.jit
def _weighed(raw: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array, jax.Array]]:
    """Smoothed log weights [member, draw]; the evidence of each member, k̂ and the effective number of draws."""
    # Members are pooled: each draws from a normalised q, so that their weights are on one scale.
    smooth = pareto_smooth(raw.ravel())
    weights = smooth.log_weights.reshape(raw.shape)
    scale = logsumexp(raw) - jnp.log(raw.size)
    evidence = logsumexp(weights, axis=1) - jnp.log(raw.shape[1]) + jnp.log(raw.size) + scale
    return weights, (evidence, smooth.k, smooth.effective)
