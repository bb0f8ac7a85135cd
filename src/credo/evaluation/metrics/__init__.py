"""Scores of predictions: each a number, with an interval where asked, for any likelihood.

`credo.evaluation.metrics.arrays` has the same as pure functions of arrays, for scores of anything else.
"""

from credo.evaluation.metrics import arrays as arrays
from credo.evaluation.metrics.bootstrap import Interval as Interval
from credo.evaluation.metrics.bootstrap import bootstrap as bootstrap
from credo.evaluation.metrics.bootstrap import difference as difference
from credo.evaluation.metrics.bootstrap import with_interval as with_interval
from credo.evaluation.metrics.classes import accuracy as accuracy
from credo.evaluation.metrics.classes import adaptive_ece as adaptive_ece
from credo.evaluation.metrics.classes import aupr as aupr
from credo.evaluation.metrics.classes import auroc as auroc
from credo.evaluation.metrics.classes import brier as brier
from credo.evaluation.metrics.classes import brier_decomposition as brier_decomposition
from credo.evaluation.metrics.classes import classwise_ece as classwise_ece
from credo.evaluation.metrics.classes import ece as ece
from credo.evaluation.metrics.classes import tpr_at_fpr as tpr_at_fpr
from credo.evaluation.metrics.integral_transform import pit as pit
from credo.evaluation.metrics.integral_transform import pit_histogram as pit_histogram
from credo.evaluation.metrics.numbers import coverage as coverage
from credo.evaluation.metrics.numbers import crps as crps
from credo.evaluation.metrics.numbers import energy_score as energy_score
from credo.evaluation.metrics.numbers import interval_score as interval_score
from credo.evaluation.metrics.numbers import interval_width as interval_width
from credo.evaluation.metrics.numbers import log_likelihood as log_likelihood
from credo.evaluation.metrics.numbers import mae as mae
from credo.evaluation.metrics.numbers import rmse as rmse
from credo.evaluation.metrics.numbers import sharpness as sharpness
from credo.evaluation.metrics.scores import summarise as summarise
from credo.evaluation.metrics.scores import summarise_with_intervals as summarise_with_intervals
from credo.evaluation.metrics.selective import aurc as aurc
from credo.evaluation.metrics.selective import risk_coverage as risk_coverage
from credo.evaluation.metrics.terms import Score as Score
from credo.evaluation.metrics.terms import Terms as Terms
from credo.evaluation.metrics.terms import score as score
from credo.evaluation.metrics.threshold import confusion as confusion
from credo.evaluation.metrics.threshold import lift as lift
from credo.evaluation.metrics.threshold import majority_accuracy as majority_accuracy
from credo.evaluation.metrics.threshold import precision as precision
from credo.evaluation.metrics.threshold import recall as recall
from credo.evaluation.metrics.threshold import threshold as threshold
