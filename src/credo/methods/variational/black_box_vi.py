"""Black-box variational inference: gradients of the bound from values of the log density alone."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.methods.points.optimise import averaged_step
from credo.methods.variational.families import MeanFieldFamily
from credo.methods.variational.score_function import score_gradient, terms
from credo.methods.variational.state import VariationalState, gaussian_prior, split_points, start_state


@struct
class BlackBoxVI(Method):
    """Maximise the same bound as Bayes by Backprop by ∇L = E_q[(log p(θ, D) − log q(θ)) ∇log q(θ)] (B3).

    It needs no gradient of the likelihood, and pays with noise: `credo.diagnostics.gradient_variance` shows how much.
    Control variates and Rao–Blackwellisation (for each coordinate only those terms of prior and q that contain it)
    lower that noise and leave the mean of the gradient as it is. Control variates alone are the default: close to the
    optimum log p − log q varies less as a whole than in parts. q is a mean-field Gaussian. Noise that is "learned" is
    a point and moves by its ordinary gradient. Ranganath, Gerrish and Blei (2014), Black box variational inference.

    Args:
        learning_rate: size of the optimiser's steps; fades to a tenth over the second half of the fit, whose
            iterates are averaged.
        num_samples: K ≥ 2, draws of θ for each step.
        initial_std: s at the start, for every weight.
        beta: weight of the KL; 1 is Bayes.
        control_variates: subtract a multiple of ∇log q, the best for each coordinate.
        rao_blackwell: leave out terms that do not contain the coordinate.

    Example:
        >>> import credo
        >>> credo.methods.BlackBoxVI(num_samples=32).control_variates
        True
    """

    learning_rate: float = leaf(default=0.005)
    num_samples: int = 16
    initial_std: float = leaf(default=0.05)
    beta: float = leaf(default=1.0)
    control_variates: bool = True
    rao_blackwell: bool = False
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 20_000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.num_samples < 2:
            raise InputError(f"Score-function gradients need at least 2 draws, got num_samples={self.num_samples}.")
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> VariationalState:
        random, points = split_points(model, variables.params)
        family = MeanFieldFamily(Layout.of(random))
        parts = family.init(key, [family.random.ravel(random)], self.initial_std) | {"points": points}
        prior = gaussian_prior(model, variables, random, family.random)
        return start_state(self.optimiser, parts, variables.state, prior, family)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: VariationalState) -> PyTree:
        """ε for K draws, and a key for random layers."""
        key_eps, key_net = jax.random.split(key)
        parts = state.layout.unravel(state.values)  # type: ignore[union-attr]
        return state.family.noise(key_eps, parts, self.num_samples), key_net

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: VariationalState, batch: Batch
    ) -> tuple[VariationalState, Info]:
        eps, key = noise
        parts = state.layout.unravel(state.values)  # type: ignore[union-attr]
        random, log_std = state.family.random, parts["log_std"]
        draws = state.family.draws(parts, eps)

        def likelihood(points: PyTree) -> tuple[jax.Array, tuple[jax.Array, PyTree]]:
            def log_likelihood(theta: PyTree, key: jax.Array) -> tuple[jax.Array, PyTree]:
                variables = Variables(random.unravel(theta) | points, state.network)
                per_row, network = model.log_likelihood(variables, batch, key=key, train=True)
                return batch.total(per_row), network

            totals, network = jax.vmap(log_likelihood)(draws, jax.random.split(key, self.num_samples))
            return totals.mean(), (totals, jax.tree.map(lambda x: x[0], network))

        # Without points there is nothing to differentiate, and the likelihood is only evaluated.
        (mean, (totals, network)), slope = jax.value_and_grad(likelihood, has_aux=True)(parts["points"])
        split = terms(model, random, state.prior, draws, eps, log_std)
        local = jax.tree.map(lambda p, q: self.beta * (p / model.temperature - q), split.prior, split.density)
        shared = (totals + self.beta * split.shared) / model.temperature
        if not self.rao_blackwell:
            shared, local = shared + _per_draw(local), None
        along_mean, along_std = score_gradient(eps, log_std, shared, local, self.control_variates)
        up = {"log_std": along_std, "mean": along_mean, "points": _over(slope, model.temperature)}
        gradient = state.layout.ravel(jax.tree.map(lambda g: -g / batch.num_data, up))  # type: ignore[union-attr]
        prior = split.shared.mean() + _per_draw(split.prior).mean()
        entropy = state.family.entropy(parts, draws)
        bound = (mean + self.beta * prior) / model.temperature + self.beta * entropy
        metrics = {"loss": -bound / batch.num_data, "log_likelihood": mean / batch.num_data, "kl": -prior - entropy}
        return averaged_step(self, phase, state, gradient, network), Info(metrics)

    def point(self, model: Model, state: VariationalState) -> Variables:
        parts = state.layout.unravel(state.average)  # type: ignore[union-attr]
        return Variables(state.family.random.unravel(parts["mean"]) | parts["points"], state.network)

    def posterior(self, model: Model, state: VariationalState, draws: PyTree) -> Any:
        parts = jax.vmap(state.layout.unravel)(state.average)  # type: ignore[union-attr]
        return state.family.posterior(parts, state.network)


def _per_draw(tree: PyTree) -> jax.Array:
    """Sums over all coordinates [K]."""
    return sum((x.reshape(x.shape[0], -1).sum(1) for x in jax.tree.leaves(tree)), jnp.zeros(()))


def _over(tree: PyTree, temperature: Any) -> PyTree:
    return jax.tree.map(lambda x: x / temperature, tree)
