"""Ratios of credo to its peers and the one Markdown table that shows them."""

import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.speed.plan import COMPARISONS, PREDICT_RSS_MB, Comparison

Row = dict[str, Any]
HEADER = (
    "work", "against", "unit", "credo", "peer", "credo / peer", "per pass", "bar", "run s (credo, peer)",
    "compile s (credo, peer)", "notes",
)  # fmt: skip


def good(rows: Iterable[Row], key: str, number: int | None = None) -> list[Row]:
    """Rows of a case that ended well, of one pass or of all."""
    return [r for r in rows if r["key"] == key and "failed" not in r and (number is None or r["pass"] == number)]


def middle(rows: list[Row], name: str) -> float | None:
    """Median of a recorded number, None when nothing recorded it."""
    values = [r[name] for r in rows if r.get(name) is not None]
    return statistics.median(values) if values else None


def fastest(rows: list[Row], peers: tuple[str, ...], name: str, number: int | None = None) -> str | None:
    """The peer case with the highest rate."""
    rates = {key: middle(good(rows, key, number), name) for key in peers}
    measured = {key: rate for key, rate in rates.items() if rate is not None}
    return max(measured, key=lambda key: measured[key]) if measured else None


def compare(rows: list[Row], c: Comparison) -> dict[str, Any]:
    """One comparison: ratio per pass (neighbours in time), their median, and the times behind it."""
    ratios = []
    for number in sorted({r["pass"] for r in rows}):
        mine = middle(good(rows, f"{c.workload}/credo", number), c.credo)
        peer = fastest(rows, c.peers, c.peer, number)
        theirs = middle(good(rows, peer, number), c.peer) if peer else None
        if mine is not None and theirs is not None:
            ratios.append(mine / theirs)
    peer = fastest(rows, c.peers, c.peer)
    credo_rows = good(rows, f"{c.workload}/credo")
    peer_rows = good(rows, peer) if peer else []
    ratio = statistics.median(ratios) if ratios else None
    return {
        "work": c.work,
        "against": c.against,
        "peer_case": peer,
        "unit": next((r["unit"] for r in credo_rows + peer_rows), None),
        "credo": middle(credo_rows, c.credo),
        "peer": middle(peer_rows, c.peer),
        "ratio": ratio,
        "ratios": ratios,
        "bar": c.bar,
        "met": None if ratio is None or c.bar is None else ratio >= c.bar,
        "run_seconds": [middle(credo_rows, "run_seconds"), middle(peer_rows, "run_seconds")],
        "compile_seconds": [middle(credo_rows, "compile_seconds"), middle(peer_rows, "compile_seconds")],
        "notes": notes(rows, [f"{c.workload}/credo", *c.peers]),
    }


def notes(rows: list[Row], keys: list[str]) -> list[str]:
    """What a reader must know before trusting the line."""
    remarks = []
    for key in keys:
        mine = [r for r in rows if r["key"] == key]
        name = key.split("/", 1)[1]
        if not mine:
            remarks.append(f"{name} not run")
        remarks += sorted({f"{name} FAILED: {r['failed']}" for r in mine if "failed" in r})
        if any("failed" not in r and r["value"] is None for r in mine):
            remarks.append(f"{name} too short to tell from compilation")
        others = [r["other_cores"] for r in mine if r.get("contended")]
        if others:
            remarks.append(f"CONTENDED {name}: others took up to {max(others):.2f} cores")
        compiled = max((r.get("facts", {}).get("compilations_while_timed", 0) for r in mine), default=0)
        if compiled:
            remarks.append(f"{name} compiled {compiled} programs while timed")
        split = max((r["rhat_max"] for r in mine if r.get("rhat_max") is not None), default=0.0)
        if split > 1.05:
            remarks.append(f"{name} R-hat {split:.2f}")
    return remarks


def prediction(rows: list[Row]) -> list[dict[str, Any]]:
    """The prediction case has no peer: its seconds, and its memory against the bar."""
    mine = good(rows, "predict/credo")
    if not any(r["key"] == "predict/credo" for r in rows):
        return []
    rss = max((r["peak_rss_mb"] for r in mine), default=None)
    common = {
        "work": "prediction, 1,000 draws × 10,000 inputs, 784-100-10",
        "peer": None,
        "ratio": None,
        "ratios": [],
        "run_seconds": [middle(mine, "run_seconds"), None],
        "compile_seconds": [middle(mine, "compile_seconds"), None],
        "notes": notes(rows, ["predict/credo"]),
    }
    met = None if rss is None else rss <= PREDICT_RSS_MB
    time_line = {"against": "time", "unit": "s", "credo": middle(mine, "value"), "bar": None, "met": None}
    memory = {"against": "peak RSS", "unit": "MB", "credo": rss, "bar": PREDICT_RSS_MB, "met": met}
    return [common | time_line, common | memory]


def lines(rows: list[Row]) -> list[dict[str, Any]]:
    """All lines of the table whose workload was run."""
    run = {r["workload"] for r in rows}
    return [compare(rows, c) for c in COMPARISONS if c.workload in run] + prediction(rows)


def number(value: float | None) -> str:
    """Three significant digits, a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(table: list[dict[str, Any]]) -> str:
    """The table as text."""
    out = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for line in table:
        spread = f"{number(min(line['ratios']))}–{number(max(line['ratios']))}" if line["ratios"] else "–"
        sign = "≤" if line["unit"] == "MB" else "≥"
        verdict = {True: " met", False: " NOT MET", None: ""}[line["met"]]
        cells = (
            line["work"],
            line["against"],
            line["unit"] or "–",
            number(line["credo"]),
            number(line["peer"]),
            number(line["ratio"]),
            spread,
            f"{sign} {number(line['bar'])}{verdict}" if line["bar"] else "–",
            ", ".join(map(number, line["run_seconds"])),
            ", ".join(map(number, line["compile_seconds"])),
            "; ".join(line["notes"]).replace("|", "/"),
        )
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def page(rows: list[Row], command: str, where: str, quick: bool) -> str:
    """The table with what a reader must know about it."""
    warning = "Quick sizes: this shows that the cases run; the numbers and verdicts mean nothing." if quick else ""
    rule = (
        "Each case runs alone in a fresh process on the processor, with an empty compilation cache; compilation and "
        "run are apart. A ratio is taken within a pass, the table shows the median over passes and their range."
    )
    parts = ["# Speed", rule, warning, markdown(lines(rows)), f"- `{command}`\n- {where}"]
    return "\n\n".join(part for part in parts if part) + "\n"
