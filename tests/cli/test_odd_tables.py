"""Odd tables and odd options: `credo fit` prepares or refuses in one sentence; it never ends in a traceback."""

import pytest

import odd_tables
from seeded import survivors


def test_odd_tables_and_options(tmp_path):
    found = survivors(odd_tables, tmp_path, 0, 300)
    assert found.total() == 300
    assert min(found["prepared"], found["refused"]) > 60  # both ways are tried


@pytest.mark.full
def test_many_odd_tables_and_options(tmp_path):
    assert survivors(odd_tables, tmp_path, 1000, 5000).total() == 5000
