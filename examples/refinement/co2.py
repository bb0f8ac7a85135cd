"""Two years of atmospheric CO2 ahead, by a dynamic linear model whose standard deviations are inferred by `vis`.

    python examples/refinement/co2.py --data-dir DIR --out FOLDER [--quick]

DIR has `classics/vis_co2_monthly.csv.gz`: monthly means at Mauna Loa, January 1966 to January 2019, one number a line.
FOLDER gets `co2.md` and `co2.png`. The model of what is left when a line is taken off, in standard deviations of it:

    y_t = level_t + Σ_j a_jt cos(2πjt/12) + b_jt sin(2πjt/12) + σ_observation ε     j = 1 … 4
    level_t = level_{t−1} + slope_{t−1} + σ_level ε,   slope_t = slope_{t−1} + σ_slope ε
    (a_jt, b_jt) = (a_{j,t−1}, b_{j,t−1}) + σ_season ε

The states are integrated out by a Kalman filter, so the posterior is one of four numbers: θ = log σ, each N(−4, 2²)
before the data. Its density is all that credo is given (`credo.from_density`). `nuts` on the same density is the
reference; the log evidence beside the bounds is by importance sampling from a Student-t that is fitted to its draws.
The last 24 months are held out and nothing was tuned on them.
"""

import argparse
import gzip
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy import special, stats

import credo
from credo.core.method import Method
from credo.report.style import CYCLE, INK, MODEL, MUTED, WRONG, dress

NAMES = ("observation", "level", "slope", "season")
HARMONICS, HELD_OUT, FIRST_YEAR = 4, 24, 1966
STATES = 2 + 2 * HARMONICS
PRIOR_MEAN, PRIOR_STD = -4.0, 2.0
KEPT = 1000  # draws that forecasts use
CHAIN = "vis, T = 5 → ∞"


class Series(NamedTuple):
    """The training part in the units of the filter, and the way back."""

    values: np.ndarray  # [N] all months in ppm
    scaled: jax.Array  # [N − 24]
    line: np.ndarray  # [N] ppm
    scale: float  # ppm


def load(folder: Path) -> Series:
    with gzip.open(folder / "classics" / "vis_co2_monthly.csv.gz", "rt") as file:
        values = np.loadtxt(file)
    months = np.arange(len(values))
    seen = slice(0, len(values) - HELD_OUT)
    line = np.polyval(np.polyfit(months[seen], values[seen], 1), months)
    rest = (values - line)[seen]
    return Series(values, jnp.asarray(rest / rest.std(), jnp.float32), line, float(rest.std()))


def design(first: int, last: int) -> jax.Array:
    """What each state adds to the observation in each month, [months, states].

    Harmonics are coefficients that walk at random beside fixed waves. In law that is the usual rotating pair of states,
    but a step of it moves nothing, which is faster and loses no digits.
    """
    angle = 2 * np.pi * np.arange(first, last)[:, None] * np.arange(1, HARMONICS + 1) / 12
    level = np.stack([np.ones(last - first), np.zeros(last - first)], 1)
    return jnp.asarray(np.concatenate([level, np.cos(angle), np.sin(angle)], 1), jnp.float32)


