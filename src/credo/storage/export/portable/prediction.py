"""The predictive distribution at some rows, on the scale of the targets."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from credo.core.averages import average, class_summary_of, count_quantile, log_average, moments_of
from credo.core.functionals import Functionals, prediction_columns
from credo.storage.export.portable.cells import PortableError
from credo.storage.export.portable.likelihoods import likelihood_of_draws
from credo.storage.export.portable.networks import Weights, network_outputs
from credo.tables.encode.features import text_key
from credo.tables.encode.levels import Unknown, outputs_at_levels, repeats

CHUNK_BYTES = 2**26
STEPS = 200  # at most; ten are the rule
CLOSE = 1e-10  # to the level
LOGS = 600.0  # to either side of the mean of positive numbers
NARROW = 1e-15  # between ends that are one, where the distribution function jumps past the level


class Mixture:
    """p(y|x) = Σ_k w_k p(y | f_k(x)) at n inputs, on the scale that the fit had.

    Rows with an unknown cell are mixtures over the values in training.
    """

    def __init__(
        self,
        document: dict[str, Any],
        arrays: dict[str, np.ndarray],
        inputs: np.ndarray,
        unseen: Sequence[Unknown] = (),
    ):
        self.network, self.weights, self.inputs = document["network"], Weights(arrays), inputs
        self.unseen, self.times = unseen, repeats(len(arrays["log_weights"])) if unseen else 1
        self.likelihood = likelihood_of_draws(document["kind"], document["likelihood"], arrays, self.times)
        self.log_weights = np.repeat(arrays["log_weights"].astype(float), self.times) - np.log(self.times)
        self.step = max(1, CHUNK_BYTES // (8 * len(self.log_weights) * self.weights.widest))

    def _each(self, function: Callable[..., Any], *per_row: np.ndarray) -> Any:
        """The function of outputs [draw, n, out], chunk by chunk of rows."""
        parts = []
        for start in range(0, len(self.inputs), self.step):
            rows = slice(start, start + self.step)
            outputs = self._outputs(start, self.inputs[rows])
            with np.errstate(all="ignore"):  # lanes of formulas that are not taken
                parts.append(function(outputs, *(x[rows] for x in per_row)))
        if isinstance(parts[0], dict):
            return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return np.concatenate(parts)

    def _outputs(self, start: int, inputs: np.ndarray) -> np.ndarray:
        """f of every draw [draw, n, out] at the rows from `start` on."""

        def outputs_at(inputs: np.ndarray) -> np.ndarray:
            return network_outputs(self.network, self.weights, inputs)

        outputs = outputs_at(inputs)
        if self.unseen:
            unknown = np.flatnonzero(np.logical_or.reduce([c.rows[start : start + len(inputs)] for c in self.unseen]))
            count, outputs = len(outputs), np.repeat(outputs, self.times, axis=0)
            if len(unknown):
                outputs[:, unknown] = outputs_at_levels(
                    outputs_at, self.unseen, inputs[unknown], start + unknown, count
                )
        return outputs

    def summary(self) -> dict[str, np.ndarray]:
        """Moments, or probabilities and entropies."""
        return self._each(self._classes if self.likelihood.kind == "classes" else self._moments)

    def _moments(self, outputs: np.ndarray) -> dict[str, np.ndarray]:
        return moments_of(self.likelihood.mean(outputs), self.likelihood.variance(outputs), self.log_weights)

    def _classes(self, outputs: np.ndarray) -> dict[str, np.ndarray]:
        return class_summary_of(self.likelihood.log_probs(outputs), self.likelihood.entropy(outputs), self.log_weights)

    def _cdf(self, outputs: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(average(self.likelihood.cdf(outputs, y), self.log_weights), 0.0, 1.0)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """log p(y) [n]."""
        return self._each(
            lambda outputs, targets: log_average(self.likelihood.log_prob(outputs, targets), self.log_weights), y
        )

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y ≤ y) [n, k]."""
        return self._each(self._cdf, y)

    def quantile(self, level: float) -> np.ndarray:
        """The smallest y with P(Y ≤ y) ≥ level [n, k], by cutting brackets of the mixture's distribution function."""
        cut = self._cut_counts if self.likelihood.kind == "counts" else self._cut
        return self._each(lambda outputs: cut(outputs, level))

    def _below(self, outputs: np.ndarray, y: np.ndarray, open_: np.ndarray) -> np.ndarray:
        """P(Y ≤ y) in rows with open entries, 0 elsewhere."""
        rows, values = np.flatnonzero(open_.any(-1)), np.zeros_like(y)
        values[rows] = self._cdf(outputs[:, rows], y[rows])
        return values

    def _scale(self, outputs: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """y = mean + spread · u/(1 − u²) of u in (−1, 1) reaches every number, so that no bracket is needed; of
        positive numbers their logarithm does so."""
        moments, zero = self._moments(outputs), self.likelihood.zero
        if zero is not None:
            return lambda u: zero + (moments["mean"] - zero) * np.exp(np.clip(u / (1.0 - u * u), -LOGS, LOGS))
        spread = np.clip(np.sqrt(moments["aleatoric"] + moments["epistemic"]), 1e-6, 1e12)

        def at(u: np.ndarray) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return moments["mean"] + spread * u / (1.0 - u * u)

        return at

    def _cut(self, outputs: np.ndarray, level: float) -> np.ndarray:
        """False position (the Illinois rule), with every third step a halving, for functions that are staircases."""
        at = self._scale(outputs)
        low = np.full(self.likelihood.mean(outputs).shape[1:], -1.0)
        high, below_low, above_high = -low, np.full_like(low, -level), np.full_like(low, 1 - level)
        best, error, side = low, np.ones_like(low), np.zeros_like(low)
        for step in range(STEPS):
            open_ = (error >= CLOSE) & (high - low >= NARROW)
            if not open_.any():
                break
            fraction = 0.5 if step % 3 == 2 else below_low / (below_low - above_high)
            middle = low + (high - low) * fraction
            value = self._below(outputs, at(middle), open_) - level
            nearer, below = open_ & (np.abs(value) < error), value < 0
            best, error = np.where(nearer, middle, best), np.where(nearer, np.abs(value), error)
            # An end that stays twice counts half, else it would stay for ever.
            new_high = np.where(below, np.where(side > 0, 0.5, 1.0) * above_high, value)
            new_low = np.where(below, value, np.where(side < 0, 0.5, 1.0) * below_low)
            above_high, below_low = np.where(open_, new_high, above_high), np.where(open_, new_low, below_low)
            low, high = np.where(open_ & below, middle, low), np.where(open_ & ~below, middle, high)
            side = np.where(below, 1.0, -1.0)
        return at(np.where(error < CLOSE, best, high))

    def _cut_counts(self, outputs: np.ndarray, level: float) -> np.ndarray:
        moments = self._moments(outputs)
        spread = np.sqrt(moments["aleatoric"] + moments["epistemic"])
        return count_quantile(lambda y, mask: self._below(outputs, y, mask) < level, moments["mean"], spread, level)


class Computed:
    """Answers of a compiled program: quantiles at its levels, and no densities."""

    def __init__(self, answers: dict[str, np.ndarray], levels: Sequence[float]):
        self.answers, self.levels = answers, list(levels)

    def summary(self) -> dict[str, np.ndarray]:
        """Moments, or probabilities and entropies."""
        return self.answers

    def quantile(self, level: float) -> np.ndarray:
        """The quantile at one of the levels."""
        matches = [i for i, other in enumerate(self.levels) if abs(other - level) < 1e-6]
        if not matches:
            raise PortableError(f"This predictor was exported with the levels {self.levels}, not with {level:g}.")
        return self.answers["quantiles"][..., matches[0]]

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Refused."""
        raise PortableError('A compiled predictor has no densities; export it with form="numpy".')

    cdf = log_prob


class Prediction(Functionals):
    """What is predicted at n rows: regression and counts have `mean`, `std`, `aleatoric` and `epistemic` variances and
    quantiles; classes have `probs`, and `aleatoric` and `epistemic` are entropies in nats."""

    _refusal = PortableError

    def __init__(self, document: dict[str, Any], answers: Any):
        self._kind, self.labels, self.names = document["kind"], document["labels"], document["targets"]
        self._answers, self._flat = answers, document["flat"]
        self._shift, self._scale = np.asarray(document["shift"], float), np.asarray(document["scale"], float)
        self._summary = {name: np.asarray(values, float) for name, values in answers.summary().items()}

    def __len__(self) -> int:
        return len(self._summary["mean"])

    def __repr__(self) -> str:
        names = ("probs",) if self.kind == "classes" else ("mean", "std", "interval(0.9)")
        return f"Prediction of {len(self)} row{'s' * (len(self) != 1)}: {', '.join(names)}, aleatoric, epistemic"

    @property
    def kind(self) -> str:
        """ "real", "counts" or "classes"."""
        return self._kind

    @property
    def label(self) -> np.ndarray:
        """The most probable class of every row."""
        best = self.probs.argmax(1)
        return best if self.labels is None else np.array([self.labels[i] for i in best])

    def entropy(self) -> np.ndarray:
        """Total uncertainty about the class, in nats."""
        self._only(("classes",), "entropy")
        return self._summary["entropy"]

    def mutual_information(self) -> np.ndarray:
        """What knowing the weights would tell about the class, in nats."""
        self._only(("classes",), "mutual_information")
        return self._summary["epistemic"]

    def quantile(self, level: float) -> np.ndarray:
        """The value that y stays below with this probability."""
        self._only(("real", "counts"), "quantile")
        if not 0 < level < 1:
            raise PortableError(f"A quantile level lies between 0 and 1, got {level}.")
        return self._real(self._answers.quantile(level))

    def cdf(self, targets: Any) -> np.ndarray:
        """P(Y ≤ y) for each output."""
        self._only(("real", "counts"), "cdf")
        return self._shape(self._answers.cdf(self._canonical(targets)))

    def log_prob(self, targets: Any) -> np.ndarray:
        """log p(y) of the mixture [n]; classes by label, or by index where there are no labels."""
        y = self._canonical(targets)
        values = self._answers.log_prob(y)
        return values - np.log(np.broadcast_to(self._scale, y.shape[1:])).sum() if self.kind == "real" else values

    def _canonical(self, targets: Any) -> np.ndarray:
        values = np.asarray(targets)
        if len(values) != len(self):
            raise PortableError(f"Expected {len(self)} targets, one for each row, got {len(values)}.")
        if self.kind != "classes":
            y = values.reshape(len(self), -1).astype(float)
            columns = np.asarray(self._summary["mean"]).reshape(len(self), -1).shape[1]
            if y.shape[1] != columns:
                raise PortableError(f"Each row has {columns} target(s), got targets of shape {list(values.shape)}.")
            return (y - self._shift) / self._scale if self.kind == "real" else y
        if self.labels is None:
            return values.astype(int)
        indices = {text_key(label): i for i, label in enumerate(self.labels)}
        unknown = [value for value in values.tolist() if text_key(value) not in indices]
        if unknown:
            raise PortableError(f"There is no class '{unknown[0]}'; the classes are {self.labels}.")
        return np.array([indices[text_key(value)] for value in values.tolist()])

    def columns(self, interval: float = 0.9) -> dict[str, np.ndarray]:
        """The columns that `credo predict` writes."""
        return prediction_columns(self, interval, self.names, self.labels)
