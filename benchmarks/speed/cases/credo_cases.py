"""credo through its public interface, and the proof that it did the work it is timed for."""

import statistics
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from cases import problems
from cases.measure import Compilations, Measured, require_finite, seconds, steady
from cases.problems import Sizes

import credo


def network(hidden: int, activation: str) -> credo.Model:
    """One hidden layer, standard-normal prior, learned noise."""
    return credo.Model(
        network=credo.networks.mlp([hidden], activation=activation),
        prior=credo.priors.normal(1.0),
        likelihood=credo.likelihoods.gaussian(noise="learned"),
    )


def wait(fit: Any) -> Any:
    """Block until the posterior's arrays are there; a posterior without arrays would be no wait at all."""
    leaves = [leaf for leaf in jax.tree.leaves(fit.posterior) if hasattr(leaf, "shape")]
    if not leaves:
        raise AssertionError("the posterior has no arrays to wait for")
    jax.block_until_ready(leaves)
    return fit


def setting(config: Any, name: str) -> Any:
    """A value of the (nested) configuration by name."""
    if isinstance(config, Mapping):
        if name in config:
            return config[name]
        for value in config.values():
            nested = setting(value, name)
            if nested is not None:
                return nested
    return None


def metric(fit: Any, *names: str) -> np.ndarray:
    """The first of these metrics that the trace has."""
    for name in names:
        if name in fit.trace:
            return np.asarray(fit.trace[name])
    raise AssertionError(f"the trace has none of {names}: {sorted(fit.trace)}")


def same(what: str, got: Any, expected: Any) -> None:
    """Stop when the work is not the work that the peers do."""
    if got != expected:
        raise AssertionError(f"{what}: expected {expected}, got {got}")


def check_optimised(fits: list[Any], sizes: Sizes, steps: int, members: int = 1) -> np.ndarray:
    """Same N, M and steps, finite losses, and another key gave another fit."""
    for fit in fits:
        same("steps", setting(fit.config, "steps"), steps)
        same("batch size", setting(fit.config, "batch_size"), sizes.batch_size)
        same("rows", setting(fit.config, "num_data"), sizes.num_data)
        losses = require_finite("losses", metric(fit, "loss"))
        same("losses recorded", losses.size, steps * members)
    first, second = (metric(fit, "loss") for fit in fits[-2:])
    if np.array_equal(first, second):
        raise AssertionError("two keys gave the same losses: the second fit did no work of its own")
    return second


def timed_fits(seed: int, work: float, repeats: int, **call: Any) -> tuple[Measured, list[Any]]:
    """The first fit apart, then ``repeats`` fits of the same shapes and other keys, compilations counted."""
    fits: list[Any] = []
    compilations = Compilations()
    arguments = dict(call)
    model, data, method = (arguments.pop(name) for name in ("model", "data", "method"))

    def run() -> None:
        key = jax.random.key(seed + len(fits))
        if not fits:
            fits.append(wait(credo.fit(key, model, data, method, **arguments)))
            return
        with compilations:
            fits.append(wait(credo.fit(key, model, data, method, **arguments)))

    result = steady(run, work, repeats)
    result.facts["compilations_while_timed"] = compilations.count
    return result, fits


def mfvi(seed: int, sizes: Sizes) -> Measured:
    """Steps per second of ``credo.fit`` from the second fit on."""
    result, fits = timed_fits(
        seed,
        sizes.steps,
        sizes.repeats,
        model=network(sizes.hidden, "relu"),
        data=problems.regression(sizes),
        method=credo.methods.BayesByBackprop(),
        steps=sizes.steps,
        batch_size=sizes.batch_size,
    )
    losses = check_optimised(fits, sizes, sizes.steps)
    result.facts |= {"steps": sizes.steps, "last_loss": float(losses.ravel()[-100:].mean())}
    return result


