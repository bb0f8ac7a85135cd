"""Columns of free text: hashed words in the encoder, in fits and in what is exported."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import credo
from credo.errors import ArtifactError, InputError
from credo.storage.export.arrays import numbers
from credo.storage.export.assemble import assemble
from credo.storage.export.portable.load import Predictor
from credo.storage.export.subject import Subject
from credo.tables.columns.decode import decode, feature_groups, has_value
from credo.tables.columns.kinds import find_kind
from credo.tables.encode.columns import TextColumn, learn_column
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.hashed_words import word_counts, word_features, words_of
from credo.tables.encode.text import FEWEST, MOST
from credo.tables.encode.unseen import find_unseen, predict_unseen
from exported import KEY, drawn, same
from plain_cells import same_without_pandas

GOOD, BAD = ["sunny", "quiet", "spacious", "modern"], ["damp", "noisy", "cramped", "ruined"]
FILL = ["flat", "with", "garden", "near", "the", "station", "and", "two", "rooms", "in", "old", "town", "street", "on"]
ODD = ["😀 😀 🏠", "!!!", "one", "Straße ÉCOLE école", "word " * 20_000, "x" * 100_000, "日本語 の", "a\x00b\nc",
       "\ud800 lone", "١٢٣ ４５６", "  spaced  ", "it's o'clock"]  # fmt: skip


def table(rows=240, gaps=0, seed=0):
    rng = np.random.default_rng(seed)
    good, bad = rng.integers(0, 3, (2, rows))
    texts = []
    for row in range(rows):
        words = [*rng.choice(GOOD, good[row]), *rng.choice(BAD, bad[row]), *rng.choice(FILL, 8), f"no{row}"]
        texts.append(" ".join(rng.permutation(words)).capitalize() + ".")
    frame = pd.DataFrame({"x": rng.normal(size=rows), "about": texts})
    frame["y"] = 0.3 * frame["x"] + good - bad + 0.1 * rng.normal(size=rows)
    if gaps:
        frame.loc[rng.choice(rows, gaps, replace=False), "about"] = [None, "", "  "] * (gaps // 3)
    return frame


def learned(frame=None, missing="auto", **options):
    return TableEncoder.learn(table() if frame is None else frame, "y", missing=missing, **options)


def encoded(column, texts, unseen="zeros"):
    out = np.empty((len(texts), len(column.names)), np.float32)
    column.encode(pd.Series(texts, name=column.name, dtype=object), out, unseen=unseen)
    return out


# ---------------------------------------------------------------------- what is a text
@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([f"house number {i} on the hill" for i in range(60)], "text"),
        ([f"house number {i} on the hill" for i in range(60)] * 2, "category"),  # each comes twice
        ([f"house number {i} on the hill" for i in range(20)], "category"),  # few
        ([f"H-{i}-AB-XY" for i in range(60)], "none"),  # an id
        ([f"{i} 12 2020 7" for i in range(60)], "none"),  # words without letters
        ([f"Town {i}" for i in range(60)], "none"),  # two words: a name
        ([b"house number %d on the hill" % i for i in range(60)], "none"),
        ([f"house number {i} on the hill" if i % 3 else None for i in range(90)], "text"),
    ],
)
def test_a_text_has_several_words_and_hardly_ever_comes_again(cells, kind):
    series = pd.Series(cells, name="about", dtype=object)
    assert find_kind(series).kind == kind
    assert find_kind(series, ids=False).kind != "text"  # a target is none
    if kind == "text":
        assert find_kind(series.astype("category")).kind == "text"


# ---------------------------------------------------------------------- features
def test_features_are_weighted_words_of_one_length():
    frame = table()
    encoder = learned(frame)
    column = encoder.columns[1]
    assert isinstance(column, TextColumn)
    assert encoder.feature_names[:3] == ("x", "about:words_1", "about:words_2")
    own = encoder.inputs(frame)[:, 1:]
    assert own.shape == (240, 64)
    np.testing.assert_allclose(np.linalg.norm(own, axis=1), np.linalg.norm(own[0]), rtol=1e-5)
    # By the definition: signed counts times rarity.
    raw = np.stack([word_counts([text], 64)[0] for text in frame["about"]])
    rarity = np.log(241 / (1 + (raw != 0).sum(0))) + 1
    wanted = raw * rarity
    cosine = (wanted * own).sum(1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(own, axis=1)
    np.testing.assert_allclose(cosine, 1.0, rtol=1e-5)


def test_order_case_and_signs_do_not_matter_and_repeats_count_by_their_logarithm():
    rarity = np.ones(32)
    one, two = word_features(["Quiet, sunny flat!", "flat sunny QUIET"], rarity)
    np.testing.assert_array_equal(one, two)
    often = word_counts(["quiet " * 10], 32)
    np.testing.assert_allclose(often, word_counts(["quiet"], 32) * (1 + np.log(10)))
    assert words_of("It's 2 o'clock 😀😀") == ["it", "s", "2", "o", "clock", "😀", "😀"]
    assert not word_features(["", "!!!"], rarity).any()


def test_the_hash_is_the_same_in_every_process():
    """Python's own hash of texts is another one in each."""
    code = "from credo.tables.encode.hashed_words import word_counts as w; print(w(['quiet damp 😀'], 64).tolist())"
    lines = set()
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "1"}
        command = [sys.executable, "-c", code]
        lines.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert lines == {f"{word_counts(['quiet damp 😀'], 64).tolist()}\n"}
    places = {word: int(word_counts([word], 64)[0].nonzero()[0][0]) for word in ("quiet", "damp", "flat")}
    assert places == {"quiet": 36, "damp": 9, "flat": 4}  # what saved runs rely on


