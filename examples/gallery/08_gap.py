# %% [markdown]
# # The gap between clusters: ten methods
#
# Two clusters of data with nothing in between. What does each method say about the middle? Between clusters the truth
# is wider than on them, because many functions pass through both. It is a hard test: mean field over weights *cannot*
# be wide between two clusters and narrow on both, in a network of one hidden layer of ReLU units (Foong et al.,
# 2020).
#
# All ten have the same network, prior and known noise, so the exact answer is one: that of the long chains in the
# last panel. `infinite_width` is exact too, for another model: it sees the same prior at infinite width.

# %%
import jax
import numpy as np
from look import band, canvas, keys, save, size

import credo

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-1.6, -0.9, 25), rng.uniform(0.8, 1.5, 25)])[:, None].astype("float32")
y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=50)
grid = np.linspace(-2.4, 2.4, size(120, 24))[:, None].astype("float32")
prior = credo.priors.fan_in_normal(4.0)
model = credo.Model(credo.networks.mlp([30], "erf"), prior, credo.likelihoods.gaussian(0.1))
m = credo.methods
runs = {
    "map": (m.MAP(), 3000),
    "mc_dropout": (m.MCDropout(rate=0.1), 5000),
    "bayes_by_backprop": (m.BayesByBackprop(learning_rate=0.01, initial_std=0.02), 8000),
    "swag": (m.SWAG(), 3000),
    "last_layer": (m.LastLayer(noise_scale="map"), 3000),
    "laplace": (m.Laplace(), 3000),
    "deep_ensemble": (m.DeepEnsemble(size=10), 3000),
    "sghmc": (m.SGHMC(chains=2), 8000),
    "infinite_width": (m.InfiniteWidth(), None),
    "nuts": (m.NUTS(chains=4, warmup=size(1000, 10)), size(1000, 20)),
}

# %%
figure, areas = canvas(list(runs), "input x", "y", rows=2, high=2.7)
middle, near = np.abs(grid[:, 0]) < 0.4, np.abs(np.abs(grid[:, 0]) - 1.2) < 0.3
print("                   std of f in the gap, on the clusters")
for area, (name, (method, steps)) in zip(areas, runs.items()):
    steps = steps and min(steps, size(steps, 20))
    fit = credo.fit(jax.random.key(0), model, (x, y), method, steps=steps)
    pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(300, 20))
    std = np.sqrt(pred.epistemic)
    print(f"{name:18s} {std[middle].mean():.3f}               {std[near].mean():.3f}")
    if name == "nuts":
        print(fit.status)
    band(area, grid, pred, x, y, dots=5)
    area.set(ylim=(-4, 4))
keys(figure, areas[0])
save(figure, "08_gap")

# %% [markdown]
# Read the two columns against those of `nuts`. A point (`map`) knows nothing of the gap. Mean field is too wide on
# the clusters and too narrow between them, and its mean makes a detour where nobody asked for one. Members of this
# ensemble start with small weights and all end in much the same function. Spreads of iterates (`swag`) or of masks
# (`mc_dropout`) have little to do with where the data are. What keeps all correlations around a mode (`laplace`), or
# follows the posterior itself (`sghmc`), sees the gap. One picture of one data set is an illustration, not a ranking:
# `credo audit` has distances from known truths for all methods.
