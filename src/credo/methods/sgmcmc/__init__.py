"""Markov chains on minibatches: stochastic-gradient MCMC."""
