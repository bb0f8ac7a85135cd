"""Scores as pure functions of arrays: they compile, map and differentiate, in the precision of their arguments.

A function of rows takes `weights` [n], which need not sum to 1; a row of weight 0 is as good as absent.
"""

from credo.evaluation.metrics.arrays.calibration import BrierParts as BrierParts
from credo.evaluation.metrics.arrays.calibration import adaptive_ece as adaptive_ece
from credo.evaluation.metrics.arrays.calibration import brier as brier
from credo.evaluation.metrics.arrays.calibration import brier_decomposition as brier_decomposition
from credo.evaluation.metrics.arrays.calibration import brier_terms as brier_terms
from credo.evaluation.metrics.arrays.calibration import classwise_ece as classwise_ece
from credo.evaluation.metrics.arrays.calibration import ece as ece
from credo.evaluation.metrics.arrays.calibration import hits as hits
from credo.evaluation.metrics.arrays.crps import crps_draws as crps_draws
from credo.evaluation.metrics.arrays.crps import crps_normal_mixture as crps_normal_mixture
from credo.evaluation.metrics.arrays.crps import crps_normal_mixture_integral as crps_normal_mixture_integral
from credo.evaluation.metrics.arrays.crps import crps_two_samples as crps_two_samples
from credo.evaluation.metrics.arrays.energy import energy_draws as energy_draws
from credo.evaluation.metrics.arrays.energy import energy_two_samples as energy_two_samples
from credo.evaluation.metrics.arrays.intervals import covered as covered
from credo.evaluation.metrics.arrays.intervals import interval_score as interval_score
from credo.evaluation.metrics.arrays.intervals import pit_shares as pit_shares
from credo.evaluation.metrics.arrays.means import mean as mean
from credo.evaluation.metrics.arrays.means import root_mean as root_mean
from credo.evaluation.metrics.arrays.ranking import DetectionRates as DetectionRates
from credo.evaluation.metrics.arrays.ranking import aupr as aupr
from credo.evaluation.metrics.arrays.ranking import auroc as auroc
from credo.evaluation.metrics.arrays.ranking import detection_rates as detection_rates
from credo.evaluation.metrics.arrays.ranking import one_vs_rest as one_vs_rest
from credo.evaluation.metrics.arrays.ranking import threshold_at_fpr as threshold_at_fpr
from credo.evaluation.metrics.arrays.ranking import tpr_at_fpr as tpr_at_fpr
from credo.evaluation.metrics.arrays.selective import RiskCoverage as RiskCoverage
from credo.evaluation.metrics.arrays.selective import aurc as aurc
from credo.evaluation.metrics.arrays.selective import risk_coverage as risk_coverage
from credo.evaluation.metrics.arrays.threshold import best_threshold as best_threshold
from credo.evaluation.metrics.arrays.threshold import lift as lift
from credo.evaluation.metrics.arrays.threshold import precision as precision
from credo.evaluation.metrics.arrays.threshold import recall as recall
