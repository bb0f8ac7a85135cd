"""Which model for this table? The same folds and the same budget for every method, and models that are no networks."""

from credo.evaluation.comparison.result import Comparison as Comparison
from credo.evaluation.comparison.run import compare as compare
