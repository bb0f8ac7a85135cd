"""A Bayesian network: network, prior and likelihood, and the one log density they define."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from credo.core.batch import Batch
from credo.core.capabilities import NamedLikelihood, ask, lacks
from credo.core.checks import positive
from credo.core.distribution import Prior
from credo.core.likelihood import Likelihood, has_posterior
from credo.core.network import Network, Variables
from credo.core.tree import Select, leaf, paths, selected, struct
from credo.core.typing import Outputs, PerRow, PyTree, Scalar
from credo.errors import InputError, Refusal


@struct
class Model:
    """p(D, θ) = p(θ) Π_n p(y_n | f_θ(x_n)), raised to the power 1/T.

    Parameters are `{"network": weights, "likelihood": noise, "prior": hyper-parameters}`, all unconstrained, with
    the log-Jacobians of their transforms inside the priors. T = `temperature` is 1 in Bayes.

    Example:
        >>> import credo
        >>> model = credo.Model(
        ...     network=credo.networks.mlp([50]),
        ...     prior=credo.priors.normal(1.0),
        ...     likelihood=credo.likelihoods.gaussian(noise="learned"),
        ... )
    """

    network: Network = leaf()
    prior: Prior = leaf()
    likelihood: Likelihood = leaf()
    temperature: Any = leaf(default=1.0)
    fixed: PyTree = leaf(default=None)  # parameters held at these values, None where they are free

    def __post_init__(self) -> None:
        # JAX rebuilds models with arrays, tracers and placeholders as leaves; `checked_model` looks at those.
        if isinstance(self.temperature, int | float | str):
            positive(self.temperature, "temperature")

    def init(self, key: jax.Array, batch: Batch) -> Variables:
        """Start values of every parameter and the network's state."""
        outputs = self.likelihood.num_outputs(batch.targets)
        network = self.network.init(key, batch.inputs, outputs)
        params = {
            "network": network.params,
            "likelihood": self.likelihood.init(batch.targets, batch.weight),
            "prior": self.prior.init(self.network.info(network.params)),
        }
        return Variables(self.free(params), network.state)

    def free(self, params: PyTree) -> PyTree:
        """The parameters that are random: None, which is no leaf, replaces those that are fixed."""
        if self.fixed is None:
            return params
        return jax.tree.map(lambda held, x: x if held is None else None, self.fixed, params, is_leaf=_is_none)

    def complete(self, params: PyTree) -> PyTree:
        """All parameters, the fixed ones included."""
        if self.fixed is None:
            return params
        return jax.tree.map(lambda held, x: x if held is None else held, self.fixed, params, is_leaf=_is_none)

    def log_prior(self, params: PyTree) -> Scalar:
        """log p(θ): weights, hyper-parameters, and the noise where it has a prior."""
        params = self.complete(params)
        weights = self.prior.bind(self.network.info(params["network"]), params["prior"])
        return (
            weights.log_prob(params["network"])
            + self.prior.log_hyperprior(params["prior"])
            + self.likelihood.log_prior(params["likelihood"])
        )

    def sample_prior(self, key: jax.Array, batch: Batch) -> Variables:
        """One draw of all parameters from the prior; the batch gives the sizes."""
        key_init, key_weights, key_noise = jax.random.split(key, 3)
        variables = self.init(key_init, batch)
        params = self.complete(variables.params)
        info, hyper = self.network.info(params["network"]), params["prior"]
        if jax.tree.leaves(hyper):
            key_hyper, key_weights = jax.random.split(key_weights)
            sampled = self.prior.sample_hyper(key_hyper, info)
            if paths(sampled) != paths(hyper):
                raise Refusal("This prior does not say how its own hyper-parameters are drawn; give it `sample_hyper`.")
            hyper = sampled
        weights = self.prior.bind(info, hyper).sample(key_weights, 1)
        sampled = params | {
            "network": jax.tree.map(lambda x: x[0], weights),
            "prior": hyper,
            "likelihood": self.likelihood.sample_prior(key_noise, batch.targets),
        }
        return Variables(self.free(sampled), variables.state)

    def outputs(
        self, variables: Variables, inputs: PyTree, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[Outputs, PyTree]:
        """Network outputs f_θ(x) [n, out] and the new state."""
        params = self.complete(variables.params)
        return self.network.apply(Variables(params["network"], variables.state), inputs, key=key, train=train)

    def log_likelihood(
        self, variables: Variables, batch: Batch, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[PerRow, PyTree]:
        """log p(y_n | x_n, θ) for every row of the batch [n], and the new state."""
        outputs, state = self.outputs(variables, batch.inputs, key=key, train=train)
        params = self.complete(variables.params)
        return self.likelihood.log_prob(params["likelihood"], outputs, batch.targets), state

    def log_joint(
        self, variables: Variables, batch: Batch, *, key: jax.Array | None = None, train: bool = False
    ) -> tuple[Scalar, PyTree]:
        """(log p(θ) + N/M Σ_m log p(y_m | x_m, θ)) / T, and the new state."""
        per_row, state = self.log_likelihood(variables, batch, key=key, train=train)
        return (self.log_prior(variables.params) + batch.total(per_row)) / self.temperature, state

    def tempered(self, temperature: float) -> "Model":
        """The same model with its whole log joint divided by T (a cold posterior for T < 1)."""
        return dataclasses.replace(self, temperature=temperature)

    def with_prior(self, prior: Any) -> "Model":
        """The same model under another prior; a posterior over the weights is one (continual learning)."""
        return dataclasses.replace(self, prior=prior)

    def frozen(self, params: PyTree, select: Select) -> "Model":
        """The same model with the parameters that the globs of `select` match held at their values in `params`."""
        held = jax.tree.map(lambda hold, x: x if hold else None, selected(params, select), params)
        return dataclasses.replace(self, fixed=held)

    def inferring(self) -> "Model":
        """The same model with every learned point (noise, dispersion) put under its default prior, for samplers."""
        return dataclasses.replace(self, likelihood=self.likelihood.inferring())


def checked_model(model: Any) -> Model:
    """A model whose parts are what they should be, or a sentence.

    Not in the constructor: JAX rebuilds models with all kinds of leaves.
    """
    if not isinstance(model, Model):
        raise InputError(f"A model is credo.Model(network, prior, likelihood), got a {type(model).__name__}.")
    wrong = [
        f"The {name} of a model is one of credo.{rooms}{got}."
        for (name, (rooms, needed)), part in zip(_NEEDED.items(), (model.network, model.prior, model.likelihood))
        if (got := _lacking(part, needed)) is not None
    ]
    if wrong:
        raise InputError(" ".join(wrong))
    if not isinstance(model.temperature, jax.Array) or model.temperature.ndim == 0:
        positive(model.temperature, "temperature")
    return model


# What a fit asks of each part: where such parts are, and their members.
_NEEDED = {
    "network": ("networks or an adapter's", ("init", "apply", "info")),
    "prior": ("priors", ("init", "log_hyperprior", "bind")),
    "likelihood": (
        "likelihoods", ("kind", "point", "prepare", "num_outputs", "init", "log_prior", "log_prob"),
    ),
}  # fmt: skip


def _lacking(part: Any, needed: Sequence[str]) -> str | None:
    if isinstance(part, type):
        return f", got the class {part.__name__}; call it"
    lacking = lacks(part, needed)
    if len(lacking) in (0, len(needed)):
        return f", got a {type(part).__name__}" if lacking else None
    return f" or has what those have, and a {type(part).__name__} lacks {', '.join(lacking)}"


def inferring(model: Model) -> tuple[Model, list[str]]:
    """The model as samplers see it, with learned points under their default prior, and a note on that."""
    if not model.likelihood.point:
        return model, []
    learned = ask(model.likelihood, NamedLikelihood).learns
    return model.inferring(), [f"The {learned} is put under its default prior, because this method learns no points."]


def at_mode(model: Model) -> list[str]:
    """The note of a method that takes inferred parameters of the likelihood at their mode."""
    note = f"The {ask(model.likelihood, NamedLikelihood).learns} is taken at its mode; its own spread is left out."
    return [note] if has_posterior(model.likelihood) else []


def _is_none(x: Any) -> bool:
    return x is None
