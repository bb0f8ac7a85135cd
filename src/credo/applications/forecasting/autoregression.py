"""Nonlinear autoregression: a network from the last values of a series to the next one."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.effects.functions import Functions, draw_functions
from credo.applications.forecasting.backtest import Backtest
from credo.applications.forecasting.forecast import Forecast, OneStep
from credo.core.checks import whole_number
from credo.core.model import Model
from credo.core.numeric import host_doubles
from credo.core.predict import predict
from credo.core.short import fields_in_short
from credo.errors import InputError
from credo.likelihoods import gaussian
from credo.networks import Recurrent, shallow
from credo.priors import fan_in_normal, inverse_gamma, node_hierarchy
from credo.training.fit import Fit, fit

LEAST_MORE = 2  # rows beyond the number of lags


@dataclasses.dataclass(frozen=True)
class Autoregression:
    """A fitted autoregression; see `autoregression`.

    Attributes:
        fit: the fit, to standardised values. Its inputs are the lagged values, in the order of `lags`.
        lags: how many steps back each input lies.
        series: the values that it was fitted to.
        shift, scale: mean and standard deviation of `series`.
    """

    fit: Fit
    lags: tuple[int, ...]
    series: np.ndarray
    shift: float
    scale: float

    __repr__ = fields_in_short

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each input, for `credo.methods.shallow.effects`."""
        return tuple(f"lag {lag}" for lag in self.lags)

    @property
    def inputs(self) -> np.ndarray:
        """The standardised lagged values of each value that has them all [n, lags]."""
        return lagged(self._standardised(self.series), self.lags)[0]

    @property
    def last(self) -> np.ndarray:
        """The last values, the newest first, as far back as the longest lag."""
        return self.series[::-1][: max(self.lags)]

    def forecast(self, key: jax.Array, horizon: int, num_paths: int = 1000) -> Forecast:
        """Simulate the series onwards.

        A path takes one draw of the function and of its noise, in the way in which the posterior predicts (a whole
        network, one linearised at its centre, or one under the same masks at every step), and feeds its own values
        back, noise included at every step: the first step is what `one_step` says. Where there are fewer draws than
        paths, several paths share a draw.

        Args:
            key: a JAX key; the same key gives the same paths.
            horizon: steps ahead.
            num_paths: how many paths.

        Example:
            >>> import jax, credo, numpy as np
            >>> series = np.sin(0.3 * np.arange(60)) + 0.1 * np.cos(np.arange(60.0) ** 2)
            >>> method = credo.shallow.Gibbs(chains=1, warmup=20)
            >>> model = credo.shallow.autoregression(series, 2, method=method, nodes=0, steps=50)
            >>> model.forecast(jax.random.key(1), horizon=5).paths.shape
            (1000, 5)
        """
        return Forecast(self._paths(key, self.last[None], horizon, num_paths)[0])

    def backtest(
        self, key: jax.Array, new_values: Any, horizon: int, *, every: int = 1, num_paths: int = 500
    ) -> Backtest:
        """Forecast from the end of the series and from later origins, and compare the paths with the values that came.

        The posterior stays that of the series: nothing is learned from the new values, each forecast only sees those
        before its origin.

        Args:
            key: a JAX key.
            new_values: the values that came after the series [n], at least `horizon` of them.
            horizon: steps ahead.
            every: origins lie this many steps apart.
            num_paths: paths from each origin.

        Example:
            >>> import jax, credo, numpy as np
            >>> series = np.sin(0.3 * np.arange(90)) + 0.1 * np.cos(np.arange(90.0) ** 2)
            >>> method = credo.shallow.Gibbs(chains=1, warmup=20)
            >>> model = credo.shallow.autoregression(series[:60], 2, method=method, nodes=0, steps=50)
            >>> model.backtest(jax.random.key(1), series[60:], horizon=5).coverage(0.9).shape
            (5,)
        """
        values = _check_series(new_values, "new_values")
        horizon, every = whole_number(horizon, "horizon"), whole_number(every, "every")
        if len(values) < horizon:
            raise InputError(f"A horizon of {horizon} steps needs as many new values; there are {len(values)}.")
        origins = np.arange(0, len(values) - horizon + 1, every)
        longest = max(self.lags)
        together = np.concatenate([self.last[::-1], values])
        pasts = np.stack([together[o : o + longest][::-1] for o in origins])
        paths = self._paths(key, pasts, horizon, num_paths)
        return Backtest(paths, np.stack([values[o : o + horizon] for o in origins]))

    def _paths(self, key: jax.Array, pasts: np.ndarray, horizon: int, num_paths: int) -> np.ndarray:
        """Paths [origins, paths, horizon] that follow each past, the newest value first."""
        horizon, num_paths = whole_number(horizon, "horizon"), whole_number(num_paths, "num_paths")
        key_draws, key_order, key_paths = jax.random.split(key, 3)
        draws = draw_functions(key_draws, self.fit.posterior, num_paths)
        order = jax.random.permutation(key_order, len(draws))[np.arange(num_paths) % len(draws)]
        windows = jnp.asarray(self._standardised(pasts), jnp.float32)
        paths = _simulate(key_paths, self.fit.model, draws, order, windows, self.lags, horizon)
        return self.shift + self.scale * np.asarray(paths, np.float64)

    def one_step(self, key: jax.Array, new_values: Any) -> OneStep:
        """Score the values that came after the series, each predicted from the true values before it.

        Args:
            key: a JAX key, for posteriors whose draws are made afresh.
            new_values: the next values of the series [n]; nothing is learned from them.

        Example:
            >>> import jax, credo, numpy as np
            >>> series = np.sin(0.3 * np.arange(70)) + 0.1 * np.cos(np.arange(70.0) ** 2)
            >>> method = credo.shallow.Gibbs(chains=1, warmup=20)
            >>> model = credo.shallow.autoregression(series[:60], 2, method=method, nodes=0, steps=50)
            >>> model.one_step(jax.random.key(1), series[60:]).log_likelihood.shape
            (10,)
        """
        values = _check_series(new_values, "new_values")
        together = self._standardised(np.concatenate([self.last[::-1], values]))
        predictive = predict(key, self.fit, lagged(together, self.lags)[0])
        return OneStep(predictive.rescaled(self.shift, self.scale), values)

    def _standardised(self, values: np.ndarray) -> np.ndarray:
        return (values - self.shift) / self.scale


