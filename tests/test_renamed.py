"""Modules that moved are found under their old names: the very same module, with a word on where it is."""

import importlib
import inspect
import sys
import warnings

import pytest

import credo
import first_names
from credo.renamed import MOVED, NAMES, SHORT, first_name, new_name, old_name


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_is_the_same_module(old):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])
    assert module.__spec__.name == MOVED[old]


def test_a_short_name_stays_and_a_long_one_warns_where_it_is_used(monkeypatch):
    from credo.metrics import crps  # an error in this suite if it warned

    assert crps is credo.evaluation.metrics.crps
    monkeypatch.delitem(sys.modules, "credo.comparison", raising=False)
    with pytest.warns(DeprecationWarning, match=r"credo\.comparison is credo\.evaluation\.comparison now") as seen:
        importlib.import_module("credo.comparison")
    assert len(seen) == 1
    assert set(SHORT) <= set(dir(credo))


@pytest.mark.parametrize(
    ("old", "now"), [("credo.auto.pilot", "credo.tables.auto"), ("credo.audit.problems", "credo.evaluation.audit")]
)
def test_a_module_of_before_does_not_take_the_place_of_a_function(old, now, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        importlib.import_module(old)
    name = old.rpartition(".")[2]
    assert inspect.isfunction(getattr(importlib.import_module(now), name))


def test_modules_below_a_moved_package_move_with_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from credo.audit.problems.bimodal import bimodal
        from credo.comparison.folds import find_folds
    assert bimodal.__module__ == "credo.evaluation.audit.problems.bimodal"
    assert find_folds.__module__ == "credo.evaluation.comparison.folds"
    assert new_name("credo.data.nothing") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("credo.data.nothing")


def test_a_name_that_left_its_module():
    with pytest.warns(DeprecationWarning, match=r"table_effects is credo\.tables\.effects\.table_effects now"):
        assert credo.applications.table_effects is importlib.import_module("credo.tables.effects").table_effects
    for module, names in NAMES.items():
        for name, new in names.items():
            place, _, now = new.rpartition(".")
            with pytest.warns(DeprecationWarning, match=f"{name} is {new} now"):
                assert getattr(importlib.import_module(module), name) is getattr(importlib.import_module(place), now)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        old_name("credo.applications", "nothing")


@pytest.mark.parametrize("package", first_names.PUBLIC)
def test_every_name_of_the_first_api_works(package):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = importlib.import_module(package)
        assert not [name for name in first_names.PUBLIC[package].split() if not hasattr(module, name)]


FIRST = {  # as checkpoints of before the move have them in their fingerprints
    "credo.methods.mcmc.hmc": "credo.methods.hmc",
    "credo.methods.laplace.laplace": "credo.methods.laplace",
    "credo.methods.laplace.last_layer": "credo.methods.last_layer",
    "credo.methods.function_space.function_space_vi": "credo.methods.function_space_vi",
    "credo.methods.function_space.infinite.method": "credo.infinite.method",
    "credo.methods.shallow.gibbs": "credo.shallow.gibbs",
    "credo.networks.mlp": "credo.networks.mlp",
    "my.own.network": "my.own.network",
    "": "",
}


@pytest.mark.parametrize("name", FIRST)
def test_a_module_is_known_by_its_first_name(name):
    first = first_name(name)
    assert first == FIRST[name]
    if name.startswith("credo.") and name != "credo.methods.laplace.laplace" and first != name:
        assert new_name(first) == name
