"""Reads damaged Arrow, Feather and Parquet files of every column type; run as a program, because a reader may crash.

`python damaged_files.py FOLDER FIRST COUNT` says what came of each seed.
"""

import datetime
import decimal
import random

import numpy as np
import pyarrow as pa

from seeded import main

ROWS = 20
FORMS = ("parquet", "snappy", "checked", "feather", "lz4", "stream")


def columns():
    """One column of each type, with missing cells."""

    def holed(values, kind=None):
        return pa.array([None if i % 7 == 3 else value for i, value in enumerate(values)], kind)

    whole, words = range(ROWS), [("red", "green", "a rather long blue")[i % 3] for i in range(ROWS)]
    seconds = [1_600_000_000 + i for i in whole]
    days = [datetime.date(2020, 1, 1 + i) for i in whole]
    prices = [decimal.Decimal(i) / 4 for i in whole]
    simple = (pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_())
    made = {str(kind): holed(whole, pa.int64()).cast(kind) for kind in simple}
    made["half"] = holed(np.arange(ROWS, dtype=np.float16), pa.float16())
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view()):
        made[str(kind)] = holed(words, kind)
    made["dictionary"] = made["string"].dictionary_encode()
    made["fixed"] = holed([b"abcd"] * ROWS, pa.binary(4))
    made |= {"date32": holed(days), "date64": holed(days, pa.date64())}
    made |= {f"stamp_{unit}": holed(seconds, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")}
    made["zoned"] = holed(seconds, pa.timestamp("us", "Europe/Berlin"))
    made |= {"time32": holed(whole, pa.time32("s")), "time64": holed(whole, pa.time64("us"))}
    made["duration"] = holed(whole, pa.duration("ms"))
    made |= {"decimal": holed(prices, pa.decimal128(10, 2)), "wide": holed(prices, pa.decimal256(50, 2))}
    made["list"] = holed([[i, i + 1] for i in whole])
    made["struct"] = holed([{"a": i, "b": "x"} for i in whole])
    made["map"] = holed([[("k", i)] for i in whole], pa.map_(pa.string(), pa.int64()))
    made["null"] = pa.nulls(ROWS)
    return made


def write(table, path, form):
    """Write a table in one of `FORMS`."""
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    if form in ("parquet", "snappy", "checked"):
        compression = "snappy" if form == "snappy" else "none"
        parquet.write_table(table, path, compression=compression, write_page_checksum=form == "checked")
    elif form == "stream":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        feather.write_feather(table, path, compression="lz4" if form == "lz4" else "uncompressed")


def damaged(whole, rng):
    """The bytes of a file, cut short or with one to four of them changed."""
    found = bytearray(whole)
    if rng.random() < 0.15:
        return bytes(found[: rng.randrange(1, len(found))])
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        place = rng.randrange(len(found))
        found[place] = rng.randrange(256) if rng.random() < 0.5 else found[place] ^ (1 << rng.randrange(8))
    return bytes(found)


def one(folder, made, seed):
    """Damage one file by a seed, read it and learn an encoder from it; "read" or "refused"."""
    from credo.errors import CredoError
    from credo.tables.encode.encoder import TableEncoder
    from credo.tables.read.files import read_table

    rng = random.Random(seed)
    name, form = rng.choice(sorted(made)), rng.choice(FORMS)
    path = folder / ("t.parquet" if form in ("parquet", "snappy", "checked") else "t.arrow")
    write(pa.table({"x": made[name], "z": pa.array(range(ROWS)), "y": pa.array(range(ROWS), pa.float64())}), path, form)
    path.write_bytes(damaged(path.read_bytes(), rng))
    try:
        frame = read_table(path)
        TableEncoder.learn(frame, frame.columns[-1], missing="impute").arrays(frame)
    except CredoError:
        return "refused"
    return "read"


if __name__ == "__main__":
    made = columns()
    main(lambda folder, seed: one(folder, made, seed))
