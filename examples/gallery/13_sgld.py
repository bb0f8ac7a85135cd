# %% [markdown]
# # SGLD: gradient descent that does not settle
#
# Stochastic gradient descent on minibatches scatters around the mode, and it is tempting to read that scatter as a
# posterior. It is not: its size is set by the step and the batch. Langevin dynamics adds noise of exactly the right
# size (Welling and Teh, 2011):
#
#     θ ← θ − η ∇Ũ(θ) + √(2η) ε,   Ũ(θ) = −log p(θ) − (N/M) Σ_m log p(y_m | θ).
#
# For small η the injected noise outweighs that of the minibatch (η against η²) and the path visits places as often as
# the posterior says. Here are both, by hand, on a line, where the posterior is known.

# %%
import jax
import numpy as np
from look import CYCLE, INK, canvas, save, size

import credo
from credo.evaluation.audit import Conjugate

rng = np.random.default_rng(0)
n, batch, sigma = 400, 40, 1.0
x = (0.7 + rng.normal(size=(n, 1))).astype("float32")
y = (0.5 + x[:, 0] + sigma * rng.normal(size=n)).astype("float32")
exact = Conjugate(x, y, noise=sigma, scale=1.0)
design = exact.design


def run(step, noise, steps):
    """Iterates of θ ← θ − η ∇Ũ + noise √(2η) ε, from the mode."""
    theta, found = exact.mean.copy(), []
    for _ in range(steps):
        rows = rng.integers(n, size=batch)
        residuals = y[rows] - design[rows] @ theta
        gradient = theta - n / batch * design[rows].T @ residuals / sigma**2
        theta = theta - step * gradient + noise * np.sqrt(2 * step) * rng.normal(size=2)
        found.append(theta)
    return np.array(found)


steps = size(20_000, 500)
runs = {
    "SGD, η = 2·10⁻⁴": run(2e-4, 0.0, steps),
    "SGD, η = 10⁻³": run(1e-3, 0.0, steps),
    "SGLD, η = 3·10⁻⁵": run(3e-5, 1.0, steps),
}
truth = np.sqrt(np.diag(exact.covariance))
for name, draws in runs.items():
    print(f"{name:18s} spread / true spread: {(draws.std(0) / truth).round(2)}")

# %% [markdown]
# The library's sampler chooses η itself, from the curvature and the gradient noise that it measures, and says why.

# %%
model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=sigma))
fit = credo.fit(
    jax.random.key(0), model, (x, y), credo.methods.SGLD(chains=4), steps=size(10_000, 200), thin=10, batch_size=batch
)
layer = fit.posterior.params["network"]["output"]
found = np.column_stack([np.ravel(layer["bias"]), np.ravel(layer["kernel"])])
print(f"credo's sgld       spread / true spread: {(found.std(0) / truth).round(2)}")
print(*fit.notes, sep="\n")

# %%
figure, areas = canvas(list(runs), "intercept", "slope", high=3.6)
angle = np.linspace(0, 2 * np.pi, 100)
circle = np.linalg.cholesky(exact.covariance) @ np.stack([np.cos(angle), np.sin(angle)])
for area, draws, colour in zip(areas, runs.values(), (CYCLE[1], CYCLE[1], CYCLE[0])):
    area.scatter(*draws[:: max(1, steps // 700)].T, s=4, lw=0, color=colour, label="iterates")
    for radius, style in ((1.52, "-"), (2.45, "--")):
        ellipse = exact.mean[:, None] + radius * circle
        area.plot(*ellipse, style, color=INK, lw=1.3, label="posterior, 68 %" if style == "-" else "posterior, 95 %")
handles, labels = areas[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9.5, markerscale=2.5)
save(figure, "13_sgld")

# %% [markdown]
# The scatter of SGD changes with its step and has nothing to do with the ellipses; SGLD fills them. The factor N/M is
# not a detail: a gradient of the *mean* loss with the same noise is a posterior of N/M times fewer rows. What is left
# of the error falls with η, while the number of steps for an independent draw rises as 1/η: no step is right for
# ever, and there is no accept/reject step to make it so. See [samplers on minibatches](../minibatch_samplers.md).
