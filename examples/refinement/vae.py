"""A variational auto-encoder whose encoder's answer is refined by T learned steps of a sampler for every image.

    python examples/refinement/vae.py --data-dir DIR --out FOLDER --steps 0,5 --epochs 40 --train-rows 10000
    python examples/refinement/vae.py --data-dir DIR --out FOLDER --steps 0,0,5 --epochs 40,300,40   # equal time, too
    python examples/refinement/vae.py --out FOLDER --redraw      # the figure again, from FOLDER/vae.npz

DIR has `mnist/mnist.npz` (or, by `--set fashion_mnist`, `fashion_mnist/fashion_mnist.npz`). Pixels are binarised once,
at half of full brightness: the numbers are not those of images binarised at random at every look. FOLDER gets
`vae.md`, `vae.json`, `vae.npz` and, where matplotlib is installed, `vae.png`.

z ~ N(0, I) of ten numbers, x | z Bernoulli by a decoder of 2×200 units, q_0(z | x) normal with diagonal covariance by
an encoder of 2×200. From z_0 ~ q_0 the path goes T Hamiltonian steps towards p(x, z); step sizes (one for each latent
coordinate), damping and bridges are shared by all images and learned together with both networks. The weight of a path,

    log w = log p(x, z_T) − log q_0(z_0 | x) + Δ,      E[w] = p(x),

gives everything that is reported, for images that were not trained on and for the decoder that was trained with this T:

- the bound E[log w] ≤ log p(x), as it was trained, with T steps; and that of the same encoder without them;
- E[log (1/K) Σ_k w_k] ≤ log p(x), which rises to log p(x) with K: once with weights of q_0 alone, once of paths.

All of them are lower bounds, in expectation, of log p(x) under *their own* decoder. A path of T steps costs T + 1
gradients of the decoder, so equal K is not equal work.
"""

import argparse
import functools
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from credo.methods.variational.refinement import first_learned, momenta, refine

SAMPLER, LATENT, WIDTH, PIXELS = "hamiltonian", 10, 200, 784
FIRST_STEP, SHOWN = 0.05, 10
CURVE = 2000  # test images behind the curve
FASTER = 10.0  # the rate of the sampler over that of the networks: its few numbers have further to go
PyTree = Any


