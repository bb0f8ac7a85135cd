"""What both estimators share: their parameters, the fit, the predictive, pickling and what a notebook shows."""

import dataclasses
import sys
import time
import warnings
from typing import Any, Self

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning as SklearnWarning
from sklearn.utils import check_random_state, check_X_y, estimator_html_repr
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import credo
from credo.core.likelihood import Likelihood
from credo.core.model import Model
from credo.core.numeric import refuse_masked
from credo.core.predictive import Predictive
from credo.core.short import html_table
from credo.errors import ConvergenceWarning
from credo.estimators.build import make_method, make_network, make_prior
from credo.estimators.frames import densify, fill_missing, frame_like, is_frame, is_numeric, medians, predict_rows
from credo.estimators.rows import Standard, drop_unweighted
from credo.evaluation.metrics.scores import summarise
from credo.networks import Piecewise, piecewise, quantile_knots
from credo.tables.auto import AUTO
from credo.tables.auto.case import Case
from credo.tables.auto.resolution import Resolved, check_effort, resolve
from credo.tables.encode.encoder import TableEncoder
from credo.tables.encode.learning import learn_inputs
from credo.tables.encode.targets import ClassTarget, RegressionTarget
from credo.tables.model import num_parameters
from credo.tables.prepare import check_duration
from credo.tables.read import parse
from credo.tables.read.source import read_source
from credo.tables.vectors import takes_codes, with_vectors
from credo.training.clock import COMPILING
from credo.training.fit import Fit
from credo.training.warn import unwarned, warn

LARGEST_SEED = 2**31 - 1
SCORED = 1000  # rows behind the scores that a notebook shows


class NotConverged(ConvergenceWarning, SklearnWarning):
    """`credo.ConvergenceWarning` where scikit-learn is at home: filters of either class see it."""


