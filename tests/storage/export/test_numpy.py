"""The NumPy predictor gives the numbers of `credo.predict`: every likelihood, activation and kind of posterior."""

import ast
import dataclasses
import json
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import credo
from credo.errors import InputError, Refusal
from credo.evaluation.recalibration.unseen import with_settings
from credo.storage.export.assemble import assemble
from credo.storage.export.portable.cells import PortableError
from exported import KEY, TARGETS, X, drawn, fitted, same

IMAGES = np.zeros((40, 28, 28, 1), np.float32)


def both(fit, folder, num=None, mode=None):
    credo.export(fit, folder, "numpy", key=KEY, num_samples=num, mode=mode)
    return credo.load_exported(folder).predict(X), credo.predict(KEY, fit, X, num_samples=num, mode=mode)


# One of each kind; the others' formulas are held by test_equal.py.
QUICK = ("gaussian", "heteroscedastic", "categorical", "poisson")


@pytest.mark.parametrize(
    "likelihood", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.full]) for name in TARGETS]
)
def test_every_likelihood(likelihood, tmp_path):
    same(*both(drawn(likelihood), tmp_path / "p"), TARGETS[likelihood])


@pytest.mark.parametrize("activation", ["relu", "tanh", "erf", "silu", "logistic"])
def test_every_activation(activation, tmp_path):
    fit = drawn("bernoulli", credo.networks.mlp([5, 4], activation))
    same(*both(fit, tmp_path / "p"))


@pytest.mark.parametrize("beside", ["linear", "intercept", "none", None])
def test_linear_and_shallow_networks(beside, tmp_path):
    network = credo.networks.mlp([]) if beside is None else credo.networks.shallow(4, beside)
    same(*both(drawn("bernoulli", network), tmp_path / "p"))


def test_two_outputs(tmp_path):
    targets = np.stack([TARGETS["gaussian"], -TARGETS["gaussian"]], 1)
    found, wanted = both(drawn(targets=targets), tmp_path / "p")
    same(found, wanted, targets)
    assert list(found.columns()) == list(wanted.to_pandas().columns)
    for name, values in found.columns().items():
        np.testing.assert_allclose(values, wanted.to_pandas()[name], rtol=1e-4, atol=1e-5)


def test_weighted_draws_and_fewer_of_them(tmp_path):
    weights = np.log(np.random.default_rng(1).dirichlet(np.ones(9)))[None].astype(np.float32)
    fit = drawn(draws=9, weights=weights)
    same(*both(fit, tmp_path / "all"), TARGETS["gaussian"])
    same(*both(fit, tmp_path / "some", num=7), TARGETS["gaussian"])


def test_numbers_of_the_likelihood_that_are_known(tmp_path):
    same(*both(drawn(noise=0.3), tmp_path / "a"), TARGETS["gaussian"])
    targets = TARGETS["negative_binomial"]
    same(*both(drawn("negative_binomial", dispersion=2.5), tmp_path / "b"), targets, quantiles=False)
    targets = TARGETS["heteroscedastic_t"]
    same(*both(drawn("heteroscedastic_t", df=5.0), tmp_path / "c"), targets, quantiles=False)


def recalibrated(fit, settings):
    likelihood = with_settings(fit.model.likelihood, settings)
    return dataclasses.replace(fit, model=dataclasses.replace(fit.model, likelihood=likelihood))


@pytest.mark.parametrize(
    "name", ["gaussian", "heteroscedastic", "poisson", "negative_binomial", "bernoulli", "mislabelled"]
)
def test_corrected_likelihoods(name, tmp_path):
    classes = 2 if name == "bernoulli" else 3
    tempered = {"heat": 1.7, "share": 0.2, "frequencies": np.full(classes, 1 / classes).tolist()}
    settings = tempered if name in ("bernoulli", "mislabelled") else {"factor": 1.6}
    found, wanted = both(recalibrated(drawn(name), settings), tmp_path / "p")
    same(found, wanted, TARGETS[name], quantiles=name in ("gaussian", "heteroscedastic"))
    plain = credo.predict(KEY, drawn(name), X)
    assert not np.allclose(found.log_prob(TARGETS[name]), plain.log_prob(TARGETS[name]), atol=1e-3)


