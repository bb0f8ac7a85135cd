# %% [markdown]
# # What an ordinary network says, and what we want
#
# Train a network to tell two classes apart and ask it about a place where there were no data at all. It will be
# nearly certain. This is no accident of training: a ReLU network is linear far away from its data, so its logit grows
# without bound and its probability goes to 0 or 1 (Hein, Andriushchenko and Bitterwolf, 2019). Here is one, and the
# same network with a posterior over its weights.

# %%
import jax
import numpy as np
from look import INK, WRONG, canvas, save, size
from sklearn.datasets import make_moons

import credo

x, y = make_moons(size(200, 60), noise=0.15, random_state=0)
x = ((x - x.mean(0)) / x.std(0)).astype("float32")
model = credo.Model(credo.networks.mlp([16], "relu"), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
one = credo.fit(jax.random.key(0), model, (x, y), "map", steps=size(3000, 100))
chains = credo.methods.NUTS(chains=4, warmup=size(500, 30))
many = credo.fit(jax.random.key(0), model, (x, y), chains, steps=size(500, 20))
print(one.status, many.status, sep="\n")

# %% [markdown]
# Both see the same data through the same network and prior. `map` keeps the best weights, `nuts` two thousand
# networks that the data allow. The prediction of the second is the mean of their probabilities:
#
#     p(y* | x*, D) = ∫ p(y* | x*, θ) p(θ | D) dθ ≈ (1/K) Σ_k p(y* | x*, θ_k).

# %%
side = size(70, 12)
axis = np.linspace(-6, 6, side)
grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2).astype("float32")
figure, areas = canvas(["One network (map)", "Its posterior (nuts)"], "first input", "second input", high=4.1)
for area, fit in zip(areas, (one, many)):
    pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(400, 20))
    sure = np.maximum(pred.probs[:, -1], 1 - pred.probs[:, -1]).reshape(side, side)
    shade = area.contourf(axis, axis, sure, np.linspace(0.5, 1, 11), cmap="Blues")
    area.contour(axis, axis, pred.probs[:, -1].reshape(side, side), [0.5], colors=[INK], linewidths=1)
    for label, colour in ((0, INK), (1, WRONG)):
        area.scatter(*x[y == label].T, s=7, color=colour, lw=0, label=f"class {label}")
    far = np.hypot(*grid.T) > 4.5
    print(f"{fit.config['method']}: mean certainty far from the data {sure.ravel()[far].mean():.2f}")
figure.colorbar(shade, ax=areas, label="probability of the likelier class", shrink=0.85)
areas[1].legend(loc="lower right", fontsize=9)
save(figure, "03_what_we_want")

# %% [markdown]
# Dark is certain. One network is unsure along its own boundary, in a strip that is as narrow far away as among the
# data. Under the posterior the strip opens into wedges: networks that agree on the data disagree about where the
# boundary goes on. It does not become "no idea" in every direction, because a prior over weights is a belief about
# functions too, and this one believes in functions that go on as they began. Whoever wants doubt in all directions
# has to say so in the prior; [inference over functions](../function_space.md) is a way.
