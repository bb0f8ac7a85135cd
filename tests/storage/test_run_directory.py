"""Run directories: what comes back is what was saved, and everything else is one sentence."""

import dataclasses
import errno
import hashlib
import json
import math
from fnmatch import fnmatch
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import credo
from credo.core.network import Variables
from credo.errors import ArtifactError, CredoError, InputError, Refusal
from credo.storage import serialisation as codec
from credo.storage.run_directory.read import open_run
from credo.storage.run_directory.write import FILES

X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
Y = np.sin(X[:, 0])
NEW = np.random.default_rng(1).normal(size=(11, 3))


def fitted(network=None, prior=None, likelihood=None, targets=Y, method="map", steps=15):
    model = credo.Model(
        network or credo.networks.mlp([4]),
        prior or credo.priors.normal(1.0),
        likelihood or credo.likelihoods.gaussian(),
    )
    return credo.fit(jax.random.key(0), model, (X, targets), method, steps=steps, progress=False)


def predictions(fit):
    predictive = credo.predict(jax.random.key(1), fit, NEW, num_samples=6)
    return predictive.mean, predictive.aleatoric, predictive.epistemic


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    fit = fitted()
    folder = tmp_path_factory.mktemp("runs") / "run"
    fit.save(folder)
    return fit, folder


@pytest.fixture
def run(saved, tmp_path):
    """A copy of a run that a test may spoil."""
    for path in saved[1].iterdir():
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / path.name).write_bytes(path.read_bytes())
    return tmp_path / "run"


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other))


