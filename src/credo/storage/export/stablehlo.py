"""A predictor as one StableHLO program, which JAX or another reader can compile without credo."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import mixture
from credo.core.model import Model
from credo.core.posterior import WeightPosterior
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.function_space.infinite import FunctionPosterior
from credo.posteriors import Stacked, StackPart
from credo.posteriors.stacked import SIXTEENTHS
from credo.storage.export.draws import as_posterior, make_draws, size_of_draws
from credo.storage.export.stacks import FixedDraws, each_part
from credo.storage.export.subject import Subject, described_inputs
from credo.training.fit import Fit

MOST_BYTES = 2**24  # of draws that a program holds where it could make them itself


def program(
    subject: Subject, mode: str | None, levels: Sequence[float], block: int, platforms: Sequence[str]
) -> tuple[bytes, list[str]]:
    """The serialised program, and the platforms that it is for.

    Its argument is the inputs [n, …] for any n; it gives a dict of arrays [n, …] on the scale of the fit. Rows go
    through the network in blocks: memory is bounded, and the network sees one fixed shape.

    Args:
        subject: what is exported.
        mode: as in `credo.predict`.
        levels: of the quantiles.
        block: rows at a time.
        platforms: "cpu", "cuda", … ; those after the first are left out where a program for them cannot be made here.
    """
    from jax import export

    fit = subject.fit
    viewed = fit.posterior if mode is None else fit.posterior.view(mode)
    stacked, draws = isinstance(viewed, Stacked), (subject.key, subject.num_samples)
    posterior, model, num = _stack(viewed, fit, *draws) if stacked else _constants(viewed, fit.model, *draws)
    key = np.asarray(jax.random.key_data(subject.key))
    quantile_levels = np.asarray(levels, np.float32)

    def one(inputs: PyTree) -> dict[str, jax.Array]:
        draws = posterior.outputs(jax.random.wrap_key_data(jnp.asarray(key)), model, inputs, num)
        return _answers(model, mixture.flatten(draws), quantile_levels)

    def run(inputs: PyTree) -> dict[str, jax.Array]:
        count = jax.tree.leaves(inputs)[0].shape[0]
        blocks = (count + block - 1) // block
        answers = jax.lax.map(one, jax.tree.map(lambda x: _in_blocks(x, blocks, block), inputs))
        return jax.tree.map(lambda x: x.reshape(blocks * block, *x.shape[2:])[:count], answers)

    shapes = _shapes(described_inputs(subject.fit), export.symbolic_shape("n")[0])
    targets = list(platforms)
    while True:
        try:
            # Full precision on every platform: an accelerator's default would be off by 10⁻³.
            with jax.default_matmul_precision("highest"):
                exported = export.export(jax.jit(run), platforms=targets)(shapes)
            return bytes(exported.serialize()), targets
        except ImportError as error:
            raise InputError("JAX writes programs with flatbuffers, which is not installed; install it.") from error
        except (NotImplementedError, ValueError) as error:
            if len(targets) > 1:
                targets = targets[:1]
                continue
            reason = str(error).splitlines()[0].rstrip(".")
            raise Refusal(f"This model has no program for {targets[0]}: {reason}.") from error


def _stack(posterior: Stacked, fit: Fit, key: jax.Array, num: int | None) -> tuple[Any, Model, None]:
    """Every part of a stack with its constants; each gives the draws that it has in the stack."""

    def one(posterior: Any, model: Model, key: jax.Array, num: int | None) -> StackPart:
        constants, constant_model, count = _constants(posterior, model, key, num)
        return StackPart(constant_model, constants if count is None else FixedDraws(constants, count))

    parts = tuple(each_part(posterior, fit, key, num, one))
    stack = dataclasses.replace(posterior, parts=parts, sixteenths=(SIXTEENTHS,) * len(parts))
    return _single(stack), _single(fit.model), None


def _constants(posterior: Any, model: Model, key: jax.Array, num: int | None) -> tuple[Any, Model, int | None]:
    """Posterior and model as NumPy arrays in single precision, and the draws to ask for.

    Draws are made once and stored: the program is then short, quick to compile and calls no generator. Where they would
    be large, or the posterior predicts in another way, the program makes them anew, always from the same key.
    """
    if isinstance(posterior, FunctionPosterior):
        raise Refusal(
            "A network of infinite width has no weights to export: it predicts from all training rows, in double "
            "precision on the host; keep the run and use credo.predict."
        )
    few = isinstance(posterior, WeightPosterior) and (
        posterior.available is not None or size_of_draws(posterior, num) <= MOST_BYTES
    )
    stored = make_draws(posterior, model, key, num) if few else None
    if stored is None:
        return _single(posterior), _single(model), num
    return _single(as_posterior(stored)), _single(dataclasses.replace(model, fixed=None)), None


def _single(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda x: np.asarray(x, jax.dtypes.canonicalize_dtype(np.asarray(x).dtype)), tree)


def _answers(model: Model, draws: mixture.Flat, levels: np.ndarray) -> dict[str, jax.Array]:
    likelihood: Any = model.likelihood
    if likelihood.kind == "classes":
        return mixture.class_summary(likelihood, draws)
    moments = mixture.moments(likelihood, draws)
    # One after another, so that the bisection occurs once in the program.
    quantiles = jax.lax.map(lambda level: mixture.quantile(likelihood, draws, level), jnp.asarray(levels))
    std = jnp.sqrt(moments["aleatoric"] + moments["epistemic"])
    return moments | {"std": std, "quantiles": jnp.moveaxis(quantiles, 0, -1)}


def _in_blocks(x: jax.Array, blocks: Any, block: int) -> jax.Array:
    """Rows as [blocks, block, …], zeros at the end."""
    padding = [(0, blocks * block - x.shape[0])] + [(0, 0)] * (x.ndim - 1)
    return jnp.pad(x, padding).reshape(blocks, block, *x.shape[1:])


def _shapes(described: Any, rows: Any) -> PyTree:
    if isinstance(described, list):
        return tuple(_shapes(part, rows) for part in described)
    if "shape" not in described:
        return {name: _shapes(part, rows) for name, part in described.items()}
    return jax.ShapeDtypeStruct((rows, *described["shape"]), described["dtype"])
