"""Can the parameters that are free be drawn from their prior?"""

from typing import Any

import jax

from credo.core.model import Model
from credo.core.network import Variables
from credo.errors import Refusal
from credo.priors.by_path import Pieces
from credo.priors.elementwise import Elementwise


def check_drawable(model: Model, variables: Variables) -> None:
    """Refuse where some parameters are held and the others depend on them under the prior.

    A draw of all parameters gives the free ones from their marginal; the posterior needs them given the held ones. The
    two are the same where the prior is a product without hyper-parameters.
    """
    if model.fixed is None:
        return
    params: Any = model.complete(variables.params)
    bound = model.prior.bind(model.network.info(params["network"]), params["prior"])
    if jax.tree.leaves(params["prior"]) or not isinstance(bound, Elementwise | Pieces):
        raise Refusal(
            "Some weights are held, and under this prior the others depend on them, so they cannot be drawn from it: "
            "take a prior that is a product of densities, or start elsewhere than at the prior."
        )
