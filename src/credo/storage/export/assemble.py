"""One file of `portable` and the modules that it shares with credo, for every exported folder; it needs NumPy alone."""

import ast
from pathlib import Path

SHARED = (
    "errors",
    *(f"core/{name}" for name in ("numpy_special", "special", "densities", "averages", "functionals")),
    *(f"tables/{name}" for name in ("read/number_forms", "encode/features", "encode/hashed_words", "encode/levels")),
    "storage/archives",
)
PORTABLE = ("networks", "likelihoods", "cells", "prediction", "load")
MODULES = (*SHARED, *(f"storage/export/portable/{name}" for name in PORTABLE))
HEAD = '''"""Exported predictors of credo without credo: `load(folder).predict(rows)`.

Needs Python 3.11 and NumPy; predictors of the form "stablehlo" need JAX and flatbuffers as well. Files hold data only.

    import portable                                # this file
    predictor = portable.load(".")                 # the folder with predictor.json
    prediction = predictor.predict({"dose": [1.0, 2.0], "town": ["Bath", "York"]})
    prediction.mean, prediction.std, prediction.interval(0.9)
"""
'''


def assemble() -> str:
    """The source of `portable.py`: all imports first, then the bodies of the modules one after another.

    Example:
        >>> "import jax\\n" in assemble().split("class ")[0]
        False
    """
    imports: dict[str, None] = {}
    bodies = []
    for name in MODULES:
        path = Path(__file__).parents[2] / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        lines, body = text.splitlines(), []
        nodes = ast.parse(text).body
        for index, node in enumerate(nodes):
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not ast.unparse(node).startswith("from credo"):
                    imports.setdefault(ast.unparse(node))
            elif index > 0:  # the first is the docstring
                body.append(index)
        first = nodes[body[0]]
        decorators = first.decorator_list if isinstance(first, ast.ClassDef | ast.FunctionDef) else []
        start = min([first.lineno, *(d.lineno for d in decorators)])
        bodies.append("\n".join(lines[start - 1 :]))
    ordered = sorted(imports, key=lambda line: (line.startswith("from"), line))
    return "\n\n".join([HEAD + "\n" + "\n".join(ordered), *(body.rstrip() + "\n" for body in bodies)])
