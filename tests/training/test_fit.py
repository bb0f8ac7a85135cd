"""The loop: starts, stops, retries, streams, weights, combinators."""

import os
import signal
import threading
import time

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError, Refusal
from credo.training.warn import unwarned
from fake_clock import FakeClock
from oracles import coefficients, linear

PROBLEM = linear(num_rows=96)
DATA = (PROBLEM.inputs, PROBLEM.targets)
X = np.linspace(-1, 1, 60).astype(np.float32)[:, None]
Y = np.sin(3 * X[:, 0])


def net(**options):
    return credo.Model(
        credo.networks.mlp([8], activation="tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(**options)
    )


def same(a, b):
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: np.array_equal(x, y), a, b)))


def run(method="map", key=0, data=DATA, model=None, **options):
    return credo.fit(jax.random.key(key), model or PROBLEM.model(), data, method, **options)


def counted_line():
    """A line, and the shapes that its network was called with in Python."""
    calls = []

    def apply(params, x):
        calls.append(x.shape)
        return x @ params["kernel"]

    network = credo.from_functions(init=lambda key, x: {"kernel": np.zeros((1, 1), np.float32)}, apply=apply)
    model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    return calls, model


def test_a_second_fit_and_its_predictions_do_not_run_the_network_in_python():
    """Where shapes are the same there is nothing to trace: loops over many fits pay for their steps alone."""
    calls, model = counted_line()

    def both(scale):
        fit = run(key=scale, data=(X, scale * Y), model=model, steps=5)
        return credo.predict(jax.random.key(1), fit, X[:5]).mean

    both(1)
    before = len(calls)
    assert before > 0
    both(2)
    assert len(calls) == before


@pytest.mark.parametrize(
    ("method", "times"),
    [
        (credo.methods.DeepEnsemble(size=2), 2),  # the check of its outputs, and the step
        (credo.methods.HMC(chains=2, warmup=5, num_steps=3), 3),  # also where chains start; on one device they share
        (credo.methods.MCLMC(chains=2, warmup=5), 3),
    ],
    ids=["deep_ensemble", "hmc", "mclmc"],
)
def test_a_first_fit_runs_the_network_in_python_at_most_once_for_each_program(method, times):
    """Its step is planned with what the block traces, and a kernel's gradients share one trace."""
    calls, model = counted_line()
    with unwarned():
        run(method, data=(X, Y), model=model, steps=5)
    assert 2 <= len(calls) <= times


def test_steps_epochs_and_budget():
    assert run(steps=70, batch_size=32).trace["loss"].shape == (1, 70)
    assert run(epochs=4, batch_size=32).trace["loss"].shape == (1, 12)
    began = time.perf_counter()
    timed = run(budget="2s", batch_size=32)
    assert 1.0 < time.perf_counter() - began < 6.0
    assert timed.timing["steps"] > 100
    with pytest.raises(InputError, match="one of steps"):
        run(steps=3, epochs=1)
    with pytest.raises(InputError, match="60s"):
        run(budget="soon")
    with pytest.raises(InputError, match="epochs"):
        run(credo.methods.HMC(chains=1, warmup=10), epochs=1)


def test_streamed_data_give_the_same_numbers():
    """Rows read on the host in the order that the device would draw them."""
    inside = run("bayes_by_backprop", steps=300, batch_size=16)
    outside = run("bayes_by_backprop", steps=300, batch_size=16, stream=True)
    np.testing.assert_allclose(outside.trace["loss"], inside.trace["loss"], rtol=1e-4)
    many = credo.replicate("map", 3)
    both = [run(many, steps=100, batch_size=16, stream=s).trace["loss"] for s in (False, True)]
    np.testing.assert_allclose(both[1], both[0], rtol=1e-4)
    with pytest.raises(InputError, match="all rows on the device"):
        run("nuts", steps=10, stream=True)


def test_memory_maps_are_streamed(tmp_path):
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=PROBLEM.inputs.shape)
    mapped[:] = PROBLEM.inputs
    fit = run("map", data=(mapped, PROBLEM.targets), steps=200, batch_size=16)
    assert fit.loop.source.streamed
    assert fit.status.ok


def test_weights_count_rows():
    """A row of weight 2 is two rows; a row of weight 0 is none (all rows in each batch: exact)."""
    weight = np.ones(96, np.float32)
    weight[:30], weight[90:] = 2, 0
    repeated = np.concatenate([np.arange(90), np.arange(30)])
    weighted = run(data=(*DATA, weight), steps=4000)
    plain = run(data=(PROBLEM.inputs[repeated], PROBLEM.targets[repeated]), steps=4000)
    a, b = (coefficients(f.posterior.params["network"])[0, 0] for f in (weighted, plain))
    np.testing.assert_allclose(a, b, atol=2e-4)


