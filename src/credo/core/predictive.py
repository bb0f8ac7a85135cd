"""The predictive distribution at some inputs: a mixture over draws, with its uncertainty decomposed."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core import mixture
from credo.core.batch import pad_rows
from credo.core.checks import checked_key, share, whole_number
from credo.core.entropies import entropies
from credo.core.functionals import Functionals, prediction_columns
from credo.core.likelihood import Likelihood
from credo.core.mixture import Flat
from credo.core.numeric import host_doubles, host_targets
from credo.core.precision import single
from credo.core.short import Card, plural
from credo.errors import InputError, Refusal


class Predictive(Functionals, Card):
    """p(y*|x*, D) ≈ Σ_k w_k p(y*|x*, θ_k) at n inputs (G1), as NumPy arrays on the scale of the targets.

    Regression and counts: `mean`, `variance`, `std`, `aleatoric` (E[σ²]) and `epistemic` (Var[f]) are variances of
    shape [n], or [n, k] for several outputs. Classes: `probs` [n, C] (also `mean`), `probs_std`; `aleatoric` and
    `epistemic` are entropies in nats, E[H[p_k]] and the mutual information.

    Per-draw outputs are kept where they fit the memory budget and computed anew for each question where they do not.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        chunks: Callable[[], Iterator[tuple[slice, Flat]]],
        num_rows: int,
        flat: bool,
        shift: Any = 0.0,
        scale: Any = 1.0,
        columns: int | None = None,
    ):
        self.likelihood = likelihood
        self._chunks = chunks
        self._rows = num_rows
        self._flat = flat  # targets are [n], not [n, 1]
        self._columns = columns  # numbers in one target, where they are not those of its mean: (time, event), say
        self._shift, self._scale = np.asarray(shift, np.float64), np.asarray(scale, np.float64)

    def __len__(self) -> int:
        return self._rows

    def _facts(self) -> dict[str, str]:
        scaled = {} if np.all(self._shift == 0) and np.all(self._scale == 1) else {"scale": "rescaled"}
        return {"rows": plural(self._rows, "row"), "likelihood": repr(self.likelihood), "kind": self.kind} | scaled

    @property
    def kind(self) -> str:
        """ "real", "counts" or "classes"."""
        return self.likelihood.kind

    def rescaled(self, shift: Any, scale: Any) -> "Predictive":
        """The predictive of shift + scale · y: undoes a standardisation of the targets, densities included.

        Args:
            shift, scale: numbers, or one for each output [k], or for each row and output [n, k]; scales above 0.
        """
        if self.kind != "real":
            raise Refusal("Only real-valued targets can be rescaled.")
        if self._columns is not None:
            raise Refusal(f"Targets of {self._columns} numbers, of which the mean is one of fewer, cannot be rescaled.")
        if not (np.asarray(scale) > 0).all():
            raise InputError(f"Targets are rescaled by numbers above 0, got {scale}.")
        return Predictive(
            self.likelihood, self._chunks, self._rows, self._flat,
            np.asarray(shift, np.float64) + np.asarray(scale, np.float64) * self._shift,
            np.asarray(scale, np.float64) * self._scale,
        )  # fmt: skip

    # ------------------------------------------------------------------ helpers
    def _each(self, function: Callable[..., Any], *per_row: Any) -> Any:
        """Apply a function of (likelihood, draws, rows of arrays…) to every chunk, and concatenate the results."""
        parts = []
        for rows, draws in self._chunks():
            count = rows.stop - rows.start
            width = draws.outputs.shape[1]
            with single():
                padded = [jnp.asarray(pad_rows(x[rows], width)) for x in per_row]
                result = function(self.likelihood, draws, *padded)
            parts.append(jax.tree.map(lambda x, c=count: np.asarray(x)[:c], result))
        return jax.tree.map(lambda *x: np.concatenate(x), *parts)

    def _canonical(self, targets: Any) -> np.ndarray:
        """The user's targets in the likelihood's canonical form."""
        array = np.asarray(targets) if self.kind == "classes" else host_doubles(targets, "Targets")
        if array.shape[:1] != (self._rows,):
            raise InputError(f"Expected {self._rows} targets, one for each input, got shape {list(array.shape)}.")
        if self.kind != "classes":
            check_columns(array.shape, self._columns or (1 if self._flat else self._summary["mean"].shape[-1]))
        if self.kind == "real" and self._columns is None:
            array = (array.reshape(self._rows, -1) - self._shift) / self._scale
        return host_targets(self.likelihood, array)

    @cached_property
    def _summary(self) -> dict[str, np.ndarray]:
        summary = self._each(mixture.class_summary if self.kind == "classes" else mixture.moments)
        wrong = int(np.isnan(summary["mean"]).reshape(self._rows, -1).any(1).sum())
        if wrong:
            warnings.warn(
                f"Predictions are NaN at {wrong} of {self._rows} inputs: the weights hold NaN, or these inputs are too "
                "large for the network.",
                RuntimeWarning,
                stacklevel=4,
            )
        return summary

    # ------------------------------------------------------------------ the distribution
    def log_prob(self, targets: Any) -> np.ndarray:
        """log p(y) of the mixture [n], on the scale of the targets."""
        values = self._each(mixture.log_prob, self._canonical(targets)).astype(np.float64)
        if self.kind != "real":
            return values
        return values - np.log(self.affine[1]).sum(-1)

    def cdf(self, targets: Any) -> np.ndarray:
        """P(Y ≤ y), for each output."""
        self._only(("real", "counts"), "cdf")
        return self._shape(self._each(mixture.cdf, self._canonical(targets)))

    def quantile(self, level: float) -> np.ndarray:
        """The value that y stays below with probability `level`, for each output."""
        self._only(("real", "counts"), "quantile")
        at = jnp.float32(share(level, "A quantile level"))
        return self._real(self._each(lambda likelihood, draws: mixture.quantile(likelihood, draws, at)))

    def interval(self, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the central interval with this probability."""
        return super().interval(share(coverage, "Coverage"))

    def sample(self, key: jax.Array, num: int = 1) -> np.ndarray:
        """`num` draws of y at every input [num, n, …]; each is one draw of θ at all inputs, with noise of its own."""
        checked_key(key)
        num = whole_number(num, "num")
        chunk = itertools.count()

        def one(likelihood: Likelihood, d: Flat) -> jax.Array:
            return jnp.moveaxis(mixture.sample(likelihood, d, key, num, np.int32(next(chunk))), 0, 1)

        draws = self._each(one)
        draws = np.moveaxis(draws, 1, 0)
        return draws if self.kind == "classes" else self._real(draws)

    def by_chunk(self, function: Callable[..., Any], targets: Any) -> Any:
        """`function(likelihood, draws, y, scale)` for chunks of rows, put together: any functional, in bounded memory.

        Draws and y are on the likelihood's own scale; `scale` [n, k] takes distances to the scale of the targets.
        """
        return self._each(function, self._canonical(targets), self.affine[1].astype(np.float32))

    def chunks(self) -> Iterator[tuple[slice, Flat]]:
        """Rows, and the draws at them on the likelihood's own scale (see `affine`), chunk by chunk in bounded memory.

        Draws of the last chunk are padded with repeats of its last row.
        """
        return self._chunks()

    @property
    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Shift and scale [n, k]: targets are shift + scale · y with y as the likelihood sees it; 0 and 1 unless
        rescaled. A recalibrated predictive has another shift in each row."""
        shape = (self._rows, 1 if self._flat else self._summary["mean"].shape[-1])
        return np.broadcast_to(self._shift, shape), np.broadcast_to(self._scale, shape)

    def to_pandas(
        self, interval: float = 0.9, *, targets: Sequence[str] | None = None, labels: Sequence[Any] | None = None
    ) -> Any:
        """A pandas DataFrame with one row for each input, and the columns that `credo predict` writes.

        Numbers and counts: mean, std, aleatoric_std, epistemic_std, lower and upper; with several outputs, each with
        the name of its target before it. Classes: label, p_CLASS for each class, entropy, aleatoric_entropy and
        mutual_information.

        Args:
            interval: probability of the interval from lower to upper.
            targets: names of several outputs; y0, y1, … by default.
            labels: names of the classes; 0, 1, … by default.

        Example:
            >>> import jax, credo, numpy as np
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = credo.Model(credo.networks.mlp([5]), credo.priors.normal(), credo.likelihoods.bernoulli())
            >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0] > 0), "map", steps=20)
            >>> frame = credo.predict(jax.random.key(1), fit, x).to_pandas(labels=["down", "up"])
            >>> list(frame.columns)[:3], len(frame)
            (['label', 'p_down', 'p_up'], 40)
        """
        import pandas as pd

        return pd.DataFrame(prediction_columns(self, interval, targets, labels))

    # ------------------------------------------------------------------ entropies
    @cached_property
    def _entropies(self) -> dict[str, np.ndarray]:
        if self.kind == "classes":
            names = {"entropy": "entropy", "conditional_entropy": "aleatoric", "mutual_information": "epistemic"}
            return {new: self._summary[old] for new, old in names.items()}
        if self._summary["mean"].shape[-1] != 1:
            raise Refusal("The entropy of several outputs at once has no one-dimensional integral; ask for one output.")
        values = self._each(entropies)
        offset = np.log(self.affine[1]).sum(-1) if self.kind == "real" else 0.0
        return {name: v if name == "mutual_information" else v + offset for name, v in values.items()}

    def entropy(self) -> np.ndarray:
        """Total uncertainty H[p] in nats (a differential entropy for real targets, by quadrature)."""
        return self._entropies["entropy"]

    def conditional_entropy(self) -> np.ndarray:
        """Noise in nats: E_θ[H[p_θ]]."""
        return self._entropies["conditional_entropy"]

    def mutual_information(self) -> np.ndarray:
        """Information about y in θ: H[p] − E_θ[H[p_θ]] ≥ 0, in nats."""
        return self._entropies["mutual_information"]


def check_columns(shape: tuple[int, ...], columns: int) -> None:
    """Raise where targets of this shape are not so many numbers for each row.

    One column would broadcast against several outputs, and several columns against one.
    """
    if math.prod(shape[1:]) != columns:
        wanted = "one target" if columns == 1 else f"{columns} targets"
        raise InputError(f"Each input of this model has {wanted}, got targets of shape {list(shape)}.")
