"""NumPyro: HMC with fixed settings and NUTS, chains vectorised or in parallel over virtual devices."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from cases import problems
from cases.measure import Measured, beyond, by_difference, require_finite, seconds
from cases.problems import Sizes
from numpyro.infer import HMC, MCMC, NUTS


def outputs(weights: dict[str, jax.Array], x: jax.Array, activation: Callable) -> jax.Array:
    """f(x) of the one-hidden-layer network."""
    hidden = activation(x @ weights["first"] + weights["first_bias"])
    return hidden @ weights["second"] + weights["second_bias"]


def network_model(inputs: int, hidden: int, activation: Callable) -> Callable[..., None]:
    """Standard-normal weights and a log-normal noise scale, on the full batch."""
    shapes = {"first": (inputs, hidden), "first_bias": (hidden,), "second": (hidden,), "second_bias": ()}

    def model(x: jax.Array, y: jax.Array) -> None:
        weights = {
            name: numpyro.sample(name, dist.Normal().expand(shape).to_event(len(shape)))
            for name, shape in shapes.items()
        }
        noise = numpyro.sample("noise", dist.LogNormal(-1.0, 1.0))
        numpyro.sample("y", dist.Normal(outputs(weights, x, activation), noise), obs=y)

    return model


def check_devices(chain_method: str, chains: int) -> None:
    """Parallel chains need one virtual device each, else NumPyro quietly runs them in a row."""
    if chain_method == "parallel" and jax.local_device_count() < chains:
        raise AssertionError(f"{jax.local_device_count()} devices for {chains} parallel chains")


def hmc(seed: int, sizes: Sizes, chain_method: str) -> Measured:
    """Gradients per second; each ``MCMC.run`` has fixed costs, so a one-draw run is taken off."""
    check_devices(chain_method, sizes.chains)
    x, y = map(jnp.asarray, problems.regression(sizes))
    kernel = {
        "step_size": sizes.step_size,
        "trajectory_length": sizes.step_size * sizes.leapfrogs,
        "adapt_step_size": False,
        "adapt_mass_matrix": False,
    }
    model = network_model(sizes.inputs, sizes.hidden, jax.nn.relu)
    last: dict[str, Any] = {}

    def runner(draws: int) -> Callable[[], None]:
        mcmc = MCMC(
            HMC(model, **kernel),
            num_warmup=0,
            num_samples=draws,
            num_chains=sizes.chains,
            chain_method=chain_method,
            progress_bar=False,
        )

        def run() -> None:
            mcmc.run(jax.random.key(seed), x, y, extra_fields=("num_steps",))
            last["draws"] = jax.block_until_ready(mcmc.get_samples(group_by_chain=True))
            last["leapfrogs"] = np.asarray(mcmc.get_extra_fields()["num_steps"])

        return run

    work = sizes.chains * sizes.hmc_draws * sizes.leapfrogs
    result = by_difference(runner(1), runner(1 + sizes.hmc_draws), work, sizes.repeats)
    if not (last["leapfrogs"] == sizes.leapfrogs).all():
        raise AssertionError(f"asked for {sizes.leapfrogs} leapfrogs, did {np.unique(last['leapfrogs'])}")
    require_finite("draws", last["draws"]["first"])
    result.facts |= {"gradients": work, "chains": sizes.chains}
    return result


def nuts(seed: int, sizes: Sizes, chain_method: str) -> Measured:
    """Function draws and seconds of warm-up plus sampling; a run of two steps stands for compilation."""
    check_devices(chain_method, sizes.chains)
    x, y, points = map(jnp.asarray, problems.nuts_regression(sizes))
    model = network_model(sizes.inputs, sizes.nuts_hidden, jnp.tanh)
    last: dict[str, Any] = {}

    def run(warmup: int, draws: int) -> None:
        mcmc = MCMC(
            NUTS(model),
            num_warmup=warmup,
            num_samples=draws,
            num_chains=sizes.chains,
            chain_method=chain_method,
            progress_bar=False,
        )
        mcmc.run(jax.random.key(seed), x, y, extra_fields=("num_steps",))
        last["draws"] = jax.block_until_ready(mcmc.get_samples(group_by_chain=True))
        last["leapfrogs"] = np.asarray(mcmc.get_extra_fields()["num_steps"])

    run(1, 1)
    fixed = seconds(lambda: run(2, 2))
    full = seconds(lambda: run(sizes.warmup, sizes.draws))
    apply = jax.jit(jax.vmap(jax.vmap(lambda w: outputs(w, points, jnp.tanh))))
    draws = {name: value for name, value in last["draws"].items() if name != "noise"}
    runs = beyond([full], [fixed])
    return Measured(
        values=[1.0 / r for r in runs],  # the parent multiplies by the effective sample size
        run_seconds=runs[0] if runs else None,
        compile_seconds=fixed,
        cold_value=1.0 / full,
        facts={"mean_leapfrogs": float(last["leapfrogs"].mean())},
        function_draws=np.asarray(apply(draws)),
    )
