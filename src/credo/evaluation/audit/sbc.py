"""Simulation-based calibration: is the truth a draw like the others?

θ ~ p(θ), y ~ p(y|θ), θ_1 … θ_L ~ p(θ|y): the rank of any quantity of (θ, y) among those of the draws is uniform on
0 … L if, and for enough quantities only if, the draws come from the posterior. Talts et al. (2018), Validating Bayesian
inference algorithms with simulation-based calibration. Quantities of θ alone do not tell the posterior from the prior,
under which their ranks are uniform, too: the likelihood log p(y|θ) of the simulated data is ranked with them. Modrák et
al. (2023), Simulation-based calibration checking for Bayesian computation: the choice of test quantities shapes
sensitivity.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.short import fields_in_short
from credo.core.tree import field_values, paths
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.evaluation.audit.uniformity import Uniformity, uniformity
from credo.likelihoods.gaussian import gaussian
from credo.methods.combine import stages
from credo.networks.mlp import mlp
from credo.priors.normal import normal
from credo.registry import build_method, find, method_name
from credo.training.many import fit_many

DRAWS = 99
THIN = 5
LIKELIHOOD = "log p(y|θ)"


@dataclasses.dataclass(frozen=True)
class Setting:
    """A model and a design whose posterior is sampled again and again.

    Attributes:
        name: what tables call it.
        model: prior and likelihood, both of which can be drawn from.
        inputs: where data are simulated [n, d].
        targets: targets of the right shape; their values do not matter.
        places: where function values are ranked [m, d].
    """

    name: str
    model: Model
    inputs: np.ndarray
    targets: np.ndarray
    places: np.ndarray


def network_setting() -> Setting:
    """A tanh network with two hidden units and inferred noise, on twelve rows."""
    model = Model(
        mlp([2], "tanh"), normal(1.0), gaussian(noise="inferred", prior_loc=-1.0, prior_scale=0.5)
    )  # fmt: skip
    inputs = np.linspace(-2, 2, 12, dtype=np.float32)[:, None]
    places = np.array([[-3.0], [0.3], [1.7]], np.float32)
    return Setting("network", model, inputs, np.zeros((12, 1), np.float32), places)


def linear_setting() -> Setting:
    """Linear regression on orthogonal columns with known noise: the posterior is a product of normals."""
    columns = np.linalg.qr(np.column_stack([np.ones(16), np.random.default_rng(0).normal(size=(16, 2))]))[0]
    model = Model(mlp([]), normal(1.0), gaussian(noise=1.0))
    # Coefficients one by one (f at 0 is the intercept): a sum of them would hide errors that cancel.
    places = np.array([[0, 0], [1, 0], [0, 1], [1, -1]], np.float32)
    return Setting("linear", model, (4 * columns[:, 1:]).astype(np.float32), np.zeros((16, 1), np.float32), places)


SETTINGS = {"network": network_setting, "linear": linear_setting}


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The result of a simulation-based calibration.

    Attributes:
        method, setting: their names.
        ranks: of every simulation and quantity [S, Q], from 0 to `draws`.
        names: of the quantities.
        draws: L, how many draws the truth is ranked among.
        tests: one test of uniformity for each quantity, each at the rate `false_alarms`/Q.
        false_alarms: probability that a right method fails.
    """

    method: str
    setting: str
    ranks: np.ndarray
    names: list[str]
    draws: int
    tests: list[Uniformity]
    false_alarms: float

    __repr__ = fields_in_short

    @property
    def passed(self) -> bool:
        """No quantity's ranks leave their envelope."""
        return all(test.p_value > self.false_alarms / len(self.tests) for test in self.tests)

    def __str__(self) -> str:
        worst = min(range(len(self.tests)), key=lambda i: self.tests[i].p_value)
        head = f"{self.method} on the {self.setting} setting, {len(self.ranks)} simulations:"
        rate = f"false-alarm rate {self.false_alarms:g}"
        if self.passed:
            return f"{head} ranks of all {len(self.names)} quantities are uniform ({rate})."
        shape = _fit if self.names[worst] == LIKELIHOOD else _shape
        return (
            f"{head} ranks are not uniform; {self.names[worst]} is {shape(self.ranks[:, worst], self.draws)} "
            f"(p = {self.tests[worst].p_value:.2g}, {rate} over {len(self.names)} quantities)."
        )

    def plain(self) -> dict[str, Any]:
        """As JSON types."""
        return {
            "method": self.method, "setting": self.setting, "simulations": len(self.ranks), "draws": self.draws,
            "passed": self.passed, "false_alarms": self.false_alarms, "sentence": str(self),
            "quantities": [{"name": n, "p_value": t.p_value} for n, t in zip(self.names, self.tests)],
            "ranks": self.ranks.tolist(),
        }  # fmt: skip