def test_words_that_share_a_feature_cancel_on_average():
    """Inner products of two texts are those of their bags of words, without bias: 2000 texts, five standard errors."""
    rng = np.random.default_rng(0)
    one, two = ([" ".join(f"{side}{x}" for x in rng.integers(0, 10**9, 20)) for _ in range(2000)] for side in "ab")
    products = (word_counts(one, 16) * word_counts(two, 16)).sum(1)
    assert abs(products.mean()) < 5 * products.std() / len(products) ** 0.5
    assert products.std() > 1


@pytest.mark.parametrize(("rows", "size"), [(30, FEWEST), (100, 32), (390, MOST), (5000, MOST)])
def test_the_number_of_features_follows_the_rows(rows, size):
    assert len(learned(table(rows)).columns[1].rarity) == size


def test_weights_count_as_rows():
    frame = table(60)
    weights = np.array([2.0, 1.0, 0.5] * 20)
    column = learn_column("text", frame["about"], weights, "error")
    present = word_counts(frame["about"].tolist(), 16) != 0
    np.testing.assert_allclose(column.rarity, np.log((1 + weights.sum()) / (1 + weights @ present)) + 1)


def test_texts_in_pieces_are_those_at_once(monkeypatch):
    frame = table()
    whole = learned(frame)
    monkeypatch.setattr("credo.tables.encode.text.CHUNK", 7)
    pieces = learned(frame)
    np.testing.assert_allclose(pieces.columns[1].rarity, whole.columns[1].rarity, rtol=1e-12)
    np.testing.assert_array_equal(whole.inputs(frame), whole.inputs(frame))
    np.testing.assert_allclose(pieces.inputs(frame), whole.inputs(frame), rtol=1e-5)


# ---------------------------------------------------------------------- odd cells, gaps and what was not seen
def test_odd_texts_are_numbers_like_others():
    column = learned().columns[1]
    rows = encoded(column, [*ODD, 12, 1.5, True])
    assert np.isfinite(rows).all()
    length = np.linalg.norm(encoded(column, ["flat"]))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1)[[0, 2, 3, 4, 5, 6]], length, rtol=1e-5)
    assert not rows[1].any()  # no words, which is no gap
    with pytest.raises(InputError, match="bytes"):
        encoded(column, [b"damp flat"])


def test_a_table_of_odd_texts_is_learned():
    frame = table(60)
    odd = [text for text in ODD if "\ud800" not in text]  # which tables of Arrow cannot hold
    frame["about"] = [f"{odd[i % len(odd)]} and number {i}" for i in range(60)]
    inputs = learned(frame).inputs(frame)
    assert np.isfinite(inputs).all()


def test_unseen_words_are_words():
    """They are no error, and move the features no further than known ones do."""
    column = learned().columns[1]
    rows = encoded(column, ["quite zyzzyva qwertz", "sunny flat"], unseen="error")
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows[0]) == pytest.approx(np.linalg.norm(rows[1]))
    assert column.new(rows) is None


def test_gaps_that_training_had_are_marked():
    frame = table(gaps=30)
    encoder = learned(frame)
    column, own = encoder.columns[1], encoder.inputs(frame)
    gone = frame["about"].fillna("").str.strip().eq("").to_numpy()
    assert gone.sum() == 30
    assert column.names[-1] == "about:missing"
    np.testing.assert_array_equal(own[:, -1], gone)
    assert not own[gone, 1:-1].any()
    assert own[~gone, 1:-1].any(1).all()
    assert has_value(column, own[:, 1:]).tolist() == (~gone).tolist()
    with pytest.raises(InputError, match="missing"):
        learned(frame, "error")


def test_gaps_that_training_had_not_are_averages():
    frame = table()
    encoder = learned(frame)
    rows = frame.head(3).copy()
    rows.loc[1, "about"] = None
    with pytest.raises(InputError, match="missing in row 2"):
        encoder.inputs(rows)
    inputs = encoder.inputs(rows, unseen="zeros")
    assert np.isnan(inputs[1, 1:]).all()
    (unseen,) = find_unseen(encoder, inputs)
    assert unseen.values.shape == (16, 64)
    fit = drawn(inputs=encoder.inputs(frame))
    got = predict_unseen(lambda x: credo.predict(KEY, fit, x), encoder, inputs)
    assert np.isfinite(got.mean).all()
    assert got.epistemic[1] > 0


