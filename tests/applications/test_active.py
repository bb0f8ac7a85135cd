"""Active learning: scores against brute force, batches against exhaustive search, a loop that resumes (H2)."""

import dataclasses
import itertools
import json

import jax
import numpy as np
import pytest

import credo
from credo.applications import active
from credo.applications.active import outcomes as tables
from credo.applications.active.acquisition import _joint_information, class_draws
from credo.applications.active.batches import _classes_together, _normals_together
from credo.applications.active.outcomes import TABLE, extend, in_pieces, joint_entropies, no_outcomes
from credo.errors import ArtifactError, InputError, Refusal
from oracles import linear

RNG = np.random.default_rng(0)


def some_probs(draws=6, rows=7, classes=3, spread=2.0):
    logits = spread * RNG.normal(size=(draws, rows, classes))
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    weights = RNG.dirichlet(np.ones(draws))
    return probs.astype(np.float32), weights.astype(np.float32)


def information(probs, weights, rows):
    """I[y_1 … y_b; θ] by a sum over all outcomes, in float64."""
    probs, weights = probs.astype(float), weights.astype(float)
    joint = 0.0
    for outcome in itertools.product(range(probs.shape[2]), repeat=len(rows)):
        each = np.prod([probs[:, r, c] for r, c in zip(rows, outcome)], axis=0)
        p = weights @ each
        joint -= p * np.log(p)
    given = sum(-(weights @ (probs[:, r] * np.log(probs[:, r])).sum(-1)) for r in rows)
    return joint - given


def test_batch_bald_is_the_greedy_choice_by_brute_force():
    probs, weights = some_probs()
    taken = _classes_together(jax.random.key(0), probs, weights, 4)
    expected = []
    for _ in range(4):
        left = [r for r in range(7) if r not in expected]
        expected.append(max(left, key=lambda r: information(probs, weights, [*expected, r])))
    assert taken.tolist() == expected


def test_beyond_the_table_outcomes_are_drawn():
    """3^9 outcomes do not fit the table. With draws s ~ p the estimate of the joint entropy has the standard error
    std(log p)/√S with S = 4,096; five of them are a false alarm below 1e-6."""
    probs, weights = some_probs(rows=10)
    chosen = list(range(8))
    grown = grow(jax.random.key(1), probs, weights, chosen)
    assert grown.which is not None
    found = joint_entropies(in_pieces(probs), grown, weights, 10)[9]
    given = -(weights @ (probs[:, [*chosen, 9]] * np.log(probs[:, [*chosen, 9]])).sum((1, 2)))
    truth = information(probs, weights, [*chosen, 9]) + given
    error = (np.log(weights @ np.asarray(grown.probs)) + np.asarray(grown.log_scale)).std() / TABLE**0.5
    assert abs(found - truth) < 5 * error
    assert len(_classes_together(jax.random.key(0), probs, weights, 10)) == 10


def grow(key, probs, weights, rows, **options):
    """The outcomes of rows, one after another."""
    made = no_outcomes(len(probs))
    for b in range(len(rows)):
        made = extend(key, made, [probs[:, r] for r in rows[: b + 1]], weights, **options)
    return made


def test_batches_of_many_rows_are_those_of_the_sequential_definition(monkeypatch):
    """Each step from scratch, in float64: draws of θ by the first key, the label of the i-th row by the i-th, products
    of all probabilities so far. Growing the table by one label at a time chooses the same 25 rows."""
    monkeypatch.setattr(tables, "TABLE", 64)
    probs, weights = some_probs(draws=12, rows=40, spread=1.5)
    key = jax.random.key(3)
    taken = _classes_together(key, probs, weights, 25)
    wide, heavy = probs.astype(float), weights.astype(float)
    each = -np.einsum("k,knc->n", heavy, wide * np.log(wide))
    expected = []
    for _ in range(25):
        score = sequential_entropies(key, probs, wide, heavy, expected) - each
        score[expected] = -np.inf
        expected.append(int(score.argmax()))
    assert taken.tolist() == expected


def sequential_entropies(key, probs, wide, weights, chosen):
    """H of the labels so far with that of each row, without any state of the steps before."""
    if 3 ** len(chosen) <= 64:
        outcomes = np.ones((len(weights), 1))
        for row in chosen:
            outcomes = (outcomes[:, :, None] * wide[:, row, None, :]).reshape(len(weights), -1)
        chance = np.ones(outcomes.shape[1])
    else:
        which = jax.random.categorical(jax.random.fold_in(key, 0), np.log(weights.astype(np.float32)), shape=(64,))
        logs = np.log(probs)
        labels = [
            jax.random.categorical(jax.random.fold_in(key, i + 1), logs[:, row][which]) for i, row in enumerate(chosen)
        ]
        outcomes = np.prod([wide[:, row][:, np.asarray(y)] for row, y in zip(chosen, labels)], axis=0)
        chance = 64 * (weights @ outcomes)
    joint = np.einsum("ks,k,knc->snc", outcomes, weights, wide)
    return -(joint * np.log(joint) / chance[:, None, None]).sum((0, 2))


