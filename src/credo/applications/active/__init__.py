"""Active learning: which rows are worth a label, one batch after another (H2)."""

from credo.applications.active.acquisition import ACQUISITIONS as ACQUISITIONS
from credo.applications.active.acquisition import acquisition_scores as acquisition_scores
from credo.applications.active.batches import choose as choose
from credo.applications.active.learn import learn as learn
from credo.applications.active.result import ActiveLearning as ActiveLearning
from credo.applications.active.result import labels_needed as labels_needed
