"""Draws of the weights themselves, by path, with the chain axis kept."""

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core.posterior import WeightPosterior
from credo.core.tree import by_paths, size
from credo.errors import Refusal
from credo.posteriors import Samples, SubsetPosterior


def weight_draws(key: jax.Array, fit: Any, num: int | None = None) -> dict[str, np.ndarray]:
    """θ by path [member, draw, ...]: "hidden_0/kernel", "likelihood/log_scale"; NumPy arrays.

    Weights that are held fixed are left out: they are the same in every draw.

    Args:
        key: for posteriors whose draws are made afresh.
        fit: the result of `credo.fit` or `credo.load`.
        num: draws over all members; None takes all stored draws, or 200 for each member of a distribution.
    """
    posterior = fit.posterior
    if not isinstance(posterior, WeightPosterior):
        raise Refusal("This posterior is one over functions and has no weights; look at its function values.")
    if isinstance(posterior, SubsetPosterior):
        return weight_draws(key, dataclasses.replace(fit, posterior=posterior.inner), num)
    if isinstance(posterior, Samples) and num is None:
        params = posterior.params  # memory maps stay memory maps
    elif posterior.on_disk:
        params = posterior.part(np.arange(posterior.members), posterior.chosen(num)).params  # type: ignore[attr-defined]
    else:
        members, each = posterior.num_draws(num)
        flat = _draw(key, jax.device_put(posterior), num)
        params = jax.tree.map(lambda x: np.asarray(x).reshape(members, each, *x.shape[1:]), flat)
    return {path.removeprefix("network/"): np.asarray(x) for path, x in by_paths(params).items()}


@partial(jax.jit, static_argnames="num")
def _draw(key: jax.Array, posterior: Any, num: int | None) -> Any:
    """Every draw where it was made, never resampled by weight."""
    return jax.vmap(posterior.draw)(*posterior._plan(key, num)).params


def num_parameters(fit: Any) -> int | None:
    """How many numbers one draw of θ holds; None for posteriors over functions."""
    if not isinstance(fit.posterior, WeightPosterior):
        return None
    one = jax.eval_shape(lambda p: p.draw(jax.random.key(0), 0, 0).params, fit.posterior)
    return size(one)
