"""Uses of Bayesian networks: nonlinear autoregression, and what each input does (E3)."""

from credo.applications.autoregression import Autoregression as Autoregression
from credo.applications.autoregression import autoregression as autoregression
from credo.applications.dependence import PartialDependence as PartialDependence
from credo.applications.dependence import partial_dependence as partial_dependence
from credo.applications.effects import Effects as Effects
from credo.applications.effects import effects as effects
from credo.applications.forecast import Forecast as Forecast
from credo.applications.forecast import OneStep as OneStep
from credo.applications.grid import Grid as Grid
from credo.applications.grid import grid_of as grid_of
from credo.applications.tables import table_effects as table_effects