def _shape(ranks: np.ndarray, most: int) -> str:
    """What non-uniform ranks mean."""
    share = (ranks + 0.5) / (most + 1)
    spread = np.mean((share - 0.5) ** 2) * 12  # 1 for uniform ranks
    shift = (share.mean() - 0.5) * np.sqrt(12 * len(share))
    if abs(shift) > 4 and abs(spread - 1) < 0.3:
        return "too low on average" if shift > 0 else "too high on average"
    return "too narrow (the posterior is too sure)" if spread > 1 else "too wide (the posterior is too unsure)"


def _fit(ranks: np.ndarray, most: int) -> str:
    """What non-uniform ranks of the likelihood mean."""
    high = np.mean((ranks + 0.5) / (most + 1)) > 0.5
    return f"too {'low' if high else 'high'} (draws fit the data {'worse' if high else 'better'} than the truth does)"


class Simulated(NamedTuple):
    """One simulation: targets, and what they came from."""

    inputs: jax.Array  # [n, d]
    places: jax.Array  # [m, d]
    targets: jax.Array
    outputs: jax.Array  # f at the places, then at the inputs [m + n, out]
    noise: PyTree  # the likelihood's parameters


@dataclasses.dataclass(frozen=True)
class _Ranker:
    """Ranks of the true quantities among `num` draws. Equal rankers are one program.

    Draws of one call are joint for places and inputs. The truth's own quantities are computed beside those of the
    draws, by the same program: quantities of few values tie, and ties, which are broken at random, must be exact.
    """

    num: int

    def __call__(self, key: jax.Array, model: Model, posterior: Any, true: Simulated) -> jax.Array:
        key_draw, key_tie = jax.random.split(key)
        draws = posterior.outputs(key_draw, model, jnp.concatenate([true.places, true.inputs]), self.num)
        members, each = draws.values.shape[:2]
        # Points and ensembles have fewer draws: each then counts several times.
        index = jnp.arange(self.num) * (members * each) // self.num
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[index], (draws.values, draws.likelihood))
        both = jax.tree.map(
            lambda x, d: jnp.concatenate([x[None].astype(d.dtype), d]), (true.outputs, true.noise), flat
        )
        truth, values = jnp.split(jax.vmap(partial(_quantities, model.likelihood, true.targets))(*both), [1])
        less, equal = (values < truth).sum(0), (values == truth).sum(0)
        tie = jax.random.uniform(key_tie, less.shape) * (equal + 1)
        return less + jnp.floor(tie).astype(less.dtype)


def _quantities(likelihood: Any, targets: jax.Array, outputs: jax.Array, params: PyTree) -> jax.Array:
    """Function values at the places (class probabilities but the last), the likelihood's own parameters, and
    log p(y|θ) of the targets."""
    at_places, at_inputs = jnp.split(outputs, [len(outputs) - len(targets)])
    values = jnp.exp(likelihood.log_probs(params, at_places))[:, :-1] if likelihood.kind == "classes" else at_places
    fit = likelihood.log_prob(params, at_inputs, targets).sum()
    return jnp.concatenate([values.ravel(), *(jnp.ravel(x) for x in jax.tree.leaves(params)), fit[None]])


def _batch(setting: Setting) -> Batch:
    rows = len(setting.inputs)
    return Batch(setting.inputs, setting.targets, np.ones(rows, np.float32), np.float32(rows))


