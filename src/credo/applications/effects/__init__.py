"""Effects: what each input does, how strongly, and along which curve."""

from credo.applications.effects.dependence import PartialDependence as PartialDependence
from credo.applications.effects.dependence import partial_dependence as partial_dependence
from credo.applications.effects.effects import Effects as Effects
from credo.applications.effects.effects import effects as effects
from credo.applications.effects.grid import Grid as Grid
from credo.applications.effects.grid import grid_of as grid_of
