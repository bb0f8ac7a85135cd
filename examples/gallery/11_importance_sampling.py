# %% [markdown]
# # Where importance sampling fails and Markov chains do not
#
# Importance sampling draws θ_k from something easy, q, and repairs the difference by weights:
#
#     E[F(θ) | D] ≈ Σ_k w_k F(θ_k) / Σ_k w_k,  w_k = p(D, θ_k)/q(θ_k).
#
# With q the prior, w is the likelihood. It is right in the limit, needs no tuning, and gives the evidence as well.
# The trouble is the limit: in d dimensions the posterior fills a share of the prior that falls exponentially in d,
# and soon a single draw outweighs all others. Chains never compare with the prior; they walk to where the mass is.

# %%
import jax
import numpy as np
from look import CYCLE, MUTED, WRONG, canvas, save, size

import credo
from credo.evaluation.audit import Conjugate

dims = (1, 3, 7, size(15, 7))
draws = size(4000, 200)
rng = np.random.default_rng(0)
found = {"importance_sampling": [], "nuts": []}
shares, shapes = [], []
for d in dims:
    x = rng.normal(size=(20, d)).astype("float32")
    y = (x @ rng.normal(size=d) + rng.normal(size=20)).astype("float32")
    exact = Conjugate(x, y, noise=1.0, scale=1.0)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=1.0))
    weighted = credo.fit(jax.random.key(0), model, (x, y), credo.methods.ImportanceSampling("prior"), steps=draws)
    chain = credo.fit(
        jax.random.key(0), model, (x, y), credo.methods.NUTS(chains=4, warmup=size(300, 50)), steps=draws // 4
    )
    shares.append(float(np.ravel(weighted.posterior.effective)[0]) / draws)
    shapes.append(float(np.ravel(weighted.posterior.pareto_k)[0]))
    mean, std = exact.predict(x)
    for name, fit in (("importance_sampling", weighted), ("nuts", chain)):
        pred = credo.predict(jax.random.key(1), fit, x, num_samples=draws)
        found[name].append(np.sqrt((((pred.mean - mean) / std) ** 2).mean()))
    errors = ", ".join(f"{name} {values[-1]:.2f}" for name, values in found.items())
    print(f"{d + 1:2d} weights: k̂ = {shapes[-1]:5.2f}, effective draws {shares[-1] * draws:7.1f} of {draws}")
    print(f"           error of f in posterior standard deviations: {errors}")
print(weighted.status)

# %% [markdown]
# The truth is known here (linear regression), so the error needs no judge. In a real problem there is none, and the
# weights must tell themselves: the shape k̂ of the tail of the weights (Vehtari et al., 2024) is large where a few
# draws carry everything. Above 0.7 credo says so in capitals.

# %%
figure, (left, middle, right) = canvas(
    ["Effective draws", "Pareto shape k̂", "Error of f(x)"], "weights of the model", "", share=False
)
ticks = [d + 1 for d in dims]
left.semilogy(ticks, np.array(shares) * draws, "o-", color=CYCLE[0], ms=4)
left.axhline(draws, color=MUTED, ls="--", lw=1)
left.annotate(
    f"{draws:,} draws", (ticks[-1], draws), (0, -12), textcoords="offset points", ha="right", color=MUTED, fontsize=9
)
left.set(ylabel="of importance sampling", ylim=(0.8, draws * 1.6))
middle.plot(ticks, np.minimum(shapes, 10), "o-", color=CYCLE[0], ms=4)
middle.axhline(0.7, color=WRONG, ls="--", lw=1.2)
middle.set(ylabel="cut at 10", ylim=(-1.4, 10.6))
middle.annotate(
    "do not believe above", (ticks[-1], 0.7), (0, -14), textcoords="offset points", ha="right", color=WRONG, fontsize=9
)
for (name, values), colour in zip(found.items(), CYCLE):
    right.semilogy(ticks, values, "o-", color=colour, ms=4, label=name)
right.set(ylabel="in posterior standard deviations")
right.legend(frameon=False, fontsize=9)
save(figure, "11_importance_sampling")

# %% [markdown]
# With two weights both are right. With sixteen, thousands of draws of the prior are worth about one, and the answer
# is off by more than noise explains; `nuts` stays where it was. The failure is not silent, but only because somebody
# looks at k̂. Importance sampling from a *good* q is another matter: `credo.methods.ImportanceSampling("laplace")`
# corrects a Gaussian that is nearly right, and `smc` goes from the prior to the posterior in steps small enough for
# weights to bear.
