# %% [markdown]
# # Ensembles
#
# Train the same network several times from different starts and average what they predict (Hansen and Salamon, 1990;
# Lakshminarayanan, Pritzel and Blundell, 2017). The members agree where data hold them and differ elsewhere. It is
# hard to beat for its price, and it is a crude posterior: a few modes with equal weight and no width.

# %%
import jax
import numpy as np
from look import MODEL, MUTED, band, canvas, save, size

import credo

rng = np.random.default_rng(2)
x = rng.uniform(-2, 2, size=(60, 1)).astype("float32")
x = x[np.abs(x[:, 0] - 0.2) > 0.7]  # nothing in the middle
y = np.sin(3 * x[:, 0]) + 0.15 * rng.normal(size=len(x))
test = rng.uniform(-2, 2, size=(500, 1)).astype("float32")  # the gap included
wanted = np.sin(3 * test[:, 0]) + 0.15 * rng.normal(size=500)
model = credo.Model(
    credo.networks.mlp([50, 50], "relu"), credo.priors.fan_in_normal(2.0), credo.likelihoods.gaussian(0.15)
)
fit = credo.fit(jax.random.key(0), model, (x, y), credo.methods.DeepEnsemble(size=size(20, 4)), steps=size(3000, 50))

# %% [markdown]
# Twenty members are one computation here: they are the leading axis of every array. The log score of an ensemble of
# the first k members is that of the mixture (1/k) Σ p(y | x, θ_j), not the mean of their scores; by Jensen's
# inequality it is never worse than that mean.

# %%
count = size(20, 4)
members = np.asarray(fit.posterior.outputs(jax.random.key(1), fit.model, test, count).values).reshape(count, -1)


def log_score(functions):
    """Mean log density of the mixture of normals around the functions [k, n]."""
    log_p = -0.5 * ((wanted - functions) / 0.15) ** 2 - np.log(0.15 * np.sqrt(2 * np.pi))
    return np.logaddexp.reduce(log_p, axis=0).mean() - np.log(len(functions))


scores = {}
for k in range(1, len(members) + 1):
    subsets = [rng.choice(len(members), k, replace=False) for _ in range(300)]
    scores[k] = [log_score(members[s]) for s in subsets]
    if k in (1, 2, 3, 5, 10, 20):
        print(f"{k:2d} members: log score {np.mean(scores[k]):6.2f} nats a row")

# %%
grid = np.linspace(-2.6, 2.6, size(200, 30))[:, None].astype("float32")
pred = credo.predict(jax.random.key(1), fit, grid)
figure, (left, right) = canvas(["Members, and their spread", "What a further member brings"], "", "", share=False)
band(left, grid, pred, x, y)
functions = fit.posterior.outputs(jax.random.key(1), fit.model, grid, count).values
for curve in np.asarray(functions).reshape(count, -1)[:8]:
    left.plot(grid, curve, color=MUTED, lw=0.6)
left.plot([], [], color=MUTED, lw=0.8, label="members")
left.set(xlabel="input x", ylabel="target y", ylim=(-3.4, 3))
left.legend(frameon=False, fontsize=8.5, loc="lower center", ncols=2)
sizes = list(scores)
low, high = np.quantile(list(scores.values()), [0.1, 0.9], axis=1)
right.fill_between(sizes, low, high, color=MODEL, alpha=0.3, lw=0, label="80 % of subsets")
right.plot(sizes, [np.mean(s) for s in scores.values()], "o-", color=MODEL, ms=4, label="mean over subsets")
right.set(xticks=range(0, count + 1, 5), xlabel="members", ylabel="held-out log score, nats a row")
right.legend(frameon=False, fontsize=9, loc="lower right")
save(figure, "14_ensembles")

# %% [markdown]
# More members help, here up to the last: few of the twenty rise in the gap as the truth does, and a mixture that
# holds one of them is right there with a small weight instead of with none. Where a single network is sure and wrong,
# a mixture is wrong and less sure. Nothing in an ensemble says how wide it *should* be in the gap: that depends on
# the spread of the starts and on the optimiser. `ensemble_chains` starts a Markov chain at each member, which keeps
# the modes and adds their width.
