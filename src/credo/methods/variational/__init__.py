"""Variational inference: the best member of a family of distributions."""
