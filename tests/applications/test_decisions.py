"""Decisions, against closed forms and sums by hand."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

import credo
from credo.applications import class_utility, cvar, exponential, newsvendor, pinball, score_decisions, step_utility
from credo.applications.decisions.outcomes import outcomes
from credo.applications.decisions.risk import risk_of
from credo.errors import InputError, Refusal
from predictives import predictive

NAMES = ["wait", "treat"]


def logit(p):
    return np.log(p) - np.log1p(-np.asarray(p))


def chances(p, weights=None):
    """Two classes: the probability of the second under each draw [K, n]."""
    return predictive(credo.likelihoods.bernoulli(), logit(np.asarray(p))[..., None], weights=weights)


def normal(means, noise=1.0, **options):
    """One number: a normal mixture with these means [K, n]."""
    return predictive(credo.likelihoods.gaussian(noise=noise), np.asarray(means, float)[..., None], **options)


def mixture_mean(function, means, noise, points=()):
    """E u by SciPy's adaptive quadrature, one row."""
    pdf = lambda y: np.mean([stats.norm.pdf(y, m, noise) for m in means])  # noqa: E731
    low, high = min(means) - 12 * noise, max(means) + 12 * noise
    return integrate.quad(lambda y: function(y) * pdf(y), low, high, points=points, limit=800)[0]


# ---------------------------------------------------------------------- classes
def test_two_classes_are_cut_at_the_ratio_of_costs():
    """Treat where p > c_false_alarm / (c_false_alarm + c_miss) = 1/21."""
    p = np.linspace(0.01, 0.2, 40)
    found = credo.decide(chances(p[None]), [[0, -20], [-1, 0]], actions=NAMES)
    np.testing.assert_array_equal(found.best, p > 1 / 21)
    np.testing.assert_allclose(found.expected, np.stack([-20 * p, p - 1], 1), rtol=1e-5)
    np.testing.assert_allclose(found.regret[:, 0], np.maximum(21 * p - 1, 0), atol=1e-5)
    np.testing.assert_array_equal(found.plug_in, 0)
    np.testing.assert_array_equal(found.error, 0)
    assert found.action[0] == "wait"


def test_abstains_exactly_where_that_is_cheaper():
    p = np.linspace(0.001, 0.999, 200)
    found = credo.decide(chances(p[None]), [[0, -20], [-1, 0]], actions=NAMES, abstain=0.4)
    best = np.where(20 * p <= 0.4, 0, np.where(1 - p <= 0.4, 1, 2))
    np.testing.assert_array_equal(found.best, best)
    assert found.actions == ("wait", "treat", "abstain")
    never = credo.decide(chances(p[None]), [[0, -20], [-1, 0]], abstain=1.0)
    assert (never.best < 2).all()


def test_deferring_to_one_who_may_be_wrong():
    """−c + r · 0 + (1 − r)(−20 p − (1 − p)) by hand."""
    found = credo.decide(chances([[0.3]]), [[0, -20], [-1, 0]], abstain=(0.1, 0.9))
    np.testing.assert_allclose(found.expected[0, 2], -0.1 + 0.1 * (-20 * 0.3 - 0.7), rtol=1e-5)


def test_knowing_the_parameters_by_hand():
    """Two draws, p = 0.01 and 0.5, by weights 0.75 and 0.25: E max = 0.75(−0.2) + 0.25(−0.5), max E = p̄ − 1."""
    found = credo.decide(chances([[0.01], [0.5]], [0.75, 0.25]), [[0, -20], [-1, 0]])
    mean = 0.75 * 0.01 + 0.25 * 0.5
    np.testing.assert_allclose(found.expected[0], [-20 * mean, mean - 1], rtol=1e-5)
    np.testing.assert_allclose(found.value_of_parameters, 0.75 * -0.2 + 0.25 * -0.5 - (mean - 1), rtol=1e-4)
    np.testing.assert_allclose(found.value_of_outcome, 1 - mean, rtol=1e-5)
    np.testing.assert_allclose(found.chance_best[0], [0.75, 0.25], rtol=1e-6)
    np.testing.assert_allclose(found.std[0, 1], 0.49 * np.sqrt(0.75 * 0.25), rtol=1e-5)
    np.testing.assert_allclose(found.draws, 1 / (0.75**2 + 0.25**2), rtol=1e-6)


