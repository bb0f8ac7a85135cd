"""Bayesian linear regression on features: exact posterior and evidence from the sums A'A, A'Y and Y'Y."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

LOG_2PI = 1.8378770664093453
ROUNDS = 500
BOUND = 30.0  # of logarithms of the two precisions


class FeatureMoments(NamedTuple):
    """Weighted sums Σ a a', Σ a y', Σ y² and Σ 1 over rows of features a (m numbers) and targets y (k numbers)."""

    gram: jax.Array  # [m, m]
    cross: jax.Array  # [m, k]
    squares: jax.Array  # [k]
    rows: jax.Array

    @staticmethod
    def zeros(features: int, outputs: int, dtype: Any) -> "FeatureMoments":
        """Of no rows."""
        sizes = ((features, features), (features, outputs), (outputs,), ())
        return FeatureMoments(*(jnp.zeros(shape, dtype) for shape in sizes))

    def add(self, features: jax.Array, targets: jax.Array, weight: jax.Array) -> "FeatureMoments":
        """With these rows."""
        a, y, w = (x.astype(self.gram.dtype) for x in (features, targets, weight))
        y = jnp.where(w[:, None] > 0, y, 0.0)
        weighted = w[:, None] * a
        sums = (weighted.T @ a, weighted.T @ y, (w[:, None] * y * y).sum(0), w.sum())
        return FeatureMoments(*(old + new for old, new in zip(self, sums)))

    def whitened(self, root: jax.Array, centre: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Σ a a', Σ a y' and Σ y² for features D^{-½}a and targets y − centre a, with root = D^{½}."""
        moved = self.gram @ centre.T
        squares = self.squares - 2 * (self.cross * centre.T).sum(0) + (moved * centre.T).sum(0)
        return self.gram / (root[:, None] * root), (self.cross - moved) / root[:, None], squares


class Rotated(NamedTuple):
    """Moments in the eigenbasis of D^{-½} A'A D^{-½} and around the prior's mean, where weights are independent."""

    values: jax.Array  # eigenvalues [m]
    basis: jax.Array  # [m, m]
    cross: jax.Array  # [m, k]
    squares: jax.Array  # [k]
    rows: jax.Array

    @staticmethod
    def of(moments: FeatureMoments, root: jax.Array, centre: jax.Array) -> "Rotated":
        """root: D^{½} [m], the prior's precision along the features; centre: its mean [k, m]."""
        gram, cross, squares = moments.whitened(root, centre)
        values, basis = jnp.linalg.eigh(gram)
        return Rotated(jnp.maximum(values, 0.0), basis, basis.T @ cross, jnp.maximum(squares, 0.0), moments.rows)

    def precision(self, scale: jax.Array, noise: jax.Array) -> jax.Array:
        """β_k a_i + scale [m, k]: the posterior's precision."""
        return self.values[:, None] * noise + scale

    def mean(self, scale: jax.Array, noise: jax.Array) -> jax.Array:
        """c = β (β a + scale)⁻¹ r [m, k], the posterior mean of the deviation from the prior's mean."""
        return noise * self.cross / self.precision(scale, noise)

    def log_evidence(self, scale: jax.Array, noise: jax.Array) -> jax.Array:
        """log p(Y) for the prior's precision times `scale` and noise precisions β [k], summed over the outputs.

        ½ Σ_k [N log β − N log 2π + m log scale − Σ_i log(β a_i + scale) − β y'y + Σ_i (β r_i)²/(β a_i + scale)].
        """
        precision = self.precision(scale, noise)
        fit = noise * (noise * self.cross**2 / precision).sum(0) - noise * self.squares
        size = len(self.values) * jnp.log(scale) - jnp.log(precision).sum(0)
        return 0.5 * (self.rows * (jnp.log(noise) - LOG_2PI) + size + fit).sum()

    def best(
        self, scale: jax.Array, noise: jax.Array, *, free_scale: bool, free_noise: bool, prior: tuple[Any, Any]
    ) -> tuple[jax.Array, jax.Array]:
        """(scale, β) that maximise the evidence, by MacKay's fixed point from the given start.

        scale = Σ γ_k / Σ |c_k|² and β_k = (N − γ_k) / |y − A c|², with γ_k = Σ_i β a_i/(β a_i + scale) the number of
        weights that the data determine. Bishop (2006), section 3.5.2.

        Args:
            scale, noise: the start.
            free_scale, free_noise: which of them to choose.
            prior: mean and precision of a normal prior of log σ = −½ log β; precision 0 where there is none.
        """
        loc, weight = prior

        def improve(state: Any) -> Any:
            count, log_scale, log_noise, _ = state
            alpha, beta = jnp.exp(log_scale), jnp.exp(log_noise)
            centre = self.mean(alpha, beta)
            determined = (self.values[:, None] * beta / self.precision(alpha, beta)).sum(0)
            misfit = self.squares - 2 * (centre * self.cross).sum(0) + (self.values[:, None] * centre**2).sum(0)
            new_scale = jnp.log(determined.sum()) - jnp.log((centre**2).sum())
            new_noise = _best_noise(jnp.maximum(self.rows - determined, 1e-6), misfit, loc, weight)
            new_scale = jnp.clip(new_scale, -BOUND, BOUND) if free_scale else log_scale
            new_noise = jnp.clip(new_noise, -BOUND, BOUND) if free_noise else log_noise
            change = jnp.maximum(jnp.abs(new_scale - log_scale), jnp.abs(new_noise - log_noise).max())
            return count + 1, new_scale, new_noise, change

        start = (jnp.zeros((), jnp.int32), jnp.log(scale), jnp.log(noise), jnp.full((), jnp.inf, noise.dtype))
        final = jax.lax.while_loop(lambda s: (s[0] < ROUNDS) & (s[3] > 1e-10), improve, start)
        return jnp.exp(final[1]), jnp.exp(final[2])


def _best_noise(rows: jax.Array, misfit: jax.Array, loc: Any, weight: Any) -> jax.Array:
    """log β that solves rows − β misfit + weight (log σ − loc) = 0: Newton steps, or in closed form at weight 0."""
    exact = jnp.log(rows) - jnp.log(jnp.maximum(misfit, 1e-30))

    def newton(_: int, value: jax.Array) -> jax.Array:
        pull = misfit * jnp.exp(-2 * value)
        return value - jnp.clip((rows - pull + weight * (value - loc)) / (2 * pull + weight + 1e-30), -1.0, 1.0)

    log_sigma = jax.lax.fori_loop(0, 20, newton, -0.5 * jnp.clip(exact, -BOUND, BOUND))
    return jnp.where(weight > 0, -2 * log_sigma, exact)
