"""Numbers as people write them: "$96,255", "1.234,56", "38%", "12 000".

One form holds for a whole column, found on its training rows: which mark is decimal and which unit stands beside. Units
are left out: 38% is 38.
"""

import re
from collections.abc import Iterable

import numpy as np

PLAIN, DOT, COMMA = "plain", "dot", "comma"
FORMS = (PLAIN, DOT, COMMA)
SIGNS = "$€£¥₹"
MOST_LETTERS = 60
UNIT = re.compile(
    rf"(?P<sign>[+\-−]?)\s*(?P<before>[{SIGNS}%]?)\s*(?P<inner>[+\-−]?)"
    rf"(?P<number>[\d.,'’\s]*\d[.,]?)\s*(?P<after>[{SIGNS}%]?)"
)
# Thousands stand in groups of three, or in no groups at all.
SPACED = r"\d{1,3}(?:['’\s]\d{3})+|\d+"
SHAPES = {
    DOT: re.compile(rf"(?:\d{{1,3}}(?:,\d{{3}})+|{SPACED})?(?:\.\d*)?"),
    COMMA: re.compile(rf"(?:\d{{1,3}}(?:\.\d{{3}})+|{SPACED})?(?:,\d*)?"),
}
GROUPS = re.compile(r"['’\s]")


def read(text: str, form: str) -> float:
    """The number that a text stands for in a form; NaN where it is none.

    Example:
        >>> read("$96,255", "dot"), read("1.234,56 €", "comma"), read("38%", "dot"), read("-1 500", "comma")
        (96255.0, 1234.56, 38.0, -1500.0)
    """
    match = UNIT.fullmatch(text.strip()) if len(text) <= MOST_LETTERS else None
    if match is None or (match["before"] and match["after"]) or (match["sign"] and match["inner"]):
        return np.nan
    number = match["number"].strip()
    if not SHAPES[form].fullmatch(number):
        return np.nan
    number = GROUPS.sub("", number)
    number = number.replace(",", "") if form == DOT else number.replace(".", "").replace(",", ".")
    return -float(number) if (match["sign"] or match["inner"]) in ("-", "−") else float(number)


def find(texts: Iterable[str]) -> str | None:
    """The form that all of these texts have, or None.

    Both marks of one text say which is decimal. Where no text does and commas stand before groups of three, they group
    thousands, as in "1,234"; `is_ambiguous` tells.
    """
    texts = list(texts)
    if not texts or len(_units(texts) - {""}) > 1 or _units(texts) == {"", "%"}:
        return None
    return next((form for form in (DOT, COMMA) if all(not np.isnan(read(text, form)) for text in texts)), None)


def is_ambiguous(texts: Iterable[str]) -> bool:
    """Tell whether texts would also be numbers in the other form, and other ones."""
    pairs = [(read(text, DOT), read(text, COMMA)) for text in texts]
    return all(not np.isnan(pair).any() for pair in pairs) and any(dot != comma for dot, comma in pairs)


def _units(texts: list[str]) -> set[str]:
    matches = (UNIT.fullmatch(text.strip()) if len(text) <= MOST_LETTERS else None for text in texts)
    return {(match["before"] or match["after"]) if match else "?" for match in matches}
