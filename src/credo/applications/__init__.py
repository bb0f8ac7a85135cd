"""Uses of Bayesian networks: nonlinear autoregression, and what each input does (E3), and decisions (H4)."""

from typing import TYPE_CHECKING, Any

from credo.applications import active as active
from credo.applications import detection as detection
from credo.applications.decisions.choose import decide as decide
from credo.applications.decisions.chosen import Decisions as Decisions
from credo.applications.decisions.realised import Realised as Realised
from credo.applications.decisions.realised import score_decisions as score_decisions
from credo.applications.decisions.risk import cvar as cvar
from credo.applications.decisions.risk import exponential as exponential
from credo.applications.decisions.utilities import class_utility as class_utility
from credo.applications.decisions.utilities import newsvendor as newsvendor
from credo.applications.decisions.utilities import pinball as pinball
from credo.applications.decisions.utilities import step_utility as step_utility
from credo.applications.effects.dependence import PartialDependence as PartialDependence
from credo.applications.effects.dependence import partial_dependence as partial_dependence
from credo.applications.effects.effects import Effects as Effects
from credo.applications.effects.effects import effects as effects
from credo.applications.effects.grid import Grid as Grid
from credo.applications.effects.grid import grid_of as grid_of
from credo.applications.forecasting.autoregression import Autoregression as Autoregression
from credo.applications.forecasting.autoregression import autoregression as autoregression
from credo.applications.forecasting.backtest import Backtest as Backtest
from credo.applications.forecasting.forecast import Forecast as Forecast
from credo.applications.forecasting.forecast import OneStep as OneStep
from credo.renamed import old_name

if TYPE_CHECKING:
    from credo.applications import optimise as optimise


def __getattr__(name: str) -> Any:
    if name == "optimise":  # loaded when first used: it imports SciPy's statistics, and no other application does
        import importlib

        return importlib.import_module("credo.applications.optimise")
    return old_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), "optimise"})
