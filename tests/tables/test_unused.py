"""Notes on columns that are left out, and all of them in one sentence."""

import random

import pytest

from credo.tables.columns.unused import LONGEST, REASONS, in_one_sentence, left_out

WORDS = ["id", "a b", "it's", "two\nlines", "x' holds y", "größe", "and is left out.", ""]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("name", WORDS)
def test_a_note_is_read_back(name, reason):
    assert in_one_sentence([left_out(name, f"{reason} 'km' and more")]) == f"Left out: {name} ({REASONS[reason]})."


def test_everything_is_in_one_sentence():
    notes = [
        "3 of 60 rows have no 'price' and are left out.", "2 of 57 training rows have missing cells and are left out.",
        left_out("x", "holds bytes"), "The target 'price' holds numbers.", "Column 'n' has very many categories.",
        *(left_out(f"c{i}", "has one value in all training rows") for i in range(5)),
    ]  # fmt: skip
    assert in_one_sentence(notes) == (
        "Left out: 3 of 60 rows (no 'price'), 2 of 57 rows (missing cells), x (cannot be read), "
        "c0, c1, c2 and 2 more (always the same)."
    )
    assert in_one_sentence(["The target 'price' holds numbers."]) == ""


def test_the_sentence_stays_short():
    rng = random.Random(0)
    notes = [left_out("n" * rng.randint(1, 10**4), rng.choice(list(REASONS))) for _ in range(1000)]
    assert len(in_one_sentence(notes)) < len(REASONS) * (3 * LONGEST + 60)
