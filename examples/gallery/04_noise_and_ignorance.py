# %% [markdown]
# # Noise and ignorance as data grow
#
# The variance of a prediction has two parts,
#
#     Var[y* | x*, D] = E_θ[σ²]  +  Var_θ[f_θ(x*)]
#                       noise       what is not known
#                       aleatoric   epistemic
#
# and they answer different questions. Noise is what the next measurement would still show if we knew the function;
# the second part is what more rows would remove. Depeweg et al. (2018) and Hüllermeier and Waegeman (2021) discuss
# both.
#
# To see Bayes and not an approximation of it, take the method that is exact here: a network of infinite width, which
# is a Gaussian process. Its prior, and the noise, are held known.

# %%
import jax
import numpy as np
from look import MODEL, MUTED, NOISE, band, canvas, keys, save, size

import credo

sigma = 0.3
model = credo.Model(
    credo.networks.mlp([50, 50], "erf"), credo.priors.fan_in_normal(3.0), credo.likelihoods.gaussian(sigma)
)
rng = np.random.default_rng(1)
rows = [10, 30, 100, 300, size(1000, 300)]
x = rng.uniform(-2, 2, size=(rows[-1], 1))
y = np.sin(2 * x[:, 0]) + 0.3 * x[:, 0] + sigma * rng.normal(size=len(x))
grid = np.linspace(-4, 4, size(200, 40))[:, None]
inside = np.abs(grid[:, 0]) <= 2

found = {}
for n in rows:
    fit = credo.fit(jax.random.key(0), model, (x[:n], y[:n]), "infinite_width")
    found[n] = credo.predict(jax.random.key(1), fit, grid, num_samples=size(1000, 100))
    pred = found[n]
    print(f"{n:5d} rows: noise {pred.aleatoric[inside].mean():.4f}, not known {pred.epistemic[inside].mean():.4f} "
          f"among the data, {pred.epistemic[~inside].mean():.3f} beyond them")  # fmt: skip

# %%
figure, areas = canvas(["10 rows", f"{rows[-1]:,} rows"], "input x", "target y")
for area, n in zip(areas, (10, rows[-1])):
    band(area, grid, found[n], x[: min(n, 300)], y[: min(n, 300)], dots=6)
    area.set(ylim=(-4, 4))
keys(figure, areas[0])
save(figure, "04_bands")

# %%
figure, (area,) = canvas(
    ["What more rows remove, and what they do not"], "rows", "variance, mean over inputs", high=3.6
)
for values, colour, style, label in (
    ([found[n].aleatoric[inside].mean() for n in rows], NOISE, "-", "noise"),
    ([found[n].epistemic[inside].mean() for n in rows], MODEL, "-", "not known, among the data"),
    ([found[n].epistemic[~inside].mean() for n in rows], MODEL, "--", "not known, beyond the data"),
):
    area.loglog(rows, values, style, color=colour, marker="o", ms=4, lw=1.8, label=label)
area.loglog(rows, 0.9 / np.array(rows), color=MUTED, ls=":", lw=1.5, label="falls as 1/rows")
area.set_xticks(rows, [f"{n:,}" for n in rows])
keys(figure, area)
save(figure, "04_variances")

# %% [markdown]
# Among the data, ignorance falls nearly as one over the number of rows and soon is small beside the noise. The noise
# stays where it is. Beyond the data more rows hardly help, because no row was ever taken there: epistemic uncertainty
# is about *where* rows are, not only about how many. A system that acts (asks for labels, refuses to answer) should
# look at the second part; one that must cover the next value needs the sum.
