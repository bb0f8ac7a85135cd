"""A posterior over functions: a Gaussian process, conditioned on rows."""

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.batch import bucket, pad_rows
from credo.core.model import Model
from credo.core.posterior import Draws
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.methods.function_space.infinite import joint
from credo.methods.function_space.infinite.kernels import Kernel
from credo.methods.function_space.infinite.process import Process, host_bits


@struct
class FunctionPosterior:
    """f | D for an infinitely wide network: mean k(x)'α, covariance k(x, x') − k(x)'R B⁻¹ R'k(x').

    R R' are the precisions of the rows' terms, B = I + R'KR (see `credo.infinite.regression`). All of it is
    computed in double precision on the host, whatever the precision around it: the covariance is a small difference of
    large numbers. There are no weights, hence no `sample` and no `log_prob`.

    Each draw is one function of all rows of a call, and `joint_at` makes it one function of the rows of several calls.
    The joint distribution is exact up to 4,096 values of f. Beyond, 4,096 that are spread evenly over the rows are
    drawn together, and all others given the 2,048 most informative of them: each value keeps its exact distribution,
    and blocks of 512 values are independent given those. Draws are centred, so that the mean of
    all of them is the exact mean.

    Attributes:
        likelihood: the likelihood's parameters ν, leaves [member, …].
        log_evidence: log p(D), approximate where the noise is not Gaussian [member].
        weight_scale, bias_scale: what the prior's variances were multiplied by [member]; 1 where they were kept.
        activation: of the hidden layers.
        relevance: what the variance of each input's weights was multiplied by [member, d]; None where nothing was.
        bits: all else in double precision, see `to_bits`: "inputs" [member, n, d], "coefficients" α [member, n, out],
            "roots" R [member, group, n, out of the group, columns], "factor" of B [member, group, …], "weight" and
            "bias" variances of the layers [member, layers]. Outputs of one group are coupled. After `joint_at`, also
            "anchors", the rows that tie draws together [member, m, d].
    """

    likelihood: PyTree = leaf()
    log_evidence: Any = leaf()
    weight_scale: Any = leaf()
    bias_scale: Any = leaf()
    bits: dict[str, Any] = leaf()
    activation: str = "relu"
    relevance: Any = leaf(default=None)

    available = None  # draws are made afresh
    members = 1

    @property
    def kernel(self) -> Kernel:
        """The covariance function of the prior, as NumPy arrays."""
        return Process.of(self.bits, self.activation).kernel

    def num_draws(self, num: int | None) -> tuple[int, int]:
        """One member; 200 draws by default."""
        return 1, 200 if num is None else max(1, num)

    def view(self, mode: str) -> "FunctionPosterior":
        """There is one way to predict."""
        if mode == "sampled":
            return self
        raise Refusal(f'This posterior predicts with mode="sampled" only, got {mode!r}.')

    def moments(self, inputs: Any, *, covariance: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The exact mean [n, out] and variance [n, out] of f, or with `covariance` its matrix [n, out, n, out].

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(
            ...     credo.networks.mlp([50]), credo.priors.fan_in_normal(1.5), credo.likelihoods.gaussian(noise=0.1)
            ... )
            >>> fit = credo.fit(jax.random.key(0), model, (x, np.sin(3 * x[:, 0])), "infinite_width")
            >>> mean, variance = fit.posterior.moments(x)
            >>> mean.shape, bool((variance < 0.01).all())
            ((40, 1), True)
        """
        process = Process.of(self.bits, self.activation)
        at = process.at(np.asarray(inputs, np.float64))
        return at.mean, (process.covariance if covariance else process.variance)(at)

    def joint_at(self, blocks: Iterable[PyTree]) -> "FunctionPosterior":
        """The posterior whose draws are one function of all these rows, even over several calls."""
        most = joint.TOGETHER // self.bits["coefficients"].shape[-2]
        # Rows as the program will see them: JAX may hold fewer digits.
        rows = joint.distinct((np.asarray(x, jax.dtypes.canonicalize_dtype(np.asarray(x).dtype)) for x in blocks), most)
        anchors = host_bits(pad_rows(rows, min(bucket(len(rows)), most)))  # few shapes, few programs
        return dataclasses.replace(self, bits=self.bits | {"anchors": anchors[None]})

    def outputs(self, key: jax.Array, model: Model, inputs: PyTree, num: int | None) -> Draws:
        """Draws of f, computed on the host."""
        _, draws = self.num_draws(num)
        shape = (draws, inputs.shape[0], self.bits["coefficients"].shape[-2])
        values = jax.pure_callback(
            partial(_draw, self.activation, draws), jax.ShapeDtypeStruct(shape, jnp.float32), self.bits, inputs,
            jax.random.key_data(key), vmap_method="sequential",
        )  # fmt: skip
        spread = jax.tree.map(
            lambda x: jnp.broadcast_to(jnp.asarray(x)[:, None], (1, draws, *x.shape[1:])), self.likelihood
        )
        return Draws(values[None], spread, None)


def _draw(activation: str, draws: int, bits: dict[str, Any], inputs: Any, key: Any) -> np.ndarray:
    """f at the inputs [draw, n, out]."""
    process, rows = Process.of(bits, activation), np.asarray(inputs, np.float64)
    anchor_rows = process.numbers.get("anchors", rows)
    anchors = joint.distinct([anchor_rows], joint.TOGETHER // process.outputs)
    return joint.draw(process, rows, anchors, np.asarray(key).tobytes(), draws)
