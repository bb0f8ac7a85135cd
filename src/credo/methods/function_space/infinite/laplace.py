"""The Laplace approximation of a Gaussian process under any likelihood, all outputs together.

q(f) = N(f̂, (K⁻¹ + W)⁻¹) with f̂ the mode of Σ w log p(y|f) − ½ f'K⁻¹f and W the rows' curvature blocks. Rasmussen and
Williams (2006), chapter 3; here the likelihood couples the outputs of a row.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from credo.core.typing import PyTree
from credo.methods.function_space.infinite.regression import TrainingPosterior, factor
from credo.methods.laplace.curvature.columns import output_columns
from credo.methods.laplace.curvature.output import output_curvature, row_hessians

ROUNDS = 200
HALVINGS = 40
CLOSE = 1e-14  # rise of the objective, relative, that is no longer one


class Observations(NamedTuple):
    """The likelihood of the training rows: p(y|f, ν), targets and weights."""

    likelihood: Any
    targets: jax.Array
    weight: jax.Array  # [n], 0 where there is no row

    def log_prob(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """Σ_n w_n log p(y_n|f_n)."""
        log_probs = self.likelihood.log_prob(params, outputs, self.targets)
        return jnp.where(self.weight > 0, self.weight * log_probs, 0.0).sum()

    def roots(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """R_n [n, out, columns] with R_n R_n' = w_n H_n (`output_curvature`)."""
        # Nothing is drawn for "ggn".
        key = jax.random.key(0)
        columns = output_columns("ggn", key, self.likelihood, params, outputs, self.targets, self.weight)
        return jnp.moveaxis(columns, 0, 2).astype(outputs.dtype)

    def curvature(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """w_n H_n [n, out, out]."""
        blocks = output_curvature(self.likelihood, params, outputs, self.targets).astype(outputs.dtype)
        return jnp.where(self.weight > 0, self.weight, 0.0)[:, None, None] * blocks

    def hessian(self, params: PyTree, outputs: jax.Array) -> jax.Array:
        """−w_n ∂² log p/∂f∂f' [n, out, out] at the very targets."""
        blocks = row_hessians(self.likelihood, params, outputs, self.targets)
        return -jnp.where(self.weight[:, None, None] > 0, self.weight[:, None, None] * blocks, 0.0)


def find_mode(gram: jax.Array, rows: Observations, params: PyTree, start: jax.Array) -> TrainingPosterior:
    """The mode by Newton's method with the expected curvature, from α = `start`; the objective never falls.

    With b = Wf + ∇log p the full step is α = b − R B⁻¹ R'K b. Where the likelihood is not log-concave it may lead
    down: it is halved until the objective is no lower.
    """

    def objective(alpha: jax.Array, outputs: jax.Array) -> jax.Array:
        return rows.log_prob(params, outputs) - 0.5 * (alpha * outputs).sum()

    def newton(alpha: jax.Array, outputs: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The full step of α and of f, and ½ g'(K⁻¹ + W)⁻¹g for the objective's gradient g in f."""
        roots, slope = rows.roots(params, outputs), jax.grad(rows.log_prob, 1)(params, outputs)
        target = jnp.einsum("noc,nc->no", roots, jnp.einsum("noc,no->nc", roots, outputs)) + slope
        right = jnp.einsum("noc,no->nc", roots, gram @ target)
        inner = jax.scipy.linalg.cho_solve((factor(gram, roots), True), right.ravel()).reshape(right.shape)
        move = target - jnp.einsum("noc,nc->no", roots, inner) - alpha
        moved = gram @ move
        return move, moved, 0.5 * ((slope - alpha) * moved).sum()

    def improve(state: Any) -> Any:
        count, alpha, outputs, value, _ = state
        move, moved, _ = newton(alpha, outputs)

        def lower(trial: Any) -> jax.Array:
            halved, _, reached = trial
            return (halved < HALVINGS) & ~(reached >= value)

        def halve(trial: Any) -> Any:
            share = 0.5 * trial[1]
            return trial[0] + 1, share, objective(alpha + share * move, outputs + share * moved)

        first = (jnp.zeros((), jnp.int32), jnp.ones((), gram.dtype), objective(alpha + move, outputs + moved))
        _, share, reached = jax.lax.while_loop(lower, halve, first)
        share = jnp.where(reached >= value, share, 0.0)
        new = jnp.where(reached >= value, reached, value)
        done = new - value <= CLOSE * (1 + jnp.abs(value))
        return count + 1, alpha + share * move, outputs + share * moved, new, done

    outputs = gram @ start
    begin = (jnp.zeros((), jnp.int32), start, outputs, objective(start, outputs), jnp.zeros((), bool))
    _, alpha, outputs, value, _ = jax.lax.while_loop(lambda s: (s[0] < ROUNDS) & ~s[4], improve, begin)
    lower_factor = factor(gram, rows.roots(params, outputs))
    evidence = value - jnp.log(jnp.diagonal(lower_factor)).sum()
    return TrainingPosterior(outputs, alpha, evidence, newton(alpha, outputs)[2])


def smooth_evidence(gram: jax.Array, rows: Observations, params: PyTree, at: TrainingPosterior) -> jax.Array:
    """The approximate log evidence log p(y|f̂) − ½ f̂'K⁻¹f̂ − ½ log |I + KW|, differentiable in K and ν.

    `at` is the mode for these very K and ν. Its own change enters by the implicit function theorem: f = K∇log p(y|f)
    gives (I + KH) df = d(K∇log p) at fixed f. The first two terms do not change with f at the mode.
    """
    mode, alpha = jax.lax.stop_gradient((at.mode, at.coefficients))
    count, outputs = mode.shape
    size = count * outputs

    def joined(blocks: jax.Array) -> jax.Array:
        """I + (K ⊗ I) diag(blocks)."""
        product = (gram[:, None, :, None] * jnp.moveaxis(blocks, 0, 1)[None]).reshape(size, size)
        return product + jnp.eye(size, dtype=gram.dtype)

    slope = gram @ jax.grad(rows.log_prob, 1)(params, mode) - mode
    change = jax.lax.stop_gradient(joined(rows.hessian(params, mode)))
    moved = mode + jnp.linalg.solve(change, slope.ravel()).reshape(mode.shape)
    volume = jnp.linalg.slogdet(joined(rows.curvature(params, moved)))[1]
    # Its value is −½ α'f and its derivative ½ α'(dK)α, as those of −½ f'K⁻¹f are.
    quadratic = 0.5 * (alpha * (gram @ alpha)).sum() - (alpha * mode).sum()
    return rows.log_prob(params, mode) + quadratic - 0.5 * volume