@pytest.mark.parametrize("linear", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_gaussian_through_its_draws(linear, tmp_path):
    fit = drawn("bernoulli", spread=0.2)
    if linear:
        fit = dataclasses.replace(fit, posterior=credo.posteriors.Linearised(fit.posterior))
    same(*both(fit, tmp_path / "p", num=7))


@pytest.mark.full
def test_laplace_linearised_and_sampled(tmp_path):
    fit = fitted("laplace")
    same(*both(fit, tmp_path / "linear", num=9))
    same(*both(fit, tmp_path / "sampled", num=9, mode="sampled"))
    with pytest.raises(Refusal, match="probit"):
        credo.export(fitted("laplace", "bernoulli"), tmp_path / "probit", "numpy", mode="probit")


@pytest.mark.full
@pytest.mark.parametrize("method", ["mc_dropout", "swag", "last_layer", "function_space_vi", "deep_ensemble"])
def test_other_posteriors(method, tmp_path):
    network = credo.networks.mlp([5, 4], "silu", dropout=0.2) if method == "mc_dropout" else None
    same(*both(fitted(method, network=network), tmp_path / "p", num=9))


@pytest.mark.full
def test_masks_on_weight_rows_and_subsets(tmp_path):
    same(*both(fitted("mc_dropout"), tmp_path / "rows", num=9))
    same(*both(fitted(credo.subset("bayes_by_backprop", "output/*")), tmp_path / "subset", num=9))


def test_far_inputs_and_many_rows_in_pieces(tmp_path, monkeypatch):
    fit = drawn()
    credo.export(fit, tmp_path / "p", "numpy", key=KEY)
    predictor = credo.load_exported(tmp_path / "p")
    whole = predictor.predict(X).mean
    monkeypatch.setattr("credo.storage.export.portable.prediction.CHUNK_BYTES", 4000)
    np.testing.assert_allclose(predictor.predict(X).mean, whole, rtol=1e-12)
    assert np.isfinite(predictor.predict(1e6 * X).interval()).all()


def test_it_runs_without_jax_and_without_credo(tmp_path):
    """The one file beside the predictor, where neither can be imported."""
    fit = drawn()
    folder = credo.export(fit, tmp_path / "p", "numpy", key=KEY)
    np.save(tmp_path / "x.npy", X)
    code = (
        "import sys, json\n"
        "for name in ('jax', 'credo', 'scipy', 'pandas'): sys.modules[name] = None\n"
        f"sys.path.insert(0, {str(folder)!r})\n"
        "import numpy as np, portable\n"
        f"found = portable.load({str(folder)!r}).predict(np.load({str(tmp_path / 'x.npy')!r}))\n"
        "print(json.dumps({k: v.tolist() for k, v in found.columns().items()}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = credo.predict(KEY, fit, X).to_pandas()
    for name, values in json.loads(done.stdout).items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-5, atol=1e-5)


def test_modules_of_the_one_file_share_no_names():
    """Else the later would take the place of the earlier, and none of them would import credo in the end."""
    source = assemble()
    names = [
        name
        for node in ast.parse(source).body
        for name in ([node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else targets_of(node))
    ]
    assert len(names) > 60
    assert len(set(names)) == len(names)
    assert "import credo" not in source
    assert "from credo" not in source


def targets_of(node):
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [found.id for target in targets for found in ast.walk(target) if isinstance(found, ast.Name)]


def test_what_numpy_cannot_do_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r'knows credo.s perceptrons .* use form="stablehlo"'):
        credo.export(drawn("categorical", credo.networks.lenet(), inputs=IMAGES), tmp_path / "p", "numpy")
    assert not (tmp_path / "p").exists()


def test_wrong_arguments_are_sentences(tmp_path):
    fit = drawn()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for words, place, options in [
        ("exists", tmp_path / "taken", {}),
        ("exists", tmp_path / "taken" / "file", {}),
        ("Unknown form", tmp_path / "p", {"form": "onnx"}),
        ("at least 1", tmp_path / "p", {"num_samples": 0}),
        ("between 0 and 1", tmp_path / "p", {"levels": [0.5, 1.0]}),
    ]:
        with pytest.raises(InputError, match=words):
            credo.export(fit, place, **options)
    with pytest.raises(InputError, match="a run directory or a fitted estimator"):
        credo.export(3, tmp_path / "p")


def test_wrong_rows_and_damaged_files_are_sentences(tmp_path):
    fit = drawn()
    folder = credo.export(fit, tmp_path / "p", "numpy", key=KEY)
    predictor = credo.load_exported(folder)
    for words, rows in [
        ("shape", X[:, :2]),
        ("no rows", X[:0]),
        ("NaN", X * np.nan),
        ("must be numbers", [["a", "b", "c"]]),
        ("knows no columns", {"a": [1.0]}),
    ]:
        with pytest.raises(PortableError, match=words):
            predictor.predict(rows)
    found = predictor.predict(X)
    with pytest.raises(PortableError, match="Expected 40 targets"):
        found.log_prob([1.0])
    with pytest.raises(PortableError, match=r"Each row has 1 target\(s\)"):
        found.log_prob(np.zeros((len(found), 2)))
    with pytest.raises(PortableError, match="classes"):
        found.probs  # noqa: B018
    with pytest.raises(PortableError, match="between 0 and 1"):
        found.quantile(1.5)
    with pytest.raises(PortableError, match="not an exported predictor"):
        credo.load_exported(tmp_path)
    data = folder / "predictor.npz"
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    with pytest.raises(PortableError, match="damaged"):
        credo.load_exported(folder)


def test_a_key_of_its_own_where_none_is_given(tmp_path):
    fit = drawn()
    credo.export(fit, tmp_path / "p", "numpy")
    same(credo.load_exported(tmp_path / "p").predict(X), credo.predict(jax.random.key(0), fit, X))
