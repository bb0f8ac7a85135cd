# %% [markdown]
# # The last layer is Bayesian linear regression
#
# A network is linear in its last layer: f(x) = w'φ(x), where φ(x) are the last hidden units and a one. Hold φ at what
# training found, and the posterior of w under a normal prior and normal noise is that of linear regression on
# features:
#
#     Λ = I/s² + Φ'Φ/σ²,  m = Λ⁻¹Φ'y/σ²,  f(x*) ~ N(m'φ*, φ*'Λ⁻¹φ*).
#
# No sampling, no tuning, and the log evidence comes for free (Bishop, 2006, section 3.3; Snoek et al., 2015).

# %%
import jax
import numpy as np
from look import CYCLE, band, canvas, keys, save, size

import credo

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-2, -0.7, 30), rng.uniform(0.6, 2, 30)])[:, None].astype("float32")
y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=60)
s, sigma = 1.0, 0.1
model = credo.Model(credo.networks.mlp([12], "tanh"), credo.priors.normal(s), credo.likelihoods.gaussian(sigma))
fit = credo.fit(jax.random.key(0), model, (x, y), "last_layer", steps=size(3000, 50))
print(f"log evidence of the last layer, given the features: {fit.posterior.log_evidence.item():.2f}")

# %% [markdown]
# By hand: take the features of the fitted network and do the algebra.

# %%
params = jax.tree.map(lambda a: np.asarray(a, np.float64)[0], fit.point().params["network"])


def features(inputs):
    """φ(x): hidden units, and a one for the bias."""
    hidden = np.tanh(np.asarray(inputs, np.float64) @ params["hidden_0"]["kernel"].T + params["hidden_0"]["bias"])
    return np.column_stack([hidden, np.ones(len(inputs))])


precision = np.eye(13) / s**2 + features(x).T @ features(x) / sigma**2
weights = np.linalg.solve(precision, features(x).T @ y) / sigma**2
grid = np.linspace(-3, 3, size(200, 30))[:, None].astype("float32")
mean = features(grid) @ weights
std = np.sqrt(np.einsum("ni,ni->n", features(grid), np.linalg.solve(precision, features(grid).T).T))

pred = credo.predict(jax.random.key(1), fit, grid, num_samples=size(4000, 200))
print(f"largest difference of the means: {np.abs(pred.mean - mean).max():.4f}")
print(
    f"ratio of the spreads: {(np.sqrt(pred.epistemic) / std).min():.3f} to {(np.sqrt(pred.epistemic) / std).max():.3f}"
)

# %%
figure, (left, right) = canvas(["The features φ(x)", "Regression on them"], "input x", "", share=False)
left.plot(grid, features(grid)[:, :-1], lw=1.1, color=CYCLE[4])
left.scatter(x[:, 0], np.full(60, -1.12), marker="|", s=40, color="black", lw=0.8)
left.annotate("data", (-0.05, -1.12), ha="center", va="center", fontsize=8)
left.set(ylabel="hidden unit")
band(right, grid, pred, x, y)
right.plot(grid, mean + 1.645 * std, "--", color=CYCLE[5], lw=1.3, label="by hand, 90 %")
right.plot(grid, mean - 1.645 * std, "--", color=CYCLE[5], lw=1.3)
right.set(ylabel="target y", ylim=(-3, 3))
keys(figure, right, 5)
save(figure, "10_last_layer")

# %% [markdown]
# The dashed lines, by hand, lie on credo's band. In the gap the band is only as wide as features that happen to vary
# there allow: features are a point and think that they know. That is the price. What it buys is speed and exactness
# on top of any trained network: `credo.subset(method, "output/*")` puts any other method on the last layer alone.
