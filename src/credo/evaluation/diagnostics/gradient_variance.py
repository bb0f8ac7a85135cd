"""How noisy estimates of the gradient of the bound are: by reparameterisation, and by the score function."""

import dataclasses
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, paths, take
from credo.errors import InputError, Refusal
from credo.evaluation.diagnostics.data import canonical
from credo.methods.variational.score_function import score_gradient, terms
from credo.methods.variational.state import gaussian_prior
from credo.posteriors import MeanField

ESTIMATORS = (
    "reparameterised", "reparameterised, path", "score, both", "score, Rao-Blackwell", "score, control variates",
    "score",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class GradientVariance:
    """Variances of estimates of ∇L, for the means and log standard deviations of q together.

    Attributes:
        groups: arrays of parameters, by path.
        variance: estimator → sum of the variances of each group's entries, in the order of `groups`.
        num_samples: K, draws of θ for each estimate.
        num: estimates.
    """

    groups: tuple[str, ...]
    variance: dict[str, tuple[float, ...]]
    num_samples: int
    num: int

    def total(self, estimator: str) -> float:
        """The sum over all groups."""
        return float(sum(self.variance[estimator]))

    def ratio(self, estimator: str) -> float:
        """The total over that of the reparameterised gradient."""
        return self.total(estimator) / max(self.total("reparameterised"), 1e-30)

    def __str__(self) -> str:
        others = [name for name in self.variance if name.startswith("score")]
        best, plain = min(others, key=self.total), "score"
        return (
            f"With {self.num_samples} draws the variance of the reparameterised gradient is "
            f"{self.total('reparameterised'):.3g}; that of the score function is {self.ratio(plain):.3g} times as "
            f"large, and {self.ratio(best):.3g} times at best ({best})."
        )


def gradient_variance(
    key: jax.Array, fit: Any, data: Any, num_samples: int = 16, num: int = 200, member: int = 0
) -> GradientVariance:
    """The variance of K-draw estimates of ∇L at a mean-field q, on all rows, by six estimators.

    The reparameterised gradient differentiates log p(D|θ) through θ = m + s ε, with the KL in closed form where that
    exists, or the path alone (`path_gradient`); the score function needs values of log p alone, plain, with control
    variates, Rao–Blackwellised, or both. Where q is the posterior, log p − log q is constant: the path gradient and
    control variates of the whole difference have no noise there, and Rao–Blackwellisation costs that. Ranganath,
    Gerrish and Blei (2014); Roeder et al. (2017); Mohamed et al. (2020), Monte Carlo gradient estimation.

    Args:
        key: for draws of q.
        fit: a fit whose posterior is mean field.
        data: (inputs, targets) or with weights.
        num_samples: K ≥ 2, draws of θ for each estimate.
        num: estimates.
        member: which member of the posterior.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "bayes_by_backprop", steps=1000)
        >>> credo.diagnostics.gradient_variance(jax.random.key(1), fit, (x, x[:, 0])).ratio("score") > 1
        True
    """
    if not isinstance(fit.posterior, MeanField):
        raise Refusal("Score-function gradients are compared for a mean-field q; this posterior is none.")
    if num_samples < 2 or num < 2:
        raise InputError(f"At least 2 draws and 2 estimates are needed, got {num_samples} and {num}.")
    inputs, targets, weight = canonical(fit, data)
    batch = Batch(inputs, targets, np.asarray(weight, np.float32), np.float32(len(targets)))
    posterior = jax.tree.map(lambda x: jnp.asarray(x)[member : member + 1], fit.posterior)
    beta = np.float32(fit.config.get("beta", 1.0))
    gradients = estimates(key, posterior, fit.model, batch, beta, num_samples, num)
    names = [path.removeprefix("network/") for path in paths(posterior.mean)]
    sizes = [int(np.prod(x.shape[1:])) for x in jax.tree.leaves(posterior.mean)]
    ends = np.cumsum([0, *sizes])
    variance = {}
    for name in ESTIMATORS:
        each = np.asarray(gradients[name], np.float64).var(0, ddof=1).sum(0)
        variance[name] = tuple(float(each[a:b].sum()) for a, b in pairwise(ends))
    return GradientVariance(tuple(names), variance, num_samples, num)


@partial(jax.jit, static_argnames=("num_samples", "num"))
def estimates(
    key: jax.Array, posterior: MeanField, model: Model, batch: Batch, beta: Any, num_samples: int, num: int
) -> dict[str, jax.Array]:
    """`num` estimates of (∇_m L, ∇_{log s} L) [num, 2, P] by each estimator, from the same draws."""
    mean, std, points, state = take((posterior.mean, posterior.std, posterior.points, posterior.state), 0)
    layout = Layout.of(mean, limit=2**62)
    prior = gaussian_prior(model, Variables(mean | points, state), mean, layout)
    centre, log_std = layout.ravel(mean), jnp.log(layout.ravel(std))

    def log_likelihood(theta: jax.Array) -> jax.Array:
        per_row, _ = model.log_likelihood(Variables(layout.unravel(theta) | points, state), batch)
        return batch.total(per_row)

    def path(q: tuple[jax.Array, jax.Array], eps: jax.Array) -> jax.Array:
        draws = q[0] + jnp.exp(q[1]) * eps
        held, log_s = jax.lax.stop_gradient(q)
        parts = terms(model, layout, prior, draws, (draws - held) * jnp.exp(-log_s), log_s)
        total = jax.vmap(log_likelihood)(draws) + beta * (parts.shared + parts.prior.sum(1))
        return (total / model.temperature - beta * parts.density.sum(1)).mean()

    def bound(q: tuple[jax.Array, jax.Array], eps: jax.Array) -> jax.Array:
        draws = q[0] + jnp.exp(q[1]) * eps
        parts = terms(model, layout, prior, draws, eps, q[1])
        log_prior = _closed(q, prior) if prior is not None else parts.prior.sum(1)
        total = jax.vmap(log_likelihood)(draws) + beta * (parts.shared + log_prior)
        return total.mean() / model.temperature + beta * q[1].sum()

    def one(key: jax.Array) -> dict[str, jax.Array]:
        eps = jax.random.normal(key, (num_samples, len(centre)), centre.dtype)
        draws = centre + jnp.exp(log_std) * eps
        parts = terms(model, layout, prior, draws, eps, log_std)
        shared = (jax.vmap(log_likelihood)(draws) + beta * parts.shared) / model.temperature
        local = beta * (parts.prior / model.temperature - parts.density)
        total = shared + local.sum(1)
        score = partial(score_gradient, eps, log_std)
        every = (
            jax.grad(bound)((centre, log_std), eps), jax.grad(path)((centre, log_std), eps),
            score(shared, local, True), score(shared, local, False),
            score(total, None, True), score(total, None, False),
        )  # fmt: skip
        return {name: jnp.stack(pair) for name, pair in zip(ESTIMATORS, every)}

    return jax.lax.map(one, jax.random.split(key, num))


def _closed(q: tuple[jax.Array, jax.Array], prior: Any) -> jax.Array:
    """E_q[log p(θ)] under a Gaussian prior, up to a constant."""
    loc, log_scale, where = prior
    return (-0.5 * where * ((q[0] - loc) ** 2 + jnp.exp(2 * q[1])) * jnp.exp(-2 * log_scale)).sum()
