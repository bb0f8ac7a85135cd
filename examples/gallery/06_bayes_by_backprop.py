# %% [markdown]
# # Bayes by Backprop, step by step
#
# Bayes by Backprop (Blundell et al., 2015) is ordinary training with three changes: each weight has a mean m and a
# standard deviation s; every step draws weights θ = m + s ε; and the loss has one more term, KL[q ‖ prior]. Here is
# the whole of it by hand, on a line with two weights, where we know where it must end.
#
# The draw is written as θ = m + s ε with ε ~ N(0, 1) so that gradients pass through it to m and s (the
# reparameterisation of Kingma and Welling, 2014). s = softplus(r) stays positive.

# %%
import jax
import jax.numpy as jnp
import numpy as np
import optax
from look import CYCLE, INK, MODEL, MUTED, canvas, save, size

import credo
from credo.evaluation.audit import Conjugate, gaussian_kl

rng = np.random.default_rng(0)
x = (1.0 + rng.normal(size=(40, 1))).astype("float32")
y = (0.5 - 1.2 * x[:, 0] + 0.4 * rng.normal(size=40)).astype("float32")
exact = Conjugate(x, y, noise=0.4, scale=1.0)
design = jnp.asarray(exact.design, jnp.float32)


def negative_elbo(params, key):
    """One-draw estimate of −E_q[log p(D|θ)] + KL[q ‖ N(0, I)]."""
    m, s = params["m"], jax.nn.softplus(params["r"])
    theta = m + s * jax.random.normal(key, (2,))
    log_likelihood = -0.5 * ((y - design @ theta) ** 2).sum() / 0.4**2 - len(y) * jnp.log(0.4 * jnp.sqrt(2 * jnp.pi))
    kl = (0.5 * (s**2 + m**2 - 1) - jnp.log(s)).sum()
    return kl - log_likelihood


# %% [markdown]
# The loop is that of any network. The learning rate fades, because the gradient is a random one and would otherwise
# never let the parameters rest.

# %%
steps = size(4000, 100)
optimiser = optax.adam(optax.cosine_decay_schedule(0.03, steps))
params = {"m": jnp.zeros(2), "r": jnp.full(2, -1.0)}


@jax.jit
def step(carry, key):
    params, state = carry
    loss, gradient = jax.value_and_grad(negative_elbo)(params, key)
    updates, state = optimiser.update(gradient, state)
    params = optax.apply_updates(params, updates)
    return (params, state), (loss, params["m"], jax.nn.softplus(params["r"]))


_, (loss, m, s) = jax.lax.scan(step, (params, optimiser.init(params)), jax.random.split(jax.random.key(0), steps))
m, s = np.asarray(m), np.asarray(s)
best = 1 / np.sqrt(np.diag(exact.precision))
print("by hand: m =", m[-1].round(3), "s =", s[-1].round(3))
print("optimum: m =", exact.mean.round(3), "s =", best.round(3))

# %% [markdown]
# credo does the same for any network, prior and likelihood, on minibatches, with averaging of the last iterates.

# %%
model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.4))
fit = credo.fit(jax.random.key(0), model, (x, y), "bayes_by_backprop", steps=steps)
draws = fit.posterior.sample(jax.random.key(1), size(20_000, 100))["network"]["output"]
found = np.column_stack([np.ravel(draws["bias"]), np.ravel(draws["kernel"])])
print("credo:   m =", found.mean(0).round(3), "s =", found.std(0).round(3))
print("exact posterior: s =", np.sqrt(np.diag(exact.covariance)).round(3))

# %%
figure, (left, middle, right) = canvas(["Means m", "Spreads s", "ELBO"], "step", "", share=False)
for i, name in enumerate(("intercept", "slope")):
    left.plot(m[:, i], color=CYCLE[i], lw=1.2, label=name)
    left.axhline(exact.mean[i], color=CYCLE[i], ls="--", lw=1)
    middle.plot(s[:, i], color=CYCLE[i], lw=1.2, label=name)
    middle.axhline(best[i], color=CYCLE[i], ls="--", lw=1)
    middle.axhline(np.sqrt(exact.covariance[i, i]), color=CYCLE[i], ls=":", lw=1.3)
middle.plot([], [], color=INK, ls="--", lw=1, label="best mean field")
middle.plot([], [], color=INK, ls=":", lw=1.3, label="exact posterior")
bounds = np.array([exact.log_evidence() - gaussian_kl(a, b, exact) for a, b in zip(m, s)])
right.plot(-np.asarray(loss), color=MUTED, lw=0.5, alpha=0.6, label="one-draw estimate")
right.plot(bounds, color=MODEL, lw=1.8, label="ELBO")
right.axhline(exact.log_evidence(), color=INK, ls="--", lw=1, label="log p(D)")
right.set(ylim=(exact.log_evidence() - 40, exact.log_evidence() + 8))
for area, place in ((left, "center right"), (middle, "upper right"), (right, "lower right")):
    area.legend(frameon=False, fontsize=8.5, loc=place)
    area.set_xticks([0, steps // 2, steps])
save(figure, "06_bayes_by_backprop")

# %% [markdown]
# Means go to the posterior's mean, dashed. Spreads go to 1/√Λ_ii, the best that independent normals can do, which is
# narrower than the true marginals (dotted) whenever weights are correlated. The estimate from one draw is noisy and
# may lie above log p(D); its mean, the ELBO, never does. What the KL is weighed with matters: on minibatches the
# likelihood is scaled by N/M and the KL is left alone. A KL divided by the batch size is another posterior.
