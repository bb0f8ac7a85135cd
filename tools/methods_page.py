"""Write the tables of docs/methods.md from the registry and from the methods' own defaults.

Run it after every change of the registry: `python tools/methods_page.py`. With `--check` it writes nothing and fails
where the page is stale.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from readme_table import TRUTH, update

from credo.registry import ROWS, Row

PAGE = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
NETWORKS = {"any": "", "nodes": "networks of at most one hidden layer", "wide": "perceptrons with erf or relu"}
LIKELIHOODS = {"any": "", "normal": "normal noise or two classes"}
MANY = 10_000  # rows: enough for a default to choose minibatches


def cost(row: Row) -> str:
    """Members × steps of the main phase, and the rows that one step looks at."""
    from credo.core.method import main_phase

    method = row.load()()
    stages = method.parts or (method,)
    phases = stages[-1].phases(MANY, int(method.default_steps))
    rows = {"random": "a minibatch", "sweep": "a minibatch", "full": "all rows", "none": "none"}
    members = f"{int(method.members)} × " if int(method.members) > 1 else ""
    return f"{members}{int(method.default_steps):,} | {rows[phases[main_phase(phases)].batch]}"


def limits(row: Row) -> str:
    """What the method is only for, as a sentence."""
    words = ", ".join(filter(None, (NETWORKS[row.networks], LIKELIHOODS[row.likelihoods])))
    return f" Only for {words}." if words else ""


def table() -> str:
    """The methods as a Markdown table."""
    head = [
        "| name | what it is | exact on a linear model | members × steps by default | a step looks at |",
        "|---|---|---|---|---|",
    ]
    rows = [
        f"| `{row.name}` | {row.summary}{limits(row)} | {TRUTH.get(row.exact_on, row.exact_on)} | {cost(row)} |"
        for row in ROWS
    ]
    return "\n".join([*head, *rows])


if __name__ == "__main__":
    sys.exit(update(PAGE, table(), "python tools/methods_page.py", sys.argv[1:]))
