"""The figure of detection: ROC curves, and the scores of clean and suspicious rows with the threshold."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from credo.applications.detection.detect import Detection
from credo.applications.detection.rates import roc
from credo.errors import InputError
from credo.report.style import CYCLE, INK, MODEL, MUTED, WRONG, dress, legend, plain

WORDS = {
    "entropy": "total entropy (nats)", "conditional_entropy": "conditional entropy (nats)",
    "mutual_information": "mutual information (nats)", "max_probability": "1 − largest probability",
    "variance": "variance", "epistemic": "epistemic variance",
}  # fmt: skip
STYLES = ("-", "--", "-.", ":")


def plot(detections: Sequence[Detection], names: Sequence[str] | None = None) -> Figure:
    """ROC curves of all, and histograms of the scores of the first.

    Args:
        detections: what `credo.applications.detection.detect` gave.
        names: of the curves; the names of the scores where None.
    """
    if any(len(one.positive) == 0 for one in detections):
        raise InputError("There are no positives (no attack succeeded), so there is no curve to draw.")
    names = [WORDS.get(one.score, one.score).split(" (")[0] for one in detections] if names is None else list(names)
    figure = Figure(figsize=(10.4, 4.5), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    dress(left, "What is caught, by false alarms", "clean rows flagged (%)", "positives flagged (%)")
    left.plot([0, 100], [0, 100], color=MUTED, lw=1, ls=(0, (2, 2)))
    for i, (one, name) in enumerate(zip(detections, names)):
        curve = roc(one.clean, one.positive)
        label = f"{plain(name, 30)}, AUROC {one.auroc.value:.3f}"
        colour = CYCLE[(i if i == 0 else i + 1) % len(CYCLE)]
        left.plot(100 * curve.fpr, 100 * curve.tpr, color=colour, lw=2, ls=STYLES[i % 4], label=label)
        left.plot(100 * one.fpr.value, 100 * one.tpr.value, "o", ms=6, mfc=colour, mec="white", mew=1)
    left.set_xlim(-2, 102)
    left.set_ylim(-2, 104)
    _histograms(right, detections[0], "" if len(detections) == 1 else f": {plain(names[0], 24)}")
    legend(figure, 4 if len(detections) == 1 else 3)
    return figure


def _histograms(area: Any, one: Detection, name: str) -> None:
    dress(area, f"Scores of the rows{name}", WORDS.get(one.score, one.score), "share of rows (%)")
    both = np.concatenate([one.clean, one.positive])
    top = float(np.quantile(both, 0.999))
    # Variances far from the data are larger by orders of magnitude; on a plain axis all clean rows are one bar.
    wide = both.max() > 0 and np.quantile(both, 0.99) > 50 * np.median(one.clean)
    low = max(both.min(), 1e-7 * both.max())
    edges = np.geomspace(low, both.max(), 41) if wide else np.linspace(both.min(), top or 1.0, 41)
    for values, colour, name in ((one.clean, MODEL, "clean rows"), (one.positive, WRONG, "positives")):
        inside = np.clip(values, edges[0], edges[-1])
        area.hist(inside, edges, weights=np.full(len(values), 100 / len(values)), color=colour, alpha=0.55, label=name)
    if wide:
        area.set_xscale("log")
    area.axvline(one.threshold, color=INK, lw=1.3, ls="--", label=f"threshold, FPR ≤ {100 * one.max_fpr:g} %")


def gallery(clean: np.ndarray, attacked: np.ndarray, scores: np.ndarray, limit: float, words: Sequence[str]) -> Figure:
    """A grid of images: clean above, attacked below, with the score and whether it was caught.

    Args:
        clean: images [n, height, width] or [n, height, width, channels], pixels in [0, 1].
        attacked: the same images, attacked.
        scores: of the attacked images [n].
        limit: the threshold above which an image is caught.
        words: what to write above each pair, such as "7 → 3".
    """
    count = len(clean)
    figure = Figure(figsize=(max(3.0, 1.25 * count), 3.6), dpi=110, layout="constrained")
    areas = figure.subplots(2, count, squeeze=False)
    for i in range(count):
        caught = scores[i] > limit
        for area, image in zip(areas[:, i], (clean[i], attacked[i])):
            picture = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
            area.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            area.set_xticks([])
            area.set_yticks([])
            area.spines[:].set_visible(False)
        areas[0, i].set_title(plain(words[i], 16), fontsize=10, color=INK)
        colour = MODEL if caught else WRONG
        areas[1, i].spines[:].set(visible=True, color=colour, linewidth=2.5)
        areas[1, i].set_xlabel(f"{scores[i]:.2g}\n{'caught' if caught else 'missed'}", fontsize=9.5, color=colour)
    areas[0, 0].set_ylabel("clean", fontsize=10, color=INK)
    areas[1, 0].set_ylabel("attacked", fontsize=10, color=INK)
    figure.suptitle(f"Caught where the score is above {limit:.2g}", fontsize=11.5, fontweight="bold", color=INK)
    return figure
