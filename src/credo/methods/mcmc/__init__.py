"""Markov chains on the full batch."""