class BayesianEstimator(BaseEstimator):
    """A Bayesian network behind `fit` and `predictive`; see `BayesianRegressor` and `BayesianClassifier`."""

    fit_: Fit
    classes_: np.ndarray  # of classifiers
    encoder_: TableEncoder | None  # of a table that is no array of numbers
    medians_: np.ndarray | None  # of a table that is one
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
        budget: str | float | None = None,
        effort: str = "normal",
        num_samples: int = 200,
        random_state: Any = None,
        settings: dict[str, Any] | None = None,
        standardise: bool = True,
        verbose: bool = False,
    ):
        self.method = method
        self.network = network
        self.prior = prior
        self.likelihood = likelihood
        self.steps = steps
        self.batch_size = batch_size
        self.budget = budget
        self.effort = effort
        self.num_samples = num_samples
        self.random_state = random_state
        self.settings = settings
        self.standardise = standardise
        self.verbose = verbose

    def _checked(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """The rows that weigh something: X as numbers or, where these do not say it all, as a DataFrame; y; weights."""
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        X = densify(X)
        frame = read_source(X).frame if is_frame(X) else None
        if frame is None or is_numeric(frame):
            X, y = validate_data(self, X, y, dtype=np.float64, **checks)
        else:
            validate_data(self, X, y, skip_check_array=True)
            X, y = parse.named_frame(frame), check_X_y(np.arange(len(frame))[:, None], y, estimator=self, **checks)[1]
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        X, y, weight = drop_unweighted(X, y, weight)
        self.__dict__.pop("why_", None)  # of a fit before
        self.encoder_ = None
        self.medians_ = medians(X, weight) if frame is not None and isinstance(X, np.ndarray) else None
        return X, y, weight

    def _encoded(self, X: Any, weight: np.ndarray, target: RegressionTarget | ClassTarget) -> np.ndarray:
        """Numbers as they are; a table by its encoder, which is learned as `credo fit` does."""
        if isinstance(X, np.ndarray):
            return X
        names = target.names if isinstance(target, RegressionTarget) else (target.name,)
        codes = takes_codes(self.method, self.network)
        columns, notes = learn_inputs(X, names, None if (weight == 1).all() else weight, codes)
        self.encoder_ = TableEncoder(columns, target, "auto", None, notes)
        return self.encoder_.inputs(X)

    def _infer(self, task: str, inputs: np.ndarray, targets: np.ndarray, weight: np.ndarray, outputs: int) -> Self:
        """Learn from rows that are on their final scale of targets; inputs are standardised here."""
        begun = time.perf_counter(), COMPILING.seconds
        check_duration(self.steps, self.budget)
        scaled = self.standardise and self.encoder_ is None
        self.input_scale_ = Standard.learn(inputs, weight) if scaled else Standard.identity(inputs.shape[1])
        data = (self.input_scale_.apply(inputs), targets, weight)
        seeds = check_random_state(self.random_state).randint(LARGEST_SEED, size=2)
        self.predict_seed_ = int(seeds[1])
        parts = {"prior": self.prior, "likelihood": self.likelihood}
        named_parts = {name: part for name, part in parts.items() if part is not None}
        if isinstance(self.method, str) and self.method == AUTO:
            resolved = resolve(
                self._case(task, data, outputs), network=self.network, settings=(self.settings or {}) | named_parts,
                steps=self.steps, batch_size=self.batch_size, budget=self.budget, effort=self.effort,
                seed=int(seeds[0]), begun=begun,
            )  # fmt: skip
            self.why_ = resolved.why
            self._say(resolved.why)
        else:
            check_effort(self.effort, str(self.method))
            words = {"steps": self.steps, "batch_size": self.batch_size}
            model = self._model_of(self.method, self.network, named_parts, data[0])
            resolved = Resolved(words, make_method(self.method, self.settings), model, self.budget)
        with unwarned():
            fit = resolved.fit(jax.random.key(int(seeds[0])), data, progress=bool(self.verbose))
        self._say(repr(fit))
        if fit.outcome != "finished":
            warnings.warn(str(fit.status), NotConverged, stacklevel=3)
        else:
            warn(fit, stacklevel=4, category=NotConverged)
        # On the host from the start: members spread over devices would predict with other last digits than
        # their pickled copy.
        self.fit_ = _like(fit, posterior=_on_host(fit.posterior))
        return self

    def _case(self, task: str, data: Any, outputs: int) -> Case:
        """These rows, and the model that words and parts make for them."""
        size, features = None, data[0].shape[1]
        if self.network is not None and not isinstance(self.network, str):
            heads = {"regression": 2 * outputs, "multiclass": outputs}.get(task, 1)
            size = num_parameters(make_network(self.network), features, heads)
        fixed = not (self.network is None or isinstance(self.network, str | list | tuple))
        encoder = vars(self).get("encoder_")
        levels = () if encoder is None else encoder.levels

        def model_of(method: Any, network: Any, options: dict[str, Any]) -> Model:
            return self._model_of(method, network, options, data[0])

        return Case(
            task, data, features, outputs, model_of, size, fixed_outputs=fixed, looks=False, levels=levels,
            encoded=self.network is None,
        )  # fmt: skip

    def _model_of(self, method: Any, network: Any, options: dict[str, Any], inputs: np.ndarray) -> Model:
        built = make_network(network, method)
        prior = make_prior(options.get("prior"), self._kind, method, built)
        encoder = vars(self).get("encoder_")
        if encoder is not None:
            built, prior = with_vectors(built, prior, encoder)
        elif isinstance(built, Piecewise) and built.knots is None:
            built = piecewise(built.network, quantile_knots(inputs, built.bins))
        return Model(built, prior, self._likelihood(options.get("likelihood"), method), 1.0, None)

    def _likelihood(self, likelihood: Any, method: Any) -> Likelihood:
        """The likelihood of targets as the fit sees them, from its name or itself; None is the method's."""
        raise NotImplementedError

    def _say(self, sentence: str) -> None:
        if self.verbose:
            print(sentence, file=sys.stderr)

    def predictive(self, X: Any) -> Predictive:
        """The predictive distribution at X, on the scale of y, with everything that credo can say about it.

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
        X = densify(X)
        if self.encoder_ is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
            names = vars(self).get("feature_names_in_", [str(i) for i in range(self.n_features_in_)])
            return predict_rows(self._predict, self.encoder_, frame_like(X, names))
        X = fill_missing(X, self.medians_) if is_frame(X) and self.medians_ is not None else X
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._predict(self.input_scale_.apply(X))

    def _predict(self, inputs: np.ndarray) -> Predictive:
        """The predictive at rows as the network sees them; the same draws at every call."""
        key = jax.random.key(self.predict_seed_)
        return credo.predict(key, self.fit_, inputs, num_samples=self.num_samples)

    def _sample(self, X: Any, n_samples: int, random_state: Any) -> np.ndarray:
        """Draws of y, the draw as the last axis."""
        seed = int(check_random_state(random_state).randint(LARGEST_SEED))
        return np.moveaxis(self.predictive(X).sample(jax.random.key(seed), n_samples), 0, -1)

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram and, below, what the fit says of itself."""
        return str(estimator_html_repr(self)) + self._card()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = dict(super()._repr_mimebundle_(**kwargs))
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def _card(self) -> str:
        """Method, status and scores of the fit as a small table."""
        if "fit_" not in vars(self):
            return ""
        fit = self.fit_
        status = str(fit.status)  # first: facts have the alarms that somebody looked for
        facts = fit._facts() | {"status": status}
        if "why_" in vars(self):
            facts["why"] = self.why_
        if self.encoder_ is not None and self.encoder_.notes:
            facts["columns"] = " ".join(self.encoder_.notes)
        if fit.loop is not None:  # else the rows are gone
            rows = min(SCORED, fit.loop.source.num_rows)
            facts[f"scores on {rows:,} rows that it learned from"] = ", ".join(
                f"{name} {value:.4g}" for name, value in self._scores(rows).items()
            )
        return html_table("Fit", facts)

    def _scores(self, rows: int) -> dict[str, float]:
        """Scores on the first rows of those that the fit has learned from."""
        assert self.fit_.loop is not None
        source = self.fit_.loop.source
        targets = self._on_scale(source.targets[:rows]).reshape(rows, *self.fit_.target_shape)
        return summarise(self._predict(source.inputs[:rows]), targets, source.weight[:rows])

    def _on_scale(self, targets: np.ndarray) -> np.ndarray:
        """Targets that the fit has learned as `_predict` predicts them."""
        return targets

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and arrays of the host, without training loops and their data."""
        state = dict(super().__getstate__())
        if "fit_" in state:
            fit = state["fit_"]
            state["fit_"] = _like(fit, model=_on_host(fit.model), loop=None, parts=())
        return state


def _like(fit: Fit, **parts: Any) -> Fit:
    """The fit with some parts replaced by equal ones; its alarms stay."""
    copy = dataclasses.replace(fit, **parts)
    copy.rings = fit.rings
    return copy


def _on_host(tree: Any) -> Any:
    """The same tree with NumPy arrays in place of those of JAX."""
    return jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, tree)
