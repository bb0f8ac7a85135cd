"""Decisions: the action of largest posterior expected utility, and what it turned out to be worth (H4)."""

from credo.applications.decisions.choose import decide as decide
from credo.applications.decisions.chosen import Decisions as Decisions
from credo.applications.decisions.realised import Realised as Realised
from credo.applications.decisions.realised import score_decisions as score_decisions
from credo.applications.decisions.risk import cvar as cvar
from credo.applications.decisions.risk import exponential as exponential
from credo.applications.decisions.utilities import class_utility as class_utility
from credo.applications.decisions.utilities import newsvendor as newsvendor
from credo.applications.decisions.utilities import pinball as pinball
from credo.applications.decisions.utilities import step_utility as step_utility
