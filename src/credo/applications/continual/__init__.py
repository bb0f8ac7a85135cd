"""Continual learning: tasks come one after another, and each posterior is the prior of the next task (F4)."""

from credo.applications.continual.coresets import k_centre as k_centre
from credo.applications.continual.coresets import random_rows as random_rows
from credo.applications.continual.learn import learn as learn
from credo.applications.continual.propagate import next_prior as next_prior
from credo.applications.continual.result import Continual as Continual
from credo.applications.continual.tasks import Task as Task