def test_non_finite_steps_go_back_and_try_smaller():
    fit = run(credo.methods.MAP(learning_rate=1e6, optimiser="sgd"), steps=5000)
    assert fit.status.ok
    assert "non-finite" in str(fit.status)
    assert np.isfinite(fit.trace["loss"]).all()
    assert fit.trace["loss"].shape == (1, 5000)
    assert fit.trace["loss"][0, -1] < fit.trace["loss"][0, 0]


def test_hopeless_fits_fail_with_a_sentence():
    huge = (PROBLEM.inputs * 1e25, PROBLEM.targets)
    with pytest.raises(Refusal, match="check the scale"):
        run("map", data=huge, steps=100)


def test_callbacks_see_progress_and_can_stop():
    events = []

    def stop(event):
        events.append(event)
        return event.step >= 300

    fit = run(steps=10**6, batch_size=16, callbacks=[stop])
    assert fit.status.outcome == "stopped by a callback"
    assert events[0].phase == "optimise"
    assert "loss" in events[0].metrics
    assert fit.timing["steps"] < 10**6


def test_ctrl_c_leaves_a_usable_fit():
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    started = []

    def start(event):
        if not started:  # before the first block there is nothing to use
            started.append(timer.start())

    fit = run("bayes_by_backprop", steps=10**8, batch_size=16, callbacks=[start])
    assert fit.status.outcome == "interrupted"
    assert np.isfinite(credo.predict(jax.random.key(0), fit, PROBLEM.inputs).mean).all()


def test_extend_adds_draws():
    method = credo.methods.HMC(chains=2, warmup=50, num_steps=5)
    fit = run(method, steps=60)
    longer = run(method, steps=100)
    more = fit.extend(40)
    assert same(more.posterior.params, longer.posterior.params)
    with pytest.raises(Refusal, match="keeps none"):
        run("map", steps=10).extend(10)


def test_extend_after_a_budget_adds_all_that_was_asked_for():
    fit = run(credo.methods.HMC(chains=1, warmup=20, num_steps=2), budget=0.5)
    more = fit.extend(150)
    drawn = fit.posterior.available
    assert more.posterior.available == more.config["steps"] == drawn + 150
    assert more.config["budget"] is None
    short = run(credo.methods.HMC(chains=1, warmup=20, num_steps=2), budget=0.0001)
    assert any("budget" in note for note in short.notes)
    assert not any("budget" in note for note in short.extend(50).notes)


