"""The truth audit: methods against posteriors that are known, and simulation-based calibration (G4)."""

from credo.audit.bounds import Bound as Bound
from credo.audit.bounds import elbo as elbo
from credo.audit.bounds import gaussian_kl as gaussian_kl
from credo.audit.bounds import information_gain as information_gain
from credo.audit.bounds import mutual_information as mutual_information
from credo.audit.conjugate import Conjugate as Conjugate
from credo.audit.measures import measure as measure
from credo.audit.problem import Problem as Problem
from credo.audit.problems import problems as problems
from credo.audit.run import Audit as Audit
from credo.audit.run import audit as audit
from credo.audit.sbc import Calibration as Calibration
from credo.audit.sbc import Setting as Setting
from credo.audit.sbc import calibrate as calibrate
from credo.audit.truth import Truth as Truth
