"""What is said of chains that disagree follows from what each of them does by itself."""

import numpy as np
import pytest
from scipy.special import bdtrc, stdtrit

from credo.evaluation.diagnostics import alarms
from credo.evaluation.diagnostics.probe import Probe
from credo.evaluation.diagnostics.steady import FALSE_TREND, LEAST_WORTH, geweke, steadiness

from .conftest import autoregressive

LEVELS = 3.0 * np.arange(8)[:, None, None]  # of 8 chains whose own standard deviation is 1


def alarm_of(values, trace=None):
    nothing = np.zeros((0, 0))
    probe = Probe(values[..., None], {}, None, nothing, nothing, None, None, values.shape[2])
    return next(alarms._convergence(probe, trace or {}))


@pytest.mark.parametrize("seed", range(5))
def test_steady_at_different_levels(seed):
    """False alarms: a trend is seen in one of a hundred such sets of chains."""
    found = alarm_of(autoregressive((8, 400, 3), 0.5, seed) + LEVELS)
    assert found.id == "modes"
    assert "none of the 8 chains drifts" in str(found)
    assert "more draws will not help" in str(found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [2.0, 20.0])
def test_drifting_in_step(seed, size):
    """Chains apart that all climb by the same amount are told to go on."""
    climb = np.linspace(0, size, 400)[:, None]
    found = alarm_of(autoregressive((8, 400, 3), 0.5, seed) + LEVELS + climb)
    assert found.id == "unconverged"
    assert "drift" in str(found)
    assert "too short" not in str(found)
    assert "will not help" not in str(found)


def test_one_that_drifts_and_a_log_density_that_drifts():
    values = autoregressive((8, 400, 3), 0.5) + LEVELS
    density = autoregressive((8, 800), 0.5)
    assert alarm_of(values, {"log_density": density}).id == "modes"
    found = alarm_of(values, {"log_density": density + np.linspace(-3, 0, 800)})
    assert (found.id, "drift" in str(found)) == ("unconverged", True)
    values[3] += np.linspace(0, 5, 400)[:, None]
    assert "1 of 8 chains still drift" in str(alarm_of(values))


@pytest.mark.parametrize(("draws", "correlation"), [(20, 0.0), (40, 0.5), (400, 0.97)])
def test_too_short_to_tell(draws, correlation):
    """Each chain is worth fewer than 50 independent draws: no seed may give the verdict of modes."""
    for seed in range(10):
        found = alarm_of(autoregressive((8, draws, 3), correlation, seed) + LEVELS)
        assert found.id == "unconverged"
        assert "each chain is too short to tell" in str(found) or "drift" in str(found)


def test_levels_that_a_slow_walk_explains():
    """A fast part and a slow walk four times as long as the chains: more draws do bring them together."""
    for seed in range(10):
        slow = autoregressive((8, 1000, 1), 1 - 1 / 4000, seed)
        found = alarm_of(slow + autoregressive((8, 1000, 1), 0.0, seed + 100))
        assert found.id == "unconverged"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8])
def test_false_alarms_of_the_trend(correlation):
    """Among 400 sets of four steady chains at most 12 are called moving: 1 % are by Bonferroni's bound, and 13 of 400
    happen with a probability below 10⁻³."""
    most = 12
    assert bdtrc(most, 400, FALSE_TREND) < 1e-3
    draws = int(3 * LEAST_WORTH * (1 + correlation) / (1 - correlation))
    chains = autoregressive((1600, draws, 2), correlation).reshape(400, 4, draws, 2)
    moving = [steadiness(one + 5 * np.arange(4)[:, None, None]).moving for one in chains]
    assert np.count_nonzero(moving) <= most


def test_z_is_a_t_variate():
    """Of 4,000 chains worth 100 draws a share of 0.01 lies beyond that quantile of t, twice that at most: standard
    errors of so few draws are a little small. The share's own standard error is 0.0016."""
    z, freedom = geweke(autoregressive((4000, 300, 1), 0.5))
    share = (np.abs(z) > -stdtrit(freedom, 0.005)).mean()
    assert 0.005 < share < 0.025
    assert geweke(np.ones((2, 10, 1)))[0].tolist() == [[0.0], [0.0]]


def test_power():
    """A drift of one standard deviation is found in nearly all sets of four chains of 400 independent draws."""
    chains = autoregressive((400, 400, 1), 0.0).reshape(100, 4, 400, 1) + np.linspace(0, 1, 400)[:, None]
    assert np.mean([steadiness(one).moving > 0 for one in chains]) > 0.95
