"""Can a fit be believed? Chains, functions, weights of q, step sizes, model choice, and alarms with advice."""

from typing import Any

from credo.core.draws import function_draws as function_draws
from credo.core.draws import log_likelihood_draws as log_likelihood_draws
from credo.evaluation.diagnostics.alarms import Alarm as Alarm
from credo.evaluation.diagnostics.best_mixture import best_mixture as best_mixture
from credo.evaluation.diagnostics.chains import ChainStats as ChainStats
from credo.evaluation.diagnostics.chains import bfmi as bfmi
from credo.evaluation.diagnostics.chains import chain_stats as chain_stats
from credo.evaluation.diagnostics.chains import ess as ess
from credo.evaluation.diagnostics.chains import mcse as mcse
from credo.evaluation.diagnostics.chains import rank_counts as rank_counts
from credo.evaluation.diagnostics.chains import rhat as rhat
from credo.evaluation.diagnostics.diagnose import Convergence as Convergence
from credo.evaluation.diagnostics.diagnose import Diagnostics as Diagnostics
from credo.evaluation.diagnostics.diagnose import diagnose as diagnose
from credo.evaluation.diagnostics.gradient_variance import GradientVariance as GradientVariance
from credo.evaluation.diagnostics.gradient_variance import gradient_variance as gradient_variance
from credo.evaluation.diagnostics.gradients import GradientNoise as GradientNoise
from credo.evaluation.diagnostics.gradients import StepSize as StepSize
from credo.evaluation.diagnostics.gradients import gradient_noise as gradient_noise
from credo.evaluation.diagnostics.gradients import step_size_check as step_size_check
from credo.evaluation.diagnostics.inference_data import to_arviz as to_arviz
from credo.evaluation.diagnostics.model_choice import Elpd as Elpd
from credo.evaluation.diagnostics.model_choice import ModelComparison as ModelComparison
from credo.evaluation.diagnostics.model_choice import compare as compare
from credo.evaluation.diagnostics.model_choice import loo as loo
from credo.evaluation.diagnostics.model_choice import waic as waic
from credo.evaluation.diagnostics.pareto import ParetoK as ParetoK
from credo.evaluation.diagnostics.pareto import pareto_k as pareto_k
from credo.evaluation.diagnostics.replicates import PredictiveCheck as PredictiveCheck
from credo.evaluation.diagnostics.replicates import posterior_predictive_check as posterior_predictive_check
from credo.evaluation.diagnostics.stacking import StackedChains as StackedChains
from credo.evaluation.diagnostics.stacking import stack as stack
from credo.evaluation.diagnostics.weights import weight_draws as weight_draws
from credo.renamed import old_name


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
