"""Post-hoc recalibration: predictions corrected by held-out rows, and marked as such.

What comes out is no longer the posterior's own answer: it also holds what the calibration rows said.
"""

from credo.evaluation.recalibration.conformal import ConformalIntervals as ConformalIntervals
from credo.evaluation.recalibration.conformal import split_conformal as split_conformal
from credo.evaluation.recalibration.conformal_sets import ConformalSets as ConformalSets
from credo.evaluation.recalibration.cross_fit import unseen_by_fold as unseen_by_fold
from credo.evaluation.recalibration.recalibrated import Recalibrated as Recalibrated
from credo.evaluation.recalibration.temperature import TemperatureScaling as TemperatureScaling
from credo.evaluation.recalibration.temperature import temperature_scaling as temperature_scaling
