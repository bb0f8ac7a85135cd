"""The contract: batches, networks, distributions, models, methods, posteriors, predictions."""
