"""Colours that people with each kind of colour blindness can tell apart, on light and dark pages."""

from itertools import combinations

import numpy as np
import pytest

from credo.report.style import CYCLE, MODEL, NOISE, WRONG

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SEEN = {
    "all colours": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = TO_XYZ.sum(1)


def linear(colour: str) -> np.ndarray:
    """Linear RGB of "#rrggbb"."""
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB."""
    share = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    bent = np.where(share > 216 / 24389, np.cbrt(share), (24389 / 27 * share + 16) / 116)
    return np.array([116 * bent[1] - 16, 500 * (bent[0] - bent[1]), 200 * (bent[1] - bent[2])])


def distance(one: str, two: str, eyes: str) -> float:
    return float(np.linalg.norm(lab(SEEN[eyes] @ linear(one)) - lab(SEEN[eyes] @ linear(two))))


def contrast(one: str, two: str) -> float:
    low, high = sorted(0.05 + float(TO_XYZ[1] @ linear(c)) for c in (one, two))
    return high / low


@pytest.mark.parametrize(("eyes", "least"), [("all colours", 20), ("protanopia", 17), ("deuteranopia", 17)])
def test_colours_of_lines_are_told_apart(eyes, least) -> None:
    """A CIE distance of 2.3 is just noticed; lines need far more."""
    near = {pair: distance(*pair, eyes) for pair in combinations(CYCLE, 2)}
    assert min(near.values()) > least, min(near, key=near.__getitem__)


def test_rare_blindness_to_blue() -> None:
    assert min(distance(*pair, "tritanopia") for pair in combinations(CYCLE, 2)) > 12


@pytest.mark.parametrize("eyes", SEEN)
def test_colours_with_a_meaning_are_far_apart(eyes) -> None:
    assert distance(MODEL, NOISE, eyes) > 40
    assert distance(MODEL, WRONG, eyes) > 40


@pytest.mark.parametrize("paper", ["#ffffff", "#14171c"])
def test_colours_stand_out_from_the_page(paper) -> None:
    assert min(contrast(colour, paper) for colour in CYCLE) > 2
