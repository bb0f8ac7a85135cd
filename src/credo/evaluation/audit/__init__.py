"""The truth audit: methods against posteriors that are known, and simulation-based calibration (G4)."""

from credo.evaluation.audit.bounds import Bound as Bound
from credo.evaluation.audit.bounds import elbo as elbo
from credo.evaluation.audit.bounds import gaussian_kl as gaussian_kl
from credo.evaluation.audit.bounds import information_gain as information_gain
from credo.evaluation.audit.bounds import mutual_information as mutual_information
from credo.evaluation.audit.conjugate import Conjugate as Conjugate
from credo.evaluation.audit.measures import measure as measure
from credo.evaluation.audit.problem import Problem as Problem
from credo.evaluation.audit.problems import problems as problems
from credo.evaluation.audit.run import Audit as Audit
from credo.evaluation.audit.run import audit as audit
from credo.evaluation.audit.sbc import Calibration as Calibration
from credo.evaluation.audit.sbc import Setting as Setting
from credo.evaluation.audit.sbc import calibrate as calibrate
from credo.evaluation.audit.truth import Truth as Truth