def test_a_point_has_nothing_to_learn_about_parameters():
    found = credo.decide(chances([[0.01, 0.04, 0.9]]), [[0, -20], [-1, 0]], abstain=0.3)
    np.testing.assert_array_equal(found.value_of_parameters, 0)
    assert (found.value_of_outcome > 0).all()


def test_ties_go_to_the_first():
    found = credo.decide(chances([[0.5]]), [[0, -1], [-1, 0], [-0.5, -0.5]])
    assert found.best[0] == 0
    np.testing.assert_allclose(found.regret, 0, atol=1e-7)


def test_both_readings_of_risk_for_classes():
    """Draws p = 0.1 and 0.5; "treat" pays 1 if ill and −1 if well. Worst 30 % of outcomes are all −1; of draws, the
    first: 2 · 0.1 − 1."""
    utility = [[0, 0], [-1, 1]]
    given = chances([[0.1], [0.5]])
    over = {o: credo.decide(given, utility, risk="cvar:0.3", over=o).values[0, 1] for o in ("outcomes", "parameters")}
    np.testing.assert_allclose(over["outcomes"], -1)
    np.testing.assert_allclose(over["parameters"], -0.8, rtol=1e-5)
    averse = credo.decide(given, utility, risk=exponential(2.0), over="parameters").values[0, 1]
    np.testing.assert_allclose(averse, -0.5 * np.log(0.5 * (np.exp(1.6) + 1)), rtol=1e-5)
    mean = [credo.decide(given, utility, over=o).values for o in ("outcomes", "parameters")]
    np.testing.assert_array_equal(*mean)


def test_three_classes_are_the_mixtures_own_probabilities():
    given = predictive(credo.likelihoods.categorical(3), np.random.default_rng(0).normal(size=(4, 30, 3)))
    table = np.array([[1.0, 0, -3], [0, 1, 0], [-3, 0, 2]])
    found = credo.decide(given, table)
    np.testing.assert_allclose(found.expected, given.probs @ table.T, atol=1e-6)
    assert (found.value_of_parameters >= 0).all()
    assert (found.value_of_outcome >= found.value_of_parameters - 1e-9).all()


# ---------------------------------------------------------------------- numbers
MEANS = np.array([[-1.0, 0.0, 40.0], [0.5, 0.1, 60.0], [3.0, 0.2, 20.0]])  # [K, n]: the third row is far apart


@pytest.mark.parametrize("width", [3, 2])
def test_steps_are_distribution_functions(width):
    given = normal(MEANS, 0.5, width=width)
    found = credo.decide(given, step_utility({"wait": (0.3, 0.0, -10.0), "treat": (1.0, -1.0, -2.0)}))
    for column, (threshold, below, above) in enumerate([(0.3, 0.0, -10.0), (1.0, -1.0, -2.0)]):
        share = stats.norm.cdf(threshold, MEANS, 0.5).mean(0)
        np.testing.assert_allclose(found.expected[:, column], below * share + above * (1 - share), atol=2e-5)
    assert found.error.max() < 1e-3


@pytest.mark.parametrize(
    "utility",
    [lambda y: -((y - 1) ** 2), lambda y: np.abs(y), lambda y: np.exp(-0.1 * y)],
    ids=["square", "abs", "exp"],
)
def test_functions_match_scipy(utility):
    found = credo.decide(normal(MEANS, 0.5), {"act": utility, "not": lambda y: 0.0})
    truth = [mixture_mean(utility, MEANS[:, i], 0.5, [0.0, *MEANS[:, i]]) for i in range(3)]
    np.testing.assert_allclose(found.expected[:, 0], truth, rtol=2e-3)
    np.testing.assert_array_equal(found.expected[:, 1], 0)


