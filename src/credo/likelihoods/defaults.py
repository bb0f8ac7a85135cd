"""The default likelihood of a task."""

import inspect

from credo.core.likelihood import Likelihood
from credo.errors import InputError
from credo.registry import LIKELIHOODS, TASKS, likelihoods_of


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
    if task not in TASKS:
        raise InputError(f"Unknown task {task!r}; choose one of {', '.join(TASKS)}.")
    build = LIKELIHOODS[likelihoods_of(task)[0]].load()
    if "num_classes" not in inspect.signature(build).parameters:
        return build()
    if num_classes is None:
        raise InputError("A multiclass task needs num_classes.")
    return build(num_classes)
