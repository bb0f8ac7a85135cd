"""Rivals, in the peers' environment: nothing here imports credo or JAX."""
