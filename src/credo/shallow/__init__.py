"""Bayesian networks of one hidden layer, architecture included."""
