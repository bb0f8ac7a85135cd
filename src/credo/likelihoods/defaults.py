"""The likelihood that a task gets when nobody says otherwise."""

from credo.core.likelihood import Likelihood
from credo.errors import InputError
from credo.likelihoods.bernoulli import bernoulli
from credo.likelihoods.categorical import categorical
from credo.likelihoods.gaussian import gaussian
from credo.likelihoods.negative_binomial import negative_binomial

TASKS = ("regression", "binary", "multiclass", "count")


def default_likelihood(task: str, num_classes: int | None = None) -> Likelihood:
    """The likelihood of a task, with its noise or dispersion learned.

    Args:
        task: "regression" (Gaussian), "binary" (Bernoulli), "multiclass" (categorical) or "count" (negative
            binomial, which has the Poisson as its limit).
        num_classes: how many classes there are; only for "multiclass".

    Example:
        >>> from credo.likelihoods import default_likelihood
        >>> default_likelihood("multiclass", num_classes=3)
        Categorical(num_classes=3)
    """
    if task == "regression":
        return gaussian(noise="learned")
    if task == "binary":
        return bernoulli()
    if task == "count":
        return negative_binomial()
    if task != "multiclass":
        raise InputError(f"Unknown task {task!r}; choose one of {', '.join(TASKS)}.")
    if num_classes is None:
        raise InputError("A multiclass task needs num_classes.")
    return categorical(num_classes)