def autoregression(
    series: Any,
    lags: int | Sequence[int],
    *,
    key: jax.Array | None = None,
    method: Any = "reversible_jump",
    nodes: int = 8,
    steps: int | None = None,
    prior: Any = None,
    likelihood: Any = None,
    network: Any = None,
) -> Autoregression:
    """Fit y_t = f(y_{t−l_1}, …, y_{t−l_L}) + ε with f a shallow network beside a linear part (E3, H5).

    f(x) = a_0 + a'x + Σ_j β_j ψ(γ_j'(1, x)), so no hidden node is the linear autoregression, and
    `reversible_jump` gives its posterior probability (`fit.trace["nodes"] == 0`). The likelihood is conditional on the
    first values. Ríos Insua and Müller (1998), Feedforward neural networks for nonparametric regression; Menchero et
    al. (2005), Bayesian analysis of nonlinear autoregression models based on neural networks.

    Args:
        series: the values in order of time, at equal steps [n].
        lags: L for the lags 1, …, L, or a list of lags.
        key: a JAX key; None is `jax.random.key(0)`.
        method: how to infer: a method, its class or its registry name.
        nodes: hidden nodes; for `reversible_jump`, the most there can be. 0 is linear.
        steps: draws of each chain; None takes the method's own number.
        prior: of the weights, for the standardised series; None is `credo.priors.node_hierarchy()`.
        likelihood: of the standardised values; None is Gaussian noise with σ² ~ inverse gamma(2, 0.1).
        network: f itself instead, for any method that takes it: a perceptron sees the lags as its inputs, a recurrent
            one (`credo.networks.lstm`, `gru`) as a sequence, the oldest first. Its prior is then
            `credo.priors.fan_in_normal()` unless told.

    Example:
        >>> import jax, credo, numpy as np
        >>> series = np.sin(0.3 * np.arange(60)) + 0.1 * np.cos(np.arange(60.0) ** 2)
        >>> method = credo.shallow.Gibbs(chains=1, warmup=20)
        >>> model = credo.shallow.autoregression(series, lags=2, method=method, nodes=0, steps=50)
        >>> low, high = model.forecast(jax.random.key(1), horizon=5).interval(0.9)
        >>> bool((low < high).all())
        True
    """
    values, lags = _check_series(series, "series"), _check_lags(lags)
    least = max(lags) + len(lags) + LEAST_MORE
    if len(values) < least:
        raise InputError(
            f"The series has {len(values)} values, but lags up to {max(lags)} need at least {least}; take fewer or "
            "shorter lags."
        )
    shift, scale = float(values.mean()), float(values.std())
    if not scale > 1e-12 * max(1e-300, np.abs(values).max()):
        raise InputError("All values of the series are the same, so there is nothing to learn from its past.")
    if isinstance(network, Recurrent):
        lags = tuple(sorted(lags, reverse=True))
    model = Model(
        shallow(nodes) if network is None else network,
        (node_hierarchy() if network is None else fan_in_normal()) if prior is None else prior,
        gaussian("inferred", scale_prior=inverse_gamma(2.0, 0.1)) if likelihood is None else likelihood,
    )
    if model.likelihood.kind != "real":
        raise InputError("An autoregression standardises its series, so its likelihood is one of real values.")
    key = jax.random.key(0) if key is None else key
    result = fit(key, model, lagged((values - shift) / scale, lags), method, steps=steps)
    return Autoregression(result, lags, values, shift, scale)


