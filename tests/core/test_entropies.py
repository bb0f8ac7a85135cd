"""G2: entropies of mixtures of real targets, also where their parts are narrow and far apart."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from credo import likelihoods
from credo.core import entropies
from predictives import predictive

NORMAL = likelihoods.gaussian(noise=0.02), stats.norm(scale=0.02)
STUDENT = likelihoods.student_t(4.0, noise=0.02), stats.t(4.0, scale=0.02)
either = pytest.mark.parametrize(("likelihood", "part"), [NORMAL, STUDENT], ids=["normal", "student_t"])


def rows(*centres):
    """Outputs [K, n, 1] of rows of K centres."""
    return np.array(centres).T[..., None]


def information(part, centres, points=4000, reach=np.inf):
    """(1/K) Σ_k KL[p_k ‖ p] in double precision, in quantiles of each part; parts beyond its reach do not count."""
    noise = part.ppf((np.arange(points) + 0.5) / points)
    told = []
    for centre in centres:
        near = centres[np.abs(centres - centre) < reach]
        each = part.logpdf(centre + noise[:, None] - near) - np.log(len(centres))
        told.append(np.mean(part.logpdf(noise) - logsumexp(each, axis=1)))
    return np.mean(told)


@either
def test_far_apart_parts_tell_which_one_it_is(likelihood, part):
    """I = log K, and the entropy is that of one part more: steps of an even grid are six σ here."""
    p = predictive(likelihood, rows([-50.0, 50.0, 20.0, -30.0, 0.0], [-1.0, 500.0, 33.0, 7.0, 90.0]))
    np.testing.assert_allclose(p.mutual_information(), np.log(5), atol=1e-4)
    np.testing.assert_allclose(p.conditional_entropy(), part.entropy(), atol=1e-4)
    np.testing.assert_allclose(p.entropy(), part.entropy() + np.log(5), atol=1e-4)
    scaled = p.rescaled(3.0, 10.0)
    np.testing.assert_allclose(scaled.mutual_information(), np.log(5), atol=1e-4)
    np.testing.assert_allclose(scaled.entropy(), p.entropy() + np.log(10), atol=1e-4)


@either
def test_equal_parts_tell_nothing(likelihood, part):
    p = predictive(likelihood, np.full((40, 3, 1), 7.0))
    assert (p.mutual_information() >= 0).all()
    np.testing.assert_allclose(p.mutual_information(), 0, atol=2e-6)
    np.testing.assert_allclose(p.entropy(), part.entropy(), atol=1e-4)
    one = predictive(likelihood, np.full((1, 3, 1), 7.0))
    np.testing.assert_allclose(one.mutual_information(), 0, atol=2e-6)
    np.testing.assert_allclose(one.conditional_entropy(), part.entropy(), atol=1e-4)


@either
@pytest.mark.parametrize("far", [[], [70.0]], ids=["grid", "nodes"])
def test_two_parts_at_every_distance(likelihood, part, far):
    """With a third part so far away that no grid resolves the two, the answer follows from theirs."""
    distances = 0.02 * np.array([0.1, 1.0, 3.0, 6.0, 12.0])
    p = predictive(likelihood, rows(*([0.0, d, *far] for d in distances)))
    pair = np.array([information(part, np.array([0.0, d])) for d in distances])
    share = 2 / (2 + len(far))
    wanted = share * pair + stats.entropy([share, 1 - share])
    np.testing.assert_allclose(p.mutual_information(), wanted, atol=3e-4, rtol=2e-3)
    np.testing.assert_allclose(p.entropy() - p.conditional_entropy(), wanted, atol=3e-4, rtol=2e-3)


def test_weights_of_parts():
    p = predictive(NORMAL[0], rows([0.0, 80.0, 0.0]), weights=np.array([0.2, 0.7, 0.1]))
    np.testing.assert_allclose(p.mutual_information(), stats.entropy([0.3, 0.7]), atol=1e-4)
    with np.errstate(divide="ignore"):
        none = predictive(NORMAL[0], rows([0.0, 80.0, 1e6]), weights=np.array([0.3, 0.7, 0.0]))
    np.testing.assert_allclose(none.mutual_information(), stats.entropy([0.3, 0.7]), atol=1e-4)


@pytest.mark.parametrize("count", [50, 400, 1500])
def test_many_narrow_parts(count):
    """Several nodes for each part, few, and more parts than nodes, at draws of a normal that is 1,000 σ wide."""
    centres = np.random.default_rng(0).normal(scale=20.0, size=(count, 2)).astype(np.float32).astype(float)
    p = predictive(NORMAL[0], centres[..., None])
    wanted = [information(NORMAL[1], centres[:, i], 300, reach=0.3) for i in (0, 1)]
    np.testing.assert_allclose(p.mutual_information(), wanted, atol=0.03 if count > entropies.NODES else 5e-3)


def test_a_narrow_part_inside_a_wide_one():
    """Half of the weight on N(0, 1), half on N(0, 10⁻⁶): what is left out is the overlap."""
    raw = np.log(np.expm1(np.array([1.0, 1e-3]) - 1e-12))
    p = predictive(likelihoods.heteroscedastic(floor=1e-12), np.stack([np.zeros(2), raw], -1)[:, None])
    right = np.concatenate([np.linspace(0, 0.02, 20_001), np.linspace(0.02, 12, 40_001)])
    y = np.unique([-right, right])
    logs = np.stack([stats.norm.logpdf(y, 0, s) for s in (1.0, 1e-3)])
    whole = logsumexp(logs, axis=0) - np.log(2)
    wanted = np.trapezoid(0.5 * (np.exp(logs) * (logs - whole)).sum(0), y)
    np.testing.assert_allclose(p.mutual_information(), wanted, atol=5e-3)


def test_resolved_rows_stay_on_the_grid():
    """Rows of both sorts in one chunk: each has the answer that it has alone."""
    near, far = [0.0, 0.03, 0.05], [0.0, 0.03, 60.0]
    both = predictive(NORMAL[0], rows(near, far))
    alone = [predictive(NORMAL[0], rows(one)) for one in (near, far)]
    for name in ("entropy", "conditional_entropy", "mutual_information"):
        wanted = np.concatenate([getattr(p, name)() for p in alone])
        np.testing.assert_allclose(getattr(both, name)(), wanted, rtol=1e-5, atol=1e-6)


def test_counts_are_summed():
    rates = np.array([2.0, 5.0, 30.0])
    p = predictive(likelihoods.poisson(), np.log(rates)[:, None, None])
    each = stats.poisson(rates[:, None]).pmf(np.arange(200))
    total, noise = stats.entropy(each.mean(0)), stats.entropy(each, axis=1).mean()
    np.testing.assert_allclose(p.entropy(), total, atol=1e-4)
    np.testing.assert_allclose(p.conditional_entropy(), noise, atol=1e-4)
    np.testing.assert_allclose(p.mutual_information(), total - noise, atol=1e-4)
