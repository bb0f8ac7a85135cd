"""Variationally inferred sampling: distributions refined by a few steps of a sampler, under valid bounds."""

from credo.methods.variational.refinement.dynamics import SAMPLERS, Refined, first_learned, momenta, refine

__all__ = ["SAMPLERS", "Refined", "first_learned", "momenta", "refine"]
