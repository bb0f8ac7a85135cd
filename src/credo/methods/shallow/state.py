"""The state of a chain over shallow networks."""

from typing import Any

import jax

from credo.core.tree import leaf, struct
from credo.core.typing import PyTree


@struct
class ShallowState:
    """The parameters of a chain, in double precision, and the walk of its nodes."""

    gamma: jax.Array = leaf()  # [nodes, 1 + inputs]
    coefs: jax.Array = leaf()  # [outputs, columns]
    active: jax.Array = leaf()  # [nodes], 1 or 0
    hyper: PyTree = leaf()
    noise: PyTree = leaf()
    walk: Any = leaf()
    used: jax.Array = leaf()  # [inputs], 1 or 0
    rows: jax.Array = leaf()  # sum of the rows' weights
    network: PyTree = leaf()