def test_student_t_and_rescaled_targets():
    given = predictive(credo.likelihoods.student_t(df=4.0, noise=0.5), [[[0.3]]]).rescaled(100.0, 20.0)
    found = credo.decide(given, {"linear": lambda y: y, "square": lambda y: (y - 106) ** 2})
    np.testing.assert_allclose(found.expected[0], [106.0, 20**2 * 0.25 * 2], rtol=1e-3)


def test_counts_are_exact_sums():
    rate = np.array([[2.0, 30.0], [3.0, 50.0]])
    given = predictive(credo.likelihoods.poisson(), np.log(rate)[..., None])
    found = credo.decide(given, {"root": np.sqrt, "any": lambda y: (y > 2).astype(float)})
    k = np.arange(400)
    mass = stats.poisson.pmf(k[:, None, None], rate).mean(1)
    np.testing.assert_allclose(found.expected[:, 0], (np.sqrt(k)[:, None] * mass).sum(0), rtol=1e-4)
    np.testing.assert_allclose(found.expected[:, 1], mass[3:].sum(0), rtol=1e-4)


@pytest.mark.full
def test_many_counts_are_binned():
    many = predictive(credo.likelihoods.poisson(), np.log([[[1e6]]]))
    binned = credo.decide(many, {"linear": lambda y: y})
    np.testing.assert_allclose(binned.expected, 1e6, rtol=1e-4)
    assert 0 <= binned.error[0, 0] < 10


@pytest.mark.parametrize("far", [6.0, 9.0, 15.0, 23.0, 1e5])
def test_one_draw_that_extrapolates_leaves_the_counts_of_the_others_alone(far):
    """Four draws Poisson(1) and one far above: E[min(y, 5)] is that of the four, and of 5."""
    given = predictive(credo.likelihoods.poisson(), np.array([0.0, 0.0, 0.0, 0.0, far])[:, None, None])
    found = credo.decide(given, {"few": lambda y: np.minimum(y, 5.0), "all": lambda y: y})
    y = np.arange(60)
    few = 0.8 * (stats.poisson(1).pmf(y) * np.minimum(y, 5)).sum() + 0.2 * 5
    np.testing.assert_allclose(found.expected[0, 0], few, rtol=1e-5)
    np.testing.assert_allclose(found.error[0, 0], 0, atol=1e-3)
    if far < 30:  # beyond, the mean is above the largest count there is
        np.testing.assert_allclose(found.expected[0, 1], given.mean[0], rtol=1e-4)


def test_one_outcome_alone():
    given = predictive(credo.likelihoods.gaussian(noise=1.0), np.zeros((2, 3, 2)), flat=False)
    with pytest.raises(Refusal, match="one outcome"):
        credo.decide(given, {"act": lambda y: y})


# ---------------------------------------------------------------------- risk
def test_cvar_is_the_mean_of_the_sorted_worst():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(5, 1000))
    found = cvar(0.1).value(u, np.full(1000, 1e-3))
    np.testing.assert_allclose(found, np.sort(u, 1)[:, :100].mean(1))
    weights = rng.dirichlet(np.ones(1000))
    share = np.inf
    for c in np.sort(u[0]):  # Rockafellar and Uryasev: the maximum is at an atom
        share = max(-np.inf if share is np.inf else share, c - (weights * np.maximum(c - u[0], 0)).sum() / 0.37)
    np.testing.assert_allclose(cvar(0.37).value(u[0], weights), share)
    np.testing.assert_allclose(cvar(1.0).value(u[0], weights), u[0] @ weights)


