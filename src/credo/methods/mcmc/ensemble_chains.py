"""Chains that start from a deep ensemble: modes from an optimiser, their surroundings from a sampler."""

import dataclasses
from typing import Any

from credo.core.method import Method, PartsMethod
from credo.core.tree import leaf, struct
from credo.errors import InputError
from credo.methods.ensembles.early_stopping import EarlyStopping
from credo.methods.ensembles.sized import Sized

SAMPLERS = ("mclmc", "hmc", "nuts")
ENERGY_VARIANCE = 1e-2  # larger than MCLMC's default: on held-out rows short chains gained by larger steps up to here


@struct
class EnsembleChains(Sized, PartsMethod):
    """One chain from each member of an early-stopped deep ensemble (D6).

    An optimiser takes every member to a mode far sooner than a chain would get there; a chain then draws from the
    posterior around it. Rows that a member held out are back in the data before its chain starts. The modes are
    weighted equally, not by their mass: draws follow the posterior around each and are a guess between them
    (`credo.diagnostics.stack` weighs them by what they predict). Sommer et al. (2024), Connecting the dots: is mode-
    connectedness the key to feasible sample-based inference in Bayesian neural networks?

    The default sampler is unadjusted MCLMC with the identity as mass, which leaves a mode fastest; a mass that is
    learned on the way slows the chain down. Its draws are biased, by an amount that grows with the energy variance.
    `adjusted=True`, "hmc" and "nuts" have no such bias.

    Args:
        size: members, one chain each.
        sampler: "mclmc", "hmc" or "nuts".
        warmup: adaptation steps of a chain.
        num_steps: integrator steps of a path (for "mclmc", at most; for "hmc").
        adjusted: paths of "mclmc" with a Metropolis test.
        longest: steps of the optimiser, at most.
        held_out: share of the rows that decide when a member stops.
        learning_rate: of the optimiser.
        target_acceptance: of the chains' warm-up; None leaves it to the sampler.
        units: as in `EarlyStopping`, a number for each row; rows of one number are held out together.

    Example:
        >>> import credo
        >>> [type(part).__name__ for part in credo.methods.EnsembleChains(size=4).parts]
        ['EarlyStopping', 'MCLMC']
    """

    size: int = 8
    sampler: str = "mclmc"
    warmup: int = 100
    num_steps: int = 100
    adjusted: bool = False
    longest: int = 10_000
    held_out: float = leaf(default=0.1)
    learning_rate: float = leaf(default=0.005)
    target_acceptance: Any = leaf(default=None)
    over: str = "auto"
    units: Any = leaf(default=None)

    default_steps = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampler not in SAMPLERS:
            raise InputError(f"sampler must be one of {', '.join(SAMPLERS)}, got {self.sampler!r}.")

    @property
    def parts(self) -> tuple[Method, ...]:
        from credo.registry import find

        kind = find(self.sampler).load()
        chain = kind(chains=self.size, warmup=self.warmup)
        if self.sampler == "hmc":
            chain = dataclasses.replace(chain, num_steps=self.num_steps)
        if self.sampler == "mclmc":
            chain = dataclasses.replace(
                chain, max_steps=self.num_steps, adjusted=self.adjusted, mass="identity",
                energy_variance=ENERGY_VARIANCE,
            )  # fmt: skip
        if self.target_acceptance is not None:
            chain = dataclasses.replace(chain, target_acceptance=self.target_acceptance)
        start = EarlyStopping(
            learning_rate=self.learning_rate, held_out=self.held_out, size=self.size, longest=self.longest,
            units=self.units,
        )  # fmt: skip
        return start, chain
