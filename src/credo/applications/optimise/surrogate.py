"""Any method of credo as a surrogate: a network fitted to the evaluations of the objective."""

import dataclasses
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from credo.applications.optimise.belief import DrawBelief, Fitted, NormalBelief
from credo.applications.optimise.gp import GaussianProcess
from credo.applications.optimise.targets import room, standardised
from credo.core import mixture
from credo.core.capabilities import offers
from credo.core.model import Model
from credo.errors import InputError
from credo.likelihoods import gaussian
from credo.methods.function_space.infinite.kernels import Kernel
from credo.methods.function_space.infinite.posterior import FunctionPosterior
from credo.methods.function_space.infinite.process import from_bits
from credo.networks.mlp import mlp
from credo.priors import fan_in_normal
from credo.registry import METHODS, build_method, did_you_mean, find, method_name
from credo.training.fit import Fit, fit
from credo.training.interrupt import part_of_more
from credo.training.warn import unwarned


class Defaults(NamedTuple):
    """What a method gets where nobody says otherwise."""

    settings: tuple[tuple[str, Any], ...] = ()  # of the method
    widths: tuple[int, ...] = (32, 32)
    activation: str = "tanh"
    weight: float = 2.0  # scales of the fan-in prior
    bias: float = 1.0
    noise: float | str = 0.05
    steps: int | None = 2000
    draws: int | None = 50
    narrow: bool = False  # in more than two columns, scales of the prior shrink as 1/√columns: see `Surrogate.model_at`


CHOICES = {
    "infinite_width": Defaults((("prior_scale", "evidence"),), (50, 50), "erf", 1.5, 1.0, "learned", None, None),
    # Members that see the same rows agree too much: without resampling some searches never leave a local minimum.
    "deep_ensemble": Defaults((("size", 16), ("learning_rate", 0.02), ("bootstrap", True)), steps=500, draws=None),
    "hmc": Defaults((("chains", 4),), (24,), steps=100, draws=64),
    "nuts": Defaults((("chains", 4),), (24,), steps=100, draws=64),
    "laplace": Defaults((), (32,), steps=1500, draws=64, narrow=True),
}
ALIASES = {"ensemble": "deep_ensemble", "nngp": "infinite_width"}


class Surrogate:
    """A network's posterior as the belief about the objective.

    Inputs are unit-cube rows scaled to [−1, 1], targets gains with mean 0 and variance 1 (bad outliers clipped).
    Histories of up to 32, 64, 128 … evaluations share one compiled program (`capacity` of `credo.fit`).

    Args:
        method: a method, its class or its registry name.
        network, prior, likelihood: of the model; None takes what suits the method.
        steps: of each fit.
        draws: of the weights; None takes what is natural to the posterior.
        warm: start each fit at the last one's weights. Quicker, but points then depend on which fits were made before:
            a resumed run is no longer the same as one that was not stopped.

    Example:
        >>> import jax, credo, numpy as np
        >>> surrogate = credo.applications.optimise.Surrogate("infinite_width")
        >>> x = np.linspace(0, 1, 9)[:, None]
        >>> mean, std = surrogate.fit(jax.random.key(0), x, np.sin(6 * x[:, 0])).moments(np.array([[0.3]]))
        >>> bool(abs(mean[0] - np.sin(1.8)) < 0.05)
        True
    """

    def __init__(
        self,
        method: Any = "deep_ensemble",
        network: Any = None,
        prior: Any = None,
        likelihood: Any = None,
        *,
        steps: int | None = None,
        draws: int | None = None,
        warm: bool = False,
    ):
        named = ALIASES.get(method, method) if isinstance(method, str) else method
        self.name = find(named).name if isinstance(named, str) else method_name(build_method(named))
        choice = CHOICES.get(self.name, Defaults())
        self.method = build_method(named, **(dict(choice.settings) if isinstance(named, str | type) else {}))
        self.model = Model(
            mlp(list(choice.widths), choice.activation) if network is None else network,
            fan_in_normal(choice.weight, bias_scale=choice.bias) if prior is None else prior,
            gaussian(choice.noise) if likelihood is None else likelihood,
        )
        if self.model.likelihood.kind != "real":
            raise InputError("The objective is a number: take a likelihood of real targets, such as gaussian.")
        self.narrow = choice if choice.narrow and prior is None else None
        self.steps = choice.steps if steps is None else steps
        self.num_draws = choice.draws if draws is None else draws
        self.warm = warm
        self.last: Fit | None = None

    def model_at(self, columns: int) -> Model:
        """The model for so many columns.

        The spread of a linearised network grows towards the corners of the cube, the more so the more columns there
        are: under a prior that suits two columns it looks nowhere else in six. Its weights get the scale
        w √(2/columns).
        """
        if self.narrow is None:
            return self.model
        weight = self.narrow.weight * min(1.0, (2 / columns) ** 0.5)
        return dataclasses.replace(self.model, prior=fan_in_normal(weight, bias_scale=self.narrow.bias))

    def fit(self, key: jax.Array, x: np.ndarray, gains: np.ndarray) -> Fitted:
        """What is believed after gains at unit-cube rows."""
        y, shift, scale = standardised(gains)
        key_fit, key_draws = jax.random.split(key)
        inputs, targets = (2 * x - 1).astype(np.float32), y.astype(np.float32)
        start = self.last if self.warm and self.name != "infinite_width" else None
        with unwarned(), part_of_more():  # one step of many: what it believes is held against what comes next
            fitted = fit(
                key_fit, self.model_at(x.shape[1]), (inputs, targets), self.method, steps=self.steps, start=start,
                capacity=room(len(x)), progress=False,
            )  # fmt: skip
        self.last = fitted if self.warm else None
        if isinstance(fitted.posterior, FunctionPosterior):
            return Fitted(normal_belief(fitted), shift, scale, x.shape[1])
        posterior, draws_key = jax.device_put(fitted.posterior), jax.random.key_data(key_draws)
        belief = DrawBelief(posterior, fitted.model, draws_key, np.float32(0), self.num_draws)
        noise = _noise(belief, jnp.asarray(x[:1], jnp.float32))
        return Fitted(dataclasses.replace(belief, noise=noise), shift, scale, x.shape[1])


