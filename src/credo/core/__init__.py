"""The contract: batches, networks, distributions, models, methods, posteriors, predictions."""

from credo.runtime import configure

configure()
