"""Every score of arrays against an independent implementation: 10⁻⁶ in double precision, 10⁻⁴ in single."""

import contextlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import scoringrules
import sklearn.metrics

from credo.evaluation.metrics import arrays

N, C, BINS = 60, 3, 15
BOUNDS = (0.0, 0.05, 0.3)
PROGRAMS = {}


def of_classes(probs, labels, weights):
    names = ("ece", "adaptive_ece", "classwise_ece", "brier", "brier_decomposition")
    return {name: getattr(arrays, name)(probs, labels, weights) for name in names}


def of_rankings(scores, labels, losses, weights):
    """One program for all: most of the time of these tests is compilation."""
    found = {name: getattr(arrays, name)(scores, labels, weights) for name in ("auroc", "aupr")}
    found["tpr"] = jnp.stack([arrays.tpr_at_fpr(scores, labels, weights, bound) for bound in BOUNDS])
    found["curve"] = arrays.risk_coverage(losses, scores, weights)
    return found | {"aurc": arrays.aurc(losses, scores, weights)}


class Precision:
    """Runs a compiled function in one precision and compares in the tolerance of that precision."""

    def __init__(self, name):
        self.name, self.tolerance = name, {"float64": 1e-6, "float32": 1e-4}[name]

    def __call__(self, function, *args, **options):
        with jax.enable_x64(True) if self.name == "float64" else contextlib.nullcontext():
            cast = [None if a is None else np.asarray(a).astype(self.name) if np.asarray(a).dtype.kind == "f" else a
                    for a in args]  # fmt: skip
            names = tuple(options)
            compiled = PROGRAMS.setdefault((function, names), jax.jit(function, static_argnames=names))
            found = compiled(*cast, **options)
            assert all(leaf.dtype == self.name for leaf in jax.tree.leaves(found))
            return jax.tree.map(np.asarray, found)

    def same(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=self.tolerance, atol=0.01 * self.tolerance)


