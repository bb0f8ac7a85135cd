"""Columns of many categories in the model of a table: who can learn vectors of them, and under which prior."""

from typing import Any

from credo import priors
from credo.networks.embedded import SPREAD, embedded
from credo.networks.piecewise import Piecewise, piecewise
from credo.registry import METHODS
from credo.tables.encode.encoder import TableEncoder


def takes_codes(method: Any, network: Any = None) -> bool:
    """Can a table's columns of many categories be codes: are network and method of kinds that learn vectors of them?

    Example:
        >>> takes_codes("hmc"), takes_codes("gibbs"), takes_codes("hmc", "shallow:8")
        (True, False, True)
    """
    if not (network is None or isinstance(network, str | list | tuple)):
        return False  # what a network of the user's own makes of codes nobody knows
    if isinstance(method, str):
        return method not in METHODS or METHODS[method].networks == "any"
    row = next((r for r in METHODS.values() if r.load() in (method, type(method))), None)
    return row is None or row.networks == "any"


def with_vectors(network: Any, prior: Any, encoder: TableEncoder) -> tuple[Any, Any]:
    """Network and prior, with vectors e ~ N(0, τ²) for categories where the encoder has codes of them.

    The layer that the vectors enter has weights under a prior of their own. These learn how much categories differ, so
    that the fixed τ is the non-centred form of random effects with an unknown spread.
    """
    if isinstance(network, Piecewise):  # outermost: places of columns are those of the table
        inner, prior = with_vectors(network.network, prior, encoder)
        columns, knots = encoder.knots(network.bins)
        return piecewise(inner, knots, columns), prior
    if not encoder.codes:
        return network, prior
    has_own_prior = isinstance(prior, priors.ByPath) and any(glob.startswith("embedding") for glob in prior.globs)
    combined = prior if has_own_prior else priors.by_path({"embedding_*": priors.normal(SPREAD), "*": prior})
    return embedded(network, encoder.codes), combined
