"""Rows that fill up a batch weigh nothing, whatever a likelihood or a network makes of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credo
from credo.core.numeric import host_targets
from credo.core.tree import leaf, struct
from credo.likelihoods.base import NoParameters
from credo.training.fit import fit
from credo.training.source import Source

KEY = jax.random.key(0)
SIZES = [100, 128, 250, 300]


@struct
class LogNormal(NoParameters):
    """log t ~ N(f, s²): no target may be 0."""

    scale: float = leaf(0.5)
    kind = "real"

    def prepare(self, targets):
        return np.asarray(targets, np.float32).reshape(len(targets), 1)

    def num_outputs(self, targets):
        return 1

    def log_prob(self, params, outputs, targets):
        # Written so that a target of 0 makes the gradient of the outputs NaN, not only the value infinite.
        z = (jnp.log(targets) - outputs) / self.scale
        return (-0.5 * z**2 - jnp.log(targets * self.scale) - 0.5 * jnp.log(2 * jnp.pi))[:, 0]

    def curvature(self, params, outputs):
        return jnp.ones((*outputs.shape, 1)) / self.scale**2

    def mean(self, params, outputs):
        return jnp.exp(outputs + self.scale**2 / 2)

    def variance(self, params, outputs):
        return self.mean(params, outputs) ** 2 * jnp.expm1(self.scale**2)


@struct
class LogInputs:
    """A network whose gradient at an input of 0 is NaN."""

    def __call__(self, params, inputs):
        return jnp.log(inputs * params["rate"]) + params["shift"]


def _start(key, inputs):
    return {"rate": jnp.ones(inputs.shape[1]), "shift": jnp.zeros(1)}


MODEL = credo.Model(credo.from_functions(_start, LogInputs()), credo.priors.normal(1.0), LogNormal())


def _rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    x = rng.uniform(0.5, 2.0, (count, 1))
    return x, x[:, 0] * np.exp(0.3 + 0.5 * rng.normal(size=count))


@pytest.mark.parametrize("count", SIZES)
def test_padded_rows_leave_the_gradient_as_it_is(count: int) -> None:
    x, y = _rows(count)
    batch = Source(MODEL, (x, y)).on_device()
    variables = MODEL.init(KEY, batch)

    def joint(params, batch):
        return MODEL.log_joint(variables._replace(params=params), batch)[0]

    found = jax.jit(jax.grad(joint))(variables.params, batch)["network"]
    z = np.log(y) - np.log(x[:, 0])  # with rate 1 and shift 0
    slope = z.sum() / 0.25
    np.testing.assert_allclose(found["shift"], [slope], rtol=1e-4)
    np.testing.assert_allclose(found["rate"], [slope - 1.0], rtol=1e-4)  # the prior's share is −rate


# One of each way in which a method sees the rows: minibatches, all rows, sweeps, chains on either, many fits at once.
WAYS = {
    "all rows": ("map", {}, {}),
    "minibatches": ("map", {}, {"batch_size": 32}),
    "streamed": ("map", {}, {"batch_size": 32, "stream": True}),
    "variational": ("bayes_by_backprop", {}, {"batch_size": 32}),
    "chains": ("hmc", {"chains": 1, "warmup": 20}, {}),
    "stochastic gradients": ("sgld", {}, {"batch_size": 32}),
    "full sweep": ("laplace", {"structure": "full"}, {"batch_size": 32}),
    "diagonal sweep": ("laplace", {"structure": "diagonal"}, {"batch_size": 32}),
    "bootstrap": ("deep_ensemble", {"size": 2, "bootstrap": True}, {"batch_size": 32}),
    "held-out rows": ("ensemble_chains", {"size": 2, "warmup": 5, "num_steps": 5}, {}),
}
QUICK = ("all rows", "minibatches", "chains", "full sweep")


@pytest.mark.parametrize("way", [w if w in QUICK else pytest.param(w, marks=pytest.mark.full) for w in WAYS])
def test_methods_learn_from_any_number_of_rows(way: str) -> None:
    from credo.registry import build_method

    name, settings, options = WAYS[way]
    for count in SIZES if way == "minibatches" else SIZES[:1]:
        x, y = _rows(count)
        found = fit(KEY, MODEL, (x, y), build_method(name, **settings), steps=20, **options)
        assert found.outcome == "finished"
        assert not [note for note in found.notes if "non-finite" in note]
        assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(found.posterior))
        assert np.isfinite(credo.predict(KEY, found, x[:3], num_samples=4).mean).all()


def test_targets_keep_their_own_form() -> None:
    assert host_targets(LogNormal(), [1, 2**40]).tolist() == [[1.0], [2.0**40]]
