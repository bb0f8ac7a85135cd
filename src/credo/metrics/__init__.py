"""Scores of predictions: each a number, with an interval where asked, for any likelihood.

`credo.metrics.arrays` has the same as pure functions of arrays, for scores of anything else.
"""

from credo.metrics import arrays as arrays
from credo.metrics.bootstrap import Interval as Interval
from credo.metrics.bootstrap import bootstrap as bootstrap
from credo.metrics.bootstrap import difference as difference
from credo.metrics.bootstrap import with_interval as with_interval
from credo.metrics.classes import accuracy as accuracy
from credo.metrics.classes import adaptive_ece as adaptive_ece
from credo.metrics.classes import aupr as aupr
from credo.metrics.classes import auroc as auroc
from credo.metrics.classes import brier as brier
from credo.metrics.classes import brier_decomposition as brier_decomposition
from credo.metrics.classes import classwise_ece as classwise_ece
from credo.metrics.classes import ece as ece
from credo.metrics.classes import tpr_at_fpr as tpr_at_fpr
from credo.metrics.integral_transform import pit as pit
from credo.metrics.integral_transform import pit_histogram as pit_histogram
from credo.metrics.numbers import coverage as coverage
from credo.metrics.numbers import crps as crps
from credo.metrics.numbers import energy_score as energy_score
from credo.metrics.numbers import interval_score as interval_score
from credo.metrics.numbers import interval_width as interval_width
from credo.metrics.numbers import log_likelihood as log_likelihood
from credo.metrics.numbers import mae as mae
from credo.metrics.numbers import rmse as rmse
from credo.metrics.numbers import sharpness as sharpness
from credo.metrics.scores import summarise as summarise
from credo.metrics.scores import summarise_with_intervals as summarise_with_intervals
from credo.metrics.selective import aurc as aurc
from credo.metrics.selective import risk_coverage as risk_coverage
from credo.metrics.terms import Score as Score
from credo.metrics.terms import Terms as Terms
from credo.metrics.terms import score as score
from credo.metrics.threshold import confusion as confusion
from credo.metrics.threshold import lift as lift
from credo.metrics.threshold import majority_accuracy as majority_accuracy
from credo.metrics.threshold import precision as precision
from credo.metrics.threshold import recall as recall
from credo.metrics.threshold import threshold as threshold
