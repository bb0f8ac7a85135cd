"""The section "How many hidden nodes": the posterior of their number, chain by chain."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.core.capabilities import NodeNetwork, ask
from credo.posteriors import Stacked
from credo.report.html import Section, gallery, paragraphs
from credo.report.style import CYCLE, MODEL, axes, legend
from credo.report.words import percent

TITLE = "How many hidden nodes"
MOST_CHAINS = 8
APART = 0.25  # chains whose probabilities of one number of nodes differ by more disagree
CAPTIONS = {
    "nodes": "Bars are the posterior over all chains, and each mark is one chain alone. Marks far from the top of "
    "their bar: the chains do not agree yet, and neither can the bars be relied on."
}


def node_section(fit: Any, level: int, prefix: str) -> list[Section]:
    """The section of a fit whose number of nodes is unknown; empty for others, and for a stack of fits."""
    if fit is None or "nodes" not in fit.trace or isinstance(fit.posterior, Stacked):
        return []
    shares = node_shares(fit.trace["nodes"])
    body = paragraphs(node_words(shares, _most(fit))) + gallery({"nodes": node_figure(shares)}, CAPTIONS, prefix)
    return [Section(TITLE, body, level)]


def node_shares(trace: Any) -> np.ndarray:
    """The share of draws with 0, 1, … nodes in each chain [chain, 1 + most].

    Args:
        trace: the number of nodes of every draw [chain, draw].

    Example:
        >>> import numpy as np
        >>> node_shares(np.array([[0, 0, 1, 1], [1, 1, 1, 1]])).tolist()
        [[0.5, 0.5], [0.0, 1.0]]
    """
    counts = np.asarray(trace).round().astype(int)
    return np.stack([np.bincount(chain, minlength=counts.max() + 1) / len(chain) for chain in counts])


def node_words(shares: np.ndarray, most: int | None = None) -> list[str]:
    """The posterior of the number of nodes in sentences.

    Args:
        shares: what `node_shares` gave.
        most: how many nodes the network allows.
    """
    pooled = shares.mean(0)
    best = int(pooled.argmax())
    name = f"{best} node{'s' * (best != 1)}" if best else "no hidden node"
    sentences = [f"The most probable is {name}, with probability {percent(pooled[best])}."]
    sentences.append(f"That there is none, so that the relation is linear, has probability {percent(pooled[0])}.")
    if most is not None and most > 0 and len(pooled) > most and pooled[most] > 0.05:
        sentences.append(
            f"The network allows {most} nodes, and as many have probability {percent(pooled[most])}: allow more."
        )
    if len(shares) > 1 and np.ptp(shares, axis=0).max() > APART:
        sentences.append("The chains do not agree about these probabilities: run them longer.")
    return sentences


def node_figure(shares: np.ndarray) -> Figure:
    """Bars of the posterior over all chains, and one thin mark for each chain.

    Args:
        shares: what `node_shares` gave.
    """
    figure, area = axes("Hidden nodes", "hidden nodes", "probability")
    numbers = np.arange(shares.shape[1])
    area.bar(numbers, shares.mean(0), width=0.72, color=MODEL, alpha=0.5, lw=0, label="all chains")
    shown = shares[:MOST_CHAINS] if len(shares) > 1 else shares[:0]
    for i, chain in enumerate(shown):
        colour = CYCLE[(i + 1) % len(CYCLE)]
        area.hlines(chain, numbers - 0.4, numbers + 0.4, color=colour, lw=1.4, label=f"chain {i + 1}")
    area.set_xticks(numbers[:: 1 + len(numbers) // 16])
    area.set_ylim(0, None)
    legend(figure, min(5, 1 + len(shown)))
    return figure


def _most(fit: Any) -> int | None:
    nodes = ask(fit.model.network, NodeNetwork).nodes()
    return None if nodes is None else nodes.num
