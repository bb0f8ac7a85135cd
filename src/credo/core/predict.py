"""`predict`: one way for every method, from a posterior to a predictive distribution."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from credo.core import mixture
from credo.core.batch import bucket, pad_rows
from credo.core.capabilities import StoredPosterior, ask
from credo.core.checks import checked_fit, checked_key, or_none, positive, whole_number
from credo.core.mixture import Flat
from credo.core.model import Model
from credo.core.numeric import host_arrays
from credo.core.pieces import in_pieces
from credo.core.posterior import Draws
from credo.core.precision import in_single, single
from credo.core.predictive import Predictive
from credo.core.programs import tidy
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.memory import memory_explained

CHUNK_BYTES = 2**26  # outputs of all draws for one chunk of inputs
FEW_ROWS = 64
KEEP_BYTES = 2**28  # outputs kept for further questions


@partial(jax.jit, static_argnames="num")
def flat_outputs(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Flat:
    """`posterior.outputs` with members and draws as one axis."""
    return mixture.flatten(posterior.outputs(key, model, inputs, num))


@partial(jax.jit, static_argnames="num")
def member_outputs(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Draws:
    """`posterior.outputs` as one program."""
    return posterior.outputs(key, model, inputs, num)


def output_shapes(key: jax.Array, posterior: Any, model: Model, inputs: PyTree, num: int | None) -> Flat:
    """Shapes of the outputs at inputs of these shapes, without computing any."""
    return flat_outputs.eval_shape(key, posterior, model, inputs, num)


def disk_outputs(
    key: jax.Array, posterior: Any, model: Model, blocks: Sequence[Callable[[], PyTree]], num: int | None
) -> list[Draws]:
    """`outputs` of a posterior on disk, NumPy arrays. Blocks are functions that give inputs: every draw is read once,
    and inputs once for each piece of draws."""
    weights = posterior.chosen_weights(num)
    parts = in_pieces(lambda part, block: member_outputs(key, part, model, block(), None), posterior, num, blocks)
    return [draws._replace(log_weights=weights) for draws in parts]


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
        num_samples: draws of θ; None takes all stored draws, or 200 for each member of a distribution. Draws that lie
            on disk are read in pieces, and only those that are taken.
        mode: "sampled" (networks at draws of θ), or what else the posterior offers ("linearised", "probit"); None
            leaves the choice to it.
        memory: bytes of per-draw outputs to keep for further questions.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = credo.Model(credo.networks.mlp([10]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "map", steps=100)
        >>> credo.predict(jax.random.key(1), fit, x).mean.shape
        (40,)
    """
    checked_key(key)
    checked_fit(fit, "predict")
    num_samples = or_none(whole_number, num_samples, "num_samples")
    memory = 0 if memory == 0 else int(positive(memory, "memory"))  # 0 keeps nothing
    tidy()
    model = fit.model
    posterior = fit.posterior if mode is None else fit.posterior.view(mode)
    lazily = ask(posterior, StoredPosterior).on_disk
    inputs = checked_inputs(fit, inputs)
    with single():
        posterior = posterior if lazily else jax.device_put(posterior.joint_at([inputs]))
    rows = len(jax.tree.leaves(inputs)[0])
    # Few rows are padded to one width: one program for them all, and a row's answer does not depend on its company.
    width = max(bucket(rows), FEW_ROWS)
    block_shape = jax.tree.map(lambda x: jax.ShapeDtypeStruct((width, *x.shape[1:]), x.dtype), inputs)
    # Traced at the width that most calls have, the program is then at hand for them.
    with single():
        shapes = output_shapes(key, posterior, model, block_shape, num_samples)
    shape = shapes.outputs.shape
    per_row = 4 * shape[0] * shape[2]
    width = max(1, min(width, CHUNK_BYTES // per_row))
    cache: dict[int, Flat] = {}
    # Draws on disk are read once for a group of chunks, for all of them where they fit.
    fits = per_row * -(-rows // width) * width <= memory
    group = width * max(1, (memory if fits else memory // 2) // (per_row * width)) if lazily else width

    def block(start: int) -> PyTree:
        return jax.tree.map(lambda x: pad_rows(np.asarray(x[start : start + width]), width), inputs)

    @memory_explained()
    @in_single
    def compute(starts: Sequence[int]) -> list[Flat]:
        if not lazily:
            return [flat_outputs(key, posterior, model, block(start), num_samples) for start in starts]
        blocks = [partial(block, start) for start in starts]
        return [mixture.flatten(draws) for draws in disk_outputs(key, posterior, model, blocks, num_samples)]

    def chunks() -> Iterator[tuple[slice, Flat]]:
        for first in range(0, rows, group):
            starts = range(first, min(first + group, rows), width)
            missing = [start for start in starts if start not in cache]
            new = dict(zip(missing, compute(missing))) if missing else {}
            for start in starts:
                draws = new.pop(start) if start in new else cache[start]
                if start not in cache and per_row * width * (len(cache) + 1) <= memory:
                    cache[start] = draws = jax.device_put(draws)
                yield slice(start, min(start + width, rows)), draws

    columns = _target_columns(model.likelihood, shapes, fit.target_shape)
    return Predictive(model.likelihood, chunks, rows, flat=fit.target_shape == (), columns=columns)


def _target_columns(likelihood: Any, shapes: Flat, target_shape: tuple[int, ...]) -> int | None:
    """Numbers in one target where its mean has fewer, such as (time, event); None where they are as many."""
    if likelihood.kind == "classes":
        return None
    shapes_of_draw = (
        jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), x) for x in (shapes.params, shapes.outputs)
    )
    mean, columns = jax.eval_shape(likelihood.mean, *shapes_of_draw), math.prod(target_shape)
    return None if mean.shape[-1] == columns else columns


def checked_inputs(fit: Any, inputs: PyTree) -> PyTree:
    """The inputs as NumPy arrays of the shapes that the fit was trained on, or a sentence."""
    arrays = host_arrays(inputs)
    structures: Any = [jax.tree.structure(t, is_leaf=is_shape) for t in (arrays, fit.input_shape)]
    structure, expected = structures
    if structure != expected:
        got, wanted = (str(x).removeprefix("PyTreeDef(").removesuffix(")") for x in (structure, expected))
        raise InputError(f"The model was trained on inputs {wanted} (each * an array), got {got}.")
    jax.tree.map(_check_shape, arrays, fit.input_shape, is_leaf=is_shape)
    counts = sorted({len(x) for x in jax.tree.leaves(arrays)})
    if len(counts) > 1:
        raise InputError(f"Inputs have {' and '.join(map(str, counts))} rows; all parts must have as many.")
    return arrays


def is_shape(x: Any) -> bool:
    """Is this the shape of one array, rather than a tree of them?"""
    return isinstance(x, tuple) and all(isinstance(size, int) for size in x)


def _check_shape(array: Any, shape: tuple[int, ...]) -> None:
    if array.ndim == 0 or tuple(array.shape[1:]) != tuple(shape):
        expected = ", ".join(map(str, ("n", *shape)))
        got = ", ".join(map(str, ("n", *array.shape[1:]) if array.ndim else ()))
        raise InputError(f"The model was trained on inputs of shape [{expected}], got [{got}].")
    if len(array) == 0:
        raise InputError("There are no rows to predict.")
