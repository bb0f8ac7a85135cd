"""`credo methods`: the tables of methods, likelihoods, priors, networks and metrics."""

from typing import Annotated, Any

import typer

from credo.cli.console import emit
from credo.cli.options import AsJson
from credo.errors import InputError


def methods(
    kind: Annotated[
        str, typer.Argument(help="methods, likelihoods, priors, networks or metrics.", metavar="[KIND]")
    ] = "methods",
    as_json: AsJson = False,
) -> None:
    """List the inference methods; or likelihoods, priors and networks with the words for them; or metrics."""
    from credo.registry import LIKELIHOODS, METHODS, METRICS, NETWORKS, PRIORS, Table, did_you_mean

    every: tuple[Table[Any], ...] = (METHODS, LIKELIHOODS, PRIORS, NETWORKS, METRICS)
    tables = {f"{table.kind}s": table for table in every}
    if kind not in tables:
        raise InputError(f"Unknown kind {kind!r}.{did_you_mean(kind, tables)} There are {', '.join(tables)}.")
    table = tables[kind]
    shown = ("name", "summary", "capability", "exact_on", "tasks", "inputs", "example", "better")
    if as_json:
        emit([{key: value for key, value in vars(row).items() if key in shown} for row in table.values()])
        return
    width = max(map(len, table))
    for row in table.values():
        example = vars(row).get("example", "")
        print(f"{row.name:<{width}}  {row.summary}{f' ({example})' if example else ''}")
