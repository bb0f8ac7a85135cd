"""An exported stack predicts as the stack does, part by part; a part that cannot be exported is named."""

import dataclasses

import jax
import pytest

import credo
from credo.errors import Refusal
from credo.likelihoods import Overdispersed, Stretched, Tempered
from exported import KEY, TARGETS, X, drawn, fitted, same


def with_noise(fit, change):
    return dataclasses.replace(fit, model=dataclasses.replace(fit.model, likelihood=change(fit.model.likelihood)))


def linear(likelihood):
    return drawn(likelihood, network=credo.networks.mlp([]), draws=1)


def numbers():
    return credo.stacked(
        [linear("gaussian"), with_noise(drawn("heteroscedastic_t"), lambda x: Stretched(x, 1.5)),
         drawn("heteroscedastic", network=credo.networks.mlp([4, 3]), draws=40), drawn("gaussian", spread=0.3)],
        [0.1, 0.4, 0.3, 0.2],
    )  # fmt: skip


def classes():
    cooler = with_noise(drawn("categorical"), lambda x: Tempered(x, 1.5, 0.1, (-1.0, -1.2, -1.1)))
    return credo.stacked([cooler, drawn("mislabelled", network=credo.networks.mlp([4]))], [0.7, 0.3])


def counts():
    wider = with_noise(drawn("poisson"), lambda x: Overdispersed(x, 1.4))
    return credo.stacked([wider, linear("negative_binomial")], [0.5, 0.5])


STACKS = {"numbers": (numbers, "gaussian"), "classes": (classes, "categorical"), "counts": (counts, "poisson")}
each = pytest.mark.parametrize(("make", "target"), STACKS.values(), ids=STACKS.keys())


@each
def test_numpy_gives_the_same_predictions(make, target, tmp_path):
    stack = make()
    folder = credo.export(stack, tmp_path / "stack", form="numpy", key=KEY)
    found = credo.load_exported(folder).predict(X)
    same(found, credo.predict(KEY, stack, X), TARGETS[target])


@each
def test_a_program_gives_the_same_predictions(make, target, tmp_path):
    stack = make()
    folder = credo.export(stack, tmp_path / "stack", key=KEY, platforms=["cpu"])
    same(credo.load_exported(folder).predict(X), credo.predict(KEY, stack, X))


def test_a_stack_that_was_corrected_as_a_whole(tmp_path):
    """Factors multiply where a part had one of its own."""
    stack = with_noise(numbers(), lambda x: Stretched(x, 1.3))
    wanted = credo.predict(KEY, stack, X)
    same(credo.load_exported(credo.export(stack, tmp_path / "n", form="numpy", key=KEY)).predict(X), wanted)
    same(credo.load_exported(credo.export(stack, tmp_path / "s", key=KEY, platforms=["cpu"])).predict(X), wanted)


def test_equal_likelihoods_and_linear_draws(tmp_path):
    stack = credo.stacked([fitted("laplace"), drawn("gaussian", network=credo.networks.mlp([4]))], [0.5, 0.5])
    assert stack.posterior.kinds == ()
    wanted = credo.predict(KEY, stack, X, num_samples=30)
    folder = credo.export(stack, tmp_path / "n", form="numpy", key=KEY, num_samples=30)
    same(credo.load_exported(folder).predict(X), wanted, rtol=1e-4)


def test_large_draws_are_made_again_in_the_program(tmp_path, monkeypatch):
    """As many as the part gives inside of the stack, from the same key."""
    monkeypatch.setattr("credo.storage.export.stablehlo.MOST_BYTES", 0)
    stack = credo.stacked([drawn("gaussian", spread=0.3), linear("student_t")], [0.3, 0.7])
    wanted = credo.predict(KEY, stack, X)
    same(credo.load_exported(credo.export(stack, tmp_path / "s", key=KEY, platforms=["cpu"])).predict(X), wanted)


def test_the_part_that_cannot_be_exported_is_named(tmp_path):
    wide = credo.Model(credo.networks.mlp([5]), credo.priors.fan_in_normal(1.5), credo.likelihoods.gaussian(0.1))
    process = credo.fit(jax.random.key(0), wide, (X, TARGETS["gaussian"]), "infinite_width")
    stack = credo.stacked([linear("gaussian"), process], [0.5, 0.5])
    for form in ("numpy", "stablehlo"):
        with pytest.raises(Refusal, match="The part infinite_width of this stack cannot be exported: "):
            credo.export(stack, tmp_path / form, form=form)
    assert not list(tmp_path.iterdir())
    twice = with_noise(classes(), lambda x: Tempered(x, 2.0, 0.1, (-1.0, -1.2, -1.1)))
    with pytest.raises(Refusal, match="The part fit 1 of this stack cannot be exported: Probabilities that were corr"):
        credo.export(twice, tmp_path / "twice", form="numpy")
