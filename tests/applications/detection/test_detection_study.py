"""A study of detection: one table, resumable, the same after a stop (H3)."""

import json

import jax
import numpy as np
import pytest

import credo
from credo.applications import detection
from credo.applications.detection import study
from credo.errors import ArtifactError, InputError

KEY = jax.random.key(0)
RNG = np.random.default_rng(2)
X = RNG.normal(size=(400, 2)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(int)
NAMES = ("one", "several")
MODEL = credo.Model(credo.networks.mlp([8], "tanh"), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
DATA = (X[100:200], X[200:], LABELS[200:])


@pytest.fixture(scope="module")
def fits():
    """Two models with one program."""
    data, method = (X[:100], LABELS[:100]), credo.methods.DeepEnsemble(size=2)
    return {name: credo.fit(jax.random.key(i), MODEL, data, method, steps=200) for i, name in enumerate(NAMES)}


def run(fits, folder=None, **more):
    options = {"attacks": ["fgsm:0.3", "noise:0.3"], "others": {"far": X[:50] + 6}, "scores": ["entropy"]} | more
    return study(KEY, fits, *DATA, resamples=20, folder=folder, **options)


def test_a_study_asks_each_model_about_its_own_attacks(fits):
    whole = run({"one": fits["one"]}, attacks=["fgsm:0.3"], others={})
    (row,) = whole.rows
    attacked = detection.attack(jax.random.split(KEY, 3)[1], fits["one"], *DATA[1:], "fgsm:0.3")
    assert row["positives"] == attacked.success.sum()
    assert row["success_rate"] == pytest.approx(attacked.success_rate)
    assert row["against_tpr"] is None
    assert "fgsm" in str(whole)


def test_a_study_is_one_table_and_goes_on_where_it_stopped(fits, tmp_path, monkeypatch):
    whole = run(fits)
    frame = whole.to_pandas()
    assert len(frame) == 2 * 3
    assert list(frame["attack"].unique()) == ["fgsm", "noise", "far"]
    assert frame.query("attack == 'fgsm'")["success_rate"].gt(0.1).all()
    assert frame.query("attack == 'far'")["success_rate"].isna().all()
    assert frame.query("model == 'one'")["against_tpr"].isna().all()
    assert set(frame.query("model == 'several' and attack != 'noise'")["against_auroc"]) <= {"win", "tie", "loss"}
    row = frame.query("model == 'several' and attack == 'fgsm'").iloc[0]
    alone = whole.detections["several", "fgsm, l∞ ≤ 0.3", "entropy"]
    assert row["tpr"] == alone.tpr.value
    assert row["positives"] == len(alone.positive)
    assert "several" in str(whole)

    class Stop(Exception):
        pass

    def stop(model, name):
        if (model, name) == ("several", "fgsm, l∞ ≤ 0.3"):
            raise Stop

    with pytest.raises(Stop):
        run(fits, tmp_path, callback=stop)
    made = []
    module = __import__("sys").modules["credo.applications.detection.study"]
    monkeypatch.setattr(module, "attack", lambda *a, **k: made.append(a[4]) or detection.attack(*a, **k))
    again = run(fits, tmp_path)
    assert [how.kind for how in made] == ["noise"]
    assert str(again) == str(whole)
    known = json.loads((tmp_path / "study.json").read_text())
    assert [r["tpr"] for r in known["rows"]] == pytest.approx(frame["tpr"].tolist(), nan_ok=True)

    run(fits, tmp_path, attacks=[detection.Attack("fgsm", 0.3, box=(-9.0, 9.0))])  # another attack of the same name
    assert [how.kind for how in made] == ["noise", "fgsm", "fgsm"]
    with pytest.raises(InputError, match="other settings"):
        run(fits, tmp_path, num_samples=3)
    with pytest.raises(InputError, match="another model named 'one'"):
        run({"one": fits["several"]}, tmp_path)
    for place in tmp_path.glob("cells/one--fgsm*"):
        place.write_bytes(b"broken")
    made.clear()
    with pytest.warns(RuntimeWarning, match="damaged .* computed again"):
        assert str(run(fits, tmp_path)) == str(whole)
    assert [how.kind for how in made] == ["fgsm"]
    (tmp_path / "study.json").write_text("[]")
    with pytest.raises(ArtifactError, match="not a record"):
        run(fits, tmp_path)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"baseline": "none"}, "not among the models"),
        ({"attacks": ["fgsm:0.3", "fgsm:0.3"]}, "same name"),
        ({"attacks": [], "others": {}}, "at least one"),
    ],
)
def test_bad_studies_get_a_sentence(fits, wrong, words):
    with pytest.raises(InputError, match=words):
        run(fits, **wrong)
