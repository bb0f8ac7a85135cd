# %% [markdown]
# # Bayesian optimisation with UCB, step by step
#
# Each evaluation of a function is dear: an experiment, a long training run. Keep a belief about the function,
# evaluate where the belief says most is to be gained, update, repeat. The upper confidence bound (Srinivas et al.,
# 2010) says it in one line: go where
#
#     a(x) = m(x) + β s(x)
#
# is largest. m draws to places that are known to be good, s to places that are not known. Here is the loop by hand,
# with credo's infinitely wide network as belief, because its mean and spread are exact.

# %%
import jax
import numpy as np
from look import CYCLE, INK, MODEL, MUTED, canvas, keys, save, size

import credo


def objective(x):
    """What we pretend to be dear."""
    return np.sin(3 * x) * np.exp(-0.15 * (x - 1) ** 2) + 0.3 * x


model = credo.Model(
    credo.networks.mlp([50, 50], "erf"), credo.priors.fan_in_normal(3.0), credo.likelihoods.gaussian(0.03)
)
grid = np.linspace(-3, 3, size(300, 60))
beta = 2.0
seen = [-2.5, -0.5, 1.4]
history = []
for _ in range(size(6, 2)):
    values = objective(np.array(seen))
    fit = credo.fit(jax.random.key(0), model, (np.array(seen)[:, None], values), "infinite_width", capacity=16)
    mean, variance = (np.ravel(v) for v in fit.posterior.moments(grid[:, None]))
    spread = np.sqrt(np.maximum(variance, 0))
    choice = grid[np.argmax(mean + beta * spread)]
    history.append((list(seen), mean, spread, choice))
    print(f"{len(seen)} evaluations, best {values.max():.3f}; next at x = {choice:.2f}, value {objective(choice):.3f}")
    seen.append(float(choice))
print(f"the largest value on the grid: {objective(grid).max():.3f} at x = {grid[objective(grid).argmax()]:.2f}")

# %%
figure, areas = canvas([f"After {len(h[0])} evaluations" for h in history], "x", "f(x)", rows=2, high=2.8)
for area, (places, mean, spread, choice) in zip(areas, history):
    area.fill_between(grid, mean - beta * spread, mean + beta * spread, color=MODEL, alpha=0.3, lw=0, label="m ± 2s")
    area.plot(grid, mean + beta * spread, color=CYCLE[2], lw=1.3, label="a = m + 2s")
    area.plot(grid, mean, color=MODEL, lw=1.5, label="mean m")
    area.plot(grid, objective(grid), color=MUTED, ls="--", lw=1, label="the function, not known")
    area.scatter(places, objective(np.array(places)), s=22, color=INK, zorder=3, label="evaluated")
    area.axvline(choice, color=CYCLE[5], lw=1.2, label="next")
    area.set(ylim=(-4.2, 4.2))
keys(figure, areas[0], 6)
save(figure, "16_optimisation")

# %% [markdown]
# The search first goes where the band is wide, then works around a good place, and in the last panel finds that
# another may be better; it is. β says how curious it is: at 0 it would sit at the first good place for ever. For real
# work take `credo.applications.optimise.Optimizer` ([where to try next](../optimisation.md)): several settings, whole
# numbers, choices, batches, failed evaluations, records that resume, any method of credo as the belief.