@jax.jit
def _noise(belief: DrawBelief, x: jax.Array) -> jax.Array:
    """E[Var[y | f]] at a row."""
    key = jax.random.wrap_key_data(belief.key)
    flat = mixture.flatten(belief.posterior.outputs(key, belief.model, 2 * x - 1, belief.num))
    variances = jax.vmap(belief.model.likelihood.variance)(flat.params, flat.outputs)
    return jax.nn.softmax(flat.log_weights) @ variances[:, 0, 0]


def normal_belief(fitted: Fit) -> NormalBelief:
    """The posterior of an infinitely wide network, which computes on the host, from its numbers in JAX."""
    post = fitted.posterior
    arrays = {name: from_bits(bits)[0] for name, bits in post.bits.items()}
    likelihood: Any = fitted.model.likelihood
    params = jax.tree.map(lambda a: np.asarray(a)[0], post.likelihood)
    with jax.enable_x64(True):
        noise = np.exp(2 * np.asarray(likelihood.log_sigma(params), np.float64)).reshape(-1)[0]
        whiten = solve_triangular(arrays["factor"][0], np.diag(arrays["roots"][0, :, 0, 0]), lower=True)
        belief = NormalBelief(
            Kernel(arrays["weight"], arrays["bias"], post.activation, arrays.get("relevance")), arrays["inputs"],
            arrays["coefficients"][:, 0], whiten, np.float64(0.0), noise, -1.0, 2.0,
        )  # fmt: skip
    return jax.tree.map(np.asarray, belief)


class FittingSurrogate(Protocol):
    """What a surrogate of your own has: `fit(key, x, gains)`, whose result has `moments`, `draws` and so on."""

    def fit(self, key: jax.Array, x: np.ndarray, gains: np.ndarray) -> Any: ...


def find_surrogate(surrogate: Any) -> Any:
    """A surrogate from "gp", "random", the name of a method, or itself."""
    if isinstance(surrogate, str):
        if surrogate == "gp":
            return GaussianProcess()
        if ALIASES.get(surrogate, surrogate) not in METHODS:
            names = ["gp", "random", *ALIASES, *METHODS]
            raise InputError(
                f"Unknown surrogate {surrogate!r}.{did_you_mean(surrogate, names)} Take gp, random, or a method that "
                "`credo methods` lists."
            )
        return Surrogate(surrogate)
    if not offers(surrogate, FittingSurrogate):
        raise InputError(f"A surrogate is a name, a Surrogate or a GaussianProcess, got {surrogate!r}.")
    return surrogate