@pytest.mark.parametrize("draws", [1, 50])
def test_risk_of_a_gaussian_has_closed_forms(draws):
    """u = y ~ N(1, 0.5²): CVaR_α = m − s φ(z_α)/α, entropic = m − λ s²/2."""
    given = normal(np.full((draws, 2), 1.0), 0.5)
    worst = credo.decide(given, {"take": lambda y: y}, risk="cvar:0.1").values
    np.testing.assert_allclose(worst, 1 - 0.5 * stats.norm.pdf(stats.norm.ppf(0.1)) / 0.1, atol=2e-3)
    for aversion in (0.0, 1e-9, 0.1, 2.0, 8.0):
        averse = credo.decide(given, {"take": lambda y: y}, risk=f"exponential:{aversion}").values
        np.testing.assert_allclose(averse, 1 - aversion * 0.125, atol=1e-5)
    known = credo.decide(given, {"take": lambda y: y}, risk="cvar:0.1", over="parameters").values
    np.testing.assert_allclose(known, 1.0, rtol=1e-5)  # draws agree: nothing is unknown but noise


def test_risk_over_draws_is_that_of_their_means():
    means = np.linspace(-1, 2, 40)[:, None]
    found = credo.decide(normal(means, 3.0), {"take": lambda y: y}, risk="cvar:0.1", over="parameters")
    np.testing.assert_allclose(found.values[0, 0], means[:4].mean(), atol=1e-4)
    assert "over parameters" in found.summary()


@pytest.mark.parametrize("bad", ["cvar", "cvar:0", "cvar:2", "exponential:-1", "var:0.1", "cvar:x", 7])
def test_unknown_risks(bad):
    with pytest.raises(InputError):
        risk_of(bad)


# ---------------------------------------------------------------------- amounts
def test_the_newsvendor_orders_the_quantile():
    given = normal(MEANS, 0.5)
    found = credo.decide(given, newsvendor(under=3.0, over=1.0))
    np.testing.assert_allclose(found.amounts, given.quantile(0.75), rtol=1e-6)
    np.testing.assert_allclose(found.plug_in_amounts, MEANS.mean(0), atol=1e-3)
    searched = credo.decide(
        given, lambda a, y: -3 * np.maximum(y - a, 0) - np.maximum(a - y, 0), bounds=(-5.0, 80.0)
    )  # fmt: skip
    share = stats.norm.cdf(searched.amounts, MEANS, 0.5).mean(0)
    np.testing.assert_allclose(share, 0.75, atol=0.02)
    np.testing.assert_allclose(searched.expected, found.expected, rtol=5e-3)
    assert (found.value_of_parameters > 0).all()
    np.testing.assert_allclose(found.value_of_outcome, -found.expected[:, 0], rtol=1e-4)


def test_a_normal_newsvendor_in_closed_form():
    """E u = −(under + over) σ φ(z) at the optimum (Porteus, 2002)."""
    found = credo.decide(normal([[2.0]], 0.5), newsvendor(3.0, 1.0))
    np.testing.assert_allclose(found.expected[0, 0], -4 * 0.5 * stats.norm.pdf(stats.norm.ppf(0.75)), rtol=2e-3)
    np.testing.assert_allclose(found.value_of_parameters, 0, atol=1e-12)
    half = credo.decide(normal([[2.0]], 0.5), pinball(0.5))
    np.testing.assert_allclose(half.amounts, 2.0, atol=1e-5)


def test_a_smooth_amount_is_the_mean_and_risk_moves_it():
    """−(y − a)² has its best amount at the mean; risk aversion lowers an order."""
    given = normal(np.linspace(-1, 1, 30)[:, None] + 1.7, 0.5)
    found = credo.decide(given, lambda a, y: -((y - a) ** 2), bounds=(-10, 10))
    np.testing.assert_allclose(found.amounts, 1.7, atol=1e-3)
    # Who pays 1 and gets 2 a unit sold orders less when averse to risk (Eeckhoudt, Gollier and Schlesinger, 1995).
    sold = lambda a, y: 2 * np.minimum(a, y) - a  # noqa: E731
    calm, averse = (credo.decide(given, sold, bounds=(-2, 5), risk=r).amounts[0] for r in ("mean", "cvar:0.2"))
    assert averse < calm - 0.3


def test_amounts_may_be_left_open():
    given = normal([[0.0, 0.0]], 1.0)
    wide = credo.decide(given, newsvendor(1.0, 1.0), abstain=0.9)
    assert wide.action.tolist() == ["order", "order"]
    dear = credo.decide(given, newsvendor(2.0, 2.0), abstain=0.9)
    assert dear.action.tolist() == ["abstain", "abstain"]
    np.testing.assert_array_equal(dear.realised([5.0, 5.0]), -0.9)
    assert np.isnan(dear.to_pandas()["amount"]).all()


