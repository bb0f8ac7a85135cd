"""Likelihoods corrected by rows outside of training: wider noise, cooler probabilities, more overdispersion.

The correction is part of the model, so that predictions, scores, decisions, files and exports all have it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import NamedLikelihood, NormalLikelihood, ask
from credo.core.densities import overdispersion, tempered_log_probs
from credo.core.likelihood import has_posterior
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.likelihoods.base import ClassLikelihood
from credo.likelihoods.negative_binomial import NegativeBinomial
from credo.likelihoods.poisson import Poisson


class Corrected:
    """What corrected likelihoods share: targets, outputs and parameters are those of the `inner` one."""

    inner: Any
    factor: Any

    @property
    def point(self) -> bool:
        """As the inner likelihood."""
        return bool(self.inner.point)

    @property
    def inferred(self) -> bool:
        """As the inner likelihood."""
        return has_posterior(self.inner)

    @property
    def learns(self) -> str:
        """As the inner likelihood."""
        return ask(self.inner, NamedLikelihood).learns

    def prepare(self, targets: np.ndarray) -> np.ndarray:
        """As the inner likelihood."""
        return self.inner.prepare(targets)

    def num_outputs(self, targets: Any) -> int:
        """As the inner likelihood."""
        return self.inner.num_outputs(targets)

    def init(self, targets: jax.Array, weight: jax.Array) -> PyTree:
        """As the inner likelihood."""
        return self.inner.init(targets, weight)

    def log_prior(self, params: PyTree) -> jax.Array:
        """As the inner likelihood."""
        return self.inner.log_prior(params)

    def sample_prior(self, key: jax.Array, targets: jax.Array) -> PyTree:
        """As the inner likelihood."""
        return self.inner.sample_prior(key, targets)

    def exported(self, params: PyTree) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the inner likelihood, and the correction."""
        settings, arrays = self.inner.exported(params)
        return settings | {"correction": self._correction(settings.get("correction"))}, arrays

    def _correction(self, inner: dict[str, Any] | None) -> dict[str, Any]:
        """Of the likelihood without any; factors multiply."""
        before = 1.0 if inner is None else np.asarray(inner["factor"])
        return {"factor": (before * np.asarray(self.factor, np.float64)).tolist()}

    def inferring(self) -> Any:
        """With the inner one's learned point under its prior."""
        inner: Any = self.inner.inferring()
        return self if inner is self.inner else dataclasses.replace(self, inner=inner)  # type: ignore[type-var]


