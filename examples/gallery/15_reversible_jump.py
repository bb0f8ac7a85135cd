# %% [markdown]
# # How many hidden nodes? Reversible jump
#
# The size of a network is usually chosen by hand. It can be inferred instead: give the number of nodes M a prior, and
# let the sampler add and remove nodes (Green, 1995; Müller and Ríos Insua, 1998). Here
#
#     y = a₀ + a x + Σ_{j ≤ M} β_j ψ(γ_j'(1, x)) + ε,   p(M) ∝ 2^−M,
#
# a line beside M logistic nodes. M = 0 is a straight line, so the posterior also answers "is this linear at all?". A
# node has to earn its place: the marginal likelihood integrates its weights out, and useless weights make the data
# less probable.

# %%
import jax
import numpy as np
from look import CYCLE, band, canvas, keys, save, size

import credo

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-2, 2, size=(80, 1)), axis=0)
truths = {
    "A line": 0.8 * x[:, 0],
    "One step": np.tanh(4 * x[:, 0]),
    "A wave": np.sin(3 * x[:, 0]),
}
grid = np.linspace(-2.5, 2.5, size(150, 30))[:, None]
method = credo.shallow.ReversibleJump(more=0.5, chains=4, warmup=size(1000, 50))
noise = credo.likelihoods.gaussian("inferred", scale_prior=credo.priors.inverse_gamma(2.0, 0.1))
model = credo.Model(credo.shallow.network(8), credo.shallow.prior(), noise)
fits = {}
for name, f in truths.items():
    y = f + 0.2 * rng.normal(size=80)
    fits[name] = y, credo.fit(jax.random.key(0), model, (x, y), method, steps=size(2000, 50))
    shares = (
        np.bincount(fits[name][1].trace["nodes"].astype(int).ravel(), minlength=9) / fits[name][1].trace["nodes"].size
    )
    print(f"{name:9s} P(M = 0 … 8 | D) = {shares.round(2)}")

# %%
figure, areas = canvas([*fits, *[""] * 3], "", "", rows=2, high=2.9, share=False)
for i, (y, fit) in enumerate(fits.values()):
    pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(400, 20))
    band(areas[i], grid, pred, x, y, dots=6)
    areas[i].set(xlabel="input x", ylabel="target y" if i == 0 else "", ylim=(-2.6, 2.6))
    nodes = fit.trace["nodes"].astype(int).ravel()
    counts = np.arange(9)
    areas[i + 3].bar(counts - 0.2, np.bincount(nodes, minlength=9) / nodes.size, 0.4, color=CYCLE[0], label="posterior")
    areas[i + 3].bar(counts + 0.2, 0.5**counts / (0.5**counts).sum(), 0.4, color=CYCLE[1], label="prior")
    areas[i + 3].set(xlabel="number of nodes M", ylabel="probability" if i == 0 else "", ylim=(0, 1), xticks=counts)
areas[3].legend(frameon=False, fontsize=9)
keys(figure, areas[0])
save(figure, "15_reversible_jump")

# %% [markdown]
# Below each data set is the posterior over architectures, which costs no second fit: it is the histogram of M over
# the draws, and predictions average over it. Under a line most draws have no node at all. M answers a question about
# the prior as well: with other priors on γ another number of nodes makes the same step, so it is not "the number of
# bumps". Predictions depend on it far less. More in [networks of one hidden layer](../shallow.md).
