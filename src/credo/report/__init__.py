"""What a run looks like: figures and one self-contained page."""

from credo.report.chains import replicated as replicated
from credo.report.gradients import gradient_variance as gradient_variance
from credo.report.html import Section as Section
from credo.report.html import page as page
from credo.report.load import load_run_data as load_run_data
from credo.report.load import run_data as run_data
from credo.report.plots import figures as figures
from credo.report.prior import prior_functions as prior_functions
from credo.report.run import RunData as RunData
from credo.report.write import write_report as write_report
