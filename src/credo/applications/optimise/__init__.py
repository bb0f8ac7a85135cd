"""Bayesian optimisation: where to evaluate next an objective that is dear to evaluate (H1)."""

from typing import Any

from credo.applications.optimise.acquisition import ACQUISITIONS as ACQUISITIONS
from credo.applications.optimise.acquisition import expected_improvement as expected_improvement
from credo.applications.optimise.acquisition import log_expected_improvement as log_expected_improvement
from credo.applications.optimise.dimensions import Category as Category
from credo.applications.optimise.dimensions import Float as Float
from credo.applications.optimise.dimensions import Int as Int
from credo.applications.optimise.gp import GaussianProcess as GaussianProcess
from credo.applications.optimise.optimizer import Optimizer as Optimizer
from credo.applications.optimise.record import Evaluation as Evaluation
from credo.applications.optimise.space import Space as Space
from credo.applications.optimise.surrogate import Surrogate as Surrogate
from credo.renamed import old_name


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
