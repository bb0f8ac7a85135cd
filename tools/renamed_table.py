"""The table of the CHANGELOG that says where a module of an old name is now."""

from pathlib import Path

from readme_table import between_markers

from credo.renamed import MODULES, NAMES, PACKAGES, SHORT

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def row(old: str, new: str) -> str:
    return f"| {old} | `{new}` |"


def modules(before: str, after: str, names: str) -> str:
    """The modules of one folder that went to another."""
    parts = [name.partition("=") for name in names.split()]
    words = [f"`{old}`" + (f" (now `{new}`)" if new else "") for old, _, new in parts]
    return row(f"`{f'credo.{before}'.rstrip('.')}`: {', '.join(words)}", f"credo.{after}")


def table() -> str:
    """Old and new names as a Markdown table."""
    rows = [row(f"`credo.{old}` (stays a short name)", f"credo.{new}") for old, new in SHORT.items()]
    rows += [row(f"`credo.{old}`", f"credo.{new}") for old, new in PACKAGES.items()]
    rows += [modules(before, after, names) for (before, after), names in MODULES.items()]
    rows += [row(f"`{module}.{name}`", new) for module, names in NAMES.items() for name, new in names.items()]
    return "\n".join(["| old | new |", "|---|---|", *rows])


def pages() -> dict[Path, str]:
    """The CHANGELOG with the table of `credo.renamed`."""
    return between_markers(CHANGELOG, table())
