"""R-hat, effective sample sizes and Monte-Carlo standard errors of chains, many quantities at once.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and localization: an improved R̂.
The numbers are those of ArviZ. They are computed here because ArviZ takes longer to import than most fits that end in a
look at `fit.status`, and looks at one quantity at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from credo.errors import InputError

BLOCK = 2**21  # numbers looked at together
LEAST_DRAWS = 4


class ChainStats(NamedTuple):
    """One number for each quantity, arrays of shape [...] for chains [chain, draw, ...]."""

    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    mcse_mean: np.ndarray
    mcse_std: np.ndarray
    std: np.ndarray


def chain_stats(chains: Any) -> ChainStats:
    """All statistics of chains [chain, draw, ...] in one go; NaN where draws are too few or not finite.

    Example:
        >>> import numpy as np
        >>> from credo.evaluation.diagnostics import chain_stats
        >>> chains = np.random.default_rng(0).normal(size=(4, 500, 3))
        >>> chain_stats(chains).rhat.shape, bool((chain_stats(chains).ess_bulk > 1500).all())
        ((3,), True)
    """
    flat, shape = _flat(chains)
    block = max(1, BLOCK // max(1, flat[0].size)) if len(flat) else 1
    parts = [_block_stats(flat[i : i + block]) for i in range(0, len(flat), block)]
    columns = zip(*parts) if parts else [[np.zeros(0)]] * len(ChainStats._fields)
    return ChainStats(*(np.concatenate(list(column)).reshape(shape) for column in columns))


def rhat(chains: Any) -> np.ndarray:
    """Rank-normalised split R̂ = √((n−1)/n + B/(nW)), the larger one of the ranks and of the ranks of |θ − median|.

    Chains [chain, draw, ...] are cut in halves, so that a single chain is compared with itself, too.
    """
    return chain_stats(chains).rhat


def ess(chains: Any, kind: str = "bulk") -> np.ndarray:
    """How many independent draws the chains [chain, draw, ...] are worth.

    Args:
        chains: draws.
        kind: "bulk" (of the ranks: the centre of the distribution), "tail" (the smaller one of those of the 5 % and
            95 % quantiles) or "mean".
    """
    if kind not in ("bulk", "tail", "mean"):
        raise InputError(f'kind must be "bulk", "tail" or "mean", got {kind!r}.')
    if kind == "mean":
        flat, shape = _flat(chains)
        return effective_sizes(_split(flat)).reshape(shape)
    stats = chain_stats(chains)
    return stats.ess_bulk if kind == "bulk" else stats.ess_tail


def mcse(chains: Any, kind: str = "mean") -> np.ndarray:
    """The Monte-Carlo standard error of the mean, or of the standard deviation (kind="std"), of chains."""
    if kind not in ("mean", "std"):
        raise InputError(f'kind must be "mean" or "std", got {kind!r}.')
    stats = chain_stats(chains)
    return stats.mcse_mean if kind == "mean" else stats.mcse_std


def bfmi(energy: Any) -> np.ndarray:
    """E-BFMI of every chain: mean (E_n − E_{n−1})² / Var[E] for energies [chain, draw] (Betancourt, 2016).

    Below about 0.3 the momenta are too weak to reach all energies that the posterior has.
    """
    values = np.atleast_2d(np.asarray(energy, np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.diff(values, axis=1) ** 2).mean(1) / values.var(1, ddof=1)


def rank_counts(chains: Any, bins: int = 20) -> np.ndarray:
    """How many draws of each chain [chain, draw] have ranks, among all, in each of equal bins [chain, bins].

    Where chains agree, all counts are alike; a chain that stays low or high fills bins on one side.
    """
    values = np.asarray(chains, np.float64)
    ranks = _ranks(values[None])[0]
    bin_index = np.minimum(((ranks - 0.5) * bins / values.size).astype(int), bins - 1)
    return np.stack([np.bincount(p, minlength=bins) for p in bin_index])


# ------------------------------------------------------------------ on arrays [quantity, chain, draw]
def _flat(chains: Any) -> tuple[np.ndarray, tuple[int, ...]]:
    array = np.asarray(chains, np.float64)
    if array.ndim < 2:
        raise InputError(f"Chains have shape [chain, draw, ...], got {list(array.shape)}.")
    shape = array.shape[2:]
    moved = np.moveaxis(array.reshape(*array.shape[:2], -1), -1, 0)
    return np.ascontiguousarray(moved), shape


def _block_stats(x: np.ndarray) -> ChainStats:
    nothing = np.full(len(x), np.nan)
    if x.shape[2] < LEAST_DRAWS:
        return ChainStats(*[nothing] * len(ChainStats._fields))
    bad = ~np.isfinite(x).all((1, 2))
    x = np.where(bad[:, None, None], 0.0, x)
    halves = _split(x)
    normal = normal_scores(halves)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    ordered = np.sort(x.reshape(len(x), -1), axis=1)
    tails = [effective_sizes(_split((x <= _quantile(ordered, q)[:, None, None]).astype(float))) for q in (0.05, 0.95)]
    std = x.std(axis=(1, 2), ddof=1)
    squares = (x - x.mean((1, 2), keepdims=True)) ** 2
    mean_square = squares.mean((1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Var[s²] over its effective draws, and s = √s² to first order.
        spread = ((squares**2).mean((1, 2)) - mean_square**2) / effective_sizes(_split(squares))
        bulk, tail = _ratio(normal), _ratio(normal_scores(folded))
        stats = ChainStats(
            np.where(tail > bulk, tail, bulk),
            effective_sizes(normal),
            np.minimum(*tails),
            std / np.sqrt(effective_sizes(halves)),
            np.sqrt(spread / mean_square / 4),
            std,
        )
    return ChainStats(*(np.where(bad, np.nan, part) for part in stats))


def _split(x: np.ndarray) -> np.ndarray:
    """First and last halves of all chains as chains; the middle draw of an odd number is left out."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, x.shape[2] - half :]], axis=1)


