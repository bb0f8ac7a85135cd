"""How suspicious a prediction makes its input: numbers that are larger where the model knows less."""

from operator import methodcaller
from typing import Any

import numpy as np

from credo.core.predictive import Predictive
from credo.errors import InputError

CLASS_SCORES = ("entropy", "conditional_entropy", "mutual_information", "max_probability")
NUMBER_SCORES = ("variance", "epistemic")
SCORES = (*CLASS_SCORES, *NUMBER_SCORES)


def suspicion(predictive: Predictive, score: str | None = None) -> np.ndarray:
    """One number for each row [n]; more is more suspicious.

    Classes, in nats but for the last:

    - "entropy": H[p], of the mixture p = Σ_k w_k p_k: total uncertainty.
    - "conditional_entropy": E_θ H[p_θ], aleatoric uncertainty.
    - "mutual_information": H[p] − E_θ H[p_θ], epistemic uncertainty; 0 for a point.
    - "max_probability": 1 − max_c p(c).

    Numbers and counts:

    - "variance": Var[y].
    - "epistemic": Var_θ[E[y|θ]]; 0 for a point.

    Variances of several outputs are added in units of the likelihood. Smith and Gal (2018), Understanding measures of
    uncertainty for adversarial example detection; Hendrycks and Gimpel (2017) for the last of the classes.

    Args:
        predictive: what `credo.predict` gave.
        score: one of the above; "entropy" or "epistemic" where None.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 40)[:, None].astype("float32")
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
        >>> fit = credo.fit(jax.random.key(0), model, (x, x[:, 0]), "laplace", steps=300)
        >>> near, far = credo.applications.detection.suspicion(
        ...     credo.predict(jax.random.key(1), fit, np.array([[0.0], [9.0]]))
        ... )
        >>> bool(far > 10 * near)
        True
    """
    score = score or default_score(predictive)
    names = scores_for(predictive)
    if score not in names:
        raise InputError(f"Unknown score {score!r} for {predictive.kind} targets; choose one of {', '.join(names)}.")
    if predictive.kind == "classes":
        if score == "max_probability":
            # The sum of the others: 1 − p is 0 in single precision for all predictions that are sure.
            others = np.exp(np.sort(predictive.log_probs.astype(np.float64), axis=-1)[:, :-1])
            return others.sum(-1)
        return np.asarray(methodcaller(score)(predictive))
    values = np.asarray(predictive.variance if score == "variance" else predictive.epistemic, np.float64)
    if values.ndim == 1:
        return values
    return (values / predictive.affine[1] ** 2).sum(-1)


def scores_for(predictive: Any) -> tuple[str, ...]:
    """Names of the scores that a predictive (or a likelihood) has."""
    return CLASS_SCORES if predictive.kind == "classes" else NUMBER_SCORES


def default_score(predictive: Any) -> str:
    """The score that is taken where none is named."""
    return "entropy" if predictive.kind == "classes" else "epistemic"
