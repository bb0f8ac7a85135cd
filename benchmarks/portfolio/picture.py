"""Mean ranks of the portfolio's models, with the distance that chance may make."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.portfolio.board import Board, compared, gather, models, ranks
from benchmarks.portfolio.page import TASKS
from benchmarks.portfolio.rivals import CREDO
from credo.report.style import INK, MODEL, MUTED, dress


def draw(records: list[dict[str, Any]]) -> Figure:
    """One line of models for each task; a bar as long as Nemenyi's distance, where there is a test."""
    by_task = {task: board for task in TASKS if (board := gather(records, task))}
    most = max(len(models(board)) for board in by_task.values())
    figure = Figure(figsize=(8.0, len(by_task) * (1.5 + 0.34 * most)), layout="constrained")
    for area, (task, board) in zip(figure.subplots(len(by_task), 1, squeeze=False)[:, 0], by_task.items()):
        dress(area, f"{TASKS[task]}: mean rank by log-likelihood, {len(board)} sets", "mean rank (1 is best)", "", 13)
        _lines(area, board)
    return figure


def _lines(area: Axes, board: Board) -> None:
    by_set = ranks(board, "log_likelihood")
    model_ranks = {m: [line[m] for line in by_set.values() if m in line] for m in models(board)}
    means = sorted(((sum(r) / len(r), len(r), m) for m, r in model_ranks.items() if r), reverse=True)
    for height, (mean, _, model) in enumerate(means):
        area.plot([1, mean], [height, height], color=MUTED, lw=1.2, alpha=0.6)
        area.plot(mean, height, "o", ms=9, color=MODEL if model in CREDO else INK)
        area.annotate(f"{mean:.2f}", (mean, height), (9, 0), textcoords="offset points", va="center", fontsize=10)
    area.set_yticks(range(len(means)), [f"{model} ({sets})" for _, sets, model in means])
    test = compared(board, "log_likelihood")
    if test is not None:
        area.plot([1, 1 + test.critical], [-0.75, -0.75], color=INK, lw=2.5)
        label = f"Nemenyi's distance {test.critical:.2f} ({len(test.ranks)} models, {test.sets} sets)"
        area.annotate(label, (1 + test.critical, -0.75), (8, 0), textcoords="offset points", va="center", fontsize=9)
    area.set_ylim(-1.3, len(means) - 0.4)
    area.set_xlim(0.8, max((mean for mean, _, _ in means), default=2.0) + 0.8)
    area.tick_params(labelsize=11)