def _ranks(x: np.ndarray) -> np.ndarray:
    """Ranks 1 … S of each quantity over all chains; equal values share their mean rank."""
    flat = x.reshape(len(x), -1)
    order = np.argsort(flat, axis=1, kind="stable")
    ordered = np.take_along_axis(flat, order, 1)
    index = np.arange(flat.shape[1])
    starts = np.ones(flat.shape, bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.ones(flat.shape, bool)
    ends[:, :-1] = starts[:, 1:]
    first = np.maximum.accumulate(np.where(starts, index, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, index, flat.shape[1])[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, 0.5 * (first + last) + 1, 1)
    return ranks.reshape(x.shape)


def normal_scores(x: np.ndarray) -> np.ndarray:
    """Φ⁻¹((r − 3/8)/(S + 1/4)) of the ranks r (Blom, 1958)."""
    from scipy.special import ndtri

    return ndtri((_ranks(x) - 0.375) / (x[0].size + 0.25))


def _quantile(ordered: np.ndarray, level: float) -> np.ndarray:
    """The quantile of each row of sorted values, linear between neighbours (type 7)."""
    count = ordered.shape[1]
    position = count * level + (1 - level)
    below = int(np.clip(np.floor(position), 1, count - 1))
    share = float(np.clip(position - below, 0, 1))
    return (1 - share) * ordered[:, below - 1] + share * ordered[:, below]


def _ratio(x: np.ndarray) -> np.ndarray:
    """√((n−1)/n + B/(nW)) of given chains."""
    draws = x.shape[2]
    within = x.var(2, ddof=1).mean(1)
    between = draws * x.mean(2).var(1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + draws - 1) / draws)


def effective_sizes(x: np.ndarray) -> np.ndarray:
    """Effective sample sizes S/τ of given chains, τ by Geyer's initial monotone sequence over all chains together."""
    _, chains, draws = x.shape
    total = chains * draws
    length = 2 ** int(np.ceil(np.log2(2 * draws)))
    power = np.fft.rfft(x - x.mean(2, keepdims=True), length, axis=2)
    covariance = np.fft.irfft((power * power.conj()).mean(1), length, axis=1)[:, :draws] / draws
    variance = covariance[:, :1] * draws / (draws - 1)
    pooled = covariance[:, :1] + (x.mean(2).var(1, ddof=1)[:, None] if chains > 1 else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (variance - covariance) / pooled
    correlation[:, 0] = 1.0
    pairs = max(1, -(-(draws - 2) // 2))  # (0, 1), (2, 3), … as far as Geyer's rule looks
    even, odd = correlation[:, 0 : 2 * pairs : 2], correlation[:, 1 : 2 * pairs : 2]
    sums = even + odd
    stops = ~(sums > 0)
    last = np.where(stops.any(1), stops.argmax(1), pairs - 1)[:, None]
    falling = np.minimum.accumulate(sums, axis=1)
    inside = np.where(np.arange(pairs) < last, falling, 0.0).sum(1)
    end, end_sum = np.take_along_axis(even, last, 1)[:, 0], np.take_along_axis(sums, last, 1)[:, 0]
    rest = np.where((end > 0) | (end_sum >= 0), end, 0.0)
    tau = np.maximum(-1 + 2 * inside + rest, 1 / np.log10(total))
    constant = np.ptp(x, axis=(1, 2)) < np.finfo(float).resolution
    return np.where(constant, float(total), total / tau)
