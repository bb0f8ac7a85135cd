"""The leaderboard of the UCI study as a page: sentences, tables, and what made it."""

import re

from benchmarks import published
from benchmarks.grid import GRID
from benchmarks.uci_auto import describe
from benchmarks.uci_board import (
    Board,
    ahead_of,
    ahead_of_published,
    counted,
    describe_splits,
    names,
    score_table,
    seconds_table,
)
from credo.evaluation.baselines import BASELINES
from credo.tables.auto import AUTO

RULE = (
    "Networks and baselines on the UCI regression sets with the published random splits of 90 % and 10 %. Inputs and "
    "targets are standardised on the training rows of a split, scores are on the original scale. `auto` is "
    '`method="auto"`: it looks at the training rows and at the machine, never at a test row.'
)
GRADES = (
    "The targets of wine are whole grades. A density may put spikes on them, `auto` down to a hundredth of their "
    "standard deviation, and one Gaussian cannot: log-likelihoods there tell more about the grid than about the wines."
)
LISTED = (
    "They have one hidden layer and mostly normal noise; what `auto` took is said above. The list has what was found "
    "and could be checked: there are others, such as networks by HMC in Bui et al. (2016), Deep Gaussian processes for "
    "regression using approximate expectation propagation."
)
TUNED = " For other methods a setting is chosen on each split by cross-validation of its training rows."


def sentences(board: Board) -> list[str]:
    """On how many sets `auto` is the better one."""
    if not any(model == AUTO and cell.rows for (_, model), cell in board.items()):
        return []
    lines = [counted(ahead_of_published(board), "every published row of a neural network in the table")]
    others = [name for name in ("boosting", "gp", "forest", "linear") if ahead_of(board, name)]
    return lines + [counted(ahead_of(board, name), f"`{name}`") for name in others]


def markdown(board: Board, command: str) -> str:
    """The page."""
    ahead = sentences(board)
    parts = [
        "# UCI regression",
        f"{RULE}{TUNED if {model for _, model in board} & set(GRID) else ''}"
        f" Means ± standard errors over {describe_splits(board)}; the best of a line is bold.",
        "![Log-likelihood of each model less that of the best published row, by set](uci.png)",
        "\n".join(f"- {sentence}" for sentence in ahead),
        "## Test log-likelihood\n\nLarger is better. Columns without code type are published.",
        score_table(board, "log_likelihood"),
        GRADES if any(name == "wine" for name, _ in board) else "",
        "## RMSE\n\nSmaller is better.",
        score_table(board, "rmse"),
        f"## Seconds of a fit\n\n{_cost(board)}",
        seconds_table(board),
        "## How it was made",
        "\n".join(f"- {line}" for line in [f"`{command}`", *_machines(board), *_choices(board), *_left_out(board)]),
        "Published: " + "; ".join(f"{row.name}: {row.source}" for row in published.UCI) + f". {LISTED}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cost(board: Board) -> str:
    lines = []
    if any(cell.side_by_side for cell in board.values()):
        lines.append(
            "All splits of a network run side by side as one program: its seconds are those of the whole study, choice "
            "of settings and compilation included, divided by the number of splits. --budget is what `auto` plans its "
            "chains with: compilation and pilots come on top."
        )
    if any(cell.alone for cell in board.values()):
        lines.append("In brackets: one split alone through `credo.fit`, compilation and pilot included.")
    if any(model in BASELINES for _, model in board):
        lines.append("Baselines are fitted one by one: the median of the splits.")
    return " ".join(lines)


def _machines(board: Board) -> list[str]:
    models_by_machine: dict[str, dict[str, None]] = {}
    for (_, model), cell in board.items():
        for where in cell.machines:
            models_by_machine.setdefault(where, {})[f"`{model}`"] = None
    return [f"{where}: {', '.join(models)}" for where, models in models_by_machine.items()]


def _choices(board: Board) -> list[str]:
    lines = []
    for name in names(board)[0]:
        cell = board.get((name, AUTO))
        if cell is not None and cell.why is not None:
            lines.append(f"{name}: {describe(cell.why, [row.get('pilot') for row in cell.rows.values()])}")
    return lines


def _left_out(board: Board) -> list[str]:
    sets_by_reason: dict[str, list[str]] = {}
    for (name, model), cell in board.items():
        if cell.refused:
            why = re.sub(r" on [\d,]+ rows", "", cell.refused)  # one sentence for all sets
            sets_by_reason.setdefault(f"`{model}` was left out on {{}}: {why}", []).append(name)
    shown = [sentence.replace("{}", ", ".join(sets)) for sentence, sets in sets_by_reason.items()]
    several = [f"{name} `{model}`" for (name, model), cell in board.items() if cell.others]
    if several:
        shown.append(f"There are records with other settings, which are not shown: {', '.join(several)}.")
    return shown
