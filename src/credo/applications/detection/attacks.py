"""Attacks on inputs: small changes that make a model wrong, found through its Monte-Carlo predictive."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.applications.detection.centre import centre_of, in_memory
from credo.applications.detection.climb import climb, noise
from credo.core.batch import bucket, pad_rows
from credo.core.numeric import host_targets
from credo.core.predict import checked_inputs, predict
from credo.core.short import fields_in_short
from credo.errors import InputError, Refusal
from credo.training.progress import tracked

KINDS = ("fgsm", "pgd", "noise")
NORMS = ("linf", "l2")
ROWS_AND_DRAWS = 25_000  # rows by draws of one program: the gradient keeps the activations of them all


@dataclasses.dataclass(frozen=True)
class Attack:
    """How inputs are attacked: x' = x + δ with ‖δ‖ ≤ ε and a large loss L(x') = −log Σ_k w_k p(y | x', θ_k).

    - "fgsm": one step of size ε, δ = ε sign(∇L) ("linf") or ε ∇L/‖∇L‖ ("l2"). Goodfellow, Shlens and Szegedy (2015),
      Explaining and harnessing adversarial examples.
    - "pgd": `steps` steps of size α, each back into the ball: δ ← Π(δ + α sign(∇L)). With fixed draws the result is
      the point of largest loss on the way. Madry et al. (2018), Towards deep learning models resistant to adversarial
      attacks.
    - "noise": a random δ of the same size, as a control: ε times random signs, or a random direction of length ε.

    Args:
        kind: one of the above.
        epsilon: ε, in units of the inputs.
        norm: "linf" (largest entry) or "l2" (Euclidean length, over all entries of a row).
        steps: of "pgd".
        step_size: α of "pgd"; 2.5 ε/steps where None.
        random_start: "pgd" starts at a random point of the ball.
        through: "predictive", an attacker who knows the posterior; or "mean", who knows the network at its mean alone.
        draws: "fixed", the same draws of θ in every step; or "fresh" ones, the expectation over transformation of
            Athalye et al. (2018).
        box: (low, high), between which attacked inputs stay, such as (0, 1) for pixels.

    Example:
        >>> import credo
        >>> print(credo.applications.detection.Attack("pgd", 0.1, norm="l2", steps=10))
        pgd, l2 ≤ 0.1, 10 steps
    """

    kind: str = "pgd"
    epsilon: float = 0.1
    norm: str = "linf"
    steps: int = 20
    step_size: float | None = None
    random_start: bool = True
    through: str = "predictive"
    draws: str = "fixed"
    box: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        allowed = {"kind": KINDS, "norm": NORMS, "through": ("predictive", "mean"), "draws": ("fixed", "fresh")}
        for name, values in allowed.items():
            if vars(self)[name] not in values:
                words = ", ".join(f'"{v}"' for v in values)
                raise InputError(f"{name} of an attack is one of {words}; got {vars(self)[name]!r}.")
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise InputError(f"epsilon is the size of an attack, a number of at least 0; got {self.epsilon}.")
        if self.steps < 1 or (self.step_size is not None and not self.step_size > 0):
            raise InputError(f"An attack has a step or more, of a size above 0; got {self.steps}, {self.step_size}.")
        if self.box is not None and not self.box[0] < self.box[1]:
            raise InputError(f"box is (low, high) with low < high, got {self.box}.")

    def __str__(self) -> str:
        size = f"{'l∞' if self.norm == 'linf' else 'l2'} ≤ {self.epsilon:g}"
        how = f", {self.steps} steps" if self.kind == "pgd" else ""
        if self.kind != "noise":
            how += ", through the mean" if self.through == "mean" else ""
            how += ", fresh draws" if self.draws == "fresh" else ""
        return f"{self.kind}, {size}{how}"

    @classmethod
    def parse(cls, text: str, **settings: Any) -> "Attack":
        """An attack from text: kind:ε or kind:ε:norm, such as "fgsm:0.1" or "pgd:0.5:l2".

        Example:
            >>> import credo
            >>> credo.applications.detection.Attack.parse("pgd:0.5:l2").norm
            'l2'
        """
        kind, *rest = text.split(":")
        try:
            epsilon = float(rest[0])
        except (IndexError, ValueError) as error:
            raise InputError(f"An attack is written kind:size, such as fgsm:0.1 or pgd:0.5:l2; got {text}.") from error
        if len(rest) > 2:
            raise InputError(f"An attack is written kind:size, such as fgsm:0.1 or pgd:0.5:l2; got {text}.")
        return cls(kind, epsilon, rest[1] if len(rest) > 1 else "linf", **settings)


@dataclasses.dataclass
class Attacked:
    """The result of `credo.applications.detection.attack`, row by row.

    Attributes:
        how: the attack.
        inputs: x' [n, …].
        success: a right prediction became wrong; with `aim`, another prediction became the aim.
        open: rows on which the attack could succeed: those that were right, or were not the aim before.
        before, after: predicted classes of x and x'.
        linf, l2: norms of x' − x.
    """

    how: Attack
    inputs: np.ndarray
    success: np.ndarray
    open: np.ndarray
    before: np.ndarray
    after: np.ndarray
    linf: np.ndarray
    l2: np.ndarray

    __repr__ = fields_in_short

    @property
    def success_rate(self) -> float:
        """Successes by rows on which there could be one."""
        return float(self.success.sum() / self.open.sum()) if self.open.any() else float("nan")

    def __str__(self) -> str:
        return (
            f"{self.how}: {int(self.success.sum())} of {int(self.open.sum())} attacks succeed "
            f"({100 * self.success_rate:.1f} %)."
        )


def attack(
    key: jax.Array,
    fit: Any,
    inputs: Any,
    labels: Any,
    how: Attack | str = "pgd:0.1",
    *,
    aim: Any = None,
    num_samples: int | None = None,
    mode: str | None = None,
    rows_at_once: int | None = None,
) -> Attacked:
    """Change inputs a little so that the model is wrong about them.

    The attacker has draws of θ of its own; success is judged by the model's predictive with other draws.

    Args:
        key: a JAX key.
        fit: the result of `credo.fit` of a model for classes.
        inputs: rows to attack, one array of real numbers.
        labels: the true classes.
        how: an `Attack`, or text as in `Attack.parse`.
        aim: classes that the attack is to reach, one for all rows or one for each; None: any wrong class.
        num_samples: draws of θ, for attacker and predictive alike.
        mode: how the posterior predicts, as in `credo.predict`.
        rows_at_once: rows that are attacked together; fewer need less memory. None: by the number of draws.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(100, 2)).astype("float32")
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0] > 0), "map", steps=200)
        >>> attacked = credo.applications.detection.attack(jax.random.key(1), fit, x, x[:, 0] > 0, "fgsm:0.5")
        >>> attacked.success_rate > 0.2, round(float(attacked.linf.max()), 4)
        (True, 0.5)
    """
    how = Attack.parse(how) if isinstance(how, str) else how
    likelihood = fit.model.likelihood
    if likelihood.kind != "classes":
        raise Refusal(f"An attack turns one class into another; this model predicts {likelihood.kind} targets.")
    if isinstance(inputs, dict | list | tuple):
        raise InputError("An attack changes one array of inputs; got several.")
    x = np.asarray(checked_inputs(fit, inputs))
    if x.dtype.kind != "f":
        raise InputError(f"An attack moves real-valued inputs a little; these are {x.dtype}.")
    x = x.astype(np.float32)
    if how.box is not None and not (how.box[0] <= x.min() and x.max() <= how.box[1]):
        raise InputError(f"Inputs lie in [{x.min():g}, {x.max():g}], outside of the box {how.box}: scale them first.")
    true = _classes(likelihood, labels, len(x), "labels")
    aims = None if aim is None else _classes(likelihood, np.broadcast_to(aim, (len(x),)), len(x), "aim")
    key_attack, key_predict = jax.random.split(key)
    moved = _attack_rows(key_attack, fit, x, true if aims is None else aims, how, aims is not None, num_samples, mode,
                   rows_at_once)  # fmt: skip
    before, after = (
        predict(key_predict, fit, rows, num_samples=num_samples, mode=mode).probs.argmax(1) for rows in (x, moved)
    )
    eligible = before == true if aims is None else before != aims
    success = eligible & (after != true if aims is None else after == aims)
    change = (moved - x).reshape(len(x), -1)
    return Attacked(how, moved, success, eligible, before, after, np.abs(change).max(1), np.linalg.norm(change, axis=1))


def _classes(likelihood: Any, labels: Any, rows: int, name: str) -> np.ndarray:
    array = np.asarray(labels)
    if array.shape[:1] != (rows,):
        raise InputError(f"Expected {rows} {name}, one for each input, got shape {list(array.shape)}.")
    return host_targets(likelihood, array)


def _attack_rows(
    key: jax.Array, fit: Any, x: np.ndarray, classes: np.ndarray, how: Attack, aimed: bool, num: int | None,
    mode: str | None, most: int | None,
) -> np.ndarray:  # fmt: skip
    """x' of all rows, chunk by chunk, through one compiled program for every ε."""
    key_draws, key_start = jax.random.split(key)
    ends = how.box or (-np.inf, np.inf)
    low, high, epsilon = (jnp.float32(v) for v in (*ends, how.epsilon))
    if how.kind == "noise":
        return np.asarray(noise(key_start, x, epsilon, low, high, how.norm))
    posterior = fit.posterior if mode is None else fit.posterior.view(mode)
    posterior = in_memory(centre_of(posterior) if how.through == "mean" else posterior, num)
    posterior = jax.device_put(posterior)
    pgd = how.kind == "pgd"
    steps = how.steps if pgd else 1
    size = how.epsilon if not pgd else how.step_size or 2.5 * how.epsilon / steps
    start = how.epsilon if pgd and how.random_start else 0.0
    numbers = (epsilon, jnp.float32(size), jnp.float32(start), low, high, jnp.float32(-1.0 if aimed else 1.0))
    most = max(1, most or ROWS_AND_DRAWS // int(np.prod(posterior.num_draws(num))))
    width = min(most, bucket(len(x)))
    parts = []
    for first in tracked(range(0, len(x), width), str(how), len(x), lambda first: min(width, len(x) - first)):
        rows, labels = (pad_rows(a[first : first + width], width) for a in (x, classes))
        keys = (key_draws, jax.random.fold_in(key_start, first))
        try:
            attacked = climb(
                keys, posterior, fit.model, rows, labels, numbers, steps=steps, num=num, norm=how.norm,
                fresh=how.draws == "fresh", best=pgd and how.draws == "fixed",
            )  # fmt: skip
        except ValueError as error:
            if "callback" not in str(error):
                raise
            raise Refusal(
                f"{type(posterior).__name__} computes its outputs on the host, so that the predictive has no gradients "
                "to follow: attack another fit and score this one on the attacked inputs."
            ) from error
        parts.append(np.asarray(attacked)[: len(x) - first])
    return np.concatenate(parts)
