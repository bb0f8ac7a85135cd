"""Maximum a posteriori and maximum likelihood: one point."""

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.core.typing import PyTree
from credo.methods.points.optimise import descend, fade, optimiser
from credo.posteriors import Samples

MEMORY = 0.99  # of Adam: a start far from the data has gradients that the usual 0.999 remembers for the whole fit


@struct
class PointState:
    """The point, flat where small, and the optimiser's memory."""

    step: jax.Array = leaf()
    values: PyTree = leaf()
    memory: PyTree = leaf()
    network: PyTree = leaf()
    layout: Layout | None = None


@struct
class MAP(Method):
    """θ* = argmax log p(θ) + Σ_n log p(y_n | x_n, θ): training with weight decay, read as Bayes (A4).

    Under a Gaussian prior N(0, s²) the penalty is ‖θ‖²/2s². Noise with a prior is maximised in its log.

    Args:
        learning_rate: size of the optimiser's steps; decays to 0 by a cosine over the second half (`schedule`).
        optimiser: "adam", "rmsprop", "momentum" or "sgd".

    Example:
        >>> import credo
        >>> credo.methods.MAP(learning_rate=0.01).optimiser
        'adam'
    """

    learning_rate: float = leaf(default=0.005)
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 5000
    step_field = "learning_rate"
    several_starts = True

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> PointState:
        layout = Layout.of(variables.params)
        values = layout.ravel(variables.params)
        memory = optimiser(self.optimiser).init(values)
        return PointState(jnp.zeros((), jnp.int32), values, memory, variables.state, layout)

    def objective(self, model: Model, variables: Variables, batch: Batch, key: jax.Array) -> tuple[jax.Array, PyTree]:
        """What is maximised, and the network's new state."""
        return model.log_joint(variables, batch, key=key, train=True)

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: PointState, batch: Batch
    ) -> tuple[PointState, Info]:
        def loss(values: PyTree) -> tuple[jax.Array, PyTree]:
            variables = Variables(state.layout.unravel(values), state.network)  # type: ignore[union-attr]
            total, network = self.objective(model, variables, batch, noise)
            return -total / batch.num_data, network

        (value, network), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps)
        values, memory = descend(self.optimiser, rate, gradient, state.memory, state.values, MEMORY)
        return PointState(state.step + 1, values, memory, network, state.layout), Info({"loss": value})

    def point(self, model: Model, state: PointState) -> Variables:
        return Variables(state.layout.unravel(state.values), state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: PointState, draws: PyTree) -> Samples:
        points = jax.vmap(lambda s: self.point(model, s))(state)
        return Samples(jax.tree.map(lambda x: x[:, None], points.params), points.state)


@struct
class MaximumLikelihood(MAP):
    """θ* = argmax Σ_n log p(y_n | x_n, θ): the prior is not used (A4)."""

    def objective(self, model: Model, variables: Variables, batch: Batch, key: jax.Array) -> tuple[jax.Array, PyTree]:
        per_row, state = model.log_likelihood(variables, batch, key=key, train=True)
        return batch.total(per_row) / model.temperature, state
