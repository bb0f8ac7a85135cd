"""Random networks: credo's perceptron under credo's prior, layer by layer."""

import jax
import jax.numpy as jnp
import numpy as np

import credo

SCALE, BIAS = 1.6, 0.7
POINTS = np.array([[0.4, -1.0], [1.5, 0.3], [-0.8, 0.9]], np.float32)


def model(widths, activation="erf", noise=0.1, scale=SCALE, bias=BIAS):
    prior = credo.priors.fan_in_normal(scale, bias_scale=bias)
    return credo.Model(credo.networks.mlp(widths, activation), prior, credo.likelihoods.gaussian(noise))


def hidden_units(key, widths, num, activation="erf", inputs=POINTS):
    """Units of the last hidden layer of `num` networks under the prior, at the inputs [num, n, width]."""
    net = credo.networks.mlp(widths, activation)
    shapes = jax.eval_shape(lambda k: net.init(k, inputs, 1).params, key)
    bound = model(widths, activation).prior.bind(net.info(shapes), {})
    taps = {"output/kernel": jnp.zeros((len(inputs), 1))}

    @jax.jit
    def some(key):
        return jax.vmap(lambda p: net.apply_tapped(p, inputs, taps)[1]["output/kernel"])(bound.sample(key, num))

    return np.asarray(some(key), np.float64)


def given_hidden(units, scale=SCALE, bias=BIAS):
    """Cov[f(x), f(x')] given the hidden units, over the output's weights alone [num, n, n]."""
    return bias**2 + scale**2 / units.shape[-1] * np.einsum("sni,smi->snm", units, units)
