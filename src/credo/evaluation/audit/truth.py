"""The true posterior of an audit problem, and where it comes from."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from credo.core import mixture
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat

LEVELS = (np.arange(128) + 0.5) / 128  # of the quantiles that stand for a distribution of function values
POINTS = 257  # of the grid that a predictive density lies on


@dataclasses.dataclass(frozen=True)
class Truth:
    """The posterior of functions and the predictive distribution at n inputs.

    Function values g(x) are f_θ(x) for real targets [n, 1] and class probabilities p_θ(c|x) for classes [n, C].

    Attributes:
        kind: "real" or "classes".
        mean, std: moments of g under the posterior.
        quantiles: of g under the posterior, at `LEVELS` [L, n, C].
        grid: values of y [n, G] (real targets).
        log_density, cdf: of the predictive distribution of y on the grid [n, G] (real targets).
        effective: how many independent draws the moments rest on; infinite where they are exact.
        source: where it comes from, in a sentence.
    """

    kind: str
    mean: np.ndarray
    std: np.ndarray
    quantiles: np.ndarray
    grid: np.ndarray | None
    log_density: np.ndarray | None
    cdf: np.ndarray | None
    effective: np.ndarray
    source: str

    @property
    def noise(self) -> np.ndarray:
        """Standard deviation of the predictive distribution of y [n]: the unit of its distances."""
        assert self.grid is not None
        density = self.density
        first = np.trapezoid(self.grid * density, self.grid)
        return np.sqrt(np.trapezoid((self.grid - first[:, None]) ** 2 * density, self.grid))

    @property
    def density(self) -> np.ndarray:
        """The predictive density of y on the grid [n, G]."""
        assert self.log_density is not None
        return np.exp(self.log_density)


def normal_truth(mean: np.ndarray, std: np.ndarray, noise: float, source: str) -> Truth:
    """f(x) ~ N(mean, std²) and y ~ N(mean, std² + noise²) at every input [n]."""
    mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    total = np.sqrt(std**2 + noise**2)
    grid = mean[:, None] + total[:, None] * np.linspace(-7, 7, POINTS)
    y = stats.norm(mean[:, None], total[:, None])
    quantiles = stats.norm.ppf(LEVELS[:, None], mean, std)[..., None]
    exact = np.full((len(mean), 1), np.inf)
    return Truth(
        "real", mean[:, None], std[:, None], quantiles, grid, y.logpdf(grid), y.cdf(grid), exact, source
    )  # fmt: skip


def truth_of_draws(likelihood: Likelihood, draws: Flat, effective: Any, source: str) -> Truth:
    """The truth that many draws of f (or the nodes and weights of a quadrature) stand for."""
    values, weights = function_values(likelihood, draws)
    mean, std = weighted_moments(values, weights)
    quantiles = weighted_quantiles(values, weights)
    effective = np.broadcast_to(np.asarray(effective, np.float64), mean.shape)
    if likelihood.kind == "classes":
        return Truth("classes", mean, std, quantiles, None, None, None, effective, source)
    moments = {k: np.asarray(v, np.float64)[:, 0] for k, v in mixture.moments(likelihood, draws).items()}
    total = np.sqrt(moments["aleatoric"] + moments["epistemic"])
    grid = moments["mean"][:, None] + total[:, None] * np.linspace(-7, 7, POINTS)
    log_density, cdf = on_grid(likelihood, draws, grid)
    return Truth("real", mean, std, quantiles, grid, log_density, cdf, effective, source)


def function_values(likelihood: Any, draws: Flat) -> tuple[np.ndarray, np.ndarray]:
    """g(x) of every draw [K, n, C] and the draws' weights [K], in double precision."""
    values = mixture.values_of(likelihood, draws)
    weights = np.exp(np.asarray(draws.log_weights, np.float64))
    return np.asarray(values, np.float64), weights / weights.sum()


def weighted_moments(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the draws [n, C]."""
    mean = np.tensordot(weights, values, 1)
    return mean, np.sqrt(np.tensordot(weights, (values - mean) ** 2, 1))


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, levels: np.ndarray = LEVELS) -> np.ndarray:
    """Quantiles over the draws [L, n, C], between draws by straight lines through the middles of their weights."""
    shape = values.shape[1:]
    columns = values.reshape(len(values), -1)
    if np.ptp(weights) == 0:
        return np.quantile(columns, levels, axis=0, method="hazen").reshape(-1, *shape)
    order = np.argsort(columns, axis=0)
    quantiles = np.empty((len(levels), columns.shape[1]))
    for j, at in enumerate(order.T):
        mass = weights[at]
        quantiles[:, j] = np.interp(levels, np.cumsum(mass) - 0.5 * mass, columns[at, j])
    return quantiles.reshape(-1, *shape)


def on_grid(likelihood: Likelihood, draws: Flat, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log density and distribution function of y on a grid of its own for every input [n, G]."""
    columns = jnp.asarray(grid.T[:, :, None], jnp.float32)
    log_density, cdf = _on_grid(likelihood, draws, columns)
    return np.asarray(log_density, np.float64).T, np.asarray(cdf, np.float64).T


@jax.jit
def _on_grid(likelihood: Likelihood, draws: Flat, columns: jax.Array) -> tuple[jax.Array, jax.Array]:
    def at(y: jax.Array) -> tuple[jax.Array, jax.Array]:
        return mixture.log_prob(likelihood, draws, y), mixture.cdf(likelihood, draws, y)[:, 0]

    return jax.lax.map(at, columns)
