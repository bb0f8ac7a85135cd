"""Inference methods: one frozen dataclass per registry name, loaded when first used, and their combinators."""

from typing import TYPE_CHECKING, Any

from credo.registry import CLASSES, load
from credo.runtime import configure

configure()  # before BlackJAX is imported, which starts JAX

if TYPE_CHECKING:
    from credo.methods.combine import refine as refine
    from credo.methods.combine import replicate as replicate
    from credo.methods.combine import subset as subset
    from credo.methods.combine import then as then
    from credo.methods.ensembles.deep_ensemble import DeepEnsemble as DeepEnsemble
    from credo.methods.ensembles.mc_dropout import MCDropout as MCDropout
    from credo.methods.ensembles.swag import SWAG as SWAG
    from credo.methods.ensembles.swag import MultiSWAG as MultiSWAG
    from credo.methods.function_space.function_space_vi import FunctionSpaceVI as FunctionSpaceVI
    from credo.methods.function_space.infinite.method import InfiniteWidth as InfiniteWidth
    from credo.methods.laplace.laplace import Laplace as Laplace
    from credo.methods.laplace.last_layer import LastLayer as LastLayer
    from credo.methods.mcmc.ensemble_chains import EnsembleChains as EnsembleChains
    from credo.methods.mcmc.hmc import HMC as HMC
    from credo.methods.mcmc.mala import MALA as MALA
    from credo.methods.mcmc.mclmc import MCLMC as MCLMC
    from credo.methods.mcmc.metropolis import Metropolis as Metropolis
    from credo.methods.mcmc.nuts import NUTS as NUTS
    from credo.methods.points.map import MAP as MAP
    from credo.methods.points.map import MaximumLikelihood as MaximumLikelihood
    from credo.methods.points.simulated_annealing import SimulatedAnnealing as SimulatedAnnealing
    from credo.methods.population.importance_sampling import ImportanceSampling as ImportanceSampling
    from credo.methods.population.smc import SMC as SMC
    from credo.methods.population.svgd import SVGD as SVGD
    from credo.methods.sgmcmc.psgld import PSGLD as PSGLD
    from credo.methods.sgmcmc.sghmc import SGHMC as SGHMC
    from credo.methods.sgmcmc.sghmc import CyclicalSGHMC as CyclicalSGHMC
    from credo.methods.sgmcmc.sgld import SGLD as SGLD
    from credo.methods.sgmcmc.sgld import CyclicalSGLD as CyclicalSGLD
    from credo.methods.sgmcmc.sgnht import SGNHT as SGNHT
    from credo.methods.shallow.gibbs import Gibbs as Gibbs
    from credo.methods.shallow.reversible_jump import ReversibleJump as ReversibleJump
    from credo.methods.variational.bayes_by_backprop import BayesByBackprop as BayesByBackprop
    from credo.methods.variational.black_box_vi import BlackBoxVI as BlackBoxVI
    from credo.methods.variational.ivon import IVON as IVON
    from credo.methods.variational.vis import VIS as VIS

_COMBINATORS = ("refine", "replicate", "subset", "then")


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return CLASSES[name].load()
    if name in _COMBINATORS:
        return load(f"credo.methods.combine:{name}")
    raise AttributeError(f"module 'credo.methods' has no attribute {name!r}; it has {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted([*CLASSES, *_COMBINATORS])