@struct
class Stretched(Corrected):
    """y = m + s (y₀ − m) with y₀ from the inner likelihood and m = E[y₀ | f]: noise s times as wide.

    inner: a likelihood of numbers that is a location and a scale; those of positive numbers have their own `stretched`.
    factor: s, one number or one for each entry of y.
    """

    inner: Any = leaf()
    factor: Any = leaf(default=1.0)

    kind = "real"

    @property
    def normal(self) -> bool:
        """As the inner likelihood: stretched normal noise is normal."""
        return ask(self.inner, NormalLikelihood).normal

    def _back(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """y₀ = m + (y − m)/s."""
        mean = self.inner.mean(params, outputs)
        return mean + (targets - mean) / self.factor

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log p₀(m + (y − m)/s) − log s, summed over the entries of y."""
        log_prob = self.inner.log_prob(params, outputs, self._back(params, outputs, targets))
        return log_prob - jnp.log(jnp.broadcast_to(jnp.asarray(self.factor, log_prob.dtype), targets.shape[-1:])).sum()

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """m."""
        return self.inner.mean(params, outputs)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s² Var[y₀]."""
        return self.inner.variance(params, outputs) * jnp.square(self.factor)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """F₀(m + (y − m)/s)."""
        return self.inner.cdf(params, outputs, self._back(params, outputs, targets))

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """m + s (y₀ − m)."""
        mean = self.inner.mean(params, outputs)
        return mean + self.factor * (self.inner.sample(key, params, outputs) - mean)

    @property
    def curvature(self) -> Callable[[PyTree, jax.Array], jax.Array]:
        """That of the inner likelihood, divided by s² where an output is a location; a log scale is only shifted.

        An inner one without a curvature has none here either: it is that of `log_prob` above, by autodiff.
        """
        inner = self.inner.curvature

        def curvature(params: PyTree, outputs: jax.Array) -> jax.Array:
            fisher = inner(params, outputs)
            num_locations = self.inner.mean(params, outputs).shape[-1]
            scale = jnp.broadcast_to(1.0 / jnp.asarray(self.factor, fisher.dtype), (num_locations,))
            scales = jnp.concatenate([scale, jnp.ones(outputs.shape[-1] - num_locations, fisher.dtype)])
            return fisher * scales[:, None] * scales

        return curvature


@struct
class Tempered(Corrected, ClassLikelihood):
    """p(c) = (1 − w) p₀(c)^(1/T)/Σ_j p₀(j)^(1/T) + w π_c: a temperature, and a share of the classes' frequencies.

    inner: a likelihood of classes.
    heat: T; above 1 the inner one was too sure of itself.
    share: w.
    log_frequencies: log π of each class, a tuple.
    """

    inner: Any = leaf()
    heat: Any = leaf(default=1.0)
    share: Any = leaf(default=0.0)
    log_frequencies: Any = leaf(default=None)

    def _correction(self, inner: dict[str, Any] | None) -> dict[str, Any]:
        if inner is not None:
            raise Refusal('Probabilities that were corrected twice are none of NumPy\'s; use form="stablehlo".')
        shares = np.exp(np.asarray(self.log_frequencies, np.float64)).tolist()
        return {"heat": float(self.heat), "share": float(self.share), "frequencies": shares}

    def log_probs(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """log p(c) of every class [n, C]."""
        inner = self.inner.log_probs(params, outputs)
        return tempered_log_probs(inner, self.heat, self.share, jnp.asarray(self.log_frequencies, inner.dtype))

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Σ_c p_c ∇log p_c ∇log p_cᵀ [n, out, out]."""

        def one(row: jax.Array) -> jax.Array:
            log_probs = self.log_probs(params, row[None])[0]
            slopes = jax.jacfwd(lambda f: self.log_probs(params, f[None])[0])(row)
            return jnp.einsum("c,ci,cj->ij", jnp.exp(log_probs), slopes, slopes)

        return jax.vmap(one)(outputs)


@struct
class Overdispersed(Corrected):
    """Counts with the mean μ of the inner likelihood and s² times its variance: NB(μ, r'), 1/r' = (s² − 1)/μ + s²/r.

    No such distribution has a variance below μ: where s² would ask for one, y is Poisson.

    inner: `poisson` (1/r = 0) or `negative_binomial`; of any other likelihood of counts only mean and variance are
        kept, 1/r = (Var[y] − μ)/μ².
    factor: s, one number or one for each entry of y.
    """

    inner: Any = leaf()
    factor: Any = leaf(default=1.0)

    kind = "counts"

    def _wider(self, params: PyTree, outputs: jax.Array) -> tuple[NegativeBinomial, jax.Array]:
        """NB(μ, r'), and its outputs."""
        mean = self.inner.mean(params, outputs)
        if isinstance(self.inner, Poisson | NegativeBinomial):
            offset, log_mean = self.inner.offset, outputs
            inverse = jnp.exp(-self.inner.log_r(params)) if isinstance(self.inner, NegativeBinomial) else 0.0
        else:
            offset, log_mean = 0.0, jnp.log(jnp.maximum(mean, 1e-30))
            inverse = jnp.maximum(self.inner.variance(params, outputs) - mean, 0.0) / jnp.maximum(mean, 1e-15) ** 2
        return NegativeBinomial("known", 1.0 / overdispersion(self.factor, mean, inverse), offset=offset), log_mean

    def log_prob(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """log NB(y; μ, r'), summed over the entries of y."""
        wider, log_mean = self._wider(params, outputs)
        return wider.log_prob({}, log_mean, targets)

    def mean(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """μ."""
        return self.inner.mean(params, outputs)

    def variance(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """s² times the inner variance, and no less than μ."""
        wider, log_mean = self._wider(params, outputs)
        return wider.variance({}, log_mean)

    def cdf(self, params: PyTree, outputs: jax.Array, targets: jax.Array) -> jax.Array:
        """P(Y ≤ y) under NB(μ, r')."""
        wider, log_mean = self._wider(params, outputs)
        return wider.cdf({}, log_mean, targets)

    def sample(self, key: jax.Array, params: PyTree, outputs: jax.Array) -> jax.Array:
        """One count for every entry."""
        wider, log_mean = self._wider(params, outputs)
        return wider.sample(key, {}, log_mean)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """∇μ ∇μ'/Var[y], summed over the entries of y: the information of a quasi-likelihood with this mean and
        variance."""
        slopes = jax.vmap(jax.jacfwd(lambda f: self.inner.mean(params, f[None])[0]))(outputs)
        return jnp.einsum("nki,nk,nkj->nij", slopes, 1 / self.variance(params, outputs), slopes)
