"""Write the tables of docs/developer/offers.md from the protocols of `credo.core.capabilities`."""

import ast
from pathlib import Path

from readme_table import between_markers

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "developer" / "offers.md"
SOURCE = ROOT / "src" / "credo" / "core" / "capabilities.py"
# The last word of a protocol's name → the section it belongs to.
SECTIONS = {
    "Network": "A network",
    "Distribution": "What a prior's `bind` gives",
    "Prior": "A prior",
    "Likelihood": "A likelihood",
    "Posterior": "A posterior",
    "Spread": "The spread of a Gaussian posterior",
}


def protocols() -> dict[str, str]:
    """The docstring of every protocol, by name, each on one line."""
    classes = [node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    nodes = [node for node in classes if any(ast.unparse(base) == "Protocol" for base in node.bases)]
    return {node.name: ast.get_docstring(node) or "" for node in nodes}


def table() -> str:
    """One table for each kind of part: what it may offer, what happens otherwise, and which methods use it."""
    lines = []
    for ending, title in SECTIONS.items():
        rows = {name: text for name, text in protocols().items() if name.endswith(ending)}
        lines += [f"## {title}", "", "| protocol | what it offers | otherwise, and who uses it |", "|---|---|---|"]
        for name, text in rows.items():
            what, _, use = text.partition("\n\n")
            lines.append(f"| `{name}` | {' '.join(what.split())} | {' '.join(use.split())} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def pages() -> dict[Path, str]:
    """The page with the protocols that there are now."""
    return between_markers(PAGE, table())