def test_hundreds_of_labels_do_not_underflow():
    """400 labels have a probability near 3^-400, which no float holds."""
    probs, weights = some_probs(draws=8, rows=4, spread=0.3)
    grown = grow(jax.random.key(0), probs, weights, [0, 1, 2, 3] * 100, table=32)
    entropies = joint_entropies(in_pieces(probs), grown, weights, 4)
    assert np.isfinite(entropies).all()
    assert (np.abs(entropies / (401 * np.log(3)) - 1) < 0.1).all()


def test_labels_that_tell_the_same_are_not_asked_twice():
    """Copies of the best row have the highest scores one by one; together they tell little."""
    probs, weights = some_probs(rows=6, spread=3.0)
    best = max(range(6), key=lambda r: information(probs, weights, [r]))
    # A label without noise tells all it knows the first time.
    sharp = (probs[:, best] == probs[:, best].max(-1, keepdims=True)).astype(np.float32)
    copies = np.concatenate([probs, np.repeat(sharp[:, None], 3, axis=1)], 1).clip(1e-12, 1)
    taken = _classes_together(jax.random.key(0), copies, weights, 3)
    assert (np.isin(taken, (6, 7, 8))).sum() <= 1


def test_normal_batches_are_greedy_in_the_log_determinant():
    draws = RNG.normal(size=(50, 3)) @ RNG.normal(size=(3, 8))
    weights, noise = np.full(50, 0.02), RNG.uniform(0.1, 2.0, 8)
    covariance = np.cov(draws.T, bias=True)

    def gain(rows):
        scaled = covariance[np.ix_(rows, rows)] / np.sqrt(np.outer(noise[rows], noise[rows]))
        return 0.5 * np.linalg.slogdet(np.eye(len(rows)) + scaled)[1]

    expected = []
    for _ in range(5):
        expected.append(max((r for r in range(8) if r not in expected), key=lambda r: gain([*expected, r])))
    assert _normals_together(draws, weights, noise, 5).tolist() == expected


