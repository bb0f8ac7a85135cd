"""Pyro on torch: ``SVI.step`` called from Python, its usual training loop."""

from collections.abc import Callable

import pyro
import pyro.distributions as dist
import torch
from cases import problems
from cases.measure import Measured, require_finite, steady
from cases.problems import Sizes
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal


def network_model(sizes: Sizes) -> Callable[..., None]:
    """MLP 8-50-1 under standard-normal priors; the noise scale is a learned parameter."""
    d, h, n = sizes.inputs, sizes.hidden, sizes.num_data

    def model(x: torch.Tensor, y: torch.Tensor, index: torch.Tensor) -> None:
        first = pyro.sample("first", dist.Normal(0.0, 1.0).expand([d, h]).to_event(2))
        first_bias = pyro.sample("first_bias", dist.Normal(0.0, 1.0).expand([h]).to_event(1))
        second = pyro.sample("second", dist.Normal(0.0, 1.0).expand([h]).to_event(1))
        second_bias = pyro.sample("second_bias", dist.Normal(0.0, 1.0))
        noise = pyro.param("noise", torch.tensor(0.3), constraint=dist.constraints.positive)
        with pyro.plate("rows", n, subsample=index):
            mean = torch.relu(x @ first + first_bias) @ second + second_bias
            pyro.sample("y", dist.Normal(mean, noise), obs=y)

    return model


def mfvi(seed: int, sizes: Sizes, validate: bool) -> Measured:
    """Steps per second with a random batch per step; ``validate`` is Pyro's own argument checking."""
    pyro.enable_validation(validate)
    pyro.set_rng_seed(seed)
    pyro.clear_param_store()
    x, y = map(torch.from_numpy, problems.regression(sizes))
    model = network_model(sizes)
    optimiser = pyro.optim.Adam({"lr": sizes.learning_rate})
    svi = SVI(model, AutoDiagonalNormal(model), optimiser, loss=Trace_ELBO())
    losses: list[float] = []

    def run() -> None:
        for _ in range(sizes.eager_steps):
            index = torch.randint(0, sizes.num_data, (sizes.batch_size,))
            losses.append(svi.step(x[index], y[index], index))

    result = steady(run, sizes.eager_steps, sizes.repeats)
    values = require_finite("losses", losses)
    result.facts = {
        "steps": sizes.eager_steps,
        "last_loss": float(values[-100:].mean()),
        "threads": torch.get_num_threads(),
    }
    return result
