"""The table of likelihoods: what targets each describes, and what it is called."""

from dataclasses import dataclass

from credo.registry.table import Part, Table

TASKS = ("regression", "binary", "multiclass", "count")


@dataclass(frozen=True)
class LikelihoodRow(Part):
    """One likelihood. A builder whose first argument is `num_classes` is given the number of classes.

    Attributes:
        tasks: what targets it describes; the first row of a task is its default.
        positive: does it describe numbers above 0 alone?
        ordered: are its classes in order?
        numpy: may it be exported as numbers for NumPy (`storage/export/portable`)? Every one may as a program.
    """

    tasks: tuple[str, ...]
    positive: bool = False
    ordered: bool = False
    numpy: bool = True


LIKELIHOODS = Table("likelihood", (
    LikelihoodRow(
        "gaussian", "credo.likelihoods.gaussian:gaussian", "Numbers with normal noise of one size.",
        "Gaussian", "gaussian:0.1", ("regression",),
    ),
    LikelihoodRow(
        "student_t", "credo.likelihoods.student_t:student_t", "Numbers with heavy tails, which outliers do not bend.",
        "StudentT", "student_t:4", ("regression",),
    ),
    LikelihoodRow(
        "heteroscedastic", "credo.likelihoods.heteroscedastic:heteroscedastic",
        "Numbers with normal noise whose size depends on the inputs.",
        "Heteroscedastic", "heteroscedastic:0.01", ("regression",),
    ),
    LikelihoodRow(
        "heteroscedastic_t", "credo.likelihoods.heteroscedastic_t:heteroscedastic_t",
        "Numbers with heavy-tailed noise whose size depends on the inputs.",
        "HeteroscedasticT", "heteroscedastic_t:5", ("regression",),
    ),
    LikelihoodRow(
        "log_normal", "credo.likelihoods.log_normal:log_normal",
        "Positive numbers with errors in per cent, whose size depends on the inputs.",
        "LogNormalNoise", "log_normal:0.01", ("regression",), positive=True,
    ),
    LikelihoodRow(
        "gamma", "credo.likelihoods.gamma:gamma",
        "Positive numbers whose standard deviation is a share of their mean.",
        "Gamma", "gamma:4", ("regression",), positive=True,
    ),
    LikelihoodRow(
        "bernoulli", "credo.likelihoods.bernoulli:bernoulli", "Two classes: the logistic of one output.",
        "Bernoulli", "bernoulli", ("binary",),
    ),
    LikelihoodRow(
        "categorical", "credo.likelihoods.categorical:categorical", "Several classes: softmax of the outputs.",
        "Categorical", "categorical", ("binary", "multiclass"),
    ),
    LikelihoodRow(
        "ordinal", "credo.likelihoods.ordinal:ordinal", "Classes in order, such as grades: cut points on one output.",
        "Ordinal", "ordinal", ("multiclass",), ordered=True,
    ),
    LikelihoodRow(
        "mislabelled", "credo.likelihoods.mislabelled:mislabelled", "Classes of which a share is labelled wrongly.",
        "Mislabelled", "mislabelled:0.02", ("binary", "multiclass"),
    ),
    LikelihoodRow(
        "negative_binomial", "credo.likelihoods.negative_binomial:negative_binomial",
        "Counts whose variance exceeds their mean.",
        "NegativeBinomial", "negative_binomial", ("count",),
    ),
    LikelihoodRow(
        "poisson", "credo.likelihoods.poisson:poisson", "Counts whose variance is their mean.",
        "Poisson", "poisson", ("count",),
    ),
    LikelihoodRow(
        "zero_inflated_poisson", "credo.likelihoods.zero_inflated_poisson:zero_inflated_poisson",
        "Counts with more zeros than a Poisson has.",
        "ZeroInflatedPoisson", "zero_inflated_poisson", ("count",),
    ),
    LikelihoodRow(
        "zero_inflated_negative_binomial",
        "credo.likelihoods.zero_inflated_nb:zero_inflated_negative_binomial",
        "Counts with more zeros than a negative binomial has.",
        "ZeroInflatedNegativeBinomial", "zero_inflated_negative_binomial", ("count",),
    ),
))  # fmt: skip


def likelihoods_of(*tasks: str) -> list[str]:
    """Names of the likelihoods of some tasks, the default of the first one first."""
    return [row.name for row in LIKELIHOODS.values() if set(tasks) & set(row.tasks)]