def load(folder: Path, name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of 0 and 1 to train on and to test on, [N, 784]."""
    with np.load(folder / name / f"{name}.npz", allow_pickle=False) as file:
        train, test = (file[k].reshape(-1, PIXELS) >= 128 for k in ("x_train", "x_test"))
    return train[:rows], test


# Networks.


def layers(key: jax.Array, sizes: tuple[int, ...]) -> list[dict[str, jax.Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    kernel = jax.nn.initializers.glorot_normal()
    return [{"kernel": kernel(k, (m, n)), "bias": jnp.zeros(n)} for k, m, n in zip(keys, sizes, sizes[1:])]


def network(params: list[dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    """Smooth units, because the steps follow the gradient and learning differentiates it once more."""
    for layer in params[:-1]:
        x = jax.nn.silu(x @ layer["kernel"] + layer["bias"])
    return x @ params[-1]["kernel"] + params[-1]["bias"]


def first_params(key: jax.Array, steps: int, mean_image: np.ndarray) -> PyTree:
    key_encoder, key_decoder = jax.random.split(key)
    decoder = layers(key_decoder, (LATENT, WIDTH, WIDTH, PIXELS))
    shares = np.clip(mean_image, 0.01, 0.99)
    decoder[-1]["bias"] = jnp.asarray(np.log(shares / (1 - shares)), jnp.float32)
    encoder = layers(key_encoder, (PIXELS, WIDTH, WIDTH, 2 * LATENT))
    learned = first_learned(SAMPLER, steps, jnp.zeros(LATENT), FIRST_STEP) if steps else {}
    params = {"encoder": encoder, "decoder": decoder, "sampler": learned}
    return jax.tree.map(
        lambda x: jnp.asarray(x, jnp.float32), params
    )  # of one type, or the second epoch compiles again


# The weight of a path.


def encode(params: PyTree, image: jax.Array) -> tuple[jax.Array, jax.Array]:
    mean, log_std = jnp.split(network(params["encoder"], image - 0.5), 2, axis=-1)
    return mean, log_std


def log_joint(params: PyTree, image: jax.Array, z: jax.Array) -> jax.Array:
    """log p(x, z)."""
    logits = network(params["decoder"], z)
    pixels = (image * logits - jax.nn.softplus(logits)).sum()
    return pixels + jax.scipy.stats.norm.logpdf(z).sum()


def log_weight(params: PyTree, image: jax.Array, key: jax.Array, steps: int) -> tuple[jax.Array, jax.Array]:
    """log w of one path for one image, and where it ended."""
    key_start, key_path = jax.random.split(key)
    mean, log_std = encode(params, image)
    start = mean + jnp.exp(log_std) * jax.random.normal(key_start, (LATENT,))
    log_start = lambda z: jax.scipy.stats.norm.logpdf(z, mean, jnp.exp(log_std)).sum()  # noqa: E731
    log_target = functools.partial(log_joint, params, image)
    noise = momenta(key_path, SAMPLER, steps, start)
    end = refine(SAMPLER, params["sampler"], noise, start, log_start, log_target, steps)
    return log_target(end.position) - log_start(start) + end.log_ratio, end.position


def mean_bound(params: PyTree, images: jax.Array, key: jax.Array, steps: int) -> jax.Array:
    keys = jax.random.split(key, len(images))
    return jax.vmap(lambda x, k: log_weight(params, x, k, steps)[0])(images.astype(jnp.float32), keys).mean()


# Learning: an epoch is one compiled scan.


def optimiser(rate: float, total: int) -> optax.GradientTransformation:
    schedule = optax.cosine_decay_schedule(rate, total, alpha=0.05)
    return optax.chain(optax.clip_by_global_norm(200.0), optax.adam(schedule))


@functools.partial(jax.jit, static_argnames=("steps", "batch", "total"), donate_argnames=("params", "memory"))
def epoch(
    params: PyTree, memory: PyTree, key: jax.Array, images: jax.Array, rate: float, steps: int, batch: int, total: int
) -> tuple[PyTree, PyTree, jax.Array]:
    key_rows, key_paths = jax.random.split(key)
    count = len(images) // batch
    rows = jax.random.permutation(key_rows, len(images))[: count * batch].reshape(count, batch)

    def one(carry: tuple[PyTree, PyTree], now: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        params, memory = carry
        chosen, key = now
        loss, slope = jax.value_and_grad(lambda p: -mean_bound(p, images[chosen], key, steps))(params)
        change, memory = optimiser(rate, total).update(slope, memory)
        change |= {"sampler": jax.tree.map(lambda c: FASTER * c, change["sampler"])}
        return (optax.apply_updates(params, change), memory), -loss

    (params, memory), bounds = jax.lax.scan(one, (params, memory), (rows, jax.random.split(key_paths, count)))
    return params, memory, bounds.mean()


# What is reported.


@functools.partial(jax.jit, static_argnames=("steps", "paths", "chunk"))
def weights(params: PyTree, images: jax.Array, key: jax.Array, steps: int, paths: int, chunk: int) -> jax.Array:
    """log w of `paths` paths for every image, [images, paths]; in full float32."""

    def one(now: tuple[jax.Array, jax.Array]) -> jax.Array:
        image, key = now
        keys = jax.random.split(key, paths)
        return jax.vmap(lambda k: log_weight(params, image.astype(jnp.float32), k, steps)[0])(keys)

    with jax.default_matmul_precision("float32"):
        return jax.lax.map(one, (images, jax.random.split(key, len(images))), batch_size=chunk)


def averaged(each: np.ndarray) -> tuple[float, float]:
    """Mean over images and its standard error."""
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def importance(log_weights: np.ndarray) -> np.ndarray:
    """log (1/K) Σ_k w_k of every image."""
    return np.logaddexp.reduce(log_weights, axis=1) - np.log(log_weights.shape[1])


def effective(log_weights: np.ndarray) -> float:
    """How many of the K weights count: the median over images of (Σ w)²/Σ w²."""
    ratio = np.exp(log_weights - log_weights.max(1, keepdims=True))
    return float(np.median(ratio.sum(1) ** 2 / (ratio**2).sum(1)))


def evaluate(params: PyTree, test: np.ndarray, steps: int, args: argparse.Namespace) -> tuple[dict, np.ndarray]:
    """What the table says, and the bound of every test image."""
    key_bound, key_start, key_paths = jax.random.split(jax.random.key(args.seed + 99), 3)
    all_images, some = jnp.asarray(test), jnp.asarray(test[: args.iw_images])
    found: dict[str, Any] = {}
    for name, count in (("bound_q0", 0), ("bound", steps)):
        each = np.asarray(weights(params, all_images, key_bound, count, 1, 500), np.float64)[:, 0]
        found[name] = averaged(each)
    chunk = max(1, 20_000 // args.iw_samples)
    for name, count, key in (("iw_q0", 0, key_start), ("iw_paths", steps, key_paths)):
        log_weights = np.asarray(weights(params, some, key, count, args.iw_samples, chunk), np.float64)
        found[name] = averaged(importance(log_weights))
        found[name + "_effective"] = effective(log_weights)
        found[name + "_bound"] = averaged(log_weights.mean(1))
    return found, each


def pictures(params: PyTree, test: np.ndarray, steps: int, seed: int) -> dict[str, np.ndarray]:
    key, key_prior = jax.random.split(jax.random.key(seed + 7))
    images = jnp.asarray(test[:SHOWN], jnp.float32)
    keys = jax.random.split(key, SHOWN)
    ends = jax.vmap(lambda x, k: log_weight(params, x, k, steps)[1])(images, keys)
    decode = lambda z: np.asarray(jax.nn.sigmoid(network(params["decoder"], z)))  # noqa: E731
    drawn = jax.random.normal(key_prior, (SHOWN, LATENT))
    return {"images": np.asarray(images), "decoded": decode(ends), "drawn": decode(drawn)}


def train(
    images: np.ndarray, test: np.ndarray, steps: int, epochs: int, args: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    params = first_params(jax.random.key(args.seed), steps, images.mean(0))
    total = epochs * (len(images) // args.batch)
    memory = optimiser(args.rate, total).init(params)
    device, few = jnp.asarray(images), jnp.asarray(test[:CURVE])
    curve, tested, seconds = [], [], []
    for i in range(epochs):
        began = time.perf_counter()
        key = jax.random.fold_in(jax.random.key(args.seed + 1), i)
        params, memory, bound = epoch(params, memory, key, device, args.rate, steps, args.batch, total)
        curve.append(float(bound))
        seconds.append(time.perf_counter() - began)
        tested.append(float(weights(params, few, jax.random.key(5), steps, 1, 500).mean()))
        if i in (0, epochs - 1) or (i + 1) % 10 == 0:
            said = f"train {curve[-1]:8.2f}  test {tested[-1]:8.2f}  {seconds[-1]:6.2f} s"
            print(f"T = {steps}  epoch {i + 1:3d}  {said}", flush=True)
    later = float(np.median(seconds[1:] or seconds))
    row: dict[str, Any] = {"T": steps, "epochs": epochs, "seconds_per_epoch": later}
    row["seconds_compile"] = max(0.0, seconds[0] - later)
    found, each = evaluate(params, test, steps, args)
    row |= found
    if steps:
        row["step"] = np.exp(np.asarray(params["sampler"]["log_step"], np.float64)).round(3).tolist()
        row["damping"] = float(jax.nn.sigmoid(params["sampler"]["damping"]))
        shares = jax.nn.softmax(params["sampler"].get("bridges", jnp.zeros(1)))
        row["bridges"] = np.cumsum(np.asarray(shares, np.float64)).round(2).tolist()
    curves = {"train": np.array(curve), "test": np.array(tested), "seconds": later * np.arange(1, epochs + 1)}
    return row, curves | {"bounds": each} | pictures(params, test, steps, args.seed)


def page(command: str, rows: list[dict], bounds: list[np.ndarray], args: argparse.Namespace, num_train: int) -> str:
    pm = lambda pair: f"{pair[0]:.2f} ± {pair[1]:.2f}"  # noqa: E731
    lines = [
        "# Auto-encoders with refined encoders\n",
        f"`{command}` on {jax.devices()[0].device_kind}, JAX {jax.__version__}: {args.set}, binarised at 0.5, "
        f"{num_train:,} images to train on, {len(bounds[0]):,} test images. Nats per image, ± the "
        "standard error over images. Columns are lower bounds in expectation of log p(x) under the decoder of their "
        "row; decoders of different rows are different models. "
        f"The columns of K = {args.iw_samples} are of the first {args.iw_images} test images only, and so is the one "
        "beside them.\n",
        "| T | epochs | bound, as trained | more than the first | bound of its q_0 | bound, those images | "
        "K weights of q_0 | K weights of paths | s per epoch | compile s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row, each in zip(rows, bounds):
        cells = [pm(row[k]) for k in ("bound", "bound_q0", "iw_paths_bound", "iw_q0", "iw_paths")]
        cells.insert(1, "–" if each is bounds[0] else pm(averaged(each - bounds[0])))
        cells += [f"{row['seconds_per_epoch']:.2f}", f"{row['seconds_compile']:.0f}"]
        lines.append(f"| {row['T']} | {row['epochs']} | " + " | ".join(cells) + " |")
    for row in rows:
        counted = f"{row['iw_q0_effective']:.0f} count with q_0 and {row['iw_paths_effective']:.0f} with paths"
        lines.append(f"\nT = {row['T']}, {row['epochs']} epochs: of {args.iw_samples} weights, {counted} (medians).")
        if row["T"]:
            lines[-1] += f" Steps {row['step']}, damping γ = {row['damping']:.2f}, bridges {row['bridges']}."
    return "\n".join(lines) + "\n"


def figure_of(file: Path) -> Any:
    from matplotlib.figure import Figure

    from credo.report.style import CYCLE, INK, dress

    with np.load(file, allow_pickle=False) as saved:
        data = {k: saved[k] for k in saved.files}
    runs = list(enumerate(int(t) for t in data["steps"]))
    last = {t: i for i, t in runs}  # of several runs with one T the last one's images are shown
    rows = [("test images", data["0/images"])]
    rows += [(f"decoded, T = {t}", data[f"{i}/decoded"]) for t, i in last.items()]
    rows += [(f"drawn, T = {t}", data[f"{i}/drawn"]) for t, i in last.items()]
    figure = Figure(figsize=(12, 0.62 * len(rows) + 1.2), dpi=110, layout="constrained", facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1.45, 1])
    areas = left.subplots(len(rows), 1)
    for area, (name, images) in zip(areas, rows):
        strip = np.concatenate(list(images.reshape(-1, 28, 28)), axis=1)
        area.imshow(strip, cmap="gray_r", vmin=0, vmax=1, aspect="equal")
        area.set_xticks([])
        area.set_yticks([])
        area.spines[:].set_visible(False)
        area.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=10, color=INK)
    area = right.subplots()
    dress(area, "Bound of log p(x), mean over images", "seconds of training, without compiling", "nats")
    names = {"train": "training images", "test": f"first {CURVE:,} test images"}
    for (i, t), colour in zip(runs, CYCLE):
        for part, dash in (("train", "--"), ("test", "-")):
            curve = data[f"{i}/{part}"]
            label = f"T = {t}, {len(curve)} epochs, {names[part]}"
            area.plot(data[f"{i}/seconds"], curve, dash, color=colour, lw=1.5, label=label)
    area.set_xscale("log")
    curves = [data[f"{i}/{part}"] for i, _ in runs for part in ("train", "test")]
    tails = np.concatenate([curve[len(curve) // 10 :] for curve in curves])
    more = 0.08 * np.ptp(tails) + 0.5
    area.set_ylim(tails.min() - more, tails.max() + more)
    seen = [data[f"{i}/seconds"][data[f"{i}/test"] > tails.min() - more][0] for i, _ in runs]
    area.set_xlim(0.9 * min(seen), None)
    right.legend(loc="outside lower center", ncols=1, fontsize=9, frameon=False, labelcolor=INK)
    return figure


def main(args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "vae.npz"
    if not args.redraw:
        images, test = load(args.data_dir, args.set, args.train_rows)
        test = test[: args.test_rows]
        counts, epochs = ([int(t) for t in given.split(",")] for given in (args.steps, args.epochs))
        epochs = epochs * len(counts) if len(epochs) == 1 else epochs
        places = {str(args.data_dir): "DIR", str(args.out): "FOLDER"}
        command = shlex.join(["python", "examples/refinement/vae.py", *(places.get(a, a) for a in sys.argv[1:])])
        rows, arrays, bounds = [], {"steps": np.array(counts)}, []
        for i, (steps, length) in enumerate(zip(counts, epochs, strict=True)):
            row, found = train(images, test, steps, length, args)
            print(json.dumps(row), flush=True)
            rows.append(row)
            bounds.append(found.pop("bounds"))
            arrays |= {f"{i}/{k}": v for k, v in found.items()}
            (args.out / "vae.md").write_text(page(command, rows, bounds, args, len(images)), encoding="utf-8")
            saved = json.dumps({"command": command, "rows": rows}, indent=1)
            (args.out / "vae.json").write_text(saved, encoding="utf-8")
        np.savez_compressed(file, **arrays)
    try:
        figure_of(file).savefig(args.out / "vae.png")
    except ModuleNotFoundError as missing:
        print(f"No figure, because {missing.name} is not installed: run --redraw where it is.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Auto-encoders with refined encoders.")
    parser.add_argument("--data-dir", type=Path, help="needed unless --redraw")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", default="mnist", choices=("mnist", "fashion_mnist"))
    parser.add_argument("--steps", default="0,5", help="T, one model each")
    parser.add_argument("--epochs", default="40", help="one number, or one for each model")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--train-rows", type=int, default=60_000)
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument("--iw-images", type=int, default=300)
    parser.add_argument("--iw-samples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--redraw", action="store_true")
    given = parser.parse_args()
    if given.data_dir is None and not given.redraw:
        parser.error("--data-dir is needed")
    main(given)