def test_epig_of_classes_is_the_mutual_information_of_two_labels():
    probs, weights = some_probs(rows=4)
    targets, _ = some_probs(rows=3)
    found = np.asarray(_joint_information(probs, targets, weights))
    for i in range(4):
        total = 0.0
        for j in range(3):
            joint = np.einsum("k,kc,kd->cd", weights, probs[:, i], targets[:, j]).astype(float)
            total += (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
        np.testing.assert_allclose(found[i], total / 3, rtol=1e-3, atol=1e-6)


@pytest.fixture(scope="module")
def line():
    """Linear regression with the exact posterior of its weights."""
    problem = linear(30, 2)
    method = credo.methods.Laplace(structure="full")
    return problem, credo.fit(jax.random.key(0), problem.model(), (problem.inputs, problem.targets), method)


def test_scores_of_the_linear_model_are_in_closed_form(line):
    """Var[f], ½ log(1 + Var[f]/σ²) and −½ log(1 − ρ²), from 2,000 draws, whose variance is known to 3.2 %: four
    of them are allowed, and twice as many for the square of a covariance."""
    problem, fit = line
    new = (3 * RNG.normal(size=(12, 2))).astype(np.float32)
    design = np.column_stack([np.ones(12), new])
    covariance = design @ problem.covariance @ design.T
    known, noise = np.diag(covariance), problem.noise**2
    ask = lambda name, **more: active.acquisition_scores(jax.random.key(1), fit, new, name, num_samples=2000, **more)  # noqa: E731
    np.testing.assert_allclose(ask("variance"), known, rtol=0.13)
    np.testing.assert_allclose(ask("bald"), 0.5 * np.log1p(known / noise), rtol=0.13, atol=2e-3)
    total = known + noise
    share = covariance[:, :5] ** 2 / (total[:, None] * total[None, :5])
    np.testing.assert_allclose(ask("epig", targets=new[:5]), -0.5 * np.log1p(-share).mean(1), rtol=0.26, atol=5e-3)
    together = active.choose(jax.random.key(1), fit, new, 3, "batch_bald", num_samples=2000)
    assert together[0] == known.argmax()
    assert len(set(together.tolist())) == 3


def test_choices_are_asked_for_clearly(line):
    _, fit = line
    new = np.zeros((4, 2), np.float32)
    with pytest.raises(InputError, match="Unknown acquisition 'bold'"):
        active.acquisition_scores(jax.random.key(0), fit, new, "bold")
    with pytest.raises(InputError, match="at most those of the pool, 4"):
        active.choose(jax.random.key(0), fit, new, 5)
    drawn = active.choose(jax.random.key(0), fit, RNG.normal(size=(30, 2)).astype("f"), 10, "power_bald")
    assert len(set(drawn.tolist())) == 10


def ring(num):
    x = RNG.normal(size=(num, 2)).astype(np.float32)
    return x, (np.hypot(*x.T) > 1.2).astype(int)


POOL, TEST = ring(400), ring(300)
MODEL = credo.Model(credo.networks.mlp([20], "tanh"), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
METHOD = credo.methods.DeepEnsemble(size=4)


def run(acquisition="bald", seed=0, pool=POOL, model=MODEL, **options):
    options = {"start": 10, "batch": 5, "budget": 25, "steps": 400, "test": TEST} | options
    return active.learn(jax.random.key(seed), model, *pool, METHOD, acquisition=acquisition, **options)


def test_a_stopped_run_goes_on_as_if_it_had_not(tmp_path):
    whole = run()
    assert whole.sizes == [10, 15, 20, 25]
    assert len(set(whole.rows)) == 25

    class Stop(Exception):
        pass

    def after_two(record):
        if len(record.sizes) == 2:
            raise Stop

    with pytest.raises(Stop):
        run(folder=tmp_path, callback=after_two)
    asked = []

    def labels(rows):
        asked.append(len(rows))
        return POOL[1][rows]

    resumed = run(folder=tmp_path, pool=(POOL[0], labels))
    assert asked == [20, 5]
    assert (resumed.rows, resumed.scores) == (whole.rows, whole.scores)
    again = run(folder=tmp_path)
    assert again.fit is None
    assert again.rows == whole.rows
    more = run(folder=tmp_path, budget=27)
    assert more.sizes == [10, 15, 20, 25, 27]
    assert more.rows[:25] == whole.rows
    with pytest.raises(InputError, match=r"other settings \(batch\)"):
        run(folder=tmp_path, batch=3)
    (tmp_path / "active.json").write_text(json.dumps({"rows": 3}))
    with pytest.raises(ArtifactError, match="not a record"):
        run(folder=tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("acquisition", active.ACQUISITIONS)
def test_every_acquisition_learns(acquisition):
    """Under N(0, 1) the mode is too smooth for the ring, whichever forty rows are labelled; N(0, 9) can learn it."""
    wide = credo.Model(MODEL.network, credo.priors.normal(3.0), MODEL.likelihood)
    found = run(acquisition, model=wide, budget=60, steps=1000, candidates=200)
    assert found.scores["accuracy"][-1] > 0.85
    assert "labels" in str(found)


def test_curves_and_what_they_need(tmp_path):
    from credo.applications.active import ActiveLearning, labels_needed

    runs = [
        ActiveLearning(name, [], [10, 20, 30], {"accuracy": [0.5, 0.7 + d, 0.8 + d]}, [])
        for name, d in (("bald", 0.1), ("bald", 0.12), ("random", 0.0), ("random", 0.01))
    ]
    np.testing.assert_allclose(labels_needed(runs, 0.75), [10 + 10 * 0.25 / 0.3, 10 + 10 * 0.25 / 0.32, 25, 24])
    assert labels_needed(runs, 0.99)[0] == np.inf
    lower = [dataclasses.replace(runs[0], scores={"rmse": [3.0, 2.0, 1.0]})]
    assert labels_needed(lower, 1.5)[0] == 25
    runs[0].plot(*runs[1:]).savefig(tmp_path / "curves.png")
    with pytest.raises(InputError, match="no scores"):
        ActiveLearning("bald", [], [], {}, []).plot()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 5}, "between the first labels, 10"),
        ({"start": 0}, "at least one and at most"),
        ({"start": np.array([1, 1])}, "different rows"),
        ({"acquisition": "best"}, "Unknown acquisition"),
        ({"pool": (POOL[0], lambda rows: [1])}, "labels of 10 rows and got 1"),
    ],
)
def test_bad_requests_get_a_sentence(options, words):
    with pytest.raises(InputError, match=words):
        run(**options)


def test_two_targets_at_once_are_refused():
    x = RNG.normal(size=(20, 2)).astype(np.float32)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(jax.random.key(0), model, (x, x), credo.methods.Laplace(structure="full"), steps=200)
    with pytest.raises(Refusal, match="one target"):
        active.choose(jax.random.key(0), fit, x, 2, "batch_bald")
    assert active.choose(jax.random.key(0), fit, x, 2, "variance").shape == (2,)


def test_draws_of_classes_have_their_weights():
    x, y = ring(40)
    fit = credo.fit(jax.random.key(0), MODEL, (x, y), METHOD, steps=50)
    predictive = credo.predict(jax.random.key(1), fit, x)
    probs, weights = class_draws(predictive)
    np.testing.assert_allclose(np.einsum("k,knc->nc", weights, probs), predictive.probs, atol=1e-5)