def many_fits(seed: int, sizes: Sizes) -> Measured:
    """Steps per second summed over independent fits done as one replicated method."""
    result, fits = timed_fits(
        seed,
        sizes.fits * sizes.steps_per_fit,
        sizes.repeats,
        model=network(sizes.hidden, "relu"),
        data=problems.regression(sizes),
        method=credo.replicate(credo.methods.BayesByBackprop(), sizes.fits),
        steps=sizes.steps_per_fit,
        batch_size=sizes.batch_size,
    )
    losses = check_optimised(fits, sizes, sizes.steps_per_fit, members=sizes.fits)
    members = losses.reshape(losses.shape[0], -1) if losses.shape[0] == sizes.fits else losses.T
    same("different members", len(np.unique(members[:, -1])), sizes.fits)
    result.facts |= {"fits": sizes.fits, "steps_per_fit": sizes.steps_per_fit}
    return result


def function_draws(fit: Any, points: np.ndarray, chains: int, draws: int) -> np.ndarray:
    """f(x) of every kept draw, in order: [chain, draw, point]."""
    values = fit.posterior.outputs(jax.random.key(0), fit.model, points, chains * draws).values
    same("shape of the draws", values.shape, (chains, draws, len(points), 1))
    return require_finite("function draws", values[..., 0])


def hmc(seed: int, sizes: Sizes) -> Measured:
    """Gradients per second with fixed step size and trajectory, on the full batch."""
    x, y = problems.regression(sizes)
    method = credo.methods.HMC(step_size=sizes.step_size, num_steps=sizes.leapfrogs, warmup=0, chains=sizes.chains)
    gradients = sizes.chains * sizes.hmc_draws * sizes.leapfrogs
    result, fits = timed_fits(
        seed,
        gradients,
        sizes.repeats,
        model=network(sizes.hidden, "relu"),
        data=(x, y),
        method=method,
        steps=sizes.hmc_draws,
    )
    for fit in fits:
        same("rows", setting(fit.config, "num_data"), sizes.num_data)
        same("leapfrogs", setting(fit.config, "num_steps"), sizes.leapfrogs)
        if "num_integration_steps" in fit.trace:
            same("gradients", int(metric(fit, "num_integration_steps").sum()), gradients)
    draws = [function_draws(fit, x[:10], sizes.chains, sizes.hmc_draws) for fit in fits[-2:]]
    if np.array_equal(draws[0], draws[1]):
        raise AssertionError("two keys gave the same draws")
    moved = [len(np.unique(chain[:, 0])) for chain in draws[-1]]
    result.facts |= {"gradients": gradients, "chains": sizes.chains, "distinct_draws_per_chain": min(moved)}
    return result


def nuts(seed: int, sizes: Sizes) -> Measured:
    """Function draws and seconds of warm-up plus sampling: the same key twice, the second time compiled."""
    x, y, points = problems.nuts_regression(sizes)
    model = network(sizes.nuts_hidden, "tanh")
    method = credo.methods.NUTS(warmup=sizes.warmup, chains=sizes.chains)
    fits: list[Any] = []

    def run() -> None:
        fits.append(wait(credo.fit(jax.random.key(seed), model, (x, y), method, steps=sizes.draws)))

    first = seconds(run)
    with Compilations() as compilations:
        second = seconds(run)
    same("rows", setting(fits[-1].config, "num_data"), sizes.nuts_data)
    same("warm-up", setting(fits[-1].config, "warmup"), sizes.warmup)
    return Measured(
        values=[1.0 / second],  # the parent multiplies by the effective sample size
        run_seconds=second,
        compile_seconds=max(first - second, 0.0),
        cold_value=1.0 / first,
        facts={"compilations_while_timed": compilations.count},
        function_draws=function_draws(fits[-1], points, sizes.chains, sizes.draws),
    )


