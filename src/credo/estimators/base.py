"""What both estimators share: their parameters, the fit, the predictive and pickling."""

import dataclasses
import warnings
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as SklearnWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

import credo
from credo.core.likelihood import Likelihood
from credo.core.model import Model
from credo.core.numeric import refuse_masked
from credo.core.predictive import Predictive
from credo.errors import ConvergenceWarning
from credo.estimators.build import Asked, decided, make_likelihood, make_method, make_network, make_prior
from credo.estimators.rows import Standard
from credo.tables.auto import AUTO, compete
from credo.tables.auto.honest import checked, with_units
from credo.training.fit import Fit
from credo.training.warn import unwarned, warn

LARGEST_SEED = 2**31 - 1


class NotConverged(ConvergenceWarning, SklearnWarning):
    """`credo.ConvergenceWarning` where scikit-learn is at home: filters of either class see it."""


class BayesianEstimator(BaseEstimator):
    """A Bayesian network behind `fit` and `predictive`; see `BayesianRegressor` and `BayesianClassifier`."""

    fit_: Fit
    classes_: np.ndarray  # of classifiers
    _kind: str

    def __init__(
        self,
        method: Any = AUTO,
        network: Any = None,
        prior: Any = None,
        likelihood: Any = None,
        *,
        steps: int | None = None,
        batch_size: int | None = None,
        num_samples: int = 200,
        random_state: Any = None,
        settings: dict[str, Any] | None = None,
        standardise: bool = True,
    ):
        self.method = method
        self.network = network
        self.prior = prior
        self.likelihood = likelihood
        self.steps = steps
        self.batch_size = batch_size
        self.num_samples = num_samples
        self.random_state = random_state
        self.settings = settings
        self.standardise = standardise

    def _asked(self, task: str, inputs: np.ndarray, outputs: int) -> Asked:
        """What the parameters say, with nothing left open: under "auto" the choice for these rows."""
        names = ("method", "network", "prior", "likelihood", "settings", "steps", "batch_size")
        asked = Asked(*(getattr(self, name) for name in names))
        if not isinstance(asked.method, str) or asked.method != AUTO:
            return asked
        return decided(asked, task, inputs, outputs)

    def _infer(
        self, asked: Asked, inputs: np.ndarray, targets: np.ndarray, weight: np.ndarray, likelihood: Likelihood
    ) -> Self:
        """Learn from rows that are on their final scale of targets; inputs are standardised here."""
        self.input_scale_ = Standard.learn(inputs, weight) if self.standardise else Standard.identity(inputs.shape[1])
        data = (self.input_scale_.apply(inputs), targets, weight)
        network = make_network(asked.network, asked.method)
        seeds = check_random_state(self.random_state).randint(LARGEST_SEED, size=2)
        self.predict_seed_ = int(seeds[1])

        def model_with(options: dict[str, Any]) -> Model:
            prior = make_prior(options.get("prior", asked.prior), self._kind, asked.method, network)
            taken = options.get("likelihood") if likelihood.kind == "classes" else None  # by the pilot
            own = likelihood if taken is None else make_likelihood(taken, self._kind, len(self.classes_))
            return Model(network, prior, own, 1.0, None)

        options: dict[str, Any] = {}
        choice = None
        if asked.choice is not None:
            choice = compete(asked.choice, model_with, data, int(seeds[0]))
            options, self.why_ = choice.settings, choice.why
        method = make_method(asked.method, asked.settings)
        method = method if choice is None else with_units(method, data)
        with unwarned():
            fit = credo.fit(
                jax.random.key(int(seeds[0])), model_with(options), data, method,
                steps=asked.steps, batch_size=asked.batch_size, progress=False,
            )  # fmt: skip
        fit = fit if choice is None else checked(fit, choice.correction)
        if fit.outcome != "finished":
            warnings.warn(str(fit.status), NotConverged, stacklevel=3)
        else:
            warn(fit, stacklevel=4, category=NotConverged)
        # On the host from the start: members spread over devices would predict with other last digits than
        # their pickled copy.
        self.fit_ = _like(fit, posterior=_on_host(fit.posterior))
        return self

    def predictive(self, X: Any) -> Predictive:
        """The predictive distribution at X, with everything that credo can say about it.

        Example:
            >>> import numpy as np
            >>> from credo.estimators import BayesianRegressor
            >>> x = np.linspace(-1, 1, 40)[:, None]
            >>> model = BayesianRegressor("map", steps=200, random_state=0).fit(x, x[:, 0])
            >>> model.predictive(x).log_prob(x[:, 0]).shape
            (40,)
        """
        check_is_fitted(self)
        refuse_masked(X, "X")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        key = jax.random.key(self.predict_seed_)
        return credo.predict(key, self.fit_, self.input_scale_.apply(X), num_samples=self.num_samples)

    def _sample(self, X: Any, n_samples: int, random_state: Any) -> np.ndarray:
        """Draws of y, the draw as the last axis."""
        seed = int(check_random_state(random_state).randint(LARGEST_SEED))
        return np.moveaxis(self.predictive(X).sample(jax.random.key(seed), n_samples), 0, -1)

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and arrays of the host, without the training loop and its data."""
        state = dict(super().__getstate__())
        if "fit_" in state:
            fit = state["fit_"]
            state["fit_"] = _like(fit, model=_on_host(fit.model), loop=None)
        return state


def _like(fit: Fit, **parts: Any) -> Fit:
    """The fit with equal parts kept elsewhere: its alarms stay what they are."""
    copy = dataclasses.replace(fit, **parts)
    copy.rings = fit.rings
    return copy


def _on_host(tree: Any) -> Any:
    """The same tree with NumPy arrays in place of those of JAX."""
    return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, tree)
