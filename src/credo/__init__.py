"""Bayesian neural networks that say how much they know."""
