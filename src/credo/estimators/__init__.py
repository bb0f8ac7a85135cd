"""Bayesian networks as scikit-learn estimators."""

from credo.estimators.classifier import BayesianClassifier as BayesianClassifier
from credo.estimators.regressor import BayesianRegressor as BayesianRegressor
