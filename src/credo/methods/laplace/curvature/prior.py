"""The prior at the mode as a Gaussian: its centre and its precision."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.capabilities import FactoredSpread, GaussianDistribution, ask, offers
from credo.core.model import Model
from credo.core.network import ParamInfo, Variables
from credo.core.tree import by_paths, take, with_paths
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.methods.laplace.curvature.paths import Arrays, flat, unflat
from credo.posteriors import GaussianWeights
from credo.priors.as_prior import AsPrior, WeightDistribution
from credo.priors.by_path import ByPath, Pieces
from credo.priors.centred_on import CentredOn
from credo.priors.elementwise import ElementDensity, Elementwise, ElementwisePrior


class LocalPrior(NamedTuple):
    """log p(θ) near the mode: where it is centred (by path; θ itself where it is not Gaussian), −∂² log p entry by
    entry (by path), log p of the chosen weights, and the whole matrix or its Kronecker factors where entries are not
    independent."""

    centre: Arrays
    precision: Arrays
    log_prob: jax.Array
    matrix: jax.Array | None = None
    factors: Any = None


def local_prior(model: Model, variables: Variables, paths: Sequence[str], structure: str) -> LocalPrior:
    """The prior of the weights at these paths, at the given point.

    A normal prior is taken as it is. Where the prior is another product of densities, the second derivatives of its
    log at the point stand in; where weights depend on each other (a posterior that became the prior), its Hessian,
    which only structure="full" can use.
    """
    bound = _bound(model, variables)
    network = variables.params["network"]
    values = {path: x for path, x in by_paths(network).items() if path in paths}
    moments = _moments(bound)
    factors = _factors(bound)
    if structure == "kfac" and factors is not None:
        mean, spread = factors
        precision: Arrays = {}
        for layer in spread.layers:
            u, w, c = spread.precision(layer.kernel)
            precision |= layer.split(u**2 @ c @ (w**2).T)
        return LocalPrior(by_paths(mean), precision, bound.log_prob(network), None, spread)
    if structure == "kfac" and not _one_scale(bound):
        raise Refusal(
            "Kronecker factors need a normal prior with one scale for each array of weights: take such a prior, "
            'or structure="full", "diagonal" or "low_rank".'
        )
    if moments is not None:
        centre, std = ({path: by_paths(tree)[path] for path in values} for tree in moments)
        precision = {path: s**-2.0 for path, s in std.items()}
        terms = [jax.scipy.stats.norm.logpdf(x, centre[p], std[p]).sum() for p, x in values.items()]
        return LocalPrior(centre, precision, sum(terms, jnp.zeros(())))

    def log_prob(values: Arrays) -> jax.Array:
        params = model.complete(variables.params | {"network": with_paths(network, values)})
        return bound.log_prob(params["network"])

    if _elementwise(bound):
        ones = jax.tree.map(jnp.ones_like, values)
        precision = jax.jvp(jax.grad(lambda v: -log_prob(v)), (values,), (ones,))[1]
        return LocalPrior(values, precision, log_prob(values))
    if structure != "full":
        raise Refusal(
            f"Under this prior weights depend on each other, and structure={structure!r} cannot keep that: take "
            'structure="full", or a prior under which they are independent.'
        )
    matrix = jax.hessian(lambda v: -log_prob(unflat(v, values)))(flat(values))
    return LocalPrior(values, unflat(jnp.diagonal(matrix), values), log_prob(values), matrix)


def check_prior(prior: Any) -> None:
    """Refuse a prior whose log density has no curvature anywhere: it gives no spread."""
    for part in prior.priors if isinstance(prior, ByPath) else (prior,):
        if not isinstance(part, ElementwisePrior) or isinstance(part, CentredOn | AsPrior):
            continue
        density = part.density(ParamInfo("kernel", "kernel", 1, 1, (1,)))
        if density.gaussian is None and float(jax.grad(jax.grad(density.log_prob))(0.3)) == 0.0:
            raise Refusal(
                f"{type(part).__name__} is a straight line on either side of 0: its log density has no curvature, so "
                "there is no Gaussian approximation; take normal, student_t or scale_mixture."
            )


def is_gaussian(model: Model, variables: Variables) -> bool:
    """Is the prior a product of normals, so that its precision can be scaled?"""
    return _moments(_bound(model, variables)) is not None


def one_scale(model: Model, variables: Variables) -> bool:
    """Is the prior normal with one scale for all entries of an array, as Kronecker factors need it?"""
    return _one_scale(_bound(model, variables))


def _bound(model: Model, variables: Variables) -> Any:
    params = model.complete(variables.params)
    return model.prior.bind(model.network.info(params["network"]), params["prior"])


def _moments(bound: Any) -> tuple[PyTree, PyTree] | None:
    """Means and standard deviations of a product of normals, else None."""
    if isinstance(bound, WeightDistribution) and isinstance(bound.distribution, GaussianWeights):
        return bound.distribution.product()
    return ask(bound, GaussianDistribution).gaussian()


def _factors(bound: Any) -> tuple[PyTree, Any] | None:
    """Mean and spread of a posterior with Kronecker factors that became the prior, else None."""
    inner = bound.distribution if isinstance(bound, WeightDistribution) else None
    if not isinstance(inner, GaussianWeights) or inner.members > 1 or not offers(inner.spread, FactoredSpread):
        return None
    return take(inner.mean["network"], 0), take(inner.spread, 0)


def _densities(bound: Any) -> list[Any] | None:
    """The densities of single entries where the prior is a product of them."""
    if isinstance(bound, Pieces):
        parts = [_densities(part) for part in bound.parts]
        return None if any(d is None for d in parts) else [x for d in parts for x in d or ()]
    if not isinstance(bound, Elementwise):
        return None
    return jax.tree.leaves(bound.densities, is_leaf=lambda x: isinstance(x, ElementDensity))


def _elementwise(bound: Any) -> bool:
    return _densities(bound) is not None


def _one_scale(bound: Any) -> bool:
    """Is it normal with one scale for all entries of each array?"""
    densities = _densities(bound)
    return densities is not None and all(d.gaussian is not None and np.ndim(d.gaussian[1]) == 0 for d in densities)