@pytest.fixture(params=["float64", "float32"])
def run(request):
    return Precision(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(params=["plain", "weights", "one row"])
def rows(request, rng):
    """Scores with ties, labels, class probabilities and weights."""
    n = 1 if request.param == "one row" else N
    probs = rng.dirichlet(np.ones(C), n).astype(np.float32).astype(np.float64)
    probs[0] = [0, 1, 0]
    scores = np.round(rng.normal(size=n), 1)
    weights = rng.uniform(0.1, 2, n) if request.param == "weights" else None
    return {"probs": probs, "labels": rng.integers(0, C, n), "scores": scores, "weights": weights}


# ---------------------------------------------------------------------- oracles
def mass_of(weights, n):
    return np.ones(n) if weights is None else weights


def binned_gap(values, right, mass, edges):
    total = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (values >= low) & ((values < high) | ((high == edges[-1]) & (values <= high)))
        if inside.any():
            total += mass[inside].sum() * abs(np.average(right[inside], weights=mass[inside]) - np.average(
                values[inside], weights=mass[inside]))  # fmt: skip
    return total / mass.sum()


def naive_aurc(losses, confidence, mass):
    kept = [confidence >= c for c in confidence]
    risks = [np.average(losses[k], weights=mass[k]) for k in kept]
    return np.average(risks, weights=mass)


# ---------------------------------------------------------------------- classes
def adaptive_gap(values, right, mass):
    order = np.argsort(values)
    values, right, mass = values[order], right[order], mass[order]
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    parts = [np.floor(middle * BINS).astype(int) == b for b in range(BINS)]
    if (mass == 1).all() and len(mass) == N:
        assert [part.sum() for part in parts] == [len(x) for x in np.array_split(np.arange(N), BINS)]
    return sum(abs((mass * (right - values))[part].sum()) for part in parts) / mass.sum()


def test_scores_of_classes(run, rows):
    probs, labels, weights = rows["probs"], rows["labels"], rows["weights"]
    found = run(of_classes, probs, labels, weights)
    mass, edges = mass_of(weights, len(probs)), np.linspace(0, 1, BINS + 1)
    right = probs.argmax(1) == labels
    run.same(found["ece"], binned_gap(probs.max(1), right, mass, edges))
    run.same(found["classwise_ece"], np.mean([binned_gap(probs[:, c], labels == c, mass, edges) for c in range(C)]))
    run.same(found["adaptive_ece"], adaptive_gap(probs.max(1), right, mass))
    run.same(found["brier"], np.average(((probs - np.eye(C)[labels]) ** 2).sum(1), weights=mass))
    if len(probs) > 1:
        both = {"sample_weight": weights, "labels": range(C), "scale_by_half": False}
        exact = sklearn.metrics.brier_score_loss(labels, probs / probs.sum(1, keepdims=True), **both)
        run.same(found["brier"], exact)
    parts = found["brier_decomposition"]
    run.same(parts.brier, found["brier"])
    run.same(parts.reliability - parts.resolution + parts.uncertainty + parts.within_bin, parts.brier)
    reliability = resolution = 0.0
    for c in range(C):
        place = np.minimum((probs[:, c] * BINS).astype(int), BINS - 1)
        rate = np.average(labels == c, weights=mass)
        for b in np.unique(place):
            inside = place == b
            share, seen = mass[inside].sum() / mass.sum(), np.average(labels[inside] == c, weights=mass[inside])
            reliability += share * (np.average(probs[inside, c], weights=mass[inside]) - seen) ** 2
            resolution += share * (seen - rate) ** 2
    run.same(parts.reliability, reliability)
    run.same(parts.resolution, resolution)


def test_brier_has_murphys_three_parts_where_forecasts_of_a_bin_are_equal(rng):
    probs = np.array([0.1, 0.5, 0.9])[rng.integers(0, 3, N)]
    parts = Precision("float32")(of_classes, np.stack([1 - probs, probs], 1), rng.integers(0, 2, N), None)
    parts = parts["brier_decomposition"]
    assert float(parts.within_bin) == pytest.approx(0, abs=1e-6)
    assert float(parts.reliability) > 0.01


# ---------------------------------------------------------------------- rankings
def test_rankings_match_scikit_learn(run, rows):
    scores, weights, labels, losses = rows["scores"], rows["weights"], rows["labels"] == 1, rows["probs"][:, 0]
    mass = mass_of(weights, len(scores))
    found = run(of_rankings, scores, labels, losses, weights)
    run.same(found["aurc"], naive_aurc(losses, scores, mass))
    curve = found["curve"]
    assert (np.diff(curve.coverage) >= 0).all()
    run.same(curve.coverage[-1], 1.0)
    run.same(curve.risk[-1], np.average(losses, weights=mass))
    kept = scores >= np.quantile(scores, 0.6)
    at = np.searchsorted(curve.coverage, mass[kept].sum() / mass.sum() * (1 - 1e-5))
    run.same(curve.risk[at], np.average(losses[kept], weights=mass[kept]))
    if len(scores) == 1:  # one row has one class: there is nothing to rank
        assert np.isnan(found["auroc"])
        assert np.isnan(found["tpr"]).all()
        run.same(run(of_rankings, scores, np.array([True]), losses, weights)["aupr"], 1.0)
        assert np.isnan(run(of_rankings, scores, np.array([False]), losses, weights)["aupr"])
        return
    assert len(np.unique(scores)) < len(scores)
    known = {"sample_weight": weights}
    run.same(found["auroc"], sklearn.metrics.roc_auc_score(labels, scores, **known))
    run.same(found["aupr"], sklearn.metrics.average_precision_score(labels, scores, **known))
    false, true, _ = sklearn.metrics.roc_curve(labels, scores, drop_intermediate=False, **known)
    run.same(found["tpr"], [true[false <= bound + 1e-9].max() for bound in BOUNDS])


def over_classes(probs, labels):
    return [arrays.one_vs_rest(function, probs, labels) for function in (arrays.auroc, arrays.aupr)]


def test_one_vs_rest_matches_scikit_learn(run, rng):
    probs, labels = rng.dirichlet(np.ones(C), N), rng.integers(0, C, N)
    auroc, aupr = run(over_classes, probs, labels)
    run.same(auroc, sklearn.metrics.roc_auc_score(labels, probs, multi_class="ovr"))
    run.same(aupr, sklearn.metrics.average_precision_score(np.eye(C)[labels], probs, average="macro"))
    # A class that no row has is left out.
    labels = np.minimum(labels, 1)
    each = [sklearn.metrics.roc_auc_score(labels == c, probs[:, c]) for c in range(2)]
    run.same(run(over_classes, probs, labels)[0], np.mean(each))


def test_a_bound_on_false_positives_is_met_exactly():
    # 20 negative rows: one false positive is 5 % and allowed, two are not.
    rate = jax.jit(arrays.tpr_at_fpr)
    scores = np.concatenate([np.arange(20.0), [18.5, 17.5, 30.0]]).astype(np.float32)
    labels = np.arange(23) >= 20
    assert float(rate(scores, labels, None, 0.05)) == pytest.approx(2 / 3)
    assert float(rate(scores, labels, None, 0.0499)) == pytest.approx(1 / 3)
    # Equal scores pass together: the best positive with all negatives.
    assert float(rate(np.ones(23, np.float32), labels, None, 0.05)) == 0.0


def test_a_threshold_fixed_on_clean_rows():
    clean, threshold_of = np.arange(40, dtype=np.float32), jax.jit(arrays.threshold_at_fpr)
    threshold = float(threshold_of(clean, np.ones(40)))
    assert np.mean(clean > threshold) == 0.05
    assert np.mean(clean > threshold - 1) > 0.05
    rates = arrays.detection_rates(np.array([36.0, 38.0, 50.0, 37.0]), np.array([0, 0, 1, 1]), threshold)
    assert [float(x) for x in rates] == [0.5, 0.5]
    # More than 5 % tie at the top: no clean score may pass, so the threshold is the largest.
    assert float(threshold_of(np.minimum(clean, 36), np.ones(40))) == 36.0
    assert float(threshold_of(clean, np.where(clean > 30, 0, 1.0))) == 29.0


# ---------------------------------------------------------------------- distances
def components(rng, count, n=4):
    weights = rng.dirichlet(np.ones(count))
    return rng.normal(size=(count, n)), rng.uniform(0.05, 1.5, (count, n)), weights, 2 * rng.normal(size=n)


@pytest.mark.parametrize("count", [1, 5])
def test_crps_of_a_mixture_of_normals(run, count, rng):
    means, stds, weights, y = components(rng, count)
    found = run(arrays.crps_normal_mixture, means, stds, weights, y)
    run.same(found, scoringrules.crps_mixnorm(y, means.T, stds.T, np.tile(weights, (4, 1))))
    row = 0

    def integrand(z):
        return (weights @ scipy.stats.norm.cdf(z, means[:, row], stds[:, row]) - (z >= y[row])) ** 2

    parts = [
        scipy.integrate.quad(integrand, a, b, limit=200, epsabs=1e-10)[0] for a, b in ((-20, y[row]), (y[row], 20))
    ]
    run.same(found[row], sum(parts))


def test_crps_of_a_mixture_is_not_that_of_the_normal_with_its_moments():
    means, stds = np.array([[-3.0], [3.0]]), np.full((2, 1), 0.1)
    found = arrays.crps_normal_mixture(means, stds, jnp.full(2, 0.5), jnp.array([3.0]))
    matched = scoringrules.crps_normal(3.0, 0.0, np.sqrt(9.01))
    assert abs(float(found[0]) - matched) > 0.1


@pytest.mark.parametrize("case", ["smooth", "narrow", "outlier", "one heavy"])
def test_the_integral_is_the_closed_form(run, case, rng):
    count = 300
    means, stds, weights, y = components(rng, count)
    if case == "narrow":
        stds, weights = np.full_like(stds, 1e-3), np.full(count, 1 / count)
    elif case == "outlier":
        means[7] = 30.0
    elif case == "one heavy":
        weights = np.full(count, 0.1 / (count - 1))
        weights[3] = 0.9
    exact = run(arrays.crps_normal_mixture, means, stds, weights, y)
    found = run(arrays.crps_normal_mixture_integral, means, stds, weights, y)
    spread = np.sqrt(weights @ (stds**2 + (means - weights @ means) ** 2))
    assert (np.abs(found - exact) < 1e-4 * spread).all()
    coarse = run(arrays.crps_normal_mixture_integral, means, stds, weights, y, cells=4)
    assert (np.abs(coarse - exact) > 1e-4 * spread).any()


@pytest.mark.parametrize("weighted", [False, True])
def test_crps_and_energy_of_draws(run, weighted, rng):
    draws, y = np.round(rng.normal(size=(21, 6)), 1), np.round(rng.normal(size=6), 1)
    weights = rng.dirichlet(np.ones(21)) if weighted else None
    many = None if weights is None else np.tile(weights, (6, 1))
    wanted = scoringrules.crps_ensemble(y, draws.T, ens_w=many, estimator="nrg")
    run.same(run(arrays.crps_draws, draws, y, weights), wanted)
    run.same(run(arrays.energy_draws, draws[..., None], y[:, None], weights), wanted)
    if not weighted:
        fair = scoringrules.crps_ensemble(y, draws.T, estimator="fair")
        run.same(run(arrays.crps_draws, draws, y, fair=True), fair)
        several, truth = rng.normal(size=(9, 5, 3)), rng.normal(size=(5, 3))
        energy = scoringrules.es_ensemble(truth, np.moveaxis(several, 0, 1), estimator="nrg")
        run.same(run(arrays.energy_draws, several, truth), energy)


def test_interval_score(run, rng):
    low, y = rng.normal(size=N), 2 * rng.normal(size=N)
    high = low + rng.exponential(size=N)
    run.same(run(arrays.interval_score, low, high, y, level=0.8), scoringrules.interval_score(y, low, high, 0.2))
    run.same(run(arrays.covered, low, high, y), (low <= y) & (y <= high))


def test_shares_of_the_integral_transform(run, rng):
    values, weights = rng.uniform(size=N), rng.uniform(size=N)
    wanted, _ = np.histogram(values, 10, (0, 1), weights=weights / weights.sum())
    run.same(run(arrays.pit_shares, values, values, weights), wanted)
    low, high = values / 2, (1 + values) / 2
    wanted = np.mean([scipy.stats.uniform.cdf(np.linspace(0, 1, 11), a, b - a) for a, b in zip(low, high)], 0)
    run.same(run(arrays.pit_shares, low, high), np.diff(wanted))
    np.testing.assert_allclose(arrays.pit_shares(np.ones(1), np.ones(1), bins=2), [0, 1])


# ---------------------------------------------------------------------- what all share
def everything(probs, labels, weights):
    means = {"mean": arrays.mean(probs, weights), "root_mean": arrays.root_mean(probs, weights)}
    curves = of_rankings(probs[:, 1], labels, probs[:, 0], weights)
    del curves["curve"]  # one point for each row, so not a function of weights alone
    return of_classes(probs, labels, weights) | curves | means


def test_weights_are_numbers_of_equal_rows_in_any_order(rng):
    run, probs = Precision("float64"), np.round(rng.dirichlet(np.ones(2), N), 1)
    labels, counts = rng.integers(0, 2, N), rng.multinomial(N, np.full(N, 1 / N))
    assert (counts == 0).any()
    weighted = run(everything, probs, labels, counts.astype(float))
    again = rng.permutation(np.repeat(np.arange(N), counts))
    repeated = run(everything, probs[again], labels[again], np.ones(N))
    for name in weighted:
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_full_certainty_counts():
    probs, labels = np.array([[0.0, 1.0], [0.4, 0.6]]), np.array([0, 1])
    with_it = float(arrays.ece(probs, labels))
    assert with_it == pytest.approx((1.0 + 0.4) / 2)
    # Bins that stop short of 1 lose the most confident row, wrong as it is.
    inside = probs.max(1) < 1
    dropped = abs((probs.argmax(1) == labels)[inside] - probs.max(1)[inside]).sum() / len(probs)
    assert abs(with_it - dropped) > 0.1


def test_integers_of_64_bits_do_not_wrap_around():
    """JAX alone holds 5·10⁹ as 705,032,704."""
    values = np.array([5_000_000_000, 5_000_000_002])
    np.testing.assert_allclose(arrays.mean(values), 5e9, rtol=1e-6)
    np.testing.assert_allclose(arrays.mean(values.tolist()), 5e9, rtol=1e-6)
    np.testing.assert_array_equal(arrays.covered(values, values + 1, values), [1, 1])
    np.testing.assert_array_equal(arrays.interval_score(values, values + 2, values + 1), [2, 2])


@pytest.mark.filterwarnings("error")
def test_doubles_of_numpy_are_taken_without_a_warning():
    probs, labels = np.array([[0.2, 0.8], [0.7, 0.3]]), np.array([1, 0])
    for name in ("ece", "classwise_ece", "brier", "brier_decomposition"):
        assert all(np.isfinite(part) for part in jax.tree.leaves(getattr(arrays, name)(probs, labels)))
