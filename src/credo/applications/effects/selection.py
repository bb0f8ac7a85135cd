"""In which draws of the weights an input is used at all, where draws have exact zeros."""

from typing import Any

import numpy as np

from credo.applications.effects.bands import mean_over
from credo.core.capabilities import NodeNetwork, StoredPosterior, ask
from credo.core.pieces import in_pieces
from credo.core.typing import PyTree
from credo.networks.mlp import MLP
from credo.posteriors import Samples

HOW = (
    "Whether an input matters is not known: no draw sets the weights of an input to exactly 0. Fit with "
    "credo.shallow.Gibbs(select_inputs=True) or credo.shallow.ReversibleJump(select_inputs=True) to get it."
)


def inputs_used(fit: Any) -> np.ndarray | None:
    """Whether each draw uses each input [draws, inputs]; None where the weights do not tell.

    An input is used where one of its linear weights, or its weight in a node whose own coefficient is not zero, differs
    from zero. In networks of several hidden layers all weights of the first layer count.

    Args:
        fit: the result of `credo.fit` or `credo.load`.
    """
    posterior, network = fit.posterior, fit.model.network
    if not isinstance(posterior, Samples) or fit.model.fixed is not None:
        return None
    if ask(posterior, StoredPosterior).on_disk:
        used = in_pieces(lambda part, _: _used(network, part.params["network"]), posterior, None, [None])[0]
    else:
        used = _used(network, posterior.params["network"])
    return None if used is None else used.reshape(-1, used.shape[-1])


def chances(fit: Any, groups: list[tuple[int, ...]]) -> np.ndarray | None:
    """The posterior probability that each group of columns is used [groups]; None where no draw leaves any out.

    Args:
        fit: the result of `credo.fit` or `credo.load`.
        groups: columns that stand for one input together.
    """
    used = inputs_used(fit)
    selects = bool((fit.config.get("settings") or {}).get("select_inputs"))
    if used is None or (used.all() and not selects):
        return None
    weights = fit.posterior.log_weights
    log_weights = None if weights is None else np.asarray(weights, np.float64).ravel()
    each = np.stack([used[:, list(columns)].any(1) for columns in groups], 1)
    return mean_over(each.astype(np.float64), log_weights)


def _used(network: Any, params: PyTree) -> np.ndarray | None:
    """[member, draw, inputs] of arrays with leading axes member and draw."""
    nodes = ask(network, NodeNetwork).nodes()
    if nodes is None:
        first = params.get("hidden_0", {}).get("kernel") if isinstance(network, MLP) else None
        return None if first is None else (np.asarray(first) != 0).any(-2)
    parts = []
    if nodes.linear is not None:
        parts.append((np.asarray(params[nodes.linear]["kernel"]) != 0).any(-2))
    if nodes.hidden is not None and nodes.output is not None:
        active = (np.asarray(params[nodes.output]["kernel"]) != 0).any(-2)  # [member, draw, nodes]
        linked = np.asarray(params[nodes.hidden]["kernel"]) != 0  # [member, draw, nodes, inputs]
        parts.append((linked & active[..., None]).any(-2))
    return np.logical_or.reduce(parts)
