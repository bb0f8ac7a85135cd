"""Post-hoc recalibration: predictions corrected by held-out rows, and marked as such.

What comes out is no longer the posterior's own answer: it also holds what the calibration rows said.
"""

from credo.recalibration.conformal import ConformalIntervals as ConformalIntervals
from credo.recalibration.conformal import split_conformal as split_conformal
from credo.recalibration.conformal_sets import ConformalSets as ConformalSets
from credo.recalibration.recalibrated import Recalibrated as Recalibrated
from credo.recalibration.temperature import TemperatureScaling as TemperatureScaling
from credo.recalibration.temperature import temperature_scaling as temperature_scaling
