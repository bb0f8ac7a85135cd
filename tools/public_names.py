"""What the registry names, as `from … import X as X` in the packages of likelihoods, priors and networks.

`make generate` runs it after a change of the registry. Lines that stand there stay.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from credo.registry import LIKELIHOODS, NETWORKS, PRIORS, Part

SOURCE = Path(__file__).resolve().parents[1] / "src"
LINE = re.compile(r"^from (\S+) import (\S+) as \2$", re.MULTILINE)


def with_names(text: str, rows: Sequence[Part]) -> str:
    """A package's text with an import of the class and the builder of every row, in the order that ruff has."""
    modules = [row.builder.split(":") for row in rows]
    names = {(module, name) for row, (module, build) in zip(rows, modules) for name in (row.makes, build)}
    lines = sorted(
        names | set(LINE.findall(text)),
        key=lambda pair: (pair[0], not (pair[1].isupper() and len(pair[1]) > 1), not pair[1][0].isupper(), pair[1]),
    )
    matches = [*LINE.finditer(text)]
    imports = "\n".join(f"from {module} import {name} as {name}" for module, name in lines)
    return text[: matches[0].start()] + imports + text[matches[-1].end() :]


def pages() -> dict[Path, str]:
    """The text of each package by its file."""
    tables = {"likelihoods": LIKELIHOODS, "priors": PRIORS, "networks": NETWORKS}
    paths = {SOURCE / "credo" / package / "__init__.py": table for package, table in tables.items()}
    return {path: with_names(path.read_text(encoding="utf-8"), [*table.values()]) for path, table in paths.items()}
