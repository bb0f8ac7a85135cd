"""The reference surrogate: a Gaussian process with a length scale for each column."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.optimise import hyper
from credo.applications.optimise.belief import Fitted, MixedBelief, NormalBelief, as_numpy
from credo.applications.optimise.targets import room, standardised
from credo.core.batch import pad_rows, pad_weights
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal

DRAWS = 8


def posterior(params: PyTree, x: jax.Array, y: jax.Array, weight: jax.Array) -> NormalBelief:
    """f given the rows, at hyper-parameters."""
    lower, rest = hyper.factor(params, x, y, weight)
    whiten = jax.scipy.linalg.solve_triangular(lower, jnp.diag(weight), lower=True)
    noise = hyper.LEAST + jnp.exp(params["noise"])
    return NormalBelief(
        hyper.kernel(params), x, whiten.T @ (whiten @ rest), whiten, jnp.asarray(params["constant"]), noise
    )


@jax.jit
def mixed(draws: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array, noise: Any) -> MixedBelief:
    """f given the rows, at each draw of hyper-parameters [draws, d + 3]."""
    parts = jax.vmap(lambda vector: posterior(hyper.unpacked(vector, x.shape[1], noise), x, y, weight))(draws)
    return MixedBelief(parts, parts.noise.mean())


class GaussianProcess:
    """f ~ GP(c, k) with the Matérn-5/2 kernel and a length scale for each column of the code.

    Length scales, variance, noise and the constant are averaged over draws from their posterior (`hyper.log_prior`),
    which start at its maximum; all in double precision. After few evaluations the maximum alone is too sure.

    Args:
        noise: the standard deviation of the noise in units of the objective; None: inferred with the rest.
        draws: of hyper-parameters; 1 takes the maximum of evidence × prior instead.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(0, 1, 9)[:, None]
        >>> fitted = credo.applications.optimise.GaussianProcess().fit(jax.random.key(0), x, np.sin(6 * x[:, 0]))
        >>> mean, std = fitted.moments(np.array([[0.3]]))
        >>> bool(abs(mean[0] - np.sin(1.8)) < 0.05)
        True
    """

    name = "gp"

    def __init__(self, noise: float | None = None, draws: int = DRAWS):
        if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
            raise InputError(f"draws is a whole number of at least 1, got {draws!r}.")
        self.noise, self.draws = noise, draws

    def fit(self, key: jax.Array, x: np.ndarray, gains: np.ndarray) -> Fitted:
        """What is believed after gains at unit-cube rows."""
        y, shift, scale = standardised(gains)
        size = room(len(x))
        log_noise = None if self.noise is None else np.log(np.clip((self.noise / scale) ** 2, hyper.LEAST, hyper.MOST))
        with jax.enable_x64(True):
            rows = pad_rows(x, size), pad_rows(y, size), pad_weights(np.ones(len(x)), size)
            data = [jnp.asarray(a, jnp.float64) for a in rows]
            noise = None if log_noise is None else jnp.asarray(log_noise, jnp.float64)
            ends, values = (np.asarray(a) for a in hyper.maximise(jnp.asarray(hyper.starts(x.shape[1])), *data, noise))
            best = int(np.where(np.isfinite(values), values, -np.inf).argmax())
            if not np.isfinite(ends[best]).all() or not np.isfinite(values[best]):
                raise Refusal("No length scales give these values a finite evidence: are some of them huge?")
            draws = jnp.asarray(ends[best])[None]
            if self.draws > 1:
                draws, _ = hyper.sample(key, draws[0], *data, noise, self.draws)
            belief = as_numpy(mixed(draws, *data, noise))
        return Fitted(belief, shift, scale, x.shape[1])
