"""From one task to the next: the last posterior as the prior, and where the next fit starts."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import Batch
from credo.core.capabilities import GaussianDistribution, RenewablePosterior, ask, capability
from credo.core.model import Model
from credo.core.parts import replace_arrays
from credo.core.tree import by_paths, matches
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.variational.bayes_by_backprop import BayesByBackprop
from credo.methods.variational.ivon import IVON
from credo.posteriors import GaussianWeights, MeanField
from credo.priors import as_prior, by_path

Arrays = dict[str, Any]


def next_prior(posterior: Any, plain: Any = None, new: Sequence[str] = (), info: PyTree = None) -> Any:
    """The prior of the next task: q_{t−1}, with the weights that no task has seen under their plain prior.

    Args:
        posterior: of the last task; it must have a density.
        plain: the prior of weights that are new.
        new: globs of their paths, such as "head_1/*".
        info: what the network says about its parameters; with it, under a normal prior, the new weights join a
            distribution of the same structure, so that no program is compiled for them.

    Example:
        >>> import jax.numpy as jnp, credo
        >>> mean = {"network": {"trunk": {"w": jnp.ones((1, 3))}, "head_0": {"w": jnp.ones((1, 2))}}}
        >>> q = credo.posteriors.MeanField(mean, mean, {}, {})
        >>> credo.continual.next_prior(q, credo.priors.normal(1.0), ["head_0/*"]).globs
        ('head_0/*', '*')
    """
    q = _weights_alone(posterior)
    if not new:
        return as_prior(q)
    moments = None if info is None else plain_moments(plain, info)
    if moments is None:
        return by_path(dict.fromkeys(new, plain) | {"*": as_prior(q)})
    mean, std = ({path: x for path, x in m.items() if matches(path, tuple(new))} for m in moments)
    return as_prior(q.renewed(mean, std))


def plain_moments(prior: Any, info: PyTree) -> tuple[Arrays, Arrays] | None:
    """Means and standard deviations by path of a prior that is a product of normals, else None."""
    moments = _gaussian(prior, info)
    return None if moments is None else (by_paths(moments[0]), by_paths(moments[1]))


def _gaussian(prior: Any, info: PyTree) -> tuple[PyTree, PyTree] | None:
    return ask(prior.bind(info, {}), GaussianDistribution).gaussian()


def first_prior(model: Model, method: Any, info: PyTree) -> Any:
    """The plain prior; in the structure of a product of normals where the posterior will be one: then all tasks share
    one program."""
    mean_field = isinstance(method, IVON) or (isinstance(method, BayesByBackprop) and method.family == "mean_field")
    moments = _gaussian(model.prior, info) if mean_field else None
    if moments is None:
        return model.prior
    mean, std = ({"network": jax.tree.map(lambda x: jnp.asarray(x)[None], m)} for m in moments)
    return as_prior(MeanField(mean, std, {}, {}))


def next_start(
    key: jax.Array,
    model: Model,
    method: Any,
    posterior: Any,
    new: Sequence[str],
    batch: Batch,
    most: float | None = None,
) -> Any:
    """Where the next fit starts: at q_{t−1}, and new weights at a fresh start with the method's first spread.

    most: no standard deviation starts above this. Weights of which the tasks so far told nothing are as wide as the
    plain prior, and as noise in a task that needs them they would drown its first gradients.
    """  # fmt: skip
    if most is not None:
        if not isinstance(posterior, MeanField):
            raise InputError("start_std is for posteriors with one standard deviation for each weight: leave it out.")
        posterior = dataclasses.replace(posterior, std=jax.tree.map(lambda s: jnp.minimum(s, most), posterior.std))
    if not new:
        return posterior
    fresh = by_paths(_fresh(key, model, batch))
    mean = {path: x for path, x in fresh.items() if matches(path, tuple(new))}
    if isinstance(posterior, GaussianWeights):  # a mode is looked for: its spread is not asked
        return dataclasses.replace(posterior, mean=replace_arrays(posterior.mean, mean))
    scale = method.initial_std if isinstance(method, BayesByBackprop) else None
    scale = float(batch.num_data) ** -0.5 if scale is None else float(scale)
    return posterior.renewed(mean, {path: np.full(x.shape, scale, np.float32) for path, x in mean.items()})


@jax.jit
def _fresh(key: jax.Array, model: Model, batch: Batch) -> PyTree:
    return model.init(key, batch).params["network"]


def check_density(posterior: Any) -> None:
    """Refuse a posterior that cannot be the next prior."""
    if capability(posterior, RenewablePosterior) is None:
        raise Refusal(
            f"The next prior is the last posterior's density, and {type(posterior).__name__} has none: take "
            "bayes_by_backprop, ivon or laplace."
        )


def _weights_alone(posterior: Any) -> Any:
    """The same distribution without points, statistics and all that is no weight."""
    check_density(posterior)
    changed: dict[str, Any] = {"points": {}, "state": {}}
    for name in {"mean", "std", "factor"} & vars(posterior).keys():
        tree = vars(posterior)[name]
        if isinstance(tree, dict) and "network" in tree:
            changed[name] = {"network": tree["network"]}
    if isinstance(posterior, GaussianWeights):
        changed |= {"log_evidence": None, "prior_scale": None}
    return dataclasses.replace(posterior, **changed)
