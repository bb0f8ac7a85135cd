# %% [markdown]
# # From probabilities to decisions
#
# "The likeliest class" is an answer to a question that nobody asked. Say what each action is worth for each outcome,
# and take the one whose expected utility is largest:
#
#     a*(x) = argmax_a Σ_y u(a, y) p(y | x, D).
#
# Here: 569 tumours (the table comes with scikit-learn), to be released, operated or referred to a specialist. A
# missed malign one costs 20, an operation on a benign one 1, a referral 0.6 whatever it is. The numbers are invented;
# yours are not.

# %%
import jax
import numpy as np
from look import CYCLE, INK, canvas, save, size
from sklearn.datasets import load_breast_cancer

import credo
from credo.applications import class_utility

x, benign = load_breast_cancer(return_X_y=True)
x, ill = (x - x.mean(0)) / x.std(0), 1 - benign
x = x[:, :4]  # four columns, so that some cases are hard
order = np.random.default_rng(0).permutation(len(x))
train, test = order[:200], order[200:]
model = credo.Model(credo.networks.mlp([10], "tanh"), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
fit = credo.fit(jax.random.key(0), model, (x[train], ill[train]), "laplace", steps=size(2000, 50))
pred = credo.predict(jax.random.key(1), fit, x[test], num_samples=size(1000, 50))
p = pred.probs[:, -1]

worth = class_utility([[0, -20], [-1, 0]], actions=["release", "operate"], classes=["benign", "malign"])
found = credo.decide(pred, worth, abstain=0.6)
print(found)

# %% [markdown]
# The rule in one picture: cost of each action as a function of p, the probability that the tumour is malign. Release
# costs 20p, operate 1 − p, refer 0.6. The lines cross at p = 0.03 and p = 0.4; nothing special happens at 1/2.

# %%
cost = np.array([[0, 20], [1, 0], [0.6, 0.6]])
names = ["release", "operate", "refer"]
expected = cost[:, :1] * (1 - p) + cost[:, 1:] * p
rules = {
    "likeliest class": (p > 0.5).astype(int),
    "expected utility, two actions": expected[:2].argmin(0),
    "expected utility, referral too": expected.argmin(0),
}
paid = {name: cost[action, ill[test]] for name, action in rules.items()}
for name, action in rules.items():
    shares = ", ".join(f"{names[i]} {np.mean(action == i):.0%}" for i in range(3))
    print(f"{name:31s} cost a patient {paid[name].mean():.3f}   ({shares})")
agree = np.mean(
    [names[i] == a or (names[i], a) == ("refer", "abstain") for i, a in zip(expected.argmin(0), found.action)]
)
print(f"the same decisions as credo.decide: {agree:.0%}")

# %%
figure, (left, right) = canvas(["What each action costs", "What the rules cost"], "", "", share=False)
q = np.linspace(0, 1, 400)
for (benign_cost, malign_cost), name, colour in zip(cost, names, CYCLE):
    left.plot(q, benign_cost * (1 - q) + malign_cost * q, color=colour, lw=1.8, label=name)
left.plot(
    q, np.min(cost[:, :1] * (1 - q) + cost[:, 1:] * q, axis=0), color=INK, lw=3, alpha=0.35, label="the best of them"
)
left.set(xlabel="p, probability of a malign tumour", ylabel="expected cost", xlim=(0, 1), ylim=(0, 1.6))
left.legend(frameon=False, fontsize=9.5, loc="upper right")
draws = np.random.default_rng(1).integers(len(test), size=(2000, len(test)))
means = [values.mean() for values in paid.values()]
spread = [np.quantile(values[draws].mean(1), [0.05, 0.95]) for values in paid.values()]
for i, (mean, (low, high)) in enumerate(zip(means, spread)):
    right.plot([low, high], [i, i], color=CYCLE[i], lw=2.5)
    right.plot([mean], [i], "o", color=CYCLE[i], ms=8)
right.set_yticks(range(3), [name.replace(", ", ",\n") for name in rules])
right.set(xlabel="cost a patient, held-out; 90 % interval", ylim=(-0.6, 2.6), xlim=(0, None))
right.invert_yaxis()
save(figure, "19_decisions")

# %% [markdown]
# The same probabilities, three rules. To ask for the likeliest class throws away what the costs say. Where a missed
# case is twenty times worse, more is operated and less is missed. Referral is a price for "I do not know", and it is
# paid only where both other actions are dearer. That needs probabilities that mean what they say:
# [calibration](../concepts/calibration.md). [Decisions](../decisions.md) has amounts, risk and the value of knowing
# more.
