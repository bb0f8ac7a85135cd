"""`learn`: one task after another, each posterior the prior of the next."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from credo.applications.continual.coresets import KINDS, k_centre, random_rows
from credo.applications.continual.propagate import check_density, first_prior, next_prior, next_start
from credo.applications.continual.result import Continual, score_row
from credo.applications.continual.tasks import Task, check_tasks, join_rows, with_head
from credo.core.batch import Batch, bucket
from credo.core.capabilities import NamedLikelihood, ask
from credo.core.likelihood import has_posterior
from credo.core.model import Model
from credo.core.numeric import host_targets
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.laplace.laplace import Laplace
from credo.networks.multi_head import MultiHead, multi_head
from credo.registry import build_method
from credo.training.fit import Fit, fit
from credo.training.interrupt import part_of_more


def learn(
    key: jax.Array,
    model: Model,
    tasks: Sequence[Any],
    method: Any = "bayes_by_backprop",
    *,
    heads: str = "single",
    coreset: int = 0,
    coreset_kind: str = "random",
    coreset_steps: int = 1000,
    first: Any = None,
    start: Any = None,
    start_std: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    batch_size: int | None = None,
    num_samples: int | None = None,
    progress: bool | None = False,
) -> Continual:
    """Variational continual learning: q_t maximises E_q[log p(D_t|θ)] − KL[q ‖ q_{t−1}], and q_0 is the model's prior.

    Any method whose posterior has a density will do. With `laplace` it is the online Laplace approximation (Ritter et
    al., 2018): the mode under the last Gaussian, and precisions add up; its diagonal structure is elastic weight
    consolidation (Kirkpatrick et al., 2017) with one running penalty (Schwarz et al., 2018).

    With a coreset, some rows of each task are kept out of D_t. Predictions after task t are those of q_t refined on the
    kept rows of all tasks so far, while q_t itself goes on. Nguyen, Li, Bui and Turner (2018), Variational continual
    learning; Swaroop et al. (2019) for why long training from tiny variances matters.

    Args:
        key: a JAX key.
        model: network, prior and likelihood; with `heads="multi"` its outputs are those of one head.
        tasks: (inputs, targets) or (inputs, targets, test inputs, test targets) for each task, or `Task`s.
        method: a method, its class or its registry name.
        heads: "single", one set of outputs for all tasks; "multi", one for each task (`credo.networks.multi_head`),
            under the model's prior until its task comes.
        coreset: rows of each task that are kept apart; 0: none.
        coreset_kind: "random" or "k_centre".
        coreset_steps: length of the refinement on the kept rows.
        first: a method, such as "maximum_likelihood", whose point on the first task is where the means start.
        start: where the first fit starts instead, as in `credo.fit`.
        start_std: standard deviations above this start at this in the fit of each later task (mean field); the prior
            keeps them.
        steps, epochs, batch_size: of each task's fit, as in `credo.fit`.
        num_samples: draws of θ for the scores.
        progress: show bars.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
        >>> tasks = [(x, x[:, 0] > 0, x, x[:, 0] > 0), (x, x[:, 1] > 0, x, x[:, 1] > 0)]
        >>> model = credo.Model(credo.networks.mlp([10]), credo.priors.normal(1.0), credo.likelihoods.categorical(2))
        >>> result = credo.continual.learn(jax.random.key(0), model, tasks, heads="multi", steps=300)
        >>> result.scores["accuracy"].shape
        (2, 2)
    """
    method = build_method(method)
    tasks = check_tasks(model, tasks)
    if heads not in ("single", "multi") or coreset_kind not in KINDS:
        raise InputError(f'heads is "single" or "multi" and coreset_kind one of {", ".join(KINDS)}.')
    if heads == "multi" and not isinstance(model.network, MultiHead):
        model = dataclasses.replace(model, network=multi_head(model.network, len(tasks)))
    _check_model(model, method, tasks)
    run = _Run(model, method, tasks, heads == "multi", progress)
    options: dict[str, Any] = {"steps": steps, "epochs": epochs, "batch_size": batch_size}
    coresets: list[tuple[PyTree, np.ndarray]] = []
    result = Continual([], [], {}, [], [], heads)
    scored = all(task.test_targets is not None for task in tasks)
    posterior: Any = None
    for t, task in enumerate(tasks):
        began = time.perf_counter()
        key_core, key_first, key_fit, key_refine, key_score = jax.random.split(jax.random.fold_in(key, t), 5)
        rows = np.zeros(0, int)
        if coreset:
            rows = (k_centre if coreset_kind == "k_centre" else random_rows)(key_core, task.inputs, coreset)
            coresets.append(run.rows(t, rows))
        data = run.rows(t, np.setdiff1d(np.arange(task.num_rows), rows))
        if t == 0 and first is not None:
            with part_of_more():
                start = fit(key_first, model, data, first, capacity=run.capacity, progress=progress, **options)
        fitted = run.fit(key_fit, t, data, posterior, start, run.capacity, options, start_std)
        posterior, start = fitted.posterior, None
        check_density(posterior)
        run.fix_structure(posterior)
        result.fits.append(fitted)
        result.coresets.append(rows)
        refined = fitted
        if coreset:
            replay = join_rows(coresets)
            length = {"steps": coreset_steps, "batch_size": len(replay[1])}
            refined = run.fit(key_refine, t + 1, replay, posterior, posterior, coreset * len(tasks), length)
        result.refined.append(refined)
        result.seconds.append(time.perf_counter() - began)
        if scored:
            score_row(result, key_score, tasks[: t + 1], num_samples)
        if t + 1 < len(tasks):
            # The rows of a task stay on the device as long as its loop does.
            fitted.loop = refined.loop = None
    return result


@dataclasses.dataclass
class _Run:
    """What the fits of all tasks share."""

    model: Model
    method: Any
    tasks: list[Task]
    multi: bool
    progress: bool | None

    def __post_init__(self) -> None:
        self.capacity = bucket(max(task.num_rows for task in self.tasks))
        inputs, targets = self.rows(0, np.arange(min(8, self.tasks[0].num_rows)))
        self.batch = Batch(
            jax.tree.map(np.asarray, inputs), host_targets(self.model.likelihood, targets),
            np.ones(len(targets), np.float32), np.float32(self.tasks[0].num_rows),
        )  # fmt: skip
        shapes = jax.eval_shape(self.model.init, jax.random.key(0), self.batch).params["network"]
        self.info = self.model.network.info(shapes)
        if jax.tree.leaves(jax.eval_shape(lambda: self.model.prior.init(self.info))):
            raise Refusal(
                "A prior with hyper-parameters of its own has a posterior that would be lost at the next task."
            )

    def rows(self, task: int, which: np.ndarray) -> tuple[PyTree, np.ndarray]:
        """Some rows of a task, as the network takes them."""
        inputs, targets = self.tasks[task].rows(which)
        return (with_head(inputs, task) if self.multi else inputs), targets

    def fit(
        self, key: jax.Array, task: int, data: Any, posterior: Any, start: Any, capacity: int, options: dict[str, Any],
        most: float | None = None,
    ) -> Fit:  # fmt: skip
        """One fit under the posterior of the task before; heads from `task` on are new."""
        new = [f"head_{i}/*" for i in range(task, len(self.tasks))] if self.multi else []
        key_start, key_fit = jax.random.split(key)
        if posterior is None:
            prior = first_prior(self.model, self.method, self.info)
        else:
            prior = next_prior(posterior, self.model.prior, new, self.info)
            start = next_start(key_start, self.model, self.method, posterior, new, self.batch, most)
        model = self.model.with_prior(prior)
        options = {"start": start, "capacity": capacity, "progress": self.progress} | options
        with part_of_more():
            return fit(key_fit, model, data, self.method, **options)

    def fix_structure(self, posterior: Any) -> None:
        """What "auto" was for the first task it is for all."""
        if isinstance(self.method, Laplace) and self.method.structure == "auto":
            self.method = dataclasses.replace(self.method, structure=posterior.structure)


def _check_model(model: Model, method: Any, tasks: list[Task]) -> None:
    """Sentences for what cannot be handed from task to task."""
    if method.parts or any(p.keeps_draws for p in method.phases(tasks[0].num_rows, 1)):
        raise Refusal(
            f"{type(method).__name__} gives draws, which have no density that could be the next prior: take "
            "bayes_by_backprop, ivon or laplace."
        )
    if has_posterior(model.likelihood):
        raise Refusal(
            f"The inferred {ask(model.likelihood, NamedLikelihood).learns} has a posterior that would be lost at the "
            'next task: give a number or "learned".'
        )
