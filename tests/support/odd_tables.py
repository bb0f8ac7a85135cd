"""Odd tables and odd options for `credo fit`, which is stopped before its first step; run as a program.

`python odd_tables.py FOLDER FIRST COUNT` says what came of each seed: "prepared" or "refused".
"""

import datetime
import gzip
import random
import warnings

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from seeded import main

WORDS = [
    "red",
    "green",
    "Zürich",
    "",
    " ",
    "nan",
    "None",
    "a,b",
    'say "x"',
    "two\nlines",
    "x" * 300,
    "=1+1",
    "🦊",
    "\x00",
]
NUMBERS = ["1", "-2.5", "1e400", "inf", "NaN", "1_000", "0x1f", "9" * 30, "-0", "+7", "1e-320", "٣", "½", "5²"]
WRITTEN = ["$96,255", "1.234,56", "38%", "12 000", "1,234", "€5", "1'000", "-$3", "(5)", "%", "1.2.3", "7"]
DATES = ["2020-01-31", "31.01.2020", "02/03/2021", "10000-01-01", "0000-00-00", "2020-02-30", "2021-03-04T05:06:07Z"]
NAMES = [
    "x",
    "size",
    "id",
    "z",
    "town",
    "",
    " ",
    "price",
    "Unnamed: 0",
    "a:b",
    "größe",
    "1",
    "0.5",
    "mean",
    "x" * 200,
    "a,b",
]


def column(rng, rows):
    """One column of some kind."""
    number = np.random.default_rng(rng.randrange(2**32))
    many = {
        "normal": lambda: number.normal(size=rows),
        "far": lambda: number.normal(size=rows) * 10.0 ** rng.randrange(-320, 308),
        "whole": lambda: number.integers(0, rng.choice([1, 2, 3, 10, 2**40]), rows),
        "id": lambda: np.arange(rows),
        "constant": lambda: [7] * rows,
        "nothing": lambda: [None] * rows,
        "truth": lambda: number.choice([True, False], rows),
        "long": lambda: [rng.choice([2**62, 2**63, -(2**70), 10**40]) for _ in range(rows)],
        "dates": lambda: pd.date_range("1999-12-31", periods=rows, freq=rng.choice(["D", "7h", "YS", "min"])),
        "far dates": lambda: np.array([rng.choice([2**33, 2**45, -(2**40)])] * rows, "datetime64[s]"),
        "spans": lambda: pd.to_timedelta(number.uniform(0, 1e6, rows), unit="s"),
        "categories": lambda: pd.Categorical(number.choice(["a", "b", ""], rows)),
        "intervals": lambda: pd.cut(number.uniform(0, 1, rows), 3) if rows else [],
        "periods": lambda: pd.period_range("2020-01", periods=rows, freq="M"),
        "complex": lambda: number.normal(size=rows) * 1j,
        "lists": lambda: [[1] * rng.randrange(3) for _ in range(rows)],
        "structures": lambda: [{"a": i} for i in range(rows)],
        "bytes": lambda: [b"\xff\x00"] * rows,
        "times": lambda: [datetime.time(i % 24) for i in range(rows)],
    }
    texts = {"words": WORDS, "numbers": NUMBERS, "written": WRITTEN, "dates in text": DATES}
    texts["everything"] = WORDS + NUMBERS + WRITTEN + DATES
    kind = rng.choice([*many, *many, *texts, *texts])
    if kind in many:
        cells = pd.Series(many[kind]())
    else:
        some = rng.sample(texts[kind], rng.randrange(1, min(6, len(texts[kind])) + 1))
        cells = pd.Series([rng.choice(some) for _ in range(rows)], dtype=object)
    holes = rng.choice([0, 0, 0, 0.1, 0.5])
    if holes:
        cells = cells.where(number.uniform(size=len(cells)) > holes)
    return cells


def frame_of(rng):
    """A table with columns of several kinds, mostly with a good target called y."""
    rows = rng.choice([0, 1, 2, 5, 20, 20, 20, 40, 40, 40, 40, 40, 40, 40, 40, 40])
    found = {rng.choice(NAMES) + rng.choice(["", "", "2"]): column(rng, rows) for _ in range(rng.randrange(1, 6))}
    found["y"] = column(rng, rows) if rng.random() < 0.2 else pd.Series(np.random.default_rng(1).normal(size=rows))
    return pd.DataFrame(found)