# ---------------------------------------------------------------------- round trips
CASES = {
    "mean field, several outputs": lambda: fitted(
        credo.networks.mlp([4, 3], activation="tanh"),
        credo.priors.by_path({"*/bias": credo.priors.normal(0.3), "*": credo.priors.scale_mixture()}),
        credo.likelihoods.student_t(df=5),
        np.stack([Y, 3 * Y], 1),
        "bayes_by_backprop",
    ),
    "ensemble of classifiers": lambda: fitted(
        likelihood=credo.likelihoods.categorical(3),
        targets=(Y > 0).astype(int) + (Y > 0.5),
        method=credo.methods.DeepEnsemble(size=3),
    ),
    "chains on a subset": lambda: fitted(
        prior=credo.priors.fan_in_normal(1.5),
        likelihood=credo.likelihoods.gaussian(noise=0.1),
        method=credo.subset(
            credo.methods.HMC(step_size=0.01, num_steps=3, warmup=0, chains=2), "output/*"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_predictions_after_load_are_identical(case, tmp_path):
    fit = CASES[case]()
    fit.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert same(predictions(fit), predictions(loaded))
    assert loaded.config == fit.config
    assert loaded.status == fit.status
    assert loaded.timing == fit.timing
    assert list(loaded.phases) == list(fit.phases)
    assert all(np.array_equal(loaded.trace[name], fit.trace[name]) for name in fit.trace)
    assert jax.tree.structure(loaded.model) == jax.tree.structure(fit.model)
    assert jax.tree.leaves(loaded.model) == jax.tree.leaves(fit.model)
    assert loaded.loop is None


def test_a_posterior_as_prior_is_saved_too(saved, tmp_path):
    q = fitted(method="bayes_by_backprop", steps=2).posterior
    fit = dataclasses.replace(saved[0], model=saved[0].model.with_prior(credo.priors.as_prior(q)))
    fit.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run")
    assert same(jax.tree.leaves(loaded.model), jax.tree.leaves(fit.model))
    assert type(loaded.model.prior.distribution) is type(q)


def test_a_run_can_be_saved_again(saved, tmp_path):
    loaded = credo.load(saved[1])
    loaded.save(tmp_path / "again")
    assert same(predictions(saved[0]), predictions(credo.load(tmp_path / "again")))
    with pytest.raises(InputError, match="no chains under way"):
        loaded.extend(3)


def test_metrics_and_extras_are_kept(saved, tmp_path):
    from credo.storage.run_directory.write import save_fit

    save_fit(saved[0], tmp_path / "run", metrics={"test_rmse": 1.5}, extra={"seed": 3}, heldout={"inputs": X})
    opened = open_run(tmp_path / "run")
    assert opened.metrics["test_rmse"] == 1.5
    assert opened.metrics["steps"] == 15
    assert opened.table == {"seed": 3}
    assert np.array_equal(opened.heldout["inputs"], X)
    assert opened.versions["jax"] == jax.__version__


# ---------------------------------------------------------------------- the codec
def test_values_come_back_exactly():
    value = {
        "float": 0.1, "int": 3, "flag": True, "none": None, "inf": -math.inf, "text": "$array",
        "scalar": np.float32(0.1), "zero_d": np.array(2.5), "double": np.arange(3.0), "jax": jnp.arange(4),
        "half": np.ones(3, ml_dtypes.bfloat16), "strided": np.arange(12).reshape(3, 4).T[::2],
        "tuple": (1, [2.0, (3,)]), "variables": Variables({"w": jnp.ones(2)}, {}),
        "marked": {"$array": 1, 2: "two"}, "network": credo.networks.mlp([3], "tanh"),
    }  # fmt: skip
    arrays: codec.Arrays = {}
    text = json.dumps(codec.encode(value, arrays, "v"))
    back = codec.decode(json.loads(text), arrays)
    assert list(back) == list(value)
    for name, one in value.items():
        other = back[name]
        assert type(other) is type(one) or isinstance(one, jax.Array)
        if isinstance(one, np.ndarray | np.generic | jax.Array):
            assert isinstance(other, jax.Array) == isinstance(one, jax.Array)
            assert other.dtype == one.dtype
            assert other.shape == one.shape
            assert np.array_equal(other, one)
        elif name != "variables":
            assert other == one


@pytest.mark.parametrize("value", [print, object(), jax.random.key(0), np.array(["a"])], ids=type)
def test_what_is_not_data_is_not_encoded(value):
    with pytest.raises(codec.Unsavable):
        codec.encode({"x": value}, {})


@pytest.mark.parametrize(
    "plain",
    [
        {"$type": "os.system", "fields": {}},
        {"$type": "methods.HMC", "fields": {}},
        {"$type": "priors.Normal", "fields": {"scale": 1.0, "loc": 0.0}},
        {"$type": "priors.Normal"},
        {"$array": "nowhere", "form": "numpy"},
        {"$type": "user.Mine", "fields": {}},
    ],
)
def test_names_in_a_file_are_only_looked_up(plain):
    with pytest.raises(ArtifactError):
        codec.decode(plain, {})


def test_a_likelihood_of_the_user_is_refused(saved, tmp_path):
    class Mine:
        kind = "real"

    fit = dataclasses.replace(saved[0], model=dataclasses.replace(saved[0].model, likelihood=Mine()))
    with pytest.raises(Refusal, match="Mine"):
        fit.save(tmp_path / "run")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- the user's own network
def own_network(width=4):
    return credo.from_functions(
        init=lambda key, inputs: {
            "w": jax.random.normal(key, (inputs.shape[-1], width)),
            "v": jnp.ones((width, 1)),
        },
        apply=lambda params, inputs: jnp.tanh(inputs @ params["w"]) @ params["v"],
    )


def test_own_network_is_given_again_and_checked(tmp_path):
    network = own_network()
    fit = fitted(network)
    fit.save(tmp_path / "run")
    assert same(predictions(fit), predictions(credo.load(tmp_path / "run", network=network)))
    with pytest.raises(InputError, match=r"credo.load\(run, network=…\)"):
        credo.load(tmp_path / "run")
    with pytest.raises(InputError, match=r"'v' has shape \[5, 1\] in place of \[4, 1\], 'w' has shape"):
        credo.load(tmp_path / "run", network=own_network(5))
    with pytest.raises(InputError, match="hidden_0/bias"):
        credo.load(tmp_path / "run", network=credo.networks.mlp([4]))
    with pytest.raises(InputError, match="expects what the model was made with"):
        credo.load(tmp_path / "run", network="mlp:4")


def test_a_flax_network_with_state_is_given_again(tmp_path):
    nnx = pytest.importorskip("flax.nnx")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(3, 4, rngs=rngs), nnx.Linear(4, 1, rngs=rngs)
            self.norm = nnx.BatchNorm(4, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x))))

    network = credo.from_flax(lambda rngs: Net(rngs))
    fit = fitted(network)
    fit.save(tmp_path / "run")
    loaded = credo.load(tmp_path / "run", network=network)
    assert same(predictions(fit), predictions(loaded))
    loaded.save(tmp_path / "again")
    credo.load(tmp_path / "again", network=network)
    with pytest.raises(InputError, match="'bias' is extra, 'first/bias' is lacking"):
        credo.load(tmp_path / "run", network=credo.from_flax(lambda rngs: nnx.Linear(3, 1, rngs=rngs)))


