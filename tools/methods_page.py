"""The table of docs/methods.md, from the registry and from the methods' own defaults."""

from pathlib import Path

from readme_table import TRUTH, between_markers

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


def pages() -> dict[Path, str]:
    """The page with the table that the registry has now."""
    return between_markers(PAGE, table())