def written(frame, folder, rng):
    """The table in some format, now and then with bytes that are cut off or changed."""
    ending = rng.choice([*["csv"] * 9, "csv.gz", "tsv", *["parquet"] * 4, "feather", "arrow", "xlsx"])
    path = folder / f"t.{ending}"
    try:
        if ending == "parquet":
            frame.to_parquet(path)
        elif ending in ("feather", "arrow"):
            frame.to_feather(path)
        else:
            text = frame.to_csv(index=rng.random() < 0.1, sep="\t" if ending == "tsv" else rng.choice(",,;"))
            encoding = rng.choice([*["utf-8"] * 9, "utf-8-sig", "utf-16", "cp1252", "utf-32"])
            content = text.encode(encoding, "replace")
            path.write_bytes(gzip.compress(content) if ending == "csv.gz" else content)
    except Exception:  # this table has no such form
        path = folder / "t.csv"
        path.write_text(frame.to_csv(index=False), errors="replace")
    if rng.random() < 0.05:
        content = bytearray(path.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content[: rng.randrange(1, len(content) + 1)] if rng.random() < 0.5 else content)
    return path


def options_of(rng, frame):
    """Options of `credo fit`, most of them good."""
    names = [*map(str, frame.columns), "nowhere", ""]
    choices = {
        "--task": ["auto", "regression", "classification", "binary", "multiclass", "count", "clasification"],
        "--missing": ["error", "drop", "impute", "ignore"],
        "--holdout": ["0", "0.1", "0.5", "0.99", "1", "-1", "nan", "inf"],
        "--seed": ["0", "1", "-1", "4294967295", "4294967296", "9" * 30],
        "--steps": ["1", "0", "9" * 12, "9" * 30, "1.5"],
        "--budget": ["5s", "0s", "soon", "1e400s", "٣s", "-5m"],
        "--batch-size": ["1", "8", "9" * 30],
        "--network": ["mlp:3", "mlp:", "mlp:5²", "mlp:0", "mlp:99999999999", "shallow:3", "mlp:3:tan", "mlp:٣", "cnn"],
        "--method": ["map", "hmc", "deep_ensemble", "gibbs", "laplace", "nuts", "mapp"],
        "--set": ["learning_rate=0.1", "learning_rate=inf", "prior=normal:1", "prior=normal:x", "noise=-1", "a", "b=1",
                  "likelihood=student_t", "likelihood=poisson", "temperature=0", "warmup=" + "9" * 30],
        "--weights": names, "--split-by": names, "--time": names, "--drop": names,
    }  # fmt: skip
    found = ["--target", "y" if rng.random() < 0.9 else rng.choice(names), "--missing", rng.choice(["impute", "drop"])]
    for option in rng.sample(sorted(choices), rng.choice([0, 0, 0, 1, 1, 2])):
        found += [option, rng.choice(choices[option])]
    return found if "--method" in found else [*found, "--method", "map"]


def one(folder, seed):
    """Write a table, prepare a fit of it, and encode another table with what was learned."""
    from credo.cli.main import app

    rng = random.Random(seed)
    frame = frame_of(rng)
    path = written(frame, folder, rng)
    arguments = ["fit", str(path), *options_of(rng, frame), "--out", str(folder / "run")]
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise RuntimeError(f"{arguments} on {frame.dtypes.to_dict()}") from result.exception
    assert result.exit_code in (0, 2), (result.exit_code, arguments, result.output)
    if result.exit_code == 0:
        return "prepared"
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1, (arguments, result.stderr)
    assert result.stderr.splitlines()[-1] == errors[0], (arguments, result.stderr)
    return "refused"


def stopped_before_the_fit():
    """Let `credo fit` end where its first step would be taken, after a round through what is saved and encoded."""
    from credo.cli import fit
    from credo.errors import InputError
    from credo.tables import fitting
    from credo.tables.encode.encoder import TableEncoder

    def instead(prepared, *_):
        encoder = TableEncoder.from_config(prepared.encoder.to_config())
        assert np.isfinite(prepared.train.inputs).all()
        assert np.isfinite(prepared.train.targets).all()
        try:
            inputs = encoder.inputs(pd.DataFrame(frame_of(random.Random(prepared.job.seed))), unseen="zeros")
            assert np.isfinite(inputs).all()
        except InputError:
            pass

    fitting.train = instead
    fit.finish = lambda run, as_json, verbose: None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    stopped_before_the_fit()
    main(one)
