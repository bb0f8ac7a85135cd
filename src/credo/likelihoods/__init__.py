"""Likelihoods: what the targets are, given the network's outputs."""

from credo.likelihoods.gaussian import Gaussian as Gaussian
from credo.likelihoods.gaussian import gaussian as gaussian
