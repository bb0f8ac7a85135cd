"""Priors over weights."""

from credo.priors.elementwise import Elementwise as Elementwise
from credo.priors.normal import Normal as Normal
from credo.priors.normal import normal as normal