def _simulate(setting: Setting, key: jax.Array) -> Simulated:
    key_prior, key_data = jax.random.split(key)
    model = setting.model
    variables: Variables = model.sample_prior(key_prior, _batch(setting))
    noise = model.complete(variables.params)["likelihood"]
    places, inputs = jnp.asarray(setting.places), jnp.asarray(setting.inputs)
    outputs = model.outputs(variables, jnp.concatenate([places, inputs]))[0]
    targets = model.likelihood.sample(key_data, noise, outputs[len(places) :])
    return Simulated(inputs, places, targets, outputs, noise)


def calibrate(
    method: Any,
    setting: str | Setting | None = None,
    *,
    simulations: int = 500,
    draws: int = DRAWS,
    thin: int = THIN,
    steps: int | None = None,
    false_alarms: float = 0.01,
    seed: int = 0,
    fitted_model: Model | None = None,
    **settings: Any,
) -> Calibration:
    """Simulation-based calibration of a method, all simulations in one compiled program.

    Args:
        method: a method or its registry name; samplers run one chain for each simulation.
        setting: "network", "linear" or a Setting; None takes the network for methods that claim the posterior and
            the orthogonal linear model, where mean field is exact, for all others.
        simulations: S.
        draws: L, the truth is ranked among so many.
        thin: steps between kept draws of a chain; ranks need draws that are about independent.
        steps: of methods that keep no draws; None takes the method's own number.
        false_alarms: probability that a right method fails, over all quantities (Bonferroni): function values, the
            likelihood's own parameters, and log p(y|θ).
        seed: the same seed gives the same ranks.
        fitted_model: fit this model instead of the one that simulates (to test the test).
        settings: of the method, where it is given by name; those that are enough on small problems by default.

    Example:
        >>> from credo.evaluation.audit import calibrate
        >>> calibrate("bayes_by_backprop", simulations=50, steps=3000).passed
        True
    """
    if simulations < 20 or draws < 1:
        raise InputError("Calibration needs at least 20 simulations and one draw.")
    if isinstance(method, str):
        settings = find(method).quick_settings() | settings
    built = build_method(method, **settings)
    name = method_name(built)
    if setting is None:
        setting = "network" if isinstance(method, str) and find(method).exact_on == "posterior" else "linear"
    if isinstance(setting, str):
        if setting not in SETTINGS:
            raise InputError(f"Unknown setting {setting!r}; choose one of {', '.join(SETTINGS)}.")
        setting = SETTINGS[setting]()
    if "chains" in field_values(built):
        built = dataclasses.replace(built, chains=1)
    keeps = stages(built)[-1].phases(64, 1)[-1].keeps_draws
    key_data, key_fit = jax.random.split(jax.random.key(seed))
    true = jax.jit(jax.vmap(partial(_simulate, setting)))(jax.random.split(key_data, simulations))
    true = jax.tree.map(np.asarray, true)
    rows = len(setting.inputs)
    data = Batch(
        true.inputs, true.targets, np.ones((simulations, rows), np.float32), np.full(simulations, rows, np.float32)
    )
    ranks = fit_many(
        key_fit, built, fitted_model or setting.model, data, _Ranker(draws), extra=true,
        steps=draws * thin if keeps else steps, thin=thin if keeps else 1, group=simulations,
    )  # fmt: skip
    tests = [uniformity(column, draws, false_alarms / ranks.shape[1]) for column in ranks.T]
    return Calibration(name, setting.name, ranks, _names(setting), draws, tests, false_alarms)


def _names(setting: Setting) -> list[str]:
    likelihood = setting.model.likelihood
    variables = jax.eval_shape(setting.model.init, jax.random.key(0), _batch(setting))
    width = likelihood.num_outputs(likelihood.prepare(setting.targets))
    width = width - 1 if likelihood.kind == "classes" and width > 1 else width
    letter = "p" if likelihood.kind == "classes" else "f"
    at = ["(" + ", ".join(f"{v:g}" for v in place) + ")" for place in setting.places]
    values = [f"{letter}{at[i]}" + (f"[{c}]" if width > 1 else "") for i in range(len(at)) for c in range(width)]
    noise = variables.params["likelihood"]
    noise_names = [
        path if np.size(x) == 1 else f"{path}[{i}]"
        for path, x in zip(paths(noise), jax.tree.leaves(noise))
        for i in range(int(np.prod(x.shape)))
    ]
    return [*values, *noise_names, LIKELIHOOD]
