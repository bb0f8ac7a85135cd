"""Four ways to fit: three samplers of one shallow network, and a Gaussian process beside them.

All see inputs and targets that are standardised on the training rows, and all answer on the original scale.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

import credo

NODES = 6  # of gibbs and nuts, which do not choose
MOST_NODES = 10  # of reversible_jump, which does
DRAWS = 4000  # draws that a prediction uses, of those that were kept
PATHS = 1000


@dataclasses.dataclass(frozen=True)
class Sampler:
    """A method, how many nodes it may use, and the draws of each chain."""

    method: Any
    nodes: int
    steps: int


@dataclasses.dataclass(frozen=True)
class Normal:
    """A normal predictive distribution, with the names that `credo.Predictive` has."""

    mean: np.ndarray
    std: np.ndarray
    epistemic: np.ndarray

    def log_prob(self, targets: np.ndarray) -> np.ndarray:
        return stats.norm.logpdf(targets, self.mean, self.std)

    def interval(self, coverage: float) -> tuple[np.ndarray, np.ndarray]:
        return stats.norm.interval(coverage, self.mean, self.std)


@dataclasses.dataclass(frozen=True)
class Learned:
    """What came out of one fit.

    Attributes:
        predict: from inputs [n, p] to a predictive distribution.
        seconds, compiling: running and compiling.
        fit: of credo; None for the Gaussian process.
        inputs: standardised training inputs, where samplers of one posterior can be compared.
    """

    predict: Callable[[np.ndarray], Any]
    seconds: float
    compiling: float = 0.0
    fit: Any = None
    inputs: Any = None

    @property
    def rhat(self) -> float:
        return float("nan") if self.fit is None else self.fit.diagnostics.space("function")[0].rhat


def samplers(quick: bool) -> dict[str, Sampler]:
    """The three samplers by name; `quick` shows that they run and nothing else."""
    if quick:
        return {
            "reversible_jump": Sampler(credo.shallow.ReversibleJump(chains=2, warmup=200), 4, 300),
            "gibbs": Sampler(credo.shallow.Gibbs(chains=2, warmup=200), 2, 300),
            "nuts": Sampler(credo.methods.NUTS(chains=2, warmup=100, max_doublings=6), 2, 100),
        }
    nuts = credo.methods.NUTS(chains=4, warmup=500, target_acceptance=0.9)
    return {
        "reversible_jump": Sampler(credo.shallow.ReversibleJump(chains=4, warmup=1000), MOST_NODES, 5000),
        "gibbs": Sampler(credo.shallow.Gibbs(chains=4, warmup=1000), NODES, 4000),
        "nuts": Sampler(nuts, NODES, 500),
    }


def shorter(sampler: Sampler) -> Sampler:
    """For the folds of a cross-validation: half the draws, by half the chains where chains run one after another."""
    if sampler.method.lockstep:
        return dataclasses.replace(sampler, steps=sampler.steps // 2)
    return dataclasses.replace(sampler, method=dataclasses.replace(sampler.method, chains=2))


def fit_rows(key: jax.Array, sampler: Sampler, inputs: np.ndarray, targets: np.ndarray) -> Learned:
    """Fit a shallow network with the conjugate hierarchy and inferred noise to rows [n, p], [n]."""
    noise = credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(2.0, 0.1))
    model = credo.Model(credo.shallow.network(sampler.nodes), credo.shallow.prior(), noise)
    x, y = Scale.of(inputs), Scale.of(targets)
    key_fit, key_predict = jax.random.split(key)
    fit = credo.fit(key_fit, model, (x.to(inputs), y.to(targets)), sampler.method, steps=sampler.steps)

    def predict(at: np.ndarray) -> credo.Predictive:
        return credo.predict(key_predict, fit, x.to(at), num_samples=DRAWS).rescaled(y.shift, y.scale)

    return Learned(predict, fit.timing["seconds_run"], fit.timing["seconds_compile"], fit, x.to(inputs))


def fit_process(inputs: np.ndarray, targets: np.ndarray) -> Learned:
    """Fit a Gaussian process with one length for each input, by its marginal likelihood."""
    x, y, began = Scale.of(inputs), Scale.of(targets), time.perf_counter()
    lengths = RBF(np.ones(inputs.shape[1]), (0.01, 1e4))  # a very long length is a line, or an input without use
    kernel = ConstantKernel(1.0, (0.001, 1e5)) * lengths + WhiteKernel(0.1, (1e-4, 10.0))
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)
    with threadpool_limits(
        1
    ):  # these matrices are small, and threads that wait for each other cost more than they save
        process.fit(x.to(inputs), y.to(targets))
    noise = process.kernel_.k2.noise_level

    def predict(at: np.ndarray) -> Normal:
        mean, std = process.predict(x.to(at), return_std=True)
        known = np.maximum(std**2 - noise, 0)
        return Normal(y.shift + y.scale * mean, y.scale * std, y.scale**2 * known)

    return Learned(predict, time.perf_counter() - began)


@dataclasses.dataclass(frozen=True)
class Scale:
    """Means and standard deviations of training rows."""

    shift: Any
    scale: Any

    @staticmethod
    def of(values: np.ndarray) -> "Scale":
        return Scale(values.mean(0), values.std(0))

    def to(self, values: np.ndarray) -> np.ndarray:
        return (values - self.shift) / self.scale


@dataclasses.dataclass(frozen=True)
class Ahead:
    """A series' values to come: one step ahead at each, and paths that feed their own values back [paths, steps]."""

    one_step: Any
    paths: np.ndarray


def fit_series(key: jax.Array, sampler: Sampler, series: Any) -> tuple[Learned, Ahead]:
    """Fit a nonlinear autoregression, and say what follows the training part."""
    past, future = series.values[: series.num_train], series.values[series.num_train :]
    model = credo.shallow.autoregression(
        past, series.lags, key=key, method=sampler.method, nodes=sampler.nodes, steps=sampler.steps
    )
    timing = model.fit.timing
    learned = Learned(lambda _: None, timing["seconds_run"], timing["seconds_compile"], model.fit, model.inputs)
    key_one, key_paths = jax.random.split(jax.random.fold_in(key, 1))
    one_step = model.one_step(key_one, future).predictive
    return learned, Ahead(one_step, model.forecast(key_paths, len(future), PATHS).paths)


def process_series(series: Any) -> tuple[Learned, Ahead]:
    """The same by a Gaussian process. Its paths draw the function anew at every step, which is the usual shortcut."""
    inputs, targets = lagged(series.values, series.lags)
    count = series.num_train - max(series.lags)
    learned = fit_process(inputs[:count], targets[:count])
    rng, back = np.random.default_rng(0), -np.asarray(series.lags)
    paths = np.tile(series.values[: series.num_train], (PATHS, 1))
    for _ in range(len(targets) - count):
        step = learned.predict(paths[:, back])
        paths = np.column_stack([paths, rng.normal(step.mean, step.std)])
    return learned, Ahead(learned.predict(inputs[count:]), paths[:, series.num_train :])


def lagged(values: np.ndarray, lags: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Each value that has a past [n], and that past [n, lags]."""
    first = max(lags)
    return np.column_stack([values[first - lag : len(values) - lag] for lag in lags]), values[first:]
