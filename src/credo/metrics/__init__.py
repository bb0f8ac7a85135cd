"""Scores of predictions."""

from credo.metrics.scores import accuracy as accuracy
from credo.metrics.scores import brier as brier
from credo.metrics.scores import coverage as coverage
from credo.metrics.scores import ece as ece
from credo.metrics.scores import interval_width as interval_width
from credo.metrics.scores import mae as mae
from credo.metrics.scores import rmse as rmse
from credo.metrics.scores import summarise as summarise
from credo.metrics.scores import test_log_likelihood as test_log_likelihood
