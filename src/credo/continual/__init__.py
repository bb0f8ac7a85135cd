"""Continual learning: tasks come one after another, and each posterior is the prior of the next task (F4)."""

from credo.continual.coresets import k_centre as k_centre
from credo.continual.coresets import random_rows as random_rows
from credo.continual.learn import learn as learn
from credo.continual.propagate import next_prior as next_prior
from credo.continual.result import Continual as Continual
from credo.continual.tasks import Task as Task
