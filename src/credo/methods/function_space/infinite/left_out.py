"""Leave-one-out moments of a Gaussian process at its training rows, without a second fit."""

import numpy as np

from credo.methods.function_space.infinite.posterior import FunctionPosterior
from credo.methods.function_space.infinite.process import Process


def leave_one_out(posterior: FunctionPosterior, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean [n, out] and covariance [n, out, out] of f(x_i) given all rows but the i-th.

    The row's own term is divided out of its marginal q(f_i) = N(m_i, V_i). At the mode K⁻¹m = ∇log p(y|m) = α, so

        V₋ᵢ = (V_i⁻¹ − W_i)⁻¹ = V_i + V_i R_i (B⁻¹)ᵢᵢ⁻¹ R_i'V_i,   m₋ᵢ = m_i − V₋ᵢ α_i

    with W_i = R_i R_i' the curvature of the row's term. (B⁻¹)ᵢᵢ = I − R_i'V_i R_i is read off the factor: where noise
    is small next to what a row adds, that difference has no digits left. Under Gaussian noise this is exact; else it is
    as good as the Laplace approximation. Scales chosen by the evidence stay as they are. Rasmussen and Williams (2006),
    section 5.4.2; Vehtari, Mononen, Tolvanen, Sivula and Winther (2016), Bayesian leave-one-out cross-validation
    approximations for Gaussian latent variable models.

    Args:
        posterior: of a fit with `infinite_width`.
        rows: how many it was fitted to; rows behind them are padding.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([50]), credo.priors.fan_in_normal(1.5), credo.likelihoods.gaussian(noise=0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "infinite_width")
        >>> mean, covariance = leave_one_out(fit.posterior, 40)
        >>> mean.shape, covariance.shape
        ((40, 1), (40, 1, 1))
    """
    process = Process.of(posterior.bits, posterior.activation)
    at = process.at(process.numbers["inputs"][:rows])
    prior, slopes = process.kernel.diagonal(at.rows), process.numbers["coefficients"][:rows]
    mean, covariance = at.mean.copy(), np.zeros((rows, process.outputs, process.outputs))
    start = 0
    for cross, roots, lower in zip(at.cross, process.numbers["roots"], process.numbers["factor"]):
        size = cross.shape[1] // rows
        block = slice(start, start + size)
        columns = cross.reshape(len(cross), rows, size)
        marginal = prior[:, None, None] * np.eye(size) - np.einsum("tns,tnr->nsr", columns, columns)
        gain = np.einsum("nsr,nrc->nsc", marginal, roots[:rows])
        cavity = marginal + gain @ np.linalg.solve(_inverse_blocks(lower, roots.shape)[:rows], gain.transpose(0, 2, 1))
        covariance[:, block, block] = 0.5 * (cavity + cavity.transpose(0, 2, 1))
        mean[:, block] -= np.einsum("nsr,nr->ns", covariance[:, block, block], slopes[:, block])
        start = block.stop
    return mean, covariance


def _inverse_blocks(lower: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The blocks (B⁻¹)ᵢᵢ [n, c, c] of the rows, from the factor of B and the shape [n, out, c] of the roots."""
    from scipy.linalg import solve_triangular

    inverse = solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
    columns = inverse.reshape(len(lower), shape[0], shape[2])
    return np.einsum("tnc,tnd->ncd", columns, columns)