def test_gaps_are_filled_in_where_asked():
    encoder = learned(missing="impute")
    rows = table().head(2).assign(about=["", "sunny flat"])
    assert not encoder.inputs(rows)[0, 1:].any()
    assert encoder.columns[1].spread == ()


# ---------------------------------------------------------------------- saved, shown, exported
@pytest.mark.parametrize("missing", ["auto", "error", "drop", "impute"])
def test_a_saved_column_is_the_column(missing):
    encoder = learned(missing=missing)
    again = TableEncoder.from_config(json.loads(json.dumps(encoder.to_config())))
    assert again == encoder
    np.testing.assert_array_equal(again.inputs(table()), encoder.inputs(table()))


@pytest.mark.parametrize("change", [{"rarity": []}, {"rarity": [1.0, -1.0]}, {"rarity": "x"}, {"spread": [1.0]}])
def test_a_saved_column_is_checked(change):
    plain = json.loads(json.dumps(learned().to_config()))
    plain["columns"][1] |= change
    with pytest.raises(ArtifactError, match="damaged"):
        TableEncoder.from_config(plain)


@pytest.mark.parametrize("missing", ["auto", "impute"])
@pytest.mark.parametrize("gaps", [0, 30])
def test_cells_without_pandas_have_the_same_features(missing, gaps):
    encoder = learned(table(gaps=gaps), missing)
    rows = table(60, seed=1)
    rows["about"] = pd.Series([None, *ODD, "", *rows["about"][len(ODD) + 2 :]], dtype=object)
    same_without_pandas(encoder, rows)


def test_exported_numbers_are_those_of_the_library(tmp_path):
    frame = table(60)
    encoder = learned(frame)
    inputs = encoder.inputs(frame)[:40]
    fit = drawn(inputs=inputs, draws=7)
    subject = Subject(fit, KEY, encoder=encoder.to_config(), num_samples=7)
    described, arrays = numbers(subject, None)
    document = json.loads(json.dumps(subject.plain() | described | {"form": "numpy"}))
    rows = frame.head(12).assign(about=[*ODD[:6], *frame["about"][6:12]])
    wanted = credo.predict(KEY, fit, encoder.inputs(rows), num_samples=7)
    same(Predictor(document, arrays).predict(rows), wanted, np.zeros(12))
    (tmp_path / "alone.py").write_text(assemble(), encoding="utf-8")
    code = ("import json, sys; sys.modules['credo'] = None; import alone; e = json.load(open('e.json')); "
            "print(json.dumps(alone.encode(e, json.load(open('rows.json'))).tolist()))")  # fmt: skip
    (tmp_path / "e.json").write_text(json.dumps(encoder.to_config()))
    (tmp_path / "rows.json").write_text(json.dumps(rows[["x", "about"]].to_dict("list")))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    np.testing.assert_array_equal(np.array(json.loads(done.stdout), np.float32), encoder.inputs(rows))


def test_a_text_is_shown_as_some_texts():
    encoder = learned(table(gaps=3))
    own = encoder.inputs(table(gaps=3))[:, 1:]
    shown = decode(encoder.columns[1], own)
    assert shown[0] == "text 01"
    assert (shown == None).sum() == 3  # noqa: E711
    assert feature_groups(encoder)["about"] == tuple(range(1, 66))


# ---------------------------------------------------------------------- fits
def test_words_predict(tmp_path):
    """Beside the same fit without the column; run, reload, effects, report and export take it."""
    frame = table(1200)
    how = {"method": "map", "network": "mlp:16:tanh", "steps": 400, "holdout": 0.3, "progress": False}
    run = credo.tables.fit(frame, "y", out=tmp_path / "run", **how)
    without = credo.tables.fit(frame.drop(columns="about"), "y", **how)
    assert run.metrics["test_rmse"] < 0.8 * without.metrics["test_rmse"]
    rows = frame.head(4).assign(
        about=["sunny quiet spacious flat", "damp noisy cramped flat", None, "zyzzyva qwertz x"]
    )
    found = run.predict(rows)
    assert found["mean"][0] > found["mean"][1] + 1
    assert np.isfinite(found.to_numpy()).all()
    assert found["epistemic_std"][2] > 0.3  # an average over texts
    pd.testing.assert_frame_equal(credo.tables.load(tmp_path / "run").predict(rows), found)
    effects = run.effects()
    assert effects.order[0] == "about"
    page = run.report().read_text()
    assert "are texts of some of the rows" in page
    run.export(tmp_path / "exported")
    predictor = credo.load_exported(tmp_path / "exported")
    np.testing.assert_allclose(predictor.predict(rows.head(2)).mean, found["mean"][:2], rtol=1e-3)