# ---------------------------------------------------------------------- what came of it
def test_realised_utility_and_the_gain_over_the_point():
    p = np.linspace(0.02, 0.98, 400)
    y = (np.random.default_rng(0).random(400) < p).astype(int)
    found = credo.decide(chances(p[None]), [[0, -20], [-1, 0]], actions=NAMES)
    told = score_decisions(found, y, key=jax.random.key(1))
    treated, point = p > 1 / 21, p > 0.5
    np.testing.assert_allclose(told.utility.value, np.where(treated, y - 1, -20 * y).mean())
    np.testing.assert_allclose(told.other.value, np.where(point, y - 1, -20 * y).mean())
    np.testing.assert_allclose(told.difference.value, told.utility.value - told.other.value)
    assert 0 < told.difference.low < told.difference.value < told.difference.high
    assert found.score(y, key=jax.random.key(1)).utility == told.utility
    same = score_decisions(found, y, against=found)
    assert tuple(same.difference) == (0, 0, 0)
    assert "gain" in str(told)


def test_numbers_come_true_too():
    found = credo.decide(normal(MEANS, 0.5), step_utility({"wait": (0.3, 0.0, -10.0), "treat": (1.0, -1.0, -2.0)}))
    np.testing.assert_array_equal(
        found.realised([0.0, 0.5, 0.2])[found.best == 1], [-1.0] * int((found.best == 1).sum())
    )
    order = credo.decide(normal([[2.0]], 0.5), newsvendor(3.0, 1.0))
    np.testing.assert_allclose(order.realised([10.0]), -3 * (10 - order.amounts))


def test_tables_words_and_pictures():
    found = credo.decide(
        chances([[0.01, 0.3], [0.04, 0.9]]), class_utility([[0, -20], [-1, 0]], NAMES), abstain=0.5, risk="cvar:0.5"
    )
    frame = found.to_pandas()
    assert list(frame.columns) == [
        "action", "expected_utility", "value", "second_best", "loss_of_second", "chance_best", "value_of_parameters",
        "value_of_outcome", "utility wait", "utility treat", "utility abstain",
    ]  # fmt: skip
    assert (frame["loss_of_second"] >= 0).all()
    assert "worst 50 %" in str(found)
    assert found.plot().axes
    assert credo.decide(normal(MEANS, 0.5), newsvendor(3.0, 1.0)).plot().axes


def test_blocks_of_rows_make_no_difference(monkeypatch):
    from credo.applications.decisions import outcomes as module

    means = np.random.default_rng(0).normal(size=(7, 23))
    whole = credo.decide(normal(means, 0.5), {"a": lambda y: y, "b": lambda y: y**2}, risk="cvar:0.2")
    monkeypatch.setattr(module, "ATOMS", 7 * 900 * 4)
    parts = credo.decide(normal(means, 0.5, width=9), {"a": lambda y: y, "b": lambda y: y**2}, risk="cvar:0.2")
    np.testing.assert_allclose(whole.values, parts.values, rtol=1e-5)


def test_probabilities_sum_to_one():
    for _, block in outcomes(normal(MEANS, 0.5), (0.1,)):
        np.testing.assert_allclose(block.mass.sum(-1), 1)


