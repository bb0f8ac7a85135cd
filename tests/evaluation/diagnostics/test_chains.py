"""R-hat, effective sample sizes and Monte-Carlo errors: ArviZ's numbers, and what theory says of AR(1) chains."""

import numpy as np
import pytest

import arviz_numbers
from credo.errors import InputError
from credo.evaluation.diagnostics import bfmi, chain_stats, ess, mcse, rank_counts, rhat

from .conftest import autoregressive

ARVIZ = {
    "rhat": arviz_numbers.rhat,
    "ess_bulk": arviz_numbers.ess,
    "ess_tail": lambda x: arviz_numbers.ess(x, "tail"),
    "mcse_mean": arviz_numbers.mcse,
    "mcse_std": lambda x: arviz_numbers.mcse(x, "std"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ArviZ divides by zero where nothing varies
@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("shape", [(2, 6), (2, 7), (2, 8), (8, 5), (3, 101), (4, 500)])
def test_numbers_are_those_of_arviz(shape, correlation):
    """Short and odd chains, ties, chains apart, an outlier and a constant; to 1e-10."""
    chains = autoregressive((*shape, 5), correlation)
    chains[..., 0] = chains[..., 0].round()
    chains[..., 1] += np.arange(shape[0])[:, None]
    chains[0, 0, 2] = 1e3
    chains[..., 3] = 1.5
    found = chain_stats(chains)
    for name, function in ARVIZ.items():
        np.testing.assert_allclose(getattr(found, name), function(chains), rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(ess(chains, "mean"), arviz_numbers.ess(chains, "mean"), rtol=1e-10)


def test_autoregressive_chains_have_their_known_size():
    """S (1 − ρ)/(1 + ρ) for the mean. The estimate's own error is about 10 % here; the mean over 20 is within 10 %."""
    for correlation in (0.0, 0.5, 0.8):
        chains = autoregressive((4, 2000, 20), correlation)
        expected = 8000 * (1 - correlation) / (1 + correlation)
        assert ess(chains, "mean").mean() == pytest.approx(expected, rel=0.1)
        error = mcse(chains)
        assert error.mean() == pytest.approx(1 / np.sqrt(expected), rel=0.1)
        assert np.abs(chains.mean((0, 1)) / error).max() < 4  # 20 means; a false alarm in 10⁻³


def test_standard_error_of_a_standard_deviation():
    """σ/√(2S) for independent normal draws."""
    chains = np.random.default_rng(0).normal(size=(4, 1000, 50))
    assert mcse(chains, "std").mean() == pytest.approx(1 / np.sqrt(8000), rel=0.1)


def test_trends_and_chains_apart_are_seen():
    together = np.random.default_rng(0).normal(size=(4, 200))
    assert rhat(together) < 1.02
    assert rhat(together + np.arange(4)[:, None]) > 1.3
    assert rhat(together[:1] + np.linspace(0, 5, 200)) > 1.3  # one chain against its own later half
    assert rhat(together * np.array([1, 1, 1, 5])[:, None]) > 1.05  # same centre, other spread


def test_shapes_and_wrong_numbers():
    found = chain_stats(np.random.default_rng(0).normal(size=(2, 50, 3, 4)))
    assert found.rhat.shape == (3, 4)
    assert np.isnan(chain_stats(np.ones((2, 3))).rhat)
    broken = np.random.default_rng(0).normal(size=(2, 50, 2))
    broken[0, 0, 0] = np.inf
    assert np.isnan(chain_stats(broken).ess_bulk).tolist() == [True, False]
    assert chain_stats(np.ones((2, 10, 0))).rhat.shape == (0,)
    with pytest.raises(InputError, match=r"\[chain, draw"):
        rhat(np.ones(3))
    with pytest.raises(InputError, match="bulk"):
        ess(np.ones((2, 9)), "middle")
    with pytest.raises(InputError, match="mean"):
        mcse(np.ones((2, 9)), "median")


def test_energy_is_arviz():
    energy = autoregressive((3, 200), 0.9)
    np.testing.assert_allclose(bfmi(energy), arviz_numbers.bfmi(energy), rtol=1e-12)
    assert bfmi(autoregressive((1, 5000), 0.9)) == pytest.approx(0.2, rel=0.15)  # 2(1 − ρ)


def test_ranks_are_even_where_chains_agree():
    chains = np.random.default_rng(0).normal(size=(4, 500))
    counts = rank_counts(chains)
    assert counts.shape == (4, 20)
    assert counts.sum(0).tolist() == [100] * 20
    apart = rank_counts(chains + 10 * np.arange(4)[:, None])
    assert apart[0, 5:].sum() == 0
    assert apart[3, 15:].sum() == 500