def predict(seed: int, sizes: Sizes) -> Measured:
    """Seconds for class probabilities and both uncertainties; the driver records the peak memory."""
    model = credo.Model(
        network=credo.networks.mlp([sizes.predict_hidden], activation="relu"),
        prior=credo.priors.normal(1.0),
        likelihood=credo.likelihoods.categorical(sizes.classes),
    )
    data = problems.images(sizes, 1000)
    fit = credo.fit(jax.random.key(seed), model, data, credo.methods.BayesByBackprop(), steps=50, batch_size=100)
    inputs, _ = problems.images(sizes, sizes.predict_inputs, seed=1)
    results: list[np.ndarray] = []

    def run() -> None:
        key = jax.random.key(seed + 1 + len(results))
        prediction = credo.predict(key, wait(fit), inputs, num_samples=sizes.predict_draws)
        parts = (prediction.probs, prediction.epistemic, prediction.aleatoric)
        probs, *uncertainties = (require_finite("prediction", part) for part in parts)
        same("shape of the probabilities", probs.shape, (sizes.predict_inputs, sizes.classes))
        for part in uncertainties:
            same("shape of an uncertainty", part.shape, (sizes.predict_inputs,))
        results.append(probs)

    first = seconds(run)
    timed = [seconds(run) for _ in range(2)]
    if np.array_equal(results[-1], results[-2]):
        raise AssertionError("two keys gave the same probabilities")
    return Measured(
        values=timed,
        run_seconds=statistics.median(timed),
        compile_seconds=max(first - statistics.median(timed), 0.0),
        cold_value=first,
        facts={"draws": sizes.predict_draws, "inputs": sizes.predict_inputs},
    )


def ensemble(seed: int, sizes: Sizes) -> Measured:
    """Steps per second summed over the members of a deep ensemble trained as one computation."""
    steps = sizes.ensemble_steps
    result, fits = timed_fits(
        seed,
        sizes.ensemble * steps,
        sizes.repeats,
        model=credo.Model(
            network=credo.networks.mlp([sizes.hidden, sizes.hidden], activation="relu"),
            prior=credo.priors.normal(1.0),
            likelihood=credo.likelihoods.heteroscedastic(),
        ),
        data=problems.regression(sizes),
        method=credo.methods.DeepEnsemble(size=sizes.ensemble, learning_rate=sizes.learning_rate),
        steps=steps,
        batch_size=sizes.batch_size,
    )
    losses = check_optimised(fits, sizes, steps, members=sizes.ensemble)
    result.facts |= {"members": sizes.ensemble, "steps": steps, "last_loss": float(losses[:, -100:].mean())}
    return result


def images(seed: int, sizes: Sizes, method: Any) -> Measured:
    """Steps per second of one chain on an image classifier, with the step size given and every tenth draw kept."""
    model = credo.Model(
        network=credo.networks.mlp([sizes.predict_hidden], activation="relu"),
        prior=credo.priors.normal(1.0),
        likelihood=credo.likelihoods.categorical(sizes.classes),
    )
    result, fits = timed_fits(
        seed,
        sizes.image_steps,
        sizes.repeats,
        model=model,
        data=problems.images(sizes, sizes.image_rows),
        method=method,
        steps=sizes.image_steps,
        batch_size=sizes.image_batch,
        thin=sizes.image_thin,
    )
    for fit in fits:
        same("rows", setting(fit.config, "num_data"), sizes.image_rows)
        same("batch size", setting(fit.config, "batch_size"), sizes.image_batch)
        same("steps recorded", require_finite("log densities", metric(fit, "log_density")).size, sizes.image_steps)
        same("draws kept", fit.posterior.available, sizes.image_steps // sizes.image_thin)
    first, second = (np.asarray(metric(fit, "log_density")) for fit in fits[-2:])
    if np.array_equal(first, second):
        raise AssertionError("two keys gave the same chain")
    result.facts |= {"steps": sizes.image_steps, "log_density": float(second.mean())}
    return result


def sgld(seed: int, sizes: Sizes) -> Measured:
    """Langevin dynamics with the step given: no search for the mode, no pilot."""
    return images(seed, sizes, credo.methods.SGLD(step_size=sizes.langevin_step, map_steps=0, burn_in=0, chains=1))


def sghmc(seed: int, sizes: Sizes) -> Measured:
    """Hamiltonian dynamics with step and friction given: no search for the mode, no pilot."""
    step, friction = sizes.hamiltonian_step, sizes.hamiltonian_friction
    return images(seed, sizes, credo.methods.SGHMC(step_size=step, friction=friction, map_steps=0, burn_in=0, chains=1))
