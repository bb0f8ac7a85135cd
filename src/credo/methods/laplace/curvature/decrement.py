"""How far a point is from the mode that a Laplace approximation needs."""

from typing import Any

import jax

from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import by_paths
from credo.methods.laplace.curvature.paths import Arrays, with_weights


def newton_decrement(model: Model, variables: Variables, spread: Any, gradient: Arrays) -> jax.Array:
    """½ g'(H + P)⁻¹g/T with g = ∇ log p(θ, D): by how many nats one Newton step would raise (log p(θ, D))/T.

    It is 0 at a mode. Where log p is a quadratic it is KL[N(θ, Σ) ‖ N(θ*, Σ)] with θ* the mode, and what the log
    evidence at θ lacks. Boyd and Vandenberghe (2004), Convex Optimization, section 9.5.

    Args:
        model, variables: the point.
        spread: the Gaussian of covariance T (H + P)⁻¹ there.
        gradient: of log p(D | θ), by path, for the weights that are spread.
    """
    values = by_paths(variables.params["network"])

    def log_prior(values: Arrays) -> jax.Array:
        return model.log_prior(with_weights(variables, values).params)

    slope = jax.grad(log_prior)({path: values[path] for path in gradient})
    total = {path: (g + slope[path].astype(g.dtype)) / model.temperature for path, g in gradient.items()}
    return 0.5 * spread.square(total)