def test_compilation_is_not_paid_from_the_budget(monkeypatch):
    """A network of a shape that nothing else compiles: that takes longer than the budget, and the fit all of it."""
    FakeClock(monkeypatch, tick=0.01, compilation=1.0)
    x = np.linspace(-1, 1, 37, dtype=np.float32)[:, None] * np.ones(13, np.float32)
    model = credo.Model(credo.networks.mlp([11, 7, 5]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
    fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "map", budget=0.3)
    assert fit.timing["seconds_compile"] > 1
    assert 0.25 < fit.timing["seconds_run"] < 0.45
    assert fit.timing["steps"] > 50


def test_a_budget_that_warm_up_spent_is_said():
    fit = run(credo.methods.HMC(chains=1, warmup=20, num_steps=2), budget=0.0001)
    assert fit.posterior.available < 25
    said = next(note for note in fit.notes if "budget" in note)
    assert said.startswith(f"The budget of 0.0001 s was spent when each chain had {fit.posterior.available} draw")
    assert said.endswith("give a larger budget or a shorter warm-up.")
    enough = run(credo.methods.HMC(chains=1, warmup=20, num_steps=2), budget=1.0)
    assert enough.posterior.available >= 25
    assert not any("budget" in note for note in enough.notes)
    assert not any("budget" in note for note in run("map", budget=0.01).notes)


@pytest.mark.parametrize(
    ("method", "beta"),
    [
        (credo.methods.BayesByBackprop(beta=0.1), 0.1),
        (credo.replicate(credo.methods.BayesByBackprop(beta=0.1), 2), 0.1),
        (credo.then("map", credo.subset(credo.methods.BayesByBackprop(beta=0.1), "*")), 0.1),
        (credo.then(credo.methods.BayesByBackprop(beta=0.1), credo.methods.HMC(warmup=5)), 1.0),
        (credo.methods.MAP(), 1.0),
    ],
)
def test_beta_of_combinators_is_that_of_the_method_inside(method, beta):
    fit = run(method, steps=2)
    assert fit.config["beta"] == pytest.approx(beta)


def test_thinning_keeps_every_nth_draw():
    method = credo.methods.HMC(chains=2, warmup=20, num_steps=3)
    full, thin = run(method, steps=60), run(method, steps=60, thin=3)
    assert same(jax.tree.map(lambda x: x[:, 2::3], full.posterior.params), thin.posterior.params)


def test_replicate_members_differ_and_do_not_depend_on_their_number():
    five = run(credo.replicate("map", 5), model=net(), data=(X, Y), steps=50)
    three = run(credo.replicate("map", 3), model=net(), data=(X, Y), steps=50)
    one = five.posterior.params["network"]["output"]["kernel"][:, 0]
    assert len(np.unique(one[:, 0, 0])) == 5
    np.testing.assert_allclose(three.posterior.params["network"]["output"]["kernel"][:, 0], one[:3], rtol=1e-4)


@pytest.mark.parametrize("over", [*(pytest.param(o, marks=pytest.mark.full) for o in ("vmap", "map")), "devices"])
def test_where_members_run_does_not_matter(over):
    base = run(credo.replicate("bayes_by_backprop", 3), steps=50, batch_size=16)
    other = run(credo.replicate("bayes_by_backprop", 3, over=over), steps=50, batch_size=16)
    np.testing.assert_allclose(other.trace["loss"], base.trace["loss"], rtol=1e-3)


def test_deep_ensemble_is_replicated_map():
    ensemble = run(credo.methods.DeepEnsemble(size=3), model=net(), data=(X, Y), steps=50)
    replicated = run(credo.replicate("map", 3), model=net(), data=(X, Y), steps=50)
    assert same(ensemble.posterior.params, replicated.posterior.params)


def test_then_starts_where_the_first_ended():
    frozen = credo.methods.HMC(step_size=1e-9, num_steps=1, warmup=0, chains=2)
    both = run(credo.then(credo.methods.MAP(), frozen), steps=3)
    np.testing.assert_allclose(
        coefficients(both.posterior.params["network"])[:, -1], np.tile(PROBLEM.mean, (2, 1)), atol=1e-3
    )


def test_subset_moves_only_what_is_selected():
    start = run("map", model=net(noise=0.1), data=(X, Y), steps=300)
    method = credo.subset(credo.methods.HMC(chains=1, warmup=100, num_steps=10), "output/*")
    fit = run(method, model=net(noise=0.1), data=(X, Y), steps=100, start=start)
    draws = fit.posterior.sample(jax.random.key(0), 50)["network"]
    held = start.posterior.params["network"]["hidden_0"]["kernel"][0, 0]
    np.testing.assert_array_equal(draws["hidden_0"]["kernel"], np.broadcast_to(held, (50, *held.shape)))
    assert draws["output"]["kernel"].std(0).min() > 0
    with pytest.raises(InputError, match="No parameter path"):
        run(credo.subset("map", "nothing/*"), steps=5)


def test_subset_of_the_last_layer_is_bayesian_linear_regression():
    """With features held, the last layer is conjugate: compare variational means with the closed form."""
    start = run("map", model=net(noise=0.1), data=(X, Y), steps=2000)
    fit = run(credo.subset("bayes_by_backprop", "output/*"), model=net(noise=0.1), data=(X, Y), start=start)
    layer = start.posterior.params["network"]["hidden_0"]
    features = np.tanh(X @ layer["kernel"][0, 0].T + layer["bias"][0, 0])
    design = np.column_stack([np.ones(60), features]).astype(np.float64)
    precision = design.T @ design / 0.01 + np.eye(9)
    std = coefficients({"output": fit.posterior.inner.std["network"]["output"]})[0]
    np.testing.assert_allclose(std, 1 / np.sqrt(np.diag(precision)), rtol=0.06)


def test_starts_are_checked():
    start = run("map", steps=20)
    with pytest.raises(Refusal, match="different start for each"):
        run(credo.methods.DeepEnsemble(size=3), steps=5, start=start)
    warm = run("map", steps=1, start=start)
    np.testing.assert_allclose(warm.trace["loss"][0, 0], start.trace["loss"][0, -1], rtol=0.05)


def test_learned_noise_is_sampled_and_said():
    fit = run(credo.methods.HMC(chains=2, warmup=100, num_steps=5), model=net(), data=(X, Y), steps=50)
    assert "The noise is put under its default prior" in str(fit.status)
    assert fit.posterior.params["likelihood"]["log_scale"].std() > 0


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ((X[:0], Y[:0]), "no rows"),
        ((X, Y[:5]), "60 rows but targets have 5"),
        ((X[:, 0], Y), "reshape"),
        ((np.where(X > 0.5, np.nan, X), Y), "NaN"),
        ((X, np.where(Y > 0.5, np.inf, Y)), "infinite"),
        ((X.astype(str), Y), "numeric"),
        ((X, Y, -np.ones(60)), "Weights"),
        (X, "pair"),
    ],
)
def test_bad_data_get_a_sentence(data, sentence):
    with pytest.raises(InputError, match=sentence):
        run("map", model=net(), data=data, steps=5)


def test_one_row_works():
    fit = run("bayes_by_backprop", model=net(), data=(X[:1], Y[:1]), steps=20)
    assert np.isfinite(credo.predict(jax.random.key(0), fit, X[:1]).std).all()
