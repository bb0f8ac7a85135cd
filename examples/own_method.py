"""A whole method in one file: elliptical slice sampling. Copy it and change what differs.

`python examples/own_method.py` samples a linear regression and prints the truth beside it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credo
from credo.core.batch import Batch
from credo.core.method import Info, Method, Phase
from credo.core.model import Model, inferring
from credo.core.network import Variables
from credo.core.tree import Layout, leaf, struct
from credo.posteriors import Samples


@struct
class SliceState:
    """Where a chain is. A state is arrays, and structure that never changes."""

    position: Any = leaf()
    network: Any = leaf()  # batch statistics, frozen
    layout: Layout | None = None  # how the parameters lie in one vector


@struct
class EllipticalSlice(Method):
    """Draws under a normal prior of mean 0; no gradients, no step size. Murray, Adams and MacKay (2010).

    A new θ' = θ cos a + ν sin a lies on the ellipse through θ and a draw ν of the prior. Angles are drawn from a
    bracket that shrinks towards 0 until log p(D|θ') lies above a random level below log p(D|θ).

    Args:
        warmup: steps before the draws that are kept.
        chains: independent chains.
    """

    warmup: int = 200
    chains: int = 4

    default_steps = 2000
    lockstep = False  # a step takes as many tries as it takes: chains run one after another

    @property
    def members(self) -> int:
        return self.chains

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        """Samplers infer what others learn as a point."""
        return inferring(model)

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return Phase("burn_in", self.warmup, "full"), Phase("sample", steps, "full", keeps_draws=True)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> SliceState:
        layout = Layout.of(variables.params, limit=2**31)
        return SliceState(layout.ravel(variables.params), variables.state, layout)

    def step(self, noise: jax.Array, model: Model, phase: Phase, state: SliceState, batch: Batch) -> tuple[Any, Info]:
        key_prior, key_level, key_angle, key_try = jax.random.split(noise, 4)
        layout, theta = state.layout, state.position
        nu = layout.ravel(model.sample_prior(key_prior, batch).params)

        def log_likelihood(position: jax.Array) -> jax.Array:
            rows, _ = model.log_likelihood(Variables(layout.unravel(position), state.network), batch)
            return batch.total(rows) / model.temperature

        level = log_likelihood(theta) + jnp.log(jax.random.uniform(key_level))
        first = jax.random.uniform(key_angle, maxval=2 * jnp.pi)

        def on_ellipse(angle: jax.Array) -> jax.Array:
            return theta * jnp.cos(angle) + nu * jnp.sin(angle)

        def below(carry: Any) -> jax.Array:
            return log_likelihood(on_ellipse(carry[1])) < level

        def shrink(carry: Any) -> Any:
            key, angle, low, high = carry
            low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
            key, use = jax.random.split(key)
            return key, jax.random.uniform(use, minval=low, maxval=high), low, high

        _, angle, _, _ = jax.lax.while_loop(below, shrink, (key_try, first, first - 2 * jnp.pi, first))
        position = on_ellipse(angle)
        info = Info({"log_likelihood": log_likelihood(position)}, layout.unravel(position))
        return SliceState(position, state.network, layout), info

    def point(self, model: Model, state: SliceState) -> Variables:
        return Variables(state.layout.unravel(state.position), state.network)

    def posterior(self, model: Model, state: SliceState, draws: Any) -> Samples:
        return Samples(draws, state.network)


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2)).astype("float32")
    y = 0.3 + x @ np.array([1.0, -0.5]) + 0.5 * rng.normal(size=64)
    model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.gaussian(noise=0.5))
    fit = credo.fit(jax.random.key(0), model, (x, y), EllipticalSlice())
    design = np.column_stack([np.ones(64), x])
    covariance = np.linalg.inv(design.T @ design / 0.25 + np.eye(3))
    layer = fit.posterior.params["network"]["output"]
    draws = np.concatenate([layer["bias"], np.asarray(layer["kernel"])[..., 0, :]], -1).reshape(-1, 3)
    print("means", draws.mean(0), "exact", covariance @ design.T @ y / 0.25)
    print("stds ", draws.std(0), "exact", np.sqrt(np.diag(covariance)))
    print(fit.summary())


if __name__ == "__main__":
    main()
