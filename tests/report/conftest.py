"""Small runs on tables that the tests of the report share."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import credo
from credo.likelihoods import default_likelihood
from credo.report import RunData
from credo.tables.encode.encoder import TableEncoder

EVIL = "<script>alert('x')</script> & $a$ \\ \"q\""


def make_run(
    name: str, frame: pd.DataFrame, target: Any, method: Any, steps: int, task: str = "auto", likelihood: Any = None
) -> RunData:
    """A run scored on the last third of the rows."""
    cut = len(frame) * 2 // 3
    encoder = TableEncoder.learn(frame.iloc[:cut], target, task)
    number = len(encoder.classes) if encoder.classes else None
    model = credo.Model(
        credo.networks.mlp([6], activation="tanh"),
        credo.priors.normal(1.0),
        likelihood or default_likelihood(encoder.task, number),
    )
    arrays = encoder.arrays(frame.iloc[:cut])
    fit = credo.fit(jax.random.key(0), model, (arrays.inputs, arrays.targets), method, steps=steps)
    return RunData.from_table(name, fit, encoder, frame.iloc[cut:])


def numbers_table(inputs: tuple[str, ...] = ("a", "b"), rows: int = 180) -> pd.DataFrame:
    """y is a line in the first input with noise of 1."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, len(inputs)))
    return pd.DataFrame(x, columns=list(inputs)).assign(y=50 + 3 * x[:, 0] + rng.normal(size=rows))


def classes_table(rows: int = 150) -> pd.DataFrame:
    """Three classes in a row along the first input, with overlaps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    place = np.digitize(x[:, 0] + 0.4 * rng.normal(size=rows), [-0.5, 0.5])
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": np.array(["low", "mid", "high"])[place]})


@pytest.fixture(scope="session")
def regression() -> RunData:
    return make_run("numbers", numbers_table(), "y", credo.methods.BayesByBackprop(), 300, "regression")


@pytest.fixture(scope="session")
def classification() -> RunData:
    return make_run("classes", classes_table(), "kind", credo.methods.DeepEnsemble(size=3), 150)


@pytest.fixture(scope="session")
def sampler() -> RunData:
    method = credo.methods.HMC(num_steps=5, chains=2, warmup=30)
    return make_run("chains", numbers_table((EVIL,)), "y", method, 40, "regression")
