"""`predict`: one way for every method, from a posterior to a predictive distribution."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core import mixture
from credo.core.batch import bucket
from credo.core.mixture import Flat
from credo.core.model import Model
from credo.core.predictive import Predictive, pad_last
from credo.errors import InputError

PyTree = Any
CHUNK_BYTES = 2**26  # outputs of all draws for one chunk of inputs
FEW_ROWS = 64
KEEP_BYTES = 2**28  # outputs kept for further questions


@partial(jax.jit, static_argnames="num")
def _outputs(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Flat:
    return mixture.flatten(posterior.outputs(key, model, inputs, num))


def predict(
    key: jax.Array,
    fit: Any,
    inputs: PyTree,
    *,
    num_samples: int | None = None,
    mode: str | None = None,
    memory: int = KEEP_BYTES,
) -> Predictive:
    """The predictive distribution at new inputs.

    Args:
        key: a JAX key for drawing from the posterior.
        fit: the result of `credo.fit` or `credo.load`.
        inputs: array [n, …] (or a tree of them) like the training inputs.
        num_samples: draws of θ; None takes all stored draws, or 200 for each member of a distribution.
        mode: "sampled" (networks at draws of θ), or what else the posterior offers ("linearised", "probit"); None
            leaves the choice to it.
        memory: bytes of per-draw outputs to keep for further questions.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(
        ...     credo.networks.mlp([10]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.1)
        ... )
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "map", steps=100)
        >>> credo.predict(jax.random.key(1), fit, x).mean.shape
        (40,)
    """
    if num_samples is not None and num_samples < 1:
        raise InputError(f"num_samples must be at least 1, got {num_samples}.")
    model = fit.model
    posterior = jax.device_put(fit.posterior if mode is None else fit.posterior.view(mode))
    inputs = checked_inputs(fit, inputs)
    rows = len(jax.tree.leaves(inputs)[0])
    first = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape[1:]), x.dtype), inputs)
    shape = jax.eval_shape(partial(_outputs, num=num_samples), key, posterior, model, first).outputs.shape
    per_row = 4 * shape[0] * shape[2]
    # Few rows are padded to one width: one program for them all, and a row's answer does not depend on its company.
    width = max(1, min(max(bucket(rows), FEW_ROWS), CHUNK_BYTES // per_row))
    kept: dict[int, Flat] = {}

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for start in range(0, rows, width):
            where = slice(start, min(start + width, rows))
            draws = kept.get(start)
            if draws is None:
                block = jax.tree.map(lambda x, w=where: pad_last(np.asarray(x[w]), width), inputs)
                draws = _outputs(key, posterior, model, block, num_samples)
                if per_row * width * (len(kept) + 1) <= memory:
                    kept[start] = draws
            yield where, draws

    return Predictive(model.likelihood, chunks, rows, flat=fit.target_shape == ())


def checked_inputs(fit: Any, inputs: PyTree) -> PyTree:
    """The inputs as NumPy arrays of the shapes that the fit was trained on, or a sentence."""
    return jax.tree.map(_checked, inputs, fit.input_shape, is_leaf=lambda x: isinstance(x, tuple))


def _checked(x: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = x if isinstance(x, np.ndarray) else np.asarray(x)
    if array.dtype == np.float64 or array.dtype.kind == "b":
        array = array.astype(np.float32)
    if tuple(array.shape[1:]) != tuple(shape):
        expected, got = ", ".join(map(str, shape)), ", ".join(map(str, array.shape[1:]))
        raise InputError(f"The model was trained on inputs of shape [n, {expected}], got [n, {got}].")
    if len(array) == 0:
        raise InputError("There are no rows to predict.")
    if array.dtype.kind == "f" and not isinstance(array, np.memmap) and not np.isfinite(array).all():
        raise InputError("Inputs contain NaN or infinite values; remove or replace those rows.")
    return array
