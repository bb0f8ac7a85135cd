"""The benchmarks on airfoil, images and speed: each runs through, resumes, and writes its page."""

import shutil
import sys

import numpy as np
import pytest

from benchmarks import airfoil, images
from benchmarks.records import Records
from benchmarks.speed import plan, run


def never(*args, **kwargs):
    raise AssertionError("a fit was run")


def test_airfoil(benchmark, data_dir, tiny, tmp_path, monkeypatch):
    models = ["--models", "auto,ensemble_chains,map,linear", "--lengths", "2", "--splits", 2]
    done = ["airfoil", "--data-dir", data_dir, *models, *tiny, "--path", 2]
    # the likelihood of auto for both, so that they share their programs
    done += ["--set", "likelihood=heteroscedastic_t:0.01", "--out", tmp_path]
    assert benchmark(*done).exit_code == 0
    found = Records(tmp_path / "records").all("airfoil")
    assert len(found) == 8
    text = (tmp_path / "airfoil.md").read_text(encoding="utf-8")
    for label in ("auto", "ensemble_chains 2 + 2", "map", "linear"):
        model = label.split()[0]
        values = [record["nll"] for record in found if record["model"] == model]
        wanted = f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / 2**0.5:.3f}".replace("-", "−")
        assert f"| `{label}` | {wanted} |" in text.replace("**", "")
    assert "−0.91 | 0.1215 | 240" in text
    assert (tmp_path / "airfoil.png").stat().st_size > 10_000
    monkeypatch.setattr(airfoil, "run", never)
    assert benchmark(*done).exit_code == 0
    assert (tmp_path / "airfoil.md").read_text(encoding="utf-8") == text


def test_images(benchmark, data_dir, tmp_path, monkeypatch):
    quick = ["--epochs", 0.1, "--batch-size", 4, "--samples", 2, "--members", 2, "--data", "mnist"]
    done = ["images", "--data-dir", data_dir, *quick, "--out", tmp_path]
    assert benchmark(*done, "--methods", "deep_ensemble").exit_code == 0
    record = Records(tmp_path / "records").all("images")[0]
    assert record["steps"] == 1
    text = (tmp_path / "images.md").read_text(encoding="utf-8").replace("**", "")
    line = f"| mnist | `deep_ensemble`, 2 members | {record['accuracy']:.2f} | 99.4 | {record['nll']:.4f} | 0.016 |"
    assert line in text
    monkeypatch.setattr(images, "run", never)
    assert benchmark(*done, "--methods", "deep_ensemble").exit_code == 0
    with pytest.raises(AssertionError, match="a fit was run"):
        benchmark(*done, "--methods", "mfvi")


def test_scored_rows_of_images(data_dir):
    x, y, new, labels = images.load(data_dir, "mnist", False)
    assert x.shape == (24, 28, 28, 1)
    assert 0.9 < x.max() <= 1
    assert len(new) == len(labels) == 6
    x, y, new, labels = images.load(data_dir, "mnist", True)
    assert (len(x), len(y), len(new), len(labels)) == (20, 20, 4, 4)


STUB = """
import sys
from cases.measure import Measured

def work(seed, sizes, speed):
    assert not {"credo", "jax"} & set(sys.modules)  # peers have neither
    return Measured([float(speed)], 1.0, 0.5, float(speed), {"seed": seed})
"""


@pytest.fixture
def cases(tmp_path, monkeypatch):
    """credo and a peer, both made up: they need no library at all."""
    shutil.copytree(run.HERE / "cases", tmp_path / "driver" / "cases")
    (tmp_path / "driver" / "cases" / "stub.py").write_text(STUB)
    monkeypatch.setattr(run, "HERE", tmp_path / "driver")
    made = tuple(
        plan.Case("hmc", library, variant, plan.GRADIENTS, "stub", "work", {"speed": speed})
        for library, variant, speed in (("credo", "", 6.0), ("numpyro", "vectorized", 2.0))
    )
    monkeypatch.setattr(plan, "CASES", made)
    return made


def test_speed(benchmark, cases, tmp_path, monkeypatch):
    done = ["speed", "--peers", sys.executable, "--passes", 2, "--folder", tmp_path / "records", "--out", tmp_path]
    first = benchmark(*done)
    assert first.exit_code == 0, first.stderr
    text = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert "NumPyro vectorised | gradients/s | 6 | 2 | 3 | 3–3 | ≥ 2.5 met" in text
    assert "`python -m benchmarks speed --peers PYTHON --passes 2`" in text
    assert len(list((tmp_path / "records").iterdir())) == 4
    monkeypatch.setattr(run, "run_case", never)
    assert benchmark(*done).stdout == first.stdout


def test_speed_without_peers_and_with_a_case_that_fails(benchmark, cases, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "CASES", (plan.Case("hmc", "credo", "", "s", "stub", "absent"), cases[1]))
    result = benchmark("speed", "--out", tmp_path)
    assert result.exit_code == 1
    assert "Peers are skipped" in result.stderr
    assert "FAILED" in result.stderr


def test_speed_lists_its_cases(benchmark):
    shown = benchmark("speed", "--list", "--cases", "mfvi").stdout.split("\n")
    assert shown[0] == "mfvi/credo"
    assert all(line.startswith("mfvi/") for line in shown if line)
