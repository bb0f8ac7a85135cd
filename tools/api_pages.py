"""The API reference: docs/api/, one page for each package, from what the packages export.

Docstrings are put in when the site is built.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PAGES = ROOT / "src", ROOT / "docs" / "api"
PACKAGES = (
    "credo",
    "credo.networks",
    "credo.priors",
    "credo.likelihoods",
    "credo.methods",
    "credo.posteriors",
    "credo.evaluation.metrics",
    "credo.evaluation.diagnostics",
    "credo.evaluation.recalibration",
    "credo.estimators",
    "credo.evaluation.comparison",
    "credo.evaluation.baselines",
    "credo.applications.continual",
    "credo.methods.function_space.infinite",
    "credo.methods.function_space",
    "credo.methods.variational.refinement",
    "credo.applications",
    "credo.applications.active",
    "credo.applications.detection",
    "credo.applications.optimise",
    "credo.adapters",
    "credo.storage.export",
    "credo.report",
    "credo.tables",
    "credo.evaluation.audit",
)
NOTE = "<!-- written by `make generate` -->"


def exports(package: str) -> list[str]:
    """Names that a package imports as themselves or lists in `__all__`; modules are left out.

    `credo.methods.shallow` has no page: its names are those of other packages.
    """
    tree = ast.parse(init(package).read_text(encoding="utf-8"))
    listed = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    if listed:
        return [name for name in ast.literal_eval(listed[0].value) if not name.isupper()]
    imports = [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    ]
    return sorted(
        {name for module, name in imports if not is_module(f"{module}.{name}")}, key=lambda name: (name.lower(), name)
    )


def init(package: str) -> Path:
    return SOURCE.joinpath(*package.split("."), "__init__.py")


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def summary(package: str) -> str:
    text = ast.get_docstring(ast.parse(init(package).read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def pages() -> dict[Path, str]:
    """Every page of the reference."""
    rows = "\n".join(f"| [`{name}`]({name}.md) | {summary(name)} |" for name in PACKAGES)
    texts = {PAGES / "index.md": f"{NOTE}\n\n# API reference\n\n| package | what it has |\n|---|---|\n{rows}\n"}
    for name in PACKAGES:
        entries = "\n\n".join(f"::: {name}.{each}" for each in exports(name))
        texts[PAGES / f"{name}.md"] = f"{NOTE}\n\n# `{name}`\n\n{summary(name)}\n\n{entries}\n"
    return texts
