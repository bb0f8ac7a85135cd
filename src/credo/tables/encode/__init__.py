"""Columns as network inputs and targets as likelihoods read them, and back."""
