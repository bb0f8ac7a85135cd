"""The Gaussian process that a model becomes as its hidden layers grow, and the refusal where there is none."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import FullyConnectedNetwork, GaussianDistribution, ask
from credo.core.model import Model
from credo.core.network import ParamInfo
from credo.errors import Refusal
from credo.methods.function_space.infinite.kernels import ACTIVATIONS, Kernel
from credo.priors.by_path import ByPath
from credo.priors.elementwise import ElementwisePrior

WIDTHS = (4, 16)  # at which the scales of a prior are read
INPUTS = 2


def kernel_of(model: Model, num_inputs: int) -> Kernel:
    """The covariance of the outputs of a model's network under its prior, in the limit of infinite width.

    Args:
        model: a perceptron (`credo.networks.mlp`) with erf or relu under a normal prior that follows the fan-in.
        num_inputs: columns of the inputs.

    Example:
        >>> import credo
        >>> model = credo.Model(
        ...     credo.networks.mlp([50]), credo.priors.fan_in_normal(2.0, bias_scale=1.0), credo.likelihoods.gaussian()
        ... )
        >>> credo.infinite.kernel_of(model, 4).weight.tolist()
        [4.0, 4.0]
    """
    check_limit(model)
    kernel = limit(model, num_inputs)
    return Kernel(np.asarray(kernel.weight, np.float64), np.asarray(kernel.bias, np.float64), kernel.activation)


def limit(model: Model, num_inputs: int) -> Kernel:
    """`kernel_of` for a model that has been checked; its numbers may be traced."""
    activation, layers = _perceptron(model)
    scales = _scales(model.prior, layers, WIDTHS[0], num_inputs)
    fans = [num_inputs] + [WIDTHS[0]] * (len(layers) - 1)
    wide = jnp.result_type(float)
    weight = jnp.stack([fan * jnp.asarray(scales[f"{name}/kernel"], wide) ** 2 for name, fan in zip(layers, fans)])
    bias = jnp.stack([jnp.asarray(scales[f"{name}/bias"], wide) ** 2 for name in layers])
    return Kernel(weight, bias, activation)


def check_limit(model: Model) -> None:
    """Refusal where the outputs tend to no Gaussian process of known covariance, with the reason."""
    activation, layers = _perceptron(model)
    if model.fixed is not None:
        raise Refusal("Some weights are held at values of a finite network, and at infinite width there are none.")
    if len(layers) > 1 and activation not in ACTIVATIONS:
        raise Refusal(
            f"The expectation E[ψ(u)ψ(v)] of an infinite layer has a closed form for {' and '.join(ACTIVATIONS)}, not "
            f'for {activation}: take activation="erf", which is close to tanh, or "relu".'
        )
    if not isinstance(model.prior, ElementwisePrior | ByPath):
        raise Refusal(
            "An infinite network needs independent weights of mean 0, and this prior makes them depend on each other "
            "or gives them means of their own: take fan_in_normal."
        )
    small, large = (_scales(model.prior, layers, width, INPUTS) for width in WIDTHS)
    for name in layers[1:]:
        # Tracers belong to a model that was checked before.
        values = [scales[f"{name}/kernel"] for scales in (small, large)]
        if not any(isinstance(v, jax.core.Tracer) for v in values) and not np.isclose(
            values[0], 2 * values[1], rtol=1e-4
        ):
            raise Refusal(
                f"Under this prior the variance of '{name}/kernel' does not fall as 1/fan_in, so that the sum over "
                "infinitely many hidden units has no finite variance: take fan_in_normal."
            )


def _perceptron(model: Model) -> tuple[str, list[str]]:
    """(activation, names of layers) of a fully connected network."""
    parts = ask(model.network, FullyConnectedNetwork).fully_connected()
    if parts is None:
        raise Refusal(
            "The infinite-width limit is known here for fully connected networks without masks, "
            f"credo.networks.mlp, and not for {type(model.network).__name__}: its kernel is fixed, and so knows no "
            "learned vectors of categories (embeddings), whose columns can be left out."
        )
    return parts


def _scales(prior: Any, layers: list[str], width: int, num_inputs: int) -> dict[str, Any]:
    """The prior's standard deviation of every array, by path, where hidden layers are `width` wide."""
    infos: dict[str, dict[str, ParamInfo]] = {}
    for i, name in enumerate(layers):
        fan_in, fan_out = width if i else num_inputs, width if i + 1 < len(layers) else 1
        infos[name] = {
            "kernel": ParamInfo(f"{name}/kernel", "kernel", fan_in, fan_out, (fan_out, fan_in), 1),
            "bias": ParamInfo(f"{name}/bias", "bias", fan_in, fan_out, (fan_out,), None),
        }
    hyper = prior.init(infos)
    if jax.tree.leaves(hyper):
        raise Refusal(
            "This prior has hyper-parameters, which stay random at infinite width: the limit is a mixture of Gaussian "
            "processes and not one of them; take fan_in_normal, whose scale the evidence can choose."
        )
    pair = ask(prior.bind(infos, hyper), GaussianDistribution).gaussian()
    if pair is None:
        raise Refusal(
            "The closed forms of infinite layers need normal weights, and this prior has others: take fan_in_normal."
        )
    means, stds = pair
    scales = {}
    for name in layers:
        for kind in ("kernel", "bias"):
            mean, std = means[name][kind], stds[name][kind]
            if not isinstance(mean, jax.core.Tracer) and (np.any(mean) or np.ptp(std) > 0):
                raise Refusal("An infinite network needs weights of mean 0 and of one variance in each layer.")
            scales[f"{name}/{kind}"] = std.ravel()[0]
    return scales
