# %% [markdown]
# # Mean field underfits: β and the start
#
# Variational inference with independent normals is quick and easy to get wrong. Two things decide what comes out of a
# network with many hidden units: how wide the spreads are at the start, and the weight β of the KL in
#
#     L = E_q[log p(D|θ)] − β KL[q ‖ prior].
#
# β = 1 is Bayes. Weights that the data do not need go back to the prior, and each of them adds noise to the function;
# the optimum is to prune most units, and then too little is left to fit the data (Trippe and Turner, 2018; Coker et
# al., 2022, show that in the limit of many units the mean-field optimum is the prior itself).

# %%
import jax
import numpy as np
from look import band, canvas, keys, save, size

import credo

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, size=(60, 1)), axis=0).astype("float32")
y = np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=60)
grid = np.linspace(-2.6, 2.6, size(150, 30))[:, None].astype("float32")
model = credo.Model(
    credo.networks.mlp([size(100, 10)], "tanh"), credo.priors.normal(1.0), credo.likelihoods.gaussian(0.1)
)
runs = {
    "β = 1, wide start (s = 0.5)": {"initial_std": 0.5},
    "β = 1, narrow start (s = 0.01)": {"initial_std": 0.01},
    "β = 0.1, narrow start": {"initial_std": 0.01, "beta": 0.1},
    "β = 1, low rank + diagonal": {"initial_std": 0.01, "family": "low_rank", "rank": 5},
}
titles = [*runs, "Laplace", "hmc, closest to the truth"]

# %% [markdown]
# Four variational fits, then Laplace, which keeps all correlations at the mode, and a long run of Hamiltonian Monte
# Carlo as the nearest to the truth that there is.

# %%
data, steps = (x, y), size(6000, 60)
methods = [credo.methods.BayesByBackprop(learning_rate=0.01, **settings) for settings in runs.values()]
methods += ["laplace", credo.methods.HMC(chains=2, num_steps=60, warmup=size(500, 10))]
figure, areas = canvas(titles, "input x", "target y", rows=2, high=2.9)
for area, title, method in zip(areas, titles, methods):
    draws = steps if method == "laplace" or hasattr(method, "beta") else size(500, 10)
    fit = credo.fit(jax.random.key(0), model, data, method, steps=draws)
    pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(300, 20))
    here = credo.predict(jax.random.key(2), fit, x, num_samples=size(300, 20))
    error = np.sqrt(((here.mean - y) ** 2).mean())
    std = np.sqrt(here.epistemic).mean()
    print(f"{title:32s} error of the mean on its own data {error:.3f}, std of f there {std:.3f}")
    band(area, grid, pred, x, y, dots=6)
    area.set(ylim=(-3, 3))
keys(figure, areas[0])
save(figure, "07_mean_field")

# %% [markdown]
# The noise has standard deviation 0.1, so a good fit has an error of about 0.1 on its data. Compare the first number
# of each line with that, and the second with the last line's. A smaller β buys fit and sells honesty: it is no longer
# the posterior of the model that was written down, and every credo result shows it. Five directions of correlation
# (low rank) do not mend it here: there are three hundred weights. What to do instead: start narrow, take fewer units
# or a prior that knows the width (`fan_in_normal`), or another method. The [concepts page](../concepts/mean_field.md)
# says why.
