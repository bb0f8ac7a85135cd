"""Cells that exports encode without pandas, held to the encoder of tables."""

import json

import numpy as np

from credo.storage.export.portable import cells
from credo.tables.encode.unseen import find_unseen


def same_without_pandas(encoder, rows):
    """Features, and rows that training cannot tell of, are those of the encoder."""
    columns = cells.as_columns([row._asdict() for row in rows.itertuples(index=False)])
    plain = json.loads(json.dumps(encoder.to_config()))
    wanted = encoder.inputs(rows, unseen="zeros")
    encoded = cells.encode(plain, columns, unseen="zeros")
    np.testing.assert_array_equal(encoded, wanted)
    ours = [(one.name, one.why, one.rows.tolist()) for one in find_unseen(encoder, wanted)]
    assert [(one.name, one.why, one.rows.tolist()) for one in cells.unknown_cells(plain, encoded)] == ours
