# %% [markdown]
# # One task after another, without forgetting
#
# Three tasks come one after another, and the rows of the earlier ones are gone. A network that is simply trained on
# forgets. Bayes' rule says what to keep: the posterior of the past is the prior of the next task,
#
#     p(θ | D₁, …, D_t) ∝ p(D_t | θ) p(θ | D₁, …, D_{t−1}),
#
# and with a variational posterior that is L_t = E_q[log p(D_t|θ)] − KL[q ‖ q_{t−1}] (Nguyen et al., 2018). The same
# function is learned here piece by piece: each task sees one third of the inputs.

# %%
import jax
import numpy as np
from look import CYCLE, INK, MUTED, canvas, keys, save, size

import credo

rng = np.random.default_rng(0)


def rows(low, high, n=60):
    x = rng.uniform(low, high, size=(n, 1)).astype("float32")
    return x, (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=n)).astype("float32")


edges = [(-3.0, -1.0), (-1.0, 1.0), (1.0, 3.0)]
tasks = [(*rows(*edge), *rows(*edge, 200)) for edge in edges]
model = credo.Model(credo.networks.mlp([30], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1))
runs = {"Posterior: full covariance": "full", "Posterior: mean field": "mean_field"}
results = {}
for name, family in runs.items():
    method = credo.methods.BayesByBackprop(learning_rate=0.01, initial_std=0.02, num_samples=4, family=family)
    results[name] = credo.continual.learn(
        jax.random.key(0), model, tasks, method, steps=size(5000, 30), num_samples=size(200, 10)
    )
for name, found in results.items():
    print(name)
    print("RMSE of task i (column) after task t (row):\n", np.round(found.scores["rmse"], 2))

# %% [markdown]
# The one that forgets: the same network, started each time where it was, with the plain prior.

# %%
fits, start = [], None
for x, y, *_ in tasks:
    start = credo.fit(jax.random.key(0), model, (x, y), "map", steps=size(3000, 30), start=start)
    fits.append(start)

grid = np.linspace(-3.4, 3.4, size(200, 30))[:, None].astype("float32")
figure, areas = canvas(["Simply trained on", *runs], "input x", "target y", high=3.6)
for t, colour in enumerate(CYCLE[:3]):
    curves = [fits[t], *[found.fits[t] for found in results.values()]]
    for area, fit in zip(areas, curves):
        mean = credo.predict(jax.random.key(1), fit, grid, num_samples=size(200, 10)).mean
        area.plot(grid, mean, color=colour, lw=1.8, label=f"after task {t + 1}")
for area in areas:
    area.plot(grid, np.sin(2 * grid), "--", color=MUTED, lw=1, label="the truth")
    for x, y, *_ in tasks:
        area.scatter(x[::2, 0], y[::2], s=5, color=INK, lw=0)
    for edge in (-1, 1):
        area.axvline(edge, color=MUTED, lw=0.8)
    area.set(ylim=(-2.5, 2.5))
keys(figure, areas[0])
save(figure, "18_continual")

# %% [markdown]
# After the third task (green) the network that was simply trained on has lost the first part. With a full covariance
# as prior it still knows most of all three: directions in weight space that old rows fixed stay fixed, and only the
# others move. Mean field keeps less, because it takes weights to be independent and those of a network act together.
# The posterior is the memory, and what the family cannot say is forgotten. Nothing here is perfect: the third part is
# learned less well than it would be alone. More, with digits and with Laplace: [one task after
# another](../continual.md).
