# %% [markdown]
# # Bayes by hand: bugs and coins
#
# Two questions that need no network and no computer, only Bayes' rule: *posterior ∝ prior × likelihood*. Everything
# else in this gallery is the same rule with more numbers.
#
# ## Is my code free of bugs?
#
# You have written a function and believe with probability x that it has no bug. You run the tests and they pass. Code
# without bugs always passes; code with a bug passes, say, half of the time. (The example is well known from
# Davidson-Pilon, *Bayesian Methods for Hackers*, 2015.) Then
#
#     P(no bug | pass) = P(pass | no bug) x / [P(pass | no bug) x + P(pass | bug) (1 − x)]
#                      = x / [x + (1 − x)/2]
#                      = 2x / (1 + x).
#
# A hopeful 0.2 becomes 0.33. After k independent tests that a bug survives with probability 1/2 each, the one half in
# the formula becomes (1/2)^k.

# %%
import numpy as np
from look import CYCLE, MUTED, canvas, save
from scipy import stats


def bug_free(prior, tests=1, survives=0.5):
    """P(no bug | all tests passed)."""
    return prior / (prior + (1 - prior) * survives**tests)


print(f"one test: {bug_free(0.2):.3f}, and 2x/(1 + x) = {2 * 0.2 / 1.2:.3f}")
print(f"five tests: {bug_free(0.2, 5):.3f}")

# %% [markdown]
# No number of passed tests makes the probability 1, and someone who begins at x = 0 stays there. Passed tests are
# worth most to those in the middle.
#
# ## Is the coin fair?
#
# Let θ be the probability of heads, with every value equally plausible at first: θ ~ Beta(1, 1). After h heads in n
# tosses the posterior is Beta(1 + h, 1 + n − h), because the likelihood θ^h (1 − θ)^(n−h) has the same form as the
# prior. Such a pair is called conjugate; it is the reason why this needs no sampler.

# %%
rng = np.random.default_rng(0)
tosses = rng.random(500) < 0.6  # the coin favours heads: 0.6
grid = np.linspace(0, 1, 500)
figure, (left, right) = canvas(["Is my code free of bugs?", "Is the coin fair?"], "", "", share=False)
for tests, colour in zip((0, 1, 3, 10), CYCLE):
    name = "before any test" if tests == 0 else f"{tests} test{'s' * (tests > 1)} passed"
    left.plot(grid, bug_free(np.maximum(grid, 1e-9), tests), color=colour, lw=1.8, label=name)
left.set(xlabel="belief before: x = P(no bug)", ylabel="belief after the tests", xlim=(0, 1), ylim=(0, 1.02))
left.legend(frameon=False, fontsize=9, loc="lower right")
for n, colour in zip((0, 5, 50, 500), CYCLE):
    heads = int(tosses[:n].sum())
    posterior = stats.beta(1 + heads, 1 + n - heads)
    right.plot(grid, posterior.pdf(grid), color=colour, lw=1.8, label=f"{heads} heads in {n} tosses")
    low, high = posterior.interval(0.9)
    print(f"n = {n}: P(θ > 1/2 | tosses) = {posterior.sf(0.5):.3f}, 90 % interval {low:.2f} to {high:.2f}")
right.axvline(0.5, ymax=0.66, color=MUTED, ls="--", lw=1)
right.annotate(
    "fair", (0.5, 0.6), (-26, 0), xycoords=("data", "axes fraction"), textcoords="offset points", color=MUTED
)
right.set(xlabel="θ, the probability of heads", ylabel="posterior density", xlim=(0, 1), ylim=(0, 28))
right.legend(frameon=False, fontsize=9, loc="upper left")
save(figure, "01_bayes_by_hand")

# %% [markdown]
# Left: beliefs after tests as a function of the belief before. Right: the posterior of θ narrows as one over the
# square root of the number of tosses. "Is it fair?" has no yes or no in this model, because a single value has
# probability zero; "how sure am I that it favours heads?" has an answer at every n, and so has "within which
# interval?".
