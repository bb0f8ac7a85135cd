"""Draws of a posterior as fixed functions, to be evaluated repeatedly."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.applications.detection.centre import centre_of
from credo.core.capabilities import MaskedNetwork, ModalPosterior, ask, require
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import WeightPosterior
from credo.core.tree import leaf, struct, take
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.posteriors.dropout import ActivationDropout
from credo.posteriors.gaussian import GaussianWeights
from credo.posteriors.linearised import Linearised
from credo.posteriors.subset import SubsetPosterior


@struct
class Functions:
    """K functions f_k in the way in which their posterior predicts (leading axis: draw).

    A whole network: f_k(x) = f(x; θ_k). Linearised at the centre c_k of the draw's member: f(x; c_k) + J_x (θ_k − c_k).
    With masks on activations: the network under the masks of the draw's own key.

    Attributes:
        params: θ_k.
        centre: c_k, or None.
        keys: of masks, or None.
    """

    params: PyTree = leaf()
    centre: PyTree = leaf(default=None)
    keys: Any = leaf(default=None)

    def __len__(self) -> int:
        return len(jax.tree.leaves(self.params)[0])

    def at(self, model: Model, index: jax.Array, inputs: PyTree) -> tuple[jax.Array, PyTree]:
        """f_k(x) [n, out] of the draw with this index, and its parameters of the likelihood."""
        params = model.complete(take(self.params, index))
        weights, noise = params["network"], params["likelihood"]
        network = model.network
        if self.keys is not None:
            masked = require(network, MaskedNetwork)
            return masked.apply_masked(Variables(weights, {}), inputs, self.keys[index]), noise
        run = lambda theta: network.apply(Variables(theta, {}), inputs)[0]  # noqa: E731
        if self.centre is None:
            return run(weights), noise
        centre = model.complete(take(self.centre, index))["network"]
        values, push = jax.jvp(run, (centre,), (jax.tree.map(jnp.subtract, weights, centre),))
        return values + push, noise


def draw_functions(key: jax.Array, posterior: Any, num: int) -> Functions:
    """About `num` draws of the function, evenly from all members.

    Args:
        key: a JAX key.
        posterior: that of a fit.
        num: how many; fewer where fewer are stored.
    """
    inner = posterior
    while isinstance(inner, SubsetPosterior):
        inner = inner.inner
    if not isinstance(inner, WeightPosterior):
        raise Refusal("A path needs one draw of the weights at all its steps, and this posterior has no weights.")
    key_draws, key_masks = jax.random.split(key)
    if isinstance(inner, ActivationDropout):
        params = posterior.sample(key_draws, num)
        return Functions(params, keys=jax.random.split(key_masks, len(jax.tree.leaves(params)[0])))
    if isinstance(inner, GaussianWeights | Linearised) and ask(inner, ModalPosterior).mode == "linearised":
        members, each = posterior.num_draws(num)
        centre = centre_of(posterior).sample(key_draws, members)
        return Functions(posterior.sample(key_draws, num), jax.tree.map(lambda x: jnp.repeat(x, each, axis=0), centre))
    if type(inner).outputs is WeightPosterior.outputs or ask(inner, ModalPosterior).mode == "sampled":
        return Functions(posterior.sample(key_draws, num))
    raise Refusal(
        f"A path needs one function at all its steps, and {type(inner).__name__} does not say how its draws of outputs "
        "at different inputs belong together: fit with another method."
    )
