"""Posteriors over weights: stored draws and mean-field Gaussians."""

from credo.posteriors.mean_field import MeanField as MeanField
from credo.posteriors.samples import Samples as Samples
from credo.posteriors.subset import SubsetPosterior as SubsetPosterior
