"""Classification as a scikit-learn estimator."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from credo.core.likelihood import Likelihood
from credo.errors import InputError
from credo.estimators.base import BayesianEstimator
from credo.estimators.build import make_likelihood
from credo.estimators.frames import target_names
from credo.estimators.rows import drop_unweighted, merge_repeats
from credo.tables.auto import AUTO
from credo.tables.encode.targets import ClassTarget
from credo.tables.model import check_order


class BayesianClassifier(ClassifierMixin, BayesianEstimator):
    """A Bayesian neural network for classes: probabilities that admit what the data cannot tell.

    Args:
        method: an inference method or its name (`credo methods` lists them); "auto" chooses one by
            the numbers of rows and columns, and takes up to a minute or two.
        network: "mlp:50,50", "mlp:50:tanh", a list of hidden widths or a credo network; None is the method's, often
            "mlp:50".
        prior: a prior over weights, or words such as "normal:0.5"; None is "fan_in_normal:4".
        likelihood: a likelihood or its name; None is `bernoulli` for two classes and `categorical` for more.
        steps: steps of the method's last phase (draws, for samplers); None takes the method's default.
        batch_size: rows of a minibatch; None takes all rows up to 512 and 128 beyond.
        budget: time instead of steps ("60s", "5m"), compilation aside.
        effort: of "auto": "quick", "normal" or "best", as in `credo.tables.fit`.
        num_samples: draws of the weights behind every prediction.
        random_state: an integer makes fits and predictions repeatable.
        settings: hyper-parameters of the method, by name.
        standardise: shift and scale the columns of X to mean 0 and standard deviation 1. The encoder of a table always
            does so.
        verbose: show progress on stderr.
        class_weight: weights of the classes, a dict or "balanced", which multiply those of their rows.

    Attributes:
        classes_: the labels, sorted; columns of probabilities follow them.
        fit_: the `credo.Fit`, with its posterior, trace and status.
        why_: under "auto", the choice in a sentence.
        encoder_: of a DataFrame with categories, dates or missing cells: the `TableEncoder` that turns its rows into
            inputs, as `credo fit` does; None of arrays, and of DataFrames that are one.
        n_features_in_, feature_names_in_: the columns of X.

    Example:
        >>> import numpy as np
        >>> from credo.estimators import BayesianClassifier
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> model = BayesianClassifier("map", "mlp:20", steps=300, random_state=0).fit(x, x[:, 0] > 0)
        >>> model.predict_proba(x).shape
        (40, 2)
    """

    _kind = "classifier"

    def __init__(
        self,
        method: Any = AUTO,
        network: Any = None,
        prior: Any = None,
        likelihood: Any = None,
        *,
        steps: int | None = None,
        batch_size: int | None = None,
        budget: str | float | None = None,
        effort: str = "normal",
        num_samples: int = 200,
        random_state: Any = None,
        settings: dict[str, Any] | None = None,
        standardise: bool = True,
        verbose: bool = False,
        class_weight: dict[Any, float] | str | None = None,
    ):
        super().__init__(
            method, network, prior, likelihood, steps=steps, batch_size=batch_size, budget=budget, effort=effort,
            num_samples=num_samples, random_state=random_state, settings=settings, standardise=standardise,
            verbose=verbose,
        )  # fmt: skip
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X [n, features], an array or a table, and labels y [n].

        A sample_weight of 2 counts as two equal rows, of 0 as none.
        """
        labels = y
        X, y, weight = self._checked(X, y, sample_weight)
        check_classification_targets(y)
        if self.class_weight is not None:
            X, y, weight = drop_unweighted(X, y, weight * compute_sample_weight(self.class_weight, y))
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"A classifier needs rows of at least 2 classes, got one class: {self.classes_[:1].tolist()[0]!r}."
            )
        target = ClassTarget(target_names(labels, 1)[0], tuple(self.classes_.tolist()))
        check_order(make_likelihood(self.likelihood, self._kind, len(self.classes_)), target)
        X, codes, weight = merge_repeats(self._encoded(X, weight, target), codes, weight)
        task = "binary" if len(self.classes_) == 2 else "multiclass"
        return self._infer(task, X, codes, weight, len(self.classes_))

    def _likelihood(self, likelihood: Any, method: Any) -> Likelihood:
        return make_likelihood(likelihood, self._kind, len(self.classes_))

    def predict_proba(self, X: Any, return_std: bool = False) -> Any:
        """Probabilities of the classes [n, classes], with their standard deviations over the weights where asked."""
        predictive = self.predictive(X)
        return (predictive.probs, predictive.probs_std) if return_std else predictive.probs

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Entropies in nats: "total" = "aleatoric" (noise) + "epistemic" (what more data would tell)."""
        predictive = self.predictive(X)
        return {
            "total": predictive.entropy(),
            "aleatoric": predictive.aleatoric,
            "epistemic": predictive.epistemic,
        }

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of labels at X [n, draws]."""
        codes = self._sample(X, n_samples, random_state)
        return self.classes_[codes]
