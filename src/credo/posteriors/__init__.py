"""Posteriors over weights: stored draws and Gaussians of several shapes."""

from credo.posteriors.dropout import ActivationDropout as ActivationDropout
from credo.posteriors.dropout import WeightDropout as WeightDropout
from credo.posteriors.gaussian import GaussianWeights as GaussianWeights
from credo.posteriors.kronecker import MatrixNormal as MatrixNormal
from credo.posteriors.linearised import Linearised as Linearised
from credo.posteriors.low_rank import LowRank as LowRank
from credo.posteriors.mean_field import MeanField as MeanField
from credo.posteriors.multivariate import Multivariate as Multivariate
from credo.posteriors.particles import Particles as Particles
from credo.posteriors.samples import Samples as Samples
from credo.posteriors.stacked import Stacked as Stacked
from credo.posteriors.stacked import StackPart as StackPart
from credo.posteriors.subset import SubsetPosterior as SubsetPosterior
