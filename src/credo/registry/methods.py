"""The table of methods."""

from dataclasses import dataclass
from typing import Any

from credo.registry.table import Entry, Table


@dataclass(frozen=True)
class Row(Entry):
    """One method.

    Attributes:
        capability: ids of the capability list.
        exact_on: what its answer equals on a Bayesian linear model: "posterior", "gaussian" (in closed form),
            "weighted" (draws with weights, which may say that they failed),
            "near_posterior" (means are right to 0.1 standard deviations and variances to 10 %),
            "architectures" (the posterior, together with which nodes there are),
            "functions" (in closed form, of functions: there are no weights),
            "mean_field", "mean" (the spread is not claimed), "mode" or "least_squares". The contract tests hold it to
            that.
    """

    capability: str
    exact_on: str
    quick: tuple[tuple[str, Any], ...] = ()  # settings that are enough on the small problems of the tests
    thin: int = 1  # steps for each draw that tests and audits keep, where one step moves a chain only a little
    # "nodes": networks of at most one hidden layer, which are a sum of nodes; "wide": perceptrons with a known limit
    networks: str = "any"
    likelihoods: str = "any"  # "normal": those that are normal given the outputs, or given the outputs and variates

    def quick_settings(self) -> dict[str, Any]:
        """Settings for small problems."""
        return dict(self.quick)