# ---------------------------------------------------------------------- what is refused
BAD = {
    "NaN": lambda: credo.decide(chances([[0.5]]), [[0, np.nan]]),
    "text": lambda: credo.decide(chances([[0.5]]), [["a", "b"]]),
    "classes": lambda: credo.decide(chances([[0.5]]), [[0, 1, 2]]),
    "shape": lambda: credo.decide(chances([[0.5]]), [0, 1]),
    "twice": lambda: credo.decide(chances([[0.5]]), [[0, 1], [1, 0]], actions=["a", "a"]),
    "names": lambda: credo.decide(chances([[0.5]]), [[0, 1], [1, 0]], actions=["a"]),
    "table for numbers": lambda: credo.decide(normal([[0.0]]), [[0, 1]]),
    "steps for classes": lambda: credo.decide(chances([[0.5]]), step_utility({"a": (0, 1, 2)})),
    "step": lambda: step_utility({"a": (0, 1, np.inf)}),
    "not finite": lambda: credo.decide(normal([[0.0]]), {"a": np.log}),
    "not an array": lambda: credo.decide(normal([[0.0]]), {"a": lambda y: 1 if y > 0 else 0}),
    "no actions": lambda: credo.decide(normal([[0.0]]), {}),
    "function alone": lambda: credo.decide(normal([[0.0]]), lambda a, y: y),
    "bounds": lambda: credo.decide(normal([[0.0]]), lambda a, y: y, bounds=(1, 0)),
    "over": lambda: credo.decide(chances([[0.5]]), [[0, 1]], over="draws"),
    "abstain": lambda: credo.decide(chances([[0.5]]), [[0, 1]], abstain=np.nan),
    "chance": lambda: credo.decide(chances([[0.5]]), [[0, 1]], abstain=(1.0, 2.0)),
    "chance of amounts": lambda: credo.decide(normal([[0.0]]), newsvendor(1, 1), abstain=(1.0, 0.5)),
    "newsvendor": lambda: newsvendor(0.0, 1.0),
    "order of classes": lambda: credo.decide(chances([[0.5]]), newsvendor(1.0, 1.0, (0, 1))),
    "outcomes": lambda: credo.decide(chances([[0.5]]), [[0, 1]]).realised([0, 1]),
    "outcome": lambda: credo.decide(chances([[0.5]]), [[0, 1]]).realised([2]),
    "NaN outcome": lambda: credo.decide(normal([[0.0]]), {"a": lambda y: y}).realised([np.nan]),
    "aversion": lambda: exponential(np.inf),
}


@pytest.mark.parametrize("case", BAD)
def test_refusals_are_sentences(case):
    with pytest.raises((InputError, Refusal)) as told:
        BAD[case]()
    assert str(told.value).endswith(".")


def test_a_utility_need_not_exist_where_nothing_happens():
    found = credo.decide(normal([[50.0]], 1.0), {"log": np.log})
    np.testing.assert_allclose(found.expected, np.log(50.0) - 0.5 / 50**2, rtol=1e-5)


@pytest.mark.full
def test_a_fit_is_decided_by_the_mixture():
    """Whatever the method: expected utilities are those of the predictive's own probabilities."""
    x = np.linspace(-2, 2, 40)[:, None]
    model = credo.Model(credo.networks.mlp([4]), credo.priors.normal(1.0), credo.likelihoods.categorical(3))
    fit = credo.fit(
        jax.random.key(0), model, (x, np.digitize(x[:, 0], [-1, 1])), credo.methods.DeepEnsemble(size=3), steps=50
    )
    given = credo.predict(jax.random.key(1), fit, x)
    table = np.array([[1.0, 0, -3], [0, 1, 0], [-3, 0, 2]])
    found = credo.decide(given, table)
    np.testing.assert_allclose(found.expected, given.probs @ table.T, atol=1e-6)
    assert (found.value_of_parameters >= 0).all()
    assert (found.value_of_outcome >= found.value_of_parameters - 1e-9).all()


def test_what_is_not_known_alone_is_refused_after_temperature_scaling():
    predictive = chances([[0.2, 0.7, 0.4], [0.1, 0.9, 0.3]])
    heated = credo.recalibration.temperature_scaling(predictive, np.array([0, 1, 0])).apply(predictive)
    with pytest.raises(Refusal, match=r'decide\(over="parameters"\) is not defined after temperature scaling'):
        credo.decide(heated, [[0, -20], [-1, 0]], over="parameters", risk="cvar:0.5")
    assert len(credo.decide(heated, [[0, -20], [-1, 0]], risk="cvar:0.5").action) == 3
