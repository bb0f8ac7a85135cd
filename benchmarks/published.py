"""Published numbers that ours stand beside, as they were printed: their decimals are part of what they say."""

from typing import NamedTuple


class Row(NamedTuple):
    """A row of a published table.

    Attributes:
        name: of the method.
        source: where it is printed.
        log_likelihood, rmse: set → the printed mean over the test splits.
    """

    name: str
    source: str
    log_likelihood: dict[str, str]
    rmse: dict[str, str] = {}  # noqa: RUF012


# Neural networks on the UCI sets with the splits of Hernández-Lobato and Adams (2015), one hidden layer.
WHOLE = (
    Row(
        "VI",
        "Graves (2011), as run by Hernández-Lobato and Adams (2015), Probabilistic backpropagation",
        {
            "boston": "-2.90", "concrete": "-3.39", "energy": "-2.39", "kin8nm": "0.90", "naval": "3.73",
            "power": "-2.89", "protein": "-2.99", "wine": "-0.98", "yacht": "-3.43",
        },
    ),
    Row(
        "PBP",
        "Hernández-Lobato and Adams (2015), Probabilistic backpropagation",
        {
            "boston": "-2.57", "concrete": "-3.16", "energy": "-2.04", "kin8nm": "0.90", "naval": "3.73",
            "power": "-2.84", "protein": "-2.97", "wine": "-0.97", "yacht": "-1.63",
        },
    ),
    Row(
        "MC-dropout",
        "trained to convergence by Mukhoti, Stenetorp and Gal (2018), On the importance of strong baselines",
        {
            "boston": "-2.40", "concrete": "-2.94", "energy": "-1.21", "kin8nm": "1.14", "naval": "4.45",
            "power": "-2.81", "protein": "-2.87", "wine": "-0.93", "yacht": "-1.25",
        },
        {
            "boston": "2.90", "concrete": "4.83", "energy": "0.54", "kin8nm": "0.079", "naval": "0.0007",
            "power": "4.01", "protein": "4.27", "wine": "0.62", "yacht": "0.67",
        },
    ),
    Row(
        "deep ensemble",
        "Lakshminarayanan, Pritzel and Blundell (2017), Simple and scalable predictive uncertainty estimation",
        {
            "boston": "-2.41", "concrete": "-3.06", "energy": "-1.38", "kin8nm": "1.20", "naval": "5.63",
            "power": "-2.79", "protein": "-2.83", "wine": "-0.94", "yacht": "-1.18",
        },
        {
            "boston": "3.28", "concrete": "6.03", "energy": "2.09", "kin8nm": "0.09", "naval": "0.00",
            "power": "4.11", "protein": "4.71", "wine": "0.64", "yacht": "1.58",
        },
    ),
)  # fmt: skip
# Other methods, where theirs is the best row for a neural network that was found.
BEST = (
    Row(
        "evidential",
        "Amini et al. (2020), Deep evidential regression",
        {"boston": "-2.35", "protein": "-2.63", "wine": "-0.89"},
    ),
    Row(
        "PBP-MV",
        "Sun, Chen and Carin (2017), Learning structured weight uncertainty in Bayesian neural networks",
        {"kin8nm": "1.28", "power": "-2.78"},
    ),
    Row(
        "ensemble of ten",
        "google/uncertainty-baselines, baselines/uci",
        {"energy": "-0.61", "yacht": "-0.73"},
    ),
    Row(
        "refined VI",
        "Havasi et al. (2021), Sampling the variational posterior with local refinement",
        {"naval": "6.33"},
    ),
)
UCI = (*WHOLE, *BEST)


def best(name: str) -> tuple[str, str] | None:
    """The largest published log-likelihood on a set: method and number.

    Example:
        >>> best("energy"), best("concrete")
        (('ensemble of ten', '-0.61'), ('MC-dropout', '-2.94'))
    """
    rows = [(row.name, row.log_likelihood[name]) for row in UCI if name in row.log_likelihood]
    return max(rows, key=lambda pair: float(pair[1])) if rows else None


def printed_decimals(printed: str) -> int:
    """Decimals of a printed number.

    Example:
        >>> printed_decimals("-0.75")
        2
    """
    return len(printed.partition(".")[2])


# A Bayesian deep ensemble on the airfoil set: standardised target, five splits, ten cores.
AIRFOIL = {"name": "Bayesian deep ensemble, published", "rmse": "0.1215", "nll": "-0.91", "seconds": "240"}

# LeNet-5, the best rows that were found: accuracy in percent and negative log-likelihood.
IMAGES = {
    ("mnist", "mfvi"): ("99.0", "0.034"),
    ("mnist", "deep_ensemble"): ("99.4", "0.016"),
    ("fashion_mnist", "mfvi"): ("90.6", "0.259"),
    ("fashion_mnist", "deep_ensemble"): ("93.2", "0.200"),
}
