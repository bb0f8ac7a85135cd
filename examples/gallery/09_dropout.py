# %% [markdown]
# # Dropout, two ways
#
# Dropout sets hidden units to zero at random while a network is trained. Keep doing it when the network predicts, and
# the scatter of the answers is a spread: MC-dropout (Gal and Ghahramani, 2016). It can be done in two places:
#
# - mask the *activations* h: f = W (z ⊙ h)/(1 − π), z_j ~ Bernoulli(1 − π);
# - mask the *weights*: f = (W diag(z)/(1 − π)) h.
#
# Both are the same number, because W (z ⊙ h) = (W diag z) h. The second reading makes it variational inference: the
# masked matrix W diag(z)/(1 − π) is a draw of a distribution q over weights, and training maximises E_q[log p(D|θ)] −
# (1 − π) ‖M‖²/2s² + const, with M = W/(1 − π).

# %%
import jax
import jax.numpy as jnp
import numpy as np
from look import INK, MODEL, band, canvas, keys, save, size
from scipy import stats

import credo

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-2, -0.6, 40), rng.uniform(0.8, 2, 40)])[:, None].astype("float32")
y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=80)
network = credo.networks.mlp([50], "tanh")
model = credo.Model(network, credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
fits = {
    rate: credo.fit(jax.random.key(0), model, (x, y), credo.methods.MCDropout(rate=rate), steps=size(6000, 50))
    for rate in (0.05, 0.3)
}
learned = credo.fit(
    jax.random.key(0), model, (x, y), credo.methods.MCDropout(rate=0.1, concrete=True), steps=size(6000, 50)
)

# %% [markdown]
# First the two ways, by hand, with the weights of the fit: ten thousand masks on activations and ten thousand on
# weights at one input. The two sets of answers should have the same distribution.

# %%
params = jax.tree.map(lambda a: jnp.asarray(a)[0], fits[0.3].point().params["network"])
here = jnp.asarray([[0.2]])
hidden = jnp.tanh(here @ params["hidden_0"]["kernel"].T + params["hidden_0"]["bias"])
kernel, bias = params["output"]["kernel"][0], params["output"]["bias"]
masks = jax.random.bernoulli(jax.random.key(2), 0.7, (2, size(10_000, 500), 50)) / 0.7
on_activations = np.ravel((masks[0] * hidden) @ kernel + bias)
on_weights = np.ravel((masks[1] * kernel) @ hidden[0] + bias)
test = stats.ks_2samp(on_activations, on_weights)
print(f"std {on_activations.std():.3f} and {on_weights.std():.3f}; Kolmogorov-Smirnov p = {test.pvalue:.2f}")

# %%
grid = np.linspace(-3, 3, size(200, 30))[:, None].astype("float32")
titles = ["Rate 0.05", "Rate 0.3", "Learned rate"]
among = (np.abs(grid[:, 0]) > 0.8) & (np.abs(grid[:, 0]) < 2)
figure, areas = canvas(titles, "input x", "target y", high=3.4)
for area, (title, fit) in zip(areas, zip(titles, (*fits.values(), learned))):
    pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(400, 20))
    band(area, grid, pred, x, y, dots=6)
    area.set(ylim=(-3, 3))
    print(f"{title}: std of f among the data {np.sqrt(pred.epistemic[among]).mean():.3f}")
keys(figure, areas[0])
save(figure, "09_dropout_bands")

# %%
figure, (area,) = canvas(["Masks on activations and on weights"], "f(0.2) under one mask", "density", high=3.4)
bins = np.linspace(*np.quantile(on_weights, [0.001, 0.999]), 60)
area.hist(on_activations, bins, density=True, color=MODEL, alpha=0.5, label="masks on activations")
area.hist(on_weights, bins, density=True, histtype="step", color=INK, lw=1.5, label="masks on weights")
area.legend(frameon=False, fontsize=9.5)
save(figure, "09_dropout_two_ways")

# %% [markdown]
# The two ways agree. The bands show what dropout is worth as a posterior: their width is set by the rate much more
# than by the data. The same data with another rate get another uncertainty, and more data would not shrink it while
# the rate is held (Osband, 2016). A learned rate (Gal, Hron and Kendall, 2017) mends part of this, because the bound
# then has an opinion about π. Take dropout where a network already has it and something is wanted for free.
