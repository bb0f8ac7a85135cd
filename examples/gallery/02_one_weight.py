# %% [markdown]
# # What is y at x = 7? One weight
#
# Ten rows of a table obey y = 3x, up to noise. A network with a single weight, f(x) = w x, is the smallest network
# there is, and its posterior can be written down. So it is a good place to see what a posterior adds to a fit.
#
# With w ~ N(0, s²) and y ~ N(w x, σ²),
#
#     p(w | D) = N(m, v),  1/v = 1/s² + Σ x²/σ²,  m = v Σ x y/σ²,
#     p(y* | x*, D) = N(m x*, σ² + v x*²).
#
# The variance of the answer has two parts: σ² is noise, v x*² is what is not known about w. The second grows with x*²
# and shrinks as rows come in.

# %%
import jax
import numpy as np
from look import CYCLE, INK, MODEL, NOISE, canvas, save, size
from scipy import stats

import credo

rng = np.random.default_rng(0)
x = np.arange(1, 11) / 2.0  # 0.5, 1.0, … 5.0
sigma, s = 1.5, 10.0
y = 3 * x + sigma * rng.normal(size=10)
print(np.column_stack([x, y]).round(1))

v = 1 / (1 / s**2 + (x**2).sum() / sigma**2)
m = v * (x * y).sum() / sigma**2
print(f"w = {m:.3f} ± {v**0.5:.3f};  y(7) = {7 * m:.2f} ± {np.sqrt(sigma**2 + 49 * v):.2f}")

# %% [markdown]
# The same in credo. A network is two functions, so one weight is no special case. `nuts` knows nothing of the formula
# above and must find it again.

# %%
network = credo.from_functions(
    lambda key, inputs: {"w": jax.numpy.zeros(1)}, lambda params, inputs: inputs * params["w"]
)
model = credo.Model(network, credo.priors.normal(s), credo.likelihoods.gaussian(noise=sigma))
method = credo.methods.NUTS(chains=4, warmup=size(500, 100))
fit = credo.fit(jax.random.key(0), model, (x[:, None], y), method, steps=size(2000, 100))
w = np.ravel(fit.posterior.params["network"]["w"])
answer = credo.predict(jax.random.key(1), fit, np.array([[7.0]]), num_samples=size(2000, 100))
print(f"nuts: w = {w.mean():.3f} ± {w.std():.3f};  y(7) = {answer.mean.item():.2f} ± {answer.std.item():.2f}")
print("90 % interval at x = 7:", [round(end.item(), 2) for end in answer.interval(0.9)])

# %%
figure, (left, right) = canvas(["The lines that the data allow", "The posterior of the weight"], "", "", share=False)
line = np.linspace(0, 8, 50)
for draw in w[:: max(1, len(w) // 60)]:
    left.plot(line, draw * line, color=MODEL, alpha=0.18, lw=1)
left.plot([], [], color=MODEL, label="draws of the posterior")
left.scatter(x, y, color=INK, s=18, zorder=3, label="the ten rows")
low, high = (end.item() for end in answer.interval(0.9))
left.errorbar([7], [answer.mean.item()], [[answer.mean.item() - low], [high - answer.mean.item()]], color=NOISE, lw=2.5,
              capsize=4, marker="o", ms=5, zorder=4, label="y at x = 7, 90 %")  # fmt: skip
left.set(xlabel="x", ylabel="y", xlim=(0, 8))
left.legend(frameon=False, fontsize=9, loc="upper left")
grid = np.linspace(m - 4.5 * v**0.5, m + 4.5 * v**0.5, 300)
right.hist(w, 50, density=True, color=MODEL, alpha=0.45, label=f"{len(w):,} draws of nuts")
right.plot(grid, stats.norm(m, v**0.5).pdf(grid), color=INK, lw=1.8, label="exact")
right.axvline(3, ymax=0.7, color=CYCLE[2], ls="--", lw=1.3, label="the weight that made the data")
right.set(xlabel="w", ylabel="density", ylim=(0, 1.6 * stats.norm(0, v**0.5).pdf(0)))
right.legend(frameon=False, fontsize=9, loc="upper left")
save(figure, "02_one_weight")

# %% [markdown]
# A fit says "21". The posterior says "21, give or take 3 in ninety cases of a hundred", and which part of that more
# rows would remove. Note that x = 7 lies outside of the table: the interval is honest only if a line still holds
# there. No posterior protects from a wrong model; it says how sure the model is, given that it is the right one.
# Bishop (2006), *Pattern Recognition and Machine Learning*, chapter 3, has the general linear case.
