"""Inference methods: one frozen dataclass per registry name, loaded when first used, and their combinators."""

from typing import TYPE_CHECKING, Any

from credo.registry import CLASSES
from credo.runtime import configure

configure()  # before BlackJAX is imported, which starts JAX

if TYPE_CHECKING:
    from credo.infinite.method import InfiniteWidth as InfiniteWidth
    from credo.methods.bayes_by_backprop import BayesByBackprop as BayesByBackprop
    from credo.methods.black_box_vi import BlackBoxVI as BlackBoxVI
    from credo.methods.combine import refine as refine
    from credo.methods.combine import replicate as replicate
    from credo.methods.combine import subset as subset
    from credo.methods.combine import then as then
    from credo.methods.deep_ensemble import DeepEnsemble as DeepEnsemble
    from credo.methods.ensemble_chains import EnsembleChains as EnsembleChains
    from credo.methods.function_space_vi import FunctionSpaceVI as FunctionSpaceVI
    from credo.methods.hmc import HMC as HMC
    from credo.methods.importance_sampling import ImportanceSampling as ImportanceSampling
    from credo.methods.ivon import IVON as IVON
    from credo.methods.laplace import Laplace as Laplace
    from credo.methods.last_layer import LastLayer as LastLayer
    from credo.methods.mala import MALA as MALA
    from credo.methods.map import MAP as MAP
    from credo.methods.map import MaximumLikelihood as MaximumLikelihood
    from credo.methods.mc_dropout import MCDropout as MCDropout
    from credo.methods.mclmc import MCLMC as MCLMC
    from credo.methods.metropolis import Metropolis as Metropolis
    from credo.methods.nuts import NUTS as NUTS
    from credo.methods.psgld import PSGLD as PSGLD
    from credo.methods.sghmc import SGHMC as SGHMC
    from credo.methods.sghmc import CyclicalSGHMC as CyclicalSGHMC
    from credo.methods.sgld import SGLD as SGLD
    from credo.methods.sgld import CyclicalSGLD as CyclicalSGLD
    from credo.methods.sgnht import SGNHT as SGNHT
    from credo.methods.simulated_annealing import SimulatedAnnealing as SimulatedAnnealing
    from credo.methods.smc import SMC as SMC
    from credo.methods.svgd import SVGD as SVGD
    from credo.methods.swag import SWAG as SWAG
    from credo.methods.swag import MultiSWAG as MultiSWAG
    from credo.methods.vis import VIS as VIS
    from credo.shallow.gibbs import Gibbs as Gibbs
    from credo.shallow.reversible_jump import ReversibleJump as ReversibleJump

_COMBINATORS = ("refine", "replicate", "subset", "then")


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return CLASSES[name].load()
    if name in _COMBINATORS:
        from credo.methods import combine

        return getattr(combine, name)
    raise AttributeError(f"module 'credo.methods' has no attribute {name!r}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*CLASSES, *_COMBINATORS])
