"""Classification as a scikit-learn estimator."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from credo.core.numeric import refuse_masked
from credo.errors import InputError
from credo.estimators.base import BayesianEstimator
from credo.estimators.build import make_likelihood
from credo.estimators.rows import drop_unweighted, merge_repeats


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
        num_samples: draws of the weights behind every prediction.
        random_state: an integer makes fits and predictions repeatable.
        settings: hyper-parameters of the method, by name.
        standardise: shift and scale the columns of X to mean 0 and standard deviation 1.

    Attributes:
        classes_: the labels, sorted; columns of probabilities follow them.
        fit_: the `credo.Fit`, with its posterior, trace and status.
        why_: under "auto", the choice in a sentence.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows X [n, features] and labels y [n]; a sample_weight of 2 counts as two equal rows."""
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weight = drop_unweighted(X, y, weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"A classifier needs rows of at least 2 classes, got one class: {self.classes_[:1].tolist()[0]!r}."
            )
        likelihood = make_likelihood(self.likelihood, self._kind, len(self.classes_))
        X, codes, weight = merge_repeats(X, codes, weight)
        task = "binary" if len(self.classes_) == 2 else "multiclass"
        return self._infer(self._asked(task, X, len(self.classes_)), X, codes, weight, likelihood)

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
