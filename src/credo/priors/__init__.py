"""Priors over weights."""

from credo.priors.as_prior import AsPrior as AsPrior
from credo.priors.as_prior import as_prior as as_prior
from credo.priors.by_path import ByPath as ByPath
from credo.priors.by_path import by_path as by_path
from credo.priors.centred_on import CentredOn as CentredOn
from credo.priors.centred_on import centred_on as centred_on
from credo.priors.elementwise import Elementwise as Elementwise
from credo.priors.fan_in import FanInNormal as FanInNormal
from credo.priors.fan_in import fan_in_normal as fan_in_normal
from credo.priors.laplace import LaplacePrior as LaplacePrior
from credo.priors.laplace import laplace as laplace
from credo.priors.normal import Normal as Normal
from credo.priors.normal import normal as normal
from credo.priors.scale_mixture import ScaleMixture as ScaleMixture
from credo.priors.scale_mixture import scale_mixture as scale_mixture
from credo.priors.student_t import StudentTPrior as StudentTPrior
from credo.priors.student_t import student_t as student_t
