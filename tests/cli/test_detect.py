"""`credo detect`: strange rows are flagged, clean rows mostly are not, attacks are caught or not (H3)."""

import io

import numpy as np
import pandas as pd
import pytest

from small_tables import class_frame, regression_frame

FIT = ("--target", "price", "--method", "deep_ensemble", "--network", "mlp:5", "--steps", "150", "--holdout", "0.3")


def made(credo, folder, name, frame):
    """A run with a spread on a table."""
    frame.to_csv(folder / f"{name}.csv", index=False)
    result = credo("fit", folder / f"{name}.csv", *FIT, "--out", folder / name)
    assert result.exit_code == 0, result.stderr
    return folder / name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the tables are; strange.csv has ten strange sizes and a town that training did not have."""
    folder = tmp_path_factory.mktemp("detect")
    strange = regression_frame(30)
    strange.loc[:9, "size"] = np.linspace(2000, 5000, 10)
    strange.loc[0, "town"] = "Atlantis"
    strange.drop(columns="price").to_csv(folder / "strange.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def labels(credo, folder):
    return made(credo, folder, "labels", class_frame(200))


@pytest.mark.full
def test_strange_rows_are_flagged(credo, folder):
    run = made(credo, folder, "houses", regression_frame(200))
    result = credo("detect", run, "--suspect", folder / "strange.csv")
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(io.StringIO(result.stdout))
    assert found["row"].tolist() == list(range(1, 31))
    assert found["flagged"][:10].all()
    assert found["flagged"][10:].mean() < 0.4
    assert (found["flagged"] == (found["score"] > found["threshold"])).all()
    assert found["town"][0] == "Atlantis"
    assert "rows (" in result.stderr


def test_clean_rows_may_come_from_a_table(credo, labels, folder, tmp_path):
    out = tmp_path / "flags.csv"
    result = credo(
        "detect", labels, "--suspect", folder / "labels.csv", "--clean", folder / "labels.csv", "--score",
        "mutual_information", "--fpr", "0.1", "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = pd.read_csv(out)
    assert found["flagged"].mean() <= 0.1
    assert "10.0 % of 200 clean rows" in result.stdout


def test_attacks_on_clean_rows(credo, labels, tmp_path):
    out = tmp_path / "attack.csv"
    result = credo("detect", labels, "--attack", "fgsm:0.5", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "attacks succeed" in result.stdout
    assert "AUROC" in result.stdout
    assert set(pd.read_csv(out)["group"]) == {"clean", "positive"}
    assert out.with_suffix(".png").exists()
    assert "No attack succeeded" in credo("detect", labels, "--attack", "fgsm:0").stdout


def test_bad_requests_get_a_sentence(credo, labels, folder, runs):
    houses = runs["houses"][0]
    suspect = ("--suspect", folder / "strange.csv")
    for args, words in [
        ((houses,), "one of --suspect FILE and --attack"),
        ((houses, *suspect, "--fpr", "1"), "--fpr is a share"),
        ((houses, *suspect, "--score", "entropy"), "Unknown score 'entropy' for real"),
        ((houses, "--attack", "fgsm:0.1"), "predicts numbers"),
        ((labels, "--attack", "fgsm"), "kind:size"),
        ((labels, "--attack", "cw:1"), "kind of an attack"),
        ((houses, *suspect), "of a point"),
    ]:
        result = credo("detect", *args)
        assert result.exit_code == 2, args
        assert words in result.stderr
        assert result.stderr.count("Error:") == 1
