"""NumPyro: stochastic variational inference by ``SVI.run``, its one-call interface."""

import statistics
from collections.abc import Callable

import jax
import numpyro
import numpyro.distributions as dist
import optax
from cases import problems
from cases.measure import Measured, beyond, by_difference, require_finite, seconds
from cases.problems import Sizes
from numpyro.infer import SVI, Trace_ELBO, autoguide


def network_model(sizes: Sizes) -> Callable[..., None]:
    """MLP 8-50-1 under standard-normal priors; the noise scale is a learned parameter."""
    d, h = sizes.inputs, sizes.hidden

    def model(x: jax.Array, y: jax.Array) -> None:
        first = numpyro.sample("first", dist.Normal().expand([d, h]).to_event(2))
        first_bias = numpyro.sample("first_bias", dist.Normal().expand([h]).to_event(1))
        second = numpyro.sample("second", dist.Normal().expand([h]).to_event(1))
        second_bias = numpyro.sample("second_bias", dist.Normal())
        noise = numpyro.param("noise", 0.3, constraint=dist.constraints.positive)
        with numpyro.plate("rows", x.shape[0], subsample_size=sizes.batch_size):
            inputs = numpyro.subsample(x, event_dim=1)
            targets = numpyro.subsample(y, event_dim=0)
            mean = jax.nn.relu(inputs @ first + first_bias) @ second + second_bias
            numpyro.sample("y", dist.Normal(mean, noise), obs=targets)

    return model


def runner(sizes: Sizes, guide: str) -> Callable[[int, int], jax.Array]:
    """``run(seed, steps)``: one ``SVI.run`` from a fresh start, waited for; gives the losses."""
    x, y = map(jax.numpy.asarray, problems.regression(sizes))
    model = network_model(sizes)
    svi = SVI(model, getattr(autoguide, guide)(model), optax.adam(sizes.learning_rate), Trace_ELBO())

    def run(seed: int, steps: int) -> jax.Array:
        result = svi.run(jax.random.key(seed), steps, x, y, progress_bar=False)
        jax.block_until_ready((result.params, result.losses))
        return result.losses

    return run


def mfvi(seed: int, sizes: Sizes, guide: str) -> Measured:
    """Steps per second of one long ``SVI.run``; it compiles at each call, so a short run is taken off."""
    run = runner(sizes, guide)
    losses = []
    result = by_difference(
        lambda: run(seed, 2),
        lambda: losses.append(run(seed, 2 + sizes.steps)),
        sizes.steps,
        sizes.repeats,
    )
    values = require_finite("losses", losses[-1])
    result.facts |= {"steps": sizes.steps, "last_loss": float(values[-100:].mean())}
    return result


def many_fits(seed: int, sizes: Sizes) -> Measured:
    """Independent fits one after another; a few are timed, and the rate does not depend on how many."""
    run = runner(sizes, "AutoDiagonalNormal")
    run(seed, 2)
    shorts, longs = [], []
    for member in range(sizes.fits_timed_one_by_one):
        shorts.append(seconds(lambda i=member: run(seed + i, 2)))
        longs.append(seconds(lambda i=member: require_finite("losses", run(seed + i, 2 + sizes.steps_per_fit))))
    runs = beyond(longs, shorts)
    return Measured(
        values=[sizes.steps_per_fit / r for r in runs],
        run_seconds=sizes.fits * statistics.median(runs) if runs else None,
        compile_seconds=sizes.fits * statistics.median(shorts),
        cold_value=sizes.steps_per_fit / statistics.median(longs),
        facts={
            "fits_timed": len(longs),
            "scaled_to_fits": sizes.fits,
            "steps_per_fit": sizes.steps_per_fit,
            "compile": "paid at every fit",
        },
    )
