"""The problems of the audit, in the order of its tables."""

from credo.evaluation.audit.problem import Problem
from credo.evaluation.audit.problems.bimodal import bimodal
from credo.evaluation.audit.problems.linear import linear, linear_orthogonal
from credo.evaluation.audit.problems.logistic import logistic
from credo.evaluation.audit.problems.networks import class_network, gap, heteroscedastic_line, tanh_network

BUILDERS = (
    linear, linear_orthogonal, logistic, tanh_network, class_network, heteroscedastic_line, gap, bimodal
)  # fmt: skip


def problems() -> dict[str, Problem]:
    """Every problem by its name."""
    return {problem.name: problem for problem in (build() for build in BUILDERS)}