ROWS = (
    Row(
        "maximum_likelihood", "credo.methods.points.map:MaximumLikelihood",
        "One point: the best fit to the data, no prior.",
        "A4", "least_squares",
    ),
    Row(
        "map", "credo.methods.points.map:MAP",
        "One point: the mode of the posterior (weight decay).",
        "A4", "mode",
    ),
    Row(
        "bayes_by_backprop", "credo.methods.variational.bayes_by_backprop:BayesByBackprop",
        "Gaussian variational inference: mean field, or a richer family.",
        "B1, B2, B4, B5", "mean_field",
    ),
    Row(
        "black_box_vi", "credo.methods.variational.black_box_vi:BlackBoxVI",
        "Mean-field variational inference by score-function gradients with control variates.",
        "B3", "mean_field",
    ),
    Row(
        "ivon", "credo.methods.variational.ivon:IVON",
        "Mean-field variational inference by natural gradients, at the cost of Adam.",
        "B6", "mean_field",
    ),
    Row(
        "svgd", "credo.methods.population.svgd:SVGD",
        "Stein variational gradient descent: particles that climb the posterior and push each other apart.",
        "B4", "mean", (("particles", 20),),
    ),
    Row(
        "mc_dropout", "credo.methods.ensembles.mc_dropout:MCDropout",
        "Dropout in training and in prediction, on weight rows or activations, read as variational inference.",
        "C1", "mode",
    ),
    Row(
        "deep_ensemble", "credo.methods.ensembles.deep_ensemble:DeepEnsemble",
        "Several MAP fits from different starts, as one computation.",
        "C3", "mode", (("size", 3),),
    ),
    Row(
        "swag", "credo.methods.ensembles.swag:SWAG",
        "A Gaussian from the iterates of an optimiser at a constant learning rate; its spread is theirs.",
        "C5", "mean",
    ),
    Row(
        "multi_swag", "credo.methods.ensembles.swag:MultiSWAG",
        "Several SWAG Gaussians around different optima, as one computation.",
        "C5", "mean", (("size", 3),),
    ),
    Row(
        "laplace", "credo.methods.laplace.laplace:Laplace",
        "A Gaussian with the curvature at the mode: full, Kronecker, diagonal, last layer or low rank.",
        "C4", "gaussian",
    ),
    Row(
        "last_layer", "credo.methods.laplace.last_layer:LastLayer",
        "Features as a point and the exact posterior of the last layer on them.",
        "C2", "gaussian",
    ),
    Row(
        "infinite_width", "credo.methods.function_space.infinite.method:InfiniteWidth",
        "A perceptron of infinite width as a Gaussian process: exact, or by Laplace where noise is not Gaussian.",
        "F3", "functions", networks="wide",
    ),
    Row(
        "hmc", "credo.methods.mcmc.hmc:HMC",
        "Hamiltonian Monte Carlo with a fixed number of leapfrog steps.",
        "D3", "posterior", (("chains", 4), ("warmup", 300), ("num_steps", 15)),
    ),
    Row(
        "nuts", "credo.methods.mcmc.nuts:NUTS",
        "The No-U-Turn sampler: Hamiltonian Monte Carlo that sets its own path length.",
        "D3", "posterior", (("chains", 4), ("warmup", 300)),
    ),
    Row(
        "ensemble_chains", "credo.methods.mcmc.ensemble_chains:EnsembleChains",
        "A chain from each member of an early-stopped deep ensemble; modes count equally.",
        "D6", "near_posterior", (("size", 4), ("warmup", 300), ("num_steps", 20), ("longest", 500)),
    ),
    Row(
        "metropolis", "credo.methods.mcmc.metropolis:Metropolis",
        "Random-walk Metropolis: no gradients, many cheap moves for each draw.",
        "D2", "posterior", (("chains", 4), ("warmup", 300), ("moves", 30)),
    ),
    Row(
        "mala", "credo.methods.mcmc.mala:MALA",
        "The Metropolis-adjusted Langevin algorithm: a random walk that follows the gradient.",
        "D2", "posterior", (("chains", 4), ("warmup", 300), ("moves", 15)),
    ),
    Row(
        "mclmc", "credo.methods.mcmc.mclmc:MCLMC",
        "Microcanonical Langevin paths of constant speed, with a Metropolis test unless told otherwise.",
        "D3", "posterior", (("chains", 4), ("warmup", 300)),
    ),
    Row(
        "gibbs", "credo.methods.shallow.gibbs:Gibbs",
        "One hidden layer by Gibbs and Metropolis, its coefficients integrated out; conjugate hyper-priors.",
        "E1", "posterior", (("chains", 4), ("warmup", 300)), networks="nodes", likelihoods="normal",
    ),
    Row(
        "reversible_jump", "credo.methods.shallow.reversible_jump:ReversibleJump",
        "One hidden layer whose number of nodes is unknown too: birth, death and moves of nodes.",
        "E2", "architectures", (("chains", 4), ("warmup", 300)), networks="nodes", likelihoods="normal",
    ),
    Row(
        "smc", "credo.methods.population.smc:SMC",
        "Sequential Monte Carlo: a population led from the prior to the posterior, with the evidence.",
        "D2", "posterior", (("chains", 4), ("particles", 200), ("num_steps", 3), ("moves", 1)),
    ),
    Row(
        "importance_sampling", "credo.methods.population.importance_sampling:ImportanceSampling",
        "Weighted draws of the prior or of a fitted posterior, with a Pareto test of the weights and the evidence.",
        "D1", "weighted",
    ),
    Row(
        "simulated_annealing", "credo.methods.points.simulated_annealing:SimulatedAnnealing",
        "One point: a chain that is cooled until it stands at a deep mode.",
        "D4", "mode",
    ),
    Row(
        "sgld", "credo.methods.sgmcmc.sgld:SGLD",
        "Stochastic-gradient Langevin dynamics on minibatches, with a step that it chooses itself.",
        "D5", "near_posterior", (("chains", 8),), thin=20,
    ),
    Row(
        "psgld", "credo.methods.sgmcmc.psgld:PSGLD",
        "Langevin dynamics on minibatches under the preconditioner of RMSprop, frozen before the draws.",
        "D5", "near_posterior", (("chains", 8), ("tolerance", 0.05)), thin=20,
    ),
    Row(
        "sghmc", "credo.methods.sgmcmc.sghmc:SGHMC",
        "Stochastic-gradient Hamiltonian Monte Carlo: momentum and friction on minibatches.",
        "D5", "near_posterior", (("chains", 8),), thin=2,
    ),
    Row(
        "sgnht", "credo.methods.sgmcmc.sgnht:SGNHT",
        "The stochastic-gradient thermostat: momentum whose friction finds itself.",
        "D5", "near_posterior", (("chains", 8),), thin=2,
    ),
    Row(
        "cyclical_sgld", "credo.methods.sgmcmc.sgld:CyclicalSGLD",
        "Langevin dynamics whose step rises and falls, to visit several modes.",
        "D5", "near_posterior", (("chains", 8), ("cycle_length", 500), ("tolerance", 0.05)), thin=20,
    ),
    Row(
        "cyclical_sghmc", "credo.methods.sgmcmc.sghmc:CyclicalSGHMC",
        "Hamiltonian Monte Carlo on minibatches whose step rises and falls, to visit several modes.",
        "D5", "near_posterior", (("chains", 8), ("cycle_length", 500)), thin=20,
    ),
    Row(
        "function_space_vi", "credo.methods.function_space.function_space_vi:FunctionSpaceVI",
        "Variational inference with a prior and a divergence over functions, at measurement points.",
        "F2", "near_posterior", (("points", 6), ("rows", 10), ("prior_draws", 100)),
    ),
    Row(
        "vis", "credo.methods.variational.vis:VIS",
        "Variational inference refined by learned steps of a sampler, which then runs on as a corrected chain.",
        "F1", "posterior", (("learning_steps", 1000),),
    ),
)  # fmt: skip

METHODS = Table("method", ROWS)
CLASSES = {row.builder.partition(":")[2]: row for row in ROWS}
find = METHODS.find


def build_method(method: Any, **settings: Any) -> Any:
    """A method from its registry name, its class or itself."""
    if isinstance(method, str):
        method = METHODS.find(method).load()
    if isinstance(method, type):
        return method(**settings)
    return method


def method_name(method: Any) -> str:
    """The registry name of a method object, or its class name."""
    row = METHODS.row_of(method)
    return row.name if row else type(method).__name__.lower()
