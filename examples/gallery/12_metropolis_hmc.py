# %% [markdown]
# # Metropolis and Hamiltonian paths in two dimensions
#
# Both samplers propose a move and accept it with min(1, ratio of densities), and both are exact. They differ in how
# they propose. Metropolis takes a blind step (Metropolis et al., 1953). Hamiltonian Monte Carlo gives the point a
# push and lets it roll along the landscape U = −log p for a while (Duane et al., 1987; Neal, 2011): far away from
# where it was, and still nearly as probable. Here is each in a few lines, on a curved density such as networks have
# many of.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from look import CYCLE, INK, MODEL, WRONG, canvas, save, size

import credo


def log_density(theta):
    """A banana: θ₁ ~ N(0, 1), θ₂ given θ₁ ~ N(θ₁² − 1, 0.3²)."""
    return -0.5 * theta[0] ** 2 - 0.5 * ((theta[1] - theta[0] ** 2 + 1) / 0.3) ** 2


gradient = jax.jit(jax.grad(log_density))
density = jax.jit(log_density)
rng = np.random.default_rng(3)


# %%
def metropolis(theta, steps, scale=0.35):
    """Every place visited, and every proposal that was refused."""
    places, refused = [theta], []
    for _ in range(steps):
        moved = theta + scale * rng.normal(size=2)
        if np.log(rng.random()) < float(density(moved)) - float(density(theta)):
            theta = moved
        else:
            refused.append(moved)
        places.append(theta)
    return np.array(places), np.array(refused)


def hmc(theta, paths, leaps=25, step=0.09):
    """Every path of leapfrog steps, and where it was accepted."""
    found = []
    for _ in range(paths):
        momentum, position, path = rng.normal(size=2), theta, [theta]
        energy = 0.5 * momentum @ momentum - float(density(theta))
        for _ in range(leaps):
            momentum = momentum + 0.5 * step * np.asarray(gradient(position))
            position = position + step * momentum
            momentum = momentum + 0.5 * step * np.asarray(gradient(position))
            path.append(position)
        accepted = np.log(rng.random()) < energy - (0.5 * momentum @ momentum - float(density(position)))
        theta = position if accepted else theta
        found.append((np.array(path), accepted))
    return found


start = np.array([-1.5, 1.2])
walk, refused = metropolis(start, size(250, 30))
paths = hmc(start, size(10, 3))
print(f"metropolis: {len(walk) - 1} densities, {1 - len(refused) / (len(walk) - 1):.0%} accepted")
print(f"hmc: {len(paths) * 25} gradients, {np.mean([a for _, a in paths]):.0%} accepted")

# %%
figure, areas = canvas(["Metropolis: 250 steps", "HMC: 10 paths of 25 leapfrog steps"], "θ₁", "θ₂", high=4.0)
a, b = np.meshgrid(np.linspace(-2.9, 2.9, 120), np.linspace(-2.4, 4.2, 120))
surface = np.exp(-0.5 * a**2 - 0.5 * ((b - a**2 + 1) / 0.3) ** 2)
for area in areas:
    area.contourf(a, b, surface, 8, cmap="Greys", alpha=0.45)
areas[0].plot(*walk.T, "-", color=MODEL, lw=0.9, label="steps taken")
areas[0].scatter(*refused.T, marker="x", s=14, lw=0.8, color=WRONG, label="proposals refused")
for i, (path, accepted) in enumerate(paths):
    areas[1].plot(*path.T, "-", color=MODEL, lw=1.1, label="paths" if i == 0 else None)
    areas[1].scatter(*path[-1], s=26, color=INK if accepted else WRONG, zorder=3, marker="o" if accepted else "x")
areas[1].scatter([], [], s=26, color=INK, label="draws")
for area in areas:
    area.scatter(*start, s=60, marker="*", color=CYCLE[1], zorder=4, label="start")
    area.legend(frameon=True, framealpha=0.9, fontsize=9, loc="upper center")
save(figure, "12_metropolis_hmc")

# %% [markdown]
# The walk creeps, and half of its proposals are thrown away; each path goes a long way along the valley and is kept.
# Both have spent 250 evaluations. `credo.from_density` makes any log density a model, so the library's samplers can
# be asked the same.

# %%
model = credo.from_density(log_density, jnp.zeros(2))
for method in (credo.methods.Metropolis(moves=1), credo.methods.MALA(moves=1), credo.methods.HMC(num_steps=25), "nuts"):
    fit = credo.fit(jax.random.key(0), model, model.data, method, steps=size(2000, 50))
    print(fit.config["method"], "·", str(fit.summary()).split("\n\n")[1].replace("\n", " "))

# %% [markdown]
# "Worth independent draws" is the number to look at, beside what a step costs: one density for `metropolis`, 25
# gradients for `hmc`, as many as it takes for `nuts`. In two dimensions the walk is good value. It is in many that it
# is not: it needs of the order of d moves to forget where it was, a Hamiltonian path of the order of d^(1/4)
# gradients (Neal, 2011). A network has hundreds of weights or more. Divergences are steps that were too long for the
# bend of the banana; credo counts them, because they mean that a part of the posterior is visited too seldom.
