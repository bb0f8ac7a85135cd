"""Write the table of methods into the README, from the registry.

Run it after every change of the registry: `python tools/readme_table.py`. With `--check` it writes nothing and fails
where the README is stale.
"""

import sys
from pathlib import Path

from credo.registry import ROWS

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- methods:begin -->", "<!-- methods:end -->"
TRUTH = {
    "posterior": "draws from the exact posterior",
    "architectures": "draws from the exact posterior, which nodes there are included",
    "near_posterior": "draws close to the posterior: means to 0.1 standard deviations, variances to 10 %",
    "weighted": "weighted draws, exact unless their weights say otherwise",
    "gaussian": "the exact posterior",
    "functions": "the exact posterior of the function",
    "mean_field": "the closest mean-field Gaussian",
    "mean": "the posterior mean; its spread is not the posterior's",
    "mode": "the posterior mode",
    "least_squares": "least squares",
}


def table() -> str:
    """The methods as a Markdown table."""
    head = ["| name | class | what it is | on a linear model it gives | capability |", "|---|---|---|---|---|"]
    rows = [
        f"| `{row.name}` | `{row.builder.partition(':')[2]}` | {row.summary} "
        f"| {TRUTH.get(row.exact_on, row.exact_on)} | {row.capability} |"
        for row in ROWS
    ]
    return "\n".join([*head, *rows])


def fresh(text: str, rows: str, name: str) -> str:
    """A page with the table between its markers as the registry has it now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{name} lacks the markers {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n{rows}\n{END}{after}"


def update(page: Path, rows: str, command: str, arguments: list[str]) -> int:
    """Write the table into the page, or with `--check` only say whether it is stale."""
    text = page.read_text(encoding="utf-8")
    new = fresh(text, rows, page.name)
    if "--check" not in arguments:
        page.write_text(new, encoding="utf-8")
    elif new != text:
        print(f"The table of methods in {page.name} is stale: run {command}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(update(README, table(), "python tools/readme_table.py", sys.argv[1:]))
