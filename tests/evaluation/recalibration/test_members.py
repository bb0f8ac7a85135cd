"""Noise of a mixture, from rows that its members predicted one by one."""

import jax
import numpy as np
import pytest

import credo
from credo.core.folds import even_folds
from credo.evaluation.recalibration.members import disagreement, points_between
from credo.evaluation.recalibration.unseen import Unseen, corrected, coverages
from credo.likelihoods import gaussian

MEMBERS, ROWS = 8, 20_000


@pytest.mark.parametrize("spread", [0.0, 0.2, 0.35])
def test_a_mixture_of_corrected_members_holds_what_it_says(spread):
    """Truth f with noise of 1; members err by N(0, v), alone and independently, and all say noise of 0.7.

    Coverage of the mixture has a standard error of 0.2 points: four of them, and half a point for its shape.
    """
    rng = np.random.default_rng(3)
    likelihood = gaussian(0.7)

    def unseen(count):
        outputs = rng.normal(scale=spread**0.5, size=(count, ROWS, 1)).astype(np.float32)
        log_weights = np.full((count, ROWS), -np.log(count))
        return Unseen(
            likelihood, {}, outputs, log_weights, rng.normal(size=(ROWS, 1)).astype(np.float32), np.ones(ROWS)
        )

    narrower = 2 * (1 - 1 / MEMBERS) * spread / 0.49
    correction = corrected([unseen(1)], narrower=narrower)
    held = coverages([unseen(MEMBERS)._replace(likelihood=correction.likelihood)])[1]
    assert abs(held - 0.9) < 0.013
    plain = corrected([unseen(1)]).likelihood
    assert abs(coverages([unseen(1)._replace(likelihood=plain)])[1] - 0.9) < 0.013
    if spread > 0.3:
        assert coverages([unseen(MEMBERS)._replace(likelihood=plain)])[1] > 0.94


@pytest.fixture(scope="module")
def fits():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).astype(np.float32)
    x[:, 1] = x[:, 1] > 0
    data = x, np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=80).astype(np.float32)
    folds = even_folds(80, 4, 0)
    model = credo.Model(credo.networks.mlp([8]), credo.priors.normal(), gaussian(0.3))
    method = credo.methods.DeepEnsemble(size=4)
    return [
        credo.fit(jax.random.key(seed), model, data, method, steps=200, folds=folds, progress=False) for seed in (0, 1)
    ]


def test_disagreement_is_its_formula(fits):
    points = points_between(fits[0].loop.source)
    spread = np.zeros(len(points))
    for share, fit in zip((0.25, 0.75), fits):
        members = [
            credo.predict(jax.random.key(0), _member(fit, m), points).mean.ravel() for m in range(4)
        ]  # fmt: skip
        spread += share**2 * (1 - 1 / 4) * np.var(members, axis=0, ddof=1)
    assert disagreement(fits, [1, 3]) == pytest.approx(2 * np.median(spread) / 0.09, rel=1e-3)


def test_points_lie_between_rows(fits):
    """Numbers have a half, indicators do not."""
    points = points_between(fits[0].loop.source)
    rows = np.asarray(fits[0].loop.source.inputs[:80])
    assert set(points[:, 1]) <= {0.0, 1.0}
    assert not np.isin(points[:, 0], rows[:, 0]).any()


def _member(fit, m):
    import dataclasses

    posterior = jax.tree.map(lambda x: x[m : m + 1], fit.posterior)
    return dataclasses.replace(fit, posterior=posterior, loop=None)
