"""The table of methods in the README, from the registry."""

from pathlib import Path

from credo.registry import ROWS

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- generated:begin -->", "<!-- generated:end -->"
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


def between_markers(page: Path, rows: str) -> dict[Path, str]:
    """A page with this table between its markers."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page.name} lacks the markers {BEGIN} and {END}.")
    return {page: f"{before}{BEGIN}\n{rows}\n{END}{after}"}


def pages() -> dict[Path, str]:
    """The README with the table that the registry has now."""
    return between_markers(README, table())