def test_a_network_in_the_files_is_not_given(run):
    with pytest.raises(InputError, match="holds its own network"):
        credo.load(run, network=credo.networks.mlp([4]))


# ---------------------------------------------------------------------- damage
def spoil_missing(run: Path) -> Path:
    return run / "nowhere"


def spoil_file(run: Path) -> Path:
    return run / "config.json"


def spoil_foreign(run: Path) -> Path:
    (run / "versions.json").unlink()
    return run


def spoil_unfinished(run: Path) -> Path:
    (run / "versions.json").unlink()
    (run / "checkpoint").mkdir()
    (run / "checkpoint" / "job.json").write_text("{}")
    return run


def spoil_truncated(run: Path) -> Path:
    path = run / "posterior.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    return run


def spoil_flipped(run: Path) -> Path:
    path = run / "posterior.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    return run


def spoil_lacking(run: Path) -> Path:
    (run / "model.json").unlink()
    return run


def spoil_newer(run: Path) -> Path:
    found = json.loads((run / "versions.json").read_text())
    (run / "versions.json").write_text(json.dumps(found | {"format": 99, "credo": "9.0"}))
    return run


def spoil_versions(run: Path) -> Path:
    (run / "versions.json").write_text('{"format": 1, "dig')
    return run


def spoil_other_versions(run: Path) -> Path:
    (run / "versions.json").write_text('["not ours"]')
    return run


def spoil_metrics(run: Path) -> Path:
    (run / "metrics.json").write_text("{")
    return run


DAMAGE = {
    "missing": (spoil_missing, "There is no run"),
    "file": (spoil_file, "is a file, not a run directory"),
    "foreign": (spoil_foreign, "is not a credo run"),
    "unfinished": (spoil_unfinished, "credo resume"),
    "truncated": (spoil_truncated, "is damaged"),
    "flipped": (spoil_flipped, "is damaged"),
    "lacking": (spoil_lacking, "lacks model.json"),
    "newer": (spoil_newer, "install a newer credo"),
    "versions": (spoil_versions, "is damaged"),
    "other versions": (spoil_other_versions, "is not a credo run"),
    "metrics": (spoil_metrics, "is damaged"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_sentence(kind, run):
    spoil, words = DAMAGE[kind]
    with pytest.raises(ArtifactError, match=words) as error:
        credo.load(spoil(run))
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def forge(run: Path, name: str, content: bytes) -> None:
    """Change a file and its digest: what somebody who wants to harm would do."""
    (run / name).write_bytes(content)
    found = json.loads((run / "versions.json").read_text())
    found["digests"][name] = hashlib.sha256(content).hexdigest()
    (run / "versions.json").write_text(json.dumps(found))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d | {"posterior": {"$type": "builtins.eval", "fields": {"source": "1"}}},
        lambda d: d | {"model": 3},
        lambda d: d | {"posterior": d["model"]},
        lambda d: {k: v for k, v in d.items() if k != "input_shape"},
        lambda d: [],
    ],
)
def test_forged_files_are_refused(change, run):
    document = json.loads((run / "model.json").read_text())
    forge(run, "model.json", json.dumps(change(document)).encode())
    with pytest.raises(ArtifactError):
        credo.load(run)


