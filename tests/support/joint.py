"""Geweke's joint-distribution test: a sampler's kernel and the likelihood's draws must leave the prior as it is.

Geweke (2004), Getting it right: joint distribution tests of posterior simulators. Draws of (θ, y) straight from the
model are compared with a chain that alternates y ~ p(y | θ) with one step of the sampler given y. Both have the same
marginal distribution of θ exactly when the step leaves the posterior invariant.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from credo.core.batch import Batch
from credo.core.method import Phase
from credo.core.network import Variables
from credo.evaluation.diagnostics.chains import chain_stats

FALSE_ALARMS = 1e-4  # of one whole test, all functions and moments together
PHASE = Phase("chain", 1, "full", keeps_draws=True)


def features(params):
    """Every hyper-parameter, sums over nodes (which have no order), and squares and products of them."""
    network = params["network"]
    parts = [jnp.ravel(x) for x in jax.tree.leaves(params["prior"])] + [
        jnp.ravel(x) for x in jax.tree.leaves(params["likelihood"])
    ]
    if "hidden" in network:
        gamma = jnp.concatenate([network["hidden"]["bias"][:, None], network["hidden"]["kernel"]], 1)
        beta, active = network["output"]["kernel"], (network["output"]["kernel"] != 0).any(0)
        parts += [active.sum()[None].astype(gamma.dtype), (gamma[:, 1:] != 0).any(0).astype(gamma.dtype)]
        parts += [(active[:, None] * gamma).sum(0), beta.sum(1), (beta @ jnp.tanh(gamma)).ravel()]
    if "linear" in network:
        parts += [network["linear"]["bias"]] + (
            [network["linear"]["kernel"].ravel()] if "kernel" in network["linear"] else []
        )
    values = jnp.concatenate(parts)
    bounded = jnp.tanh(values)  # heavy tails would make moments and their errors wild
    return jnp.concatenate([bounded, bounded**2, bounded[:-1] * bounded[1:]])


def from_prior(key, model, inputs, num, sample=None):
    """Features of independent draws of the prior [num, features]."""
    batch = _batch(inputs, jnp.zeros((inputs.shape[0], 1)))

    def one(key):
        return features((sample or (lambda k: model.sample_prior(k, batch).params))(key))

    return jax.lax.map(one, jax.random.split(key, num), batch_size=1000)


def from_chain(key, model, method, inputs, chains, steps, thin, sample=None):
    """Features of chains that alternate data and sampler, started at draws of the prior [chains, steps, features]."""
    empty = _batch(inputs, jnp.zeros((inputs.shape[0], 1)))

    def turn(state, key):
        key_y, key_step = jax.random.split(key)
        params = method.params(model.network.nodes(), state)
        outputs, _ = model.outputs(Variables(params, {}), inputs)
        batch = _batch(inputs, model.likelihood.sample(key_y, params["likelihood"], outputs))
        noise = method.noise(key_step, model, PHASE, state)
        return method.step(noise, model, PHASE, state, batch)

    def kept(state, key):
        state, _ = jax.lax.scan(lambda s, k: (turn(s, k)[0], None), state, jax.random.split(key, thin))
        return state, features(method.params(model.network.nodes(), state))

    def chain(key):
        key_prior, key_init, key_run = jax.random.split(key, 3)
        params = (sample or (lambda k: model.sample_prior(k, empty).params))(key_prior)
        state = method.init(key_init, model, Variables(params, {}), empty)
        state = start(method, model, state, params)
        return jax.lax.scan(kept, state, jax.random.split(key_run, steps))[1]

    return jax.vmap(chain)(jax.random.split(key, chains))


def start(method, model, state, params):
    """The state at these parameters: nodes without coefficients are inactive, inputs without weights are not used."""
    gamma, coefs = model.network.nodes().split(params["network"])
    if method.select_inputs:
        state = dataclasses.replace(state, used=(gamma[:, 1:] != 0).any(0).astype(gamma.dtype))
    if not method.masked:
        return state
    active = (coefs[:, coefs.shape[1] - gamma.shape[0] :] != 0).any(0).astype(gamma.dtype)
    return dataclasses.replace(state, coefs=coefs, active=active)


def z_scores(chains, prior):
    """(mean over chains − mean over the prior) / standard error, of every feature."""
    stats_ = chain_stats(np.asarray(chains, np.float64))
    prior = np.asarray(prior, np.float64)
    error = np.hypot(np.nan_to_num(stats_.mcse_mean), prior.std(0) / np.sqrt(len(prior)))
    error = np.maximum(error, 1e-6)  # of features that never change
    return (np.asarray(chains).mean((0, 1)) - prior.mean(0)) / error


def bound(z):
    return stats.norm.isf(FALSE_ALARMS / 2 / z.size)


def _batch(inputs, targets):
    return Batch(inputs, targets, jnp.ones(inputs.shape[0]), jnp.asarray(float(inputs.shape[0])))