def lagged(values: np.ndarray, lags: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """(inputs [n − max lag, lags], targets [n − max lag]): each value that has a past, and that past.

    Args:
        values: a series.
        lags: how many steps back each input lies.

    Example:
        >>> import numpy as np
        >>> inputs, targets = lagged(np.arange(5.0), [1, 3])
        >>> inputs.tolist(), targets.tolist()
        ([[2.0, 0.0], [3.0, 1.0]], [3.0, 4.0])
    """
    first = max(lags)
    columns = [values[first - lag : len(values) - lag] for lag in lags]
    return np.stack(columns, 1).astype(np.float32), values[first:].astype(np.float32)


@partial(jax.jit, static_argnames=("lags", "horizon"))
def _simulate(
    key: jax.Array,
    model: Model,
    draws: Functions,
    order: jax.Array,
    windows: jax.Array,
    lags: tuple[int, ...],
    horizon: int,
) -> jax.Array:
    """Paths [origins, paths, horizon] of the standardised series; path i uses draw order[i]."""
    back = np.asarray(lags) - 1  # the window has the newest value first

    def one_path(key: jax.Array, window: jax.Array, index: jax.Array) -> jax.Array:
        def step(window: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            outputs, noise = draws.at(model, index, window[back][None])
            value = model.likelihood.sample(key, noise, outputs)[0, 0].astype(window.dtype)
            # An explosive path ends at the infinity that it went to, not at ∞ − ∞.
            value = jnp.where(jnp.isnan(value), jnp.copysign(jnp.inf, window[0]), value)
            return jnp.concatenate([value[None], window[:-1]]), value

        return jax.lax.scan(step, window, jax.random.split(key, horizon))[1]

    keys = jax.random.split(key, (windows.shape[0], order.shape[0]))
    return jax.vmap(jax.vmap(one_path, (0, None, 0)), (0, 0, None))(keys, windows, order)


def _check_series(series: Any, name: str) -> np.ndarray:
    values = host_doubles(series, name)
    if values.ndim != 1:
        raise InputError(f"{name} is one value for each time, of shape [n], got {list(values.shape)}.")
    if not len(values):
        raise InputError(f"{name} has no values.")
    if not np.isfinite(values).all():
        where = int(np.flatnonzero(~np.isfinite(values))[0])
        raise InputError(
            f"{name} is {values[where]} at place {where}; fill such gaps in or take the part without them, because "
            "each value is learned from those before it."
        )
    return values


def _check_lags(lags: Any) -> tuple[int, ...]:
    array = np.asarray(lags)
    if array.dtype.kind not in "iu" or array.ndim > 1 or not array.size:
        raise InputError(f"lags is a whole number or a list of whole numbers, got {lags!r}.")
    result = tuple(range(1, int(array) + 1)) if array.ndim == 0 else tuple(int(lag) for lag in array)
    if not result or min(result) < 1:
        raise InputError(f"Lags are at least 1, because a value is learned from values before it, got {lags!r}.")
    if len(set(result)) < len(result):
        raise InputError(f"The lag {max(result, key=result.count)} is given twice; name each lag once.")
    return result