def test_digests_cannot_point_outside_the_run(run):
    found = json.loads((run / "versions.json").read_text())
    (run.parent / "secret.json").write_text("{}")
    found["digests"]["../secret.json"] = hashlib.sha256(b"{}").hexdigest()
    (run / "versions.json").write_text(json.dumps(found))
    with pytest.raises(ArtifactError):
        credo.load(run)


def test_arrays_that_are_not_arrays_are_refused(run):
    forge(run, "posterior.safetensors", b"not tensors")
    with pytest.raises(ArtifactError, match="arrays are damaged"):
        credo.load(run)


# ---------------------------------------------------------------------- whole or not at all
def test_a_full_disk_loses_nothing(saved, run, monkeypatch):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    write = Path.write_bytes

    def full(path, data):
        if path.name.startswith("posterior"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    for folder in (run, run.parent / "other"):
        with pytest.raises(ArtifactError, match="No space left on device"):
            saved[0].save(folder)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    assert list(run.parent.iterdir()) == [run]


def test_every_file_of_a_run_is_its_own(saved):
    assert all(any(fnmatch(path.name, name) for name in FILES) for path in saved[1].iterdir())


@pytest.mark.parametrize("exchange", [True, False])
def test_an_earlier_run_is_replaced_and_what_is_the_users_stays(exchange, saved, run, monkeypatch):
    if not exchange:
        monkeypatch.setattr("credo.storage.atomic_write._exchange", lambda one, other: False)
    for name in ("report.html", "effects_2.png", "heldout.safetensors", "predictions.csv"):
        (run / name).write_text("old")
    (run / "mine" / "deep").mkdir(parents=True)
    (run / "mine" / "deep" / "note").write_text("years of work")
    (run / "link").symlink_to("nowhere")
    saved[0].save(run)
    ours = {path.name for path in saved[1].iterdir()}
    assert {path.name for path in run.iterdir()} == ours | {"predictions.csv", "mine", "link"}
    assert (run / "predictions.csv").read_text() == "old"
    assert (run / "mine" / "deep" / "note").read_text() == "years of work"
    assert (run / "link").is_symlink()
    assert list(run.parent.iterdir()) == [run]
    credo.load(run)


def test_what_is_the_users_stays_where_the_disk_has_no_links(saved, run, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr("os.link", refuse)
    (run / "predictions.csv").write_text("mine")
    saved[0].save(run)
    assert (run / "predictions.csv").read_text() == "mine"


@pytest.mark.parametrize("content", ['{"numpy": "2.0"}', '{"format": "zip"}', "[1]", "not JSON"])
def test_a_folder_with_another_versions_file_is_never_replaced(content, saved, tmp_path):
    (tmp_path / "site" / "checkpoint").mkdir(parents=True)
    for name in ("versions.json", "checkpoint/job.json"):
        (tmp_path / "site" / name).write_text(content)
    with pytest.raises(InputError, match="is not a credo run"):
        saved[0].save(tmp_path / "site")
    assert (tmp_path / "site" / "versions.json").read_text() == content


def test_what_credo_did_not_write_is_never_replaced(saved, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "note").write_text("mine")
    for folder in ("thesis", "note"):
        with pytest.raises(CredoError, match="choose another"):
            saved[0].save(tmp_path / folder)
    assert (tmp_path / "thesis" / "chapter.tex").exists()
    saved[0].save(tmp_path / "deep" / "er" / "run")
    (tmp_path / "empty").mkdir()
    saved[0].save(tmp_path / "empty")
    credo.load(tmp_path / "empty")


def test_files_name_classes_as_they_always_did():
    """Runs of earlier versions are read: a class keeps its name in files, wherever its source went."""
    names = {
        "core.Model",
        "curvature.LowRank",
        "curvature.Kronecker",
        "infinite.FunctionPosterior",
        "posteriors.LowRank",
    }
    assert names <= set(codec.known_types())
    assert not [name for name in codec.known_types() if name.count(".") > 1]
