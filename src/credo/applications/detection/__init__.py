"""Adversarial and out-of-distribution inputs: attacks through the predictive, and how well they are noticed (H3)."""

from typing import Any

from credo.applications.detection.attacks import Attack as Attack
from credo.applications.detection.attacks import Attacked as Attacked
from credo.applications.detection.attacks import attack as attack
from credo.applications.detection.centre import centre_of as centre_of
from credo.applications.detection.climb import predictive_loss as predictive_loss
from credo.applications.detection.detect import Detection as Detection
from credo.applications.detection.detect import DetectorDifference as DetectorDifference
from credo.applications.detection.detect import compare as compare
from credo.applications.detection.detect import detect as detect
from credo.applications.detection.detect import detection_of as detection_of
from credo.applications.detection.rates import Roc as Roc
from credo.applications.detection.rates import roc as roc
from credo.applications.detection.rates import threshold as threshold
from credo.applications.detection.result import Study as Study
from credo.applications.detection.scores import SCORES as SCORES
from credo.applications.detection.scores import suspicion as suspicion
from credo.applications.detection.study import study as study
from credo.renamed import old_name


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
