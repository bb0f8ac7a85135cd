# %% [markdown]
# # Adversarial digits
#
# Change every pixel of an image by a little, in the direction that hurts most, and a network that was right is wrong
# (Szegedy et al., 2014; Goodfellow, Shlens and Szegedy, 2015):
#
#     x' = x + ε sign(∇_x L),  L(x) = −log (1/K) Σ_k p(y | x, θ_k).
#
# The loss is that of the whole mixture, so the attacker knows that there is a posterior. Can the model notice? A
# score of suspicion is the mutual information between the label and the weights, H[mean p] − mean H[p_k]: how much
# the members disagree. The digits are the 8 × 8 images that come with scikit-learn.

# %%
import jax
import numpy as np
from look import INK, MODEL, WRONG, canvas, save, size
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import credo
from credo.applications import detection

images, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))[: size(1797, 300)]
x, y = (images[order] / 16).astype("float32"), labels[order]
train, check, rest = np.split(np.arange(len(x)), [int(0.55 * len(x)), int(0.75 * len(x))])
model = credo.Model(credo.networks.mlp([64]), credo.priors.normal(0.5), credo.likelihoods.categorical(10))
ensemble = credo.methods.DeepEnsemble(size=size(8, 2))
fit = credo.fit(jax.random.key(0), model, (x[train], y[train]), ensemble, steps=size(1500, 30))

# %% [markdown]
# Attacks of several sizes, noise of the same size as a control, and how many right answers are left.

# %%
sizes = [0.0, 0.05, 0.1, 0.2, 0.3]
left_right = {"fgsm": [], "noise": []}
for epsilon in sizes:
    for kind in left_right:
        how = detection.Attack(kind, max(epsilon, 1e-6), box=(0, 1))
        attacked = detection.attack(jax.random.key(1), fit, x[rest], y[rest], how)
        left_right[kind].append((attacked.after == y[rest]).mean())
        if kind == "fgsm" and epsilon == 0.2:
            kept = attacked
print("size of the change       ", sizes)
print("accuracy under the attack", np.round(left_right["fgsm"], 2).tolist())
print("accuracy under noise     ", np.round(left_right["noise"], 2).tolist())
for score in ("mutual_information", "entropy", "max_probability"):
    print(detection.detect(jax.random.key(2), fit, x[check], x[rest], kept, score))

# %%
clean, dirty = (credo.predict(jax.random.key(3), fit, rows).epistemic for rows in (x[rest], kept.inputs))
figure, (left, right) = canvas(["Right answers that are left", "Do members disagree?"], "", "", share=False)
for (kind, values), colour in zip(left_right.items(), (WRONG, MODEL)):
    left.plot(sizes, values, "o-", color=colour, label={"fgsm": "attack (FGSM)", "noise": "random noise"}[kind])
left.set(xlabel="ε, change of each pixel (black to white is 1)", ylabel="accuracy", ylim=(0, 1.02))
left.legend(frameon=False, fontsize=9.5, loc="lower left")
bins = np.linspace(0, max(clean.max(), dirty.max()), 30)
right.hist(clean, bins, color=MODEL, alpha=0.6, density=True, label="clean images")
right.hist(dirty, bins, color=WRONG, alpha=0.5, density=True, label="attacked, ε = 0.2")
right.set(xlabel="mutual information, nats", ylabel="density of images", yscale="log")
right.legend(frameon=False, fontsize=9.5)
save(figure, "17_rates")

# %%
shown = np.flatnonzero(kept.success)[:8]
figure = Figure(figsize=(9.2, 2.7), dpi=110, layout="constrained", facecolor="white")
areas = figure.subplots(2, 8, squeeze=False)
for column, i in enumerate(shown):
    for row, (image, text) in enumerate(((x[rest][i], f"{kept.before[i]}"), (kept.inputs[i], f"{kept.after[i]}"))):
        areas[row, column].imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=1)
        areas[row, column].set_title(f"said: {text}", fontsize=9, color=WRONG if row else INK)
for area in areas.ravel():
    area.set_axis_off()
save(figure, "17_images")

# %% [markdown]
# Above: eight images before and after, with what the model said. Noise of the same size does little harm, so it is
# the direction that counts. Disagreement rises under attack and catches a share of the images at a fixed rate of
# false alarms; the printed lines say which, with intervals, for three scores. A caution: these attacks do not try to
# hide from the score. An attacker who does will be caught less often (Carlini and Wagner, 2017). See [attacked and
# foreign inputs](../detection.md).