def noise_of(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Variance of the observations, and of what a month adds to each state."""
    variance = jnp.exp(2 * theta)
    return variance[0], jnp.concatenate([variance[1:3], jnp.full(2 * HARMONICS, variance[3])])


def ahead(mean: jax.Array, cov: jax.Array, added: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A month without an observation: the slope joins the level."""
    mean = mean.at[0].add(mean[1])
    cov = cov.at[0].add(cov[1])
    cov = cov.at[:, 0].add(cov[:, 1])
    return mean, cov + jnp.diag(added)


def filtered(theta: jax.Array, series: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """log p(y | θ), and mean and covariance of the states for the month after the last."""
    spread, added = noise_of(theta)

    def month(carry, now):
        mean, cov = carry
        row, value = now
        shared = cov @ row
        variance = row @ shared + spread
        error = value - row @ mean
        mean, cov = mean + shared * (error / variance), cov - shared[:, None] * shared / variance
        return ahead(mean, cov, added), -0.5 * (error**2 / variance + jnp.log(2 * jnp.pi * variance))

    first = jnp.array([3.0, 0.1] + [1.0] * (2 * HARMONICS))  # of a series whose standard deviation is 1
    start = (jnp.zeros(STATES), jnp.diag(first**2))
    (mean, cov), terms = jax.lax.scan(month, start, (design(0, len(series)), series))
    return terms.sum(), mean, cov


def log_density_of(series: jax.Array):
    def log_density(theta: jax.Array) -> jax.Array:
        prior = jax.scipy.stats.norm.logpdf(theta, PRIOR_MEAN, PRIOR_STD).sum()
        return filtered(theta, series)[0] + prior

    return log_density


class Forecast(NamedTuple):
    """In ppm, for the held-out months: [draws, 24]."""

    paths: np.ndarray
    means: np.ndarray
    stds: np.ndarray


def forecast(key: jax.Array, thetas: np.ndarray, series: Series) -> Forecast:
    """One path of every draw of θ, with states and noise drawn; and each month's normal distribution given θ."""
    count = len(series.scaled)
    rows = design(count, count + HELD_OUT)

    def one(key: jax.Array, theta: jax.Array):
        spread, added = noise_of(theta)
        _, mean, cov = filtered(theta, series.scaled)
        values, vectors = jnp.linalg.eigh(cov)
        key_state, key_walk, key_noise = jax.random.split(key, 3)
        state = mean + vectors @ (jnp.sqrt(jnp.maximum(values, 0)) * jax.random.normal(key_state, mean.shape))
        walk = jnp.sqrt(added) * jax.random.normal(key_walk, rows.shape)
        noise = jnp.sqrt(spread) * jax.random.normal(key_noise, (HELD_OUT,))

        def month(carry, now):
            state, mean, cov = carry
            row, step = now
            found = row @ state, row @ mean, row @ cov @ row + spread
            return (state.at[0].add(state[1]) + step, *ahead(mean, cov, added)), found

        _, (path, centre, variance) = jax.lax.scan(month, (state, mean, cov), (rows, walk))
        return path + noise, centre, jnp.sqrt(variance)

    keys = jax.random.split(key, len(thetas))
    path, centre, std = jax.jit(jax.vmap(one))(keys, jnp.asarray(thetas, jnp.float32))
    line = series.line[-HELD_OUT:]
    back = [np.asarray(a, np.float64) * series.scale for a in (path, centre, std)]
    return Forecast(back[0] + line, back[1] + line, back[2])


def scores(found: Forecast, truth: np.ndarray) -> dict[str, float]:
    """The mean of the forecasts is scored; the density is that of the mixture over draws, whose parts are normal."""
    error = found.means.mean(0) - truth
    each = stats.norm.logpdf(truth, found.means, found.stds)
    log_density = special.logsumexp(each, axis=0) - np.log(len(each))
    low, high = np.quantile(found.paths, (0.025, 0.975), axis=0)
    return {
        "mae": float(np.abs(error).mean()), "rmse": float(np.sqrt((error**2).mean())),
        "log_density": float(log_density.mean()), "coverage": float(((low <= truth) & (truth <= high)).mean()),
    }  # fmt: skip


def log_evidence(thetas: np.ndarray, log_density, num: int = 4000) -> tuple[float, float, float]:
    """log Z, its standard error and the share of draws that the weights are worth."""
    proposal = stats.multivariate_t(thetas.mean(0), 1.2 * np.cov(thetas.T), df=5, seed=0)
    drawn = proposal.rvs(num)
    value = np.asarray(jax.jit(jax.vmap(log_density))(jnp.asarray(drawn, jnp.float32)), np.float64)
    weight = np.nan_to_num(value, nan=-np.inf) - proposal.logpdf(drawn)
    ratio = np.exp(weight - weight.max())
    effective = ratio.sum() ** 2 / (ratio**2).sum() / num
    error = ratio.std() / ratio.mean() / np.sqrt(num)
    return float(np.log(ratio.mean()) + weight.max()), float(error), float(effective)


def methods(quick: bool) -> dict[str, tuple[Method, int]]:
    """Methods and how many draws they make."""
    learn = {"learning_steps": 50 if quick else 1000, "bound_draws": 100 if quick else 1000}
    common = learn | {"mean": "map", "map_steps": 500, "learning_rate": 0.02, "num_samples": 4, "initial_std": 0.1}
    common |= {"chains": 2, "settle": 100, "path": 8}
    draws = 100 if quick else 1000
    return {
        "vis, T = 0": (credo.methods.VIS(refinement=0, inference="refined", **common), draws),
        "vis, T = 5": (credo.methods.VIS(refinement=5, inference="refined", **common), draws),
        CHAIN: (credo.methods.VIS(refinement=5, inference="chain", **common), draws),
        "nuts": (credo.methods.NUTS(warmup=100 if quick else 500, chains=2), draws),
    }


def bound_of(fit: credo.Fit) -> tuple[float, float] | None:
    """Mean and standard error of the best member's bound."""
    if "bound" not in fit.phases:
        return None
    each = np.asarray(fit.phases["bound"]["bound"], np.float64)
    best = each[each.mean(1).argmax()]
    return float(best.mean()), float(best.std() / np.sqrt(len(best)))


def picture(series: Series, forecasts: dict[str, Forecast], thetas: dict[str, np.ndarray]) -> Figure:
    """The forecast of the chain above, and every method's posterior of the four numbers below."""
    figure = Figure(figsize=(11.5, 7), dpi=110, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(h_pad=0.08)
    areas = figure.subplot_mosaic([["forecast"] * len(NAMES), list(NAMES)], height_ratios=[1.35, 1])
    years = FIRST_YEAR + (np.arange(len(series.values)) + 0.5) / 12
    past, future = slice(-HELD_OUT - 48, -HELD_OUT), slice(-HELD_OUT, None)
    area, found = areas["forecast"], forecasts[CHAIN]
    dress(area, f"Forecast by {CHAIN}", "year", "CO2 [ppm]")
    low, high = np.quantile(found.paths, (0.025, 0.975), axis=0)
    area.fill_between(years[future], low, high, color=MODEL, alpha=0.3, lw=0, label="95 % of forecast paths")
    area.plot(years[future], found.means.mean(0), color=MODEL, lw=1.5, label="mean of forecasts")
    area.plot(years[past], series.values[past], ".-", color=INK, lw=0.8, ms=4, label="last training months")
    area.plot(years[future], series.values[future], "o", color="white", mec=WRONG, ms=4.5, label="held-out months")
    area.legend(loc="upper left", fontsize=9.5, frameon=False, labelcolor=INK)
    for i, name in enumerate(NAMES):
        dress(areas[name], f"log σ, {name}", "", "density" if i == 0 else "", size=10.5)
        reference = thetas["nuts"][:, i]
        line = np.linspace(*(reference.mean() + reference.std() * np.array([-4, 4])), 200)
        areas[name].fill_between(line, stats.gaussian_kde(reference)(line), color=MUTED, alpha=0.3, lw=0, label="nuts")
        for (other, theta), colour in zip(thetas.items(), CYCLE):
            if other != "nuts":
                areas[name].plot(line, stats.gaussian_kde(theta[:, i])(line), color=colour, lw=1.5, label=other)
        areas[name].set_ylim(0, None)
    handles, labels = areas[NAMES[0]].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=10, labelcolor=INK)
    return figure


def page(command: str, rows: dict[str, dict], thetas: dict[str, np.ndarray], evidence: tuple, scale: float) -> str:
    value, error, effective = evidence
    lines = [
        "# CO2 ahead\n",
        f"`{command}` on {jax.default_backend().upper()}. What everything means is said at the head of `co2.py`.\n",
        "| inference | bound of log p(y) | MAE [ppm] | RMSE [ppm] | log density per month | covered by 95 % | run s | "
        "compile s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        bound = "–" if row["bound"] is None else f"{row['bound'][0]:.2f} ± {row['bound'][1]:.2f}"
        lines.append(
            f"| {name} | {bound} | {row['mae']:.3f} | {row['rmse']:.3f} | {row['log_density']:.3f} | "
            f"{row['coverage']:.0%} | {row['seconds_run']:.0f} | {row['seconds_compile']:.0f} |"
        )
    lines += [
        f"\nlog p(y) = {value:.2f} ± {error:.2f} by importance sampling (weights worth {effective:.0%} of the draws), "
        "of the series in the units of the filter. The bound is that of the best member; log density is "
        "per month, in ppm, of the mixture over draws.\n",
        f"Posterior of log σ, mean ± standard deviation over draws of all members (add log {scale:.2f} for ppm):\n",
        "| inference | " + " | ".join(NAMES) + " |",
        "|---|" + "---|" * len(NAMES),
    ]
    for name, theta in thetas.items():
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(theta.mean(0), theta.std(0))]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(data: Path, out: Path, quick: bool) -> None:
    out.mkdir(parents=True, exist_ok=True)
    series = load(data)
    log_density = log_density_of(series.scaled)
    model = credo.from_density(log_density, np.full(len(NAMES), -3.0, np.float32))
    thetas, forecasts, rows = {}, {}, {}
    for i, (name, (method, draws)) in enumerate(methods(quick).items()):
        fit = credo.fit(jax.random.key(i), model, model.data, method, steps=draws, progress=False)
        thetas[name] = np.asarray(fit.posterior.params["network"]["theta"], np.float64).reshape(-1, len(NAMES))
        kept = thetas[name][np.linspace(0, len(thetas[name]) - 1, KEPT).round().astype(int)]
        forecasts[name] = forecast(jax.random.key(100 + i), kept, series)
        rows[name] = scores(forecasts[name], series.values[-HELD_OUT:]) | fit.timing | {"bound": bound_of(fit)}
        print(name, rows[name])
        print(*fit.notes, thetas[name].mean(0).round(3), thetas[name].std(0).round(3), flush=True)
    command = "python examples/refinement/co2.py --data-dir DIR --out FOLDER" + " --quick" * quick
    evidence = log_evidence(thetas["nuts"], log_density)
    (out / "co2.md").write_text(page(command, rows, thetas, evidence, series.scale), encoding="utf-8")
    picture(series, forecasts, thetas).savefig(out / "co2.png")
    print(out / "co2.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="CO2 ahead, by a dynamic linear model.")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true", help="short runs, to see that everything works")
    given = parser.parse_args()
    main(given.data_dir, given.out, given.quick)
