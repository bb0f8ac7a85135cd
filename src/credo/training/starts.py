"""Where a fit starts: at given variables, at another fit or at a Gaussian posterior."""

from typing import Any

import jax
import numpy as np

from credo.core.batch import Batch
from credo.core.capabilities import CentredPosterior, PretrainedNetwork, ask, capability
from credo.core.method import Method
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.posterior import Posterior
from credo.errors import InputError, Refusal
from credo.training.block import Carry
from credo.training.placement import Placement


def start_values(start: Any, by_member: bool, first: Method, method: Method, model: Model, placement: Placement) -> Any:
    """Start variables, or a posterior, with the member axis; None for fresh ones.

    Args:
        start: variables, a tree of parameters, a Gaussian posterior or None.
        by_member: whether variables have the member axis already, as those of a fit.
        first: the method of the first stage.
        method, model, placement: of the fit.
    """
    if start is None and not ask(model.network, PretrainedNetwork).pretrained:
        return None
    starts: Any
    if by_member:
        starts, count = start, jax.tree.leaves(start.params)[0].shape[0]
    elif isinstance(start, Posterior):
        if capability(start, CentredPosterior) is None:
            raise InputError(f"A {type(start).__name__} posterior has no single centre to start from; give its fit.")
        starts = start
        count = starts.members
    else:
        count = 1
    if method.members > 1 and count == 1 and first.several_starts:
        raise Refusal(
            f"{type(method).__name__} needs a different start for each of its {method.members} members, and one given "
            "set of weights would make them all alike: pass a factory instead of an instance, and no start."
        )
    if start is None:
        return None  # the adapter itself starts every member at the given weights
    if not by_member and not isinstance(start, Posterior):
        variables = start if isinstance(start, Variables) else Variables(start, {})
        starts = jax.tree.map(lambda x: np.asarray(x)[None], variables)
    if count not in (1, placement.members):
        raise InputError(f"The start has {count} members but the method has {placement.members}; they must agree.")
    index = np.minimum(np.arange(placement.padded), count - 1)
    return jax.tree.map(lambda x: np.asarray(x)[index], starts)


@jax.jit
def start_members(
    method: Method, model: Model, keys: jax.Array, batch: Batch, start: Any, left_out: Any = None
) -> Carry:
    """Every member before its first step; `start` (Variables or a posterior) and the rows that are left out have the
    member axis, or are None."""

    def start_one(member: tuple[jax.Array, Any, Any]) -> Carry:
        key, start, left_out = member
        visible = batch.without(left_out)
        key_init, key_method, key_run = jax.random.split(jax.random.wrap_key_data(key), 3)
        if start is None or isinstance(start, Variables):
            variables = model.init(key_init, visible) if start is None else start
            state = method.init(key_method, model, variables, visible)
        else:
            state = method.init_from(key_method, model, start, visible)
        return Carry(jax.random.key_data(key_run), state, left_out)

    return _strongly_typed(jax.lax.map(start_one, (keys, start, left_out)))


def _strongly_typed(tree: Any) -> Any:
    """The same arrays without weak types: a block returns strong ones, so a weak start would compile it twice."""
    return jax.tree.map(lambda x: jax.lax.convert_element_type(x, x.dtype) if x.weak_type else x, tree)
