"""The compiled loop of an attack: steps uphill in the loss, each back into the ball and the box."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from credo.applications.detection.centre import fewer
from credo.core import mixture
from credo.core.model import Model


@partial(jax.jit, static_argnames=("num", "fresh"))
def predictive_loss(
    key: jax.Array, posterior: Any, model: Model, x: jax.Array, classes: jax.Array, num: int | None, fresh: bool = False
) -> jax.Array:
    """−log Σ_k w_k p(y | x, θ_k) of every row [n], with draws θ_k of the posterior.

    Example:
        >>> import jax, credo, numpy as np
        >>> x = np.linspace(-1, 1, 20, dtype="float32")[:, None]
        >>> y = (x[:, 0] > 0).astype(int)
        >>> model = credo.Model(credo.networks.mlp([]), credo.priors.normal(1.0), credo.likelihoods.bernoulli())
        >>> fit = credo.fit(jax.random.key(0), model, (x, y), "map", steps=50)
        >>> loss = credo.applications.detection.predictive_loss(jax.random.key(1), fit.posterior, fit.model, x, y, None)
        >>> bool(loss[0] < loss[9])
        True
    """
    if fresh:
        posterior = fewer(key, posterior, num)
    draws = mixture.flatten(posterior.outputs(key, model, x, num))
    return -mixture.log_prob(model.likelihood, draws, classes)


@partial(jax.jit, static_argnames=("steps", "num", "norm", "fresh", "best"))
def climb(
    keys: tuple[jax.Array, jax.Array], posterior: Any, model: Model, x: jax.Array, classes: jax.Array,
    numbers: tuple[jax.Array, ...], *, steps: int, num: int | None, norm: str, fresh: bool, best: bool,
) -> jax.Array:  # fmt: skip
    """x' after `steps` steps; `numbers` are ε, the step's size, that of the random start, the box, and the sign of the
    loss (−1 where the classes are to be reached rather than left). With `best`, the point of largest loss on the way.
    """
    epsilon, size, start, low, high, sign = numbers
    key_draws, key_start = keys

    def loss(moved: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        each = sign * predictive_loss(key, posterior, model, moved, classes, num, fresh)
        return each.sum(), each

    def inside(delta: jax.Array) -> jax.Array:
        # The inputs lie in the box, so clipping to it afterwards can only make δ smaller.
        return jnp.clip(x + into_ball(delta, epsilon, norm), low, high)

    def better(top: tuple[jax.Array, jax.Array], moved: jax.Array, each: jax.Array) -> tuple[jax.Array, jax.Array]:
        more = each > top[1]
        return jnp.where(_wide(more, x), moved, top[0]), jnp.where(more, each, top[1])

    def step(carry: tuple[jax.Array, Any], index: jax.Array) -> tuple[tuple[jax.Array, Any], None]:
        moved, top = carry
        key = jax.random.fold_in(key_draws, index) if fresh else key_draws
        (_, each), uphill = jax.value_and_grad(loss, has_aux=True)(moved, key)
        top = better(top, moved, each) if best else top
        return (inside(moved - x + size * direction(uphill, norm)), top), None

    begin = inside(random_start(key_start, x, start, norm))
    top: Any = (x, loss(x, key_draws)[1]) if best else None
    (moved, top), _ = jax.lax.scan(step, (begin, top), jnp.arange(steps))
    return better(top, moved, loss(moved, key_draws)[1])[0] if best else moved


@partial(jax.jit, static_argnames="norm")
def noise(key: jax.Array, x: jax.Array, epsilon: jax.Array, low: jax.Array, high: jax.Array, norm: str) -> jax.Array:
    """x + δ with a random δ of the size of an attack: random signs, or a direction on the sphere; in the box."""
    delta = jax.random.normal(key, x.shape, jnp.float32)
    return jnp.clip(x + epsilon * direction(delta, norm), low, high)


def direction(gradient: jax.Array, norm: str) -> jax.Array:
    """The step of length 1 along which a linear function rises most: sign(g) for L∞, g/‖g‖ for L2; 0 where g is."""
    if norm == "linf":
        return jnp.sign(gradient)
    # Gradients of sure predictions are so small that their squares vanish; scaled first they do not.
    top = jnp.abs(gradient).max(tuple(range(1, gradient.ndim)), keepdims=True)
    scaled = gradient / jnp.where(top > 0, top, 1.0)
    length = _length(scaled)
    return scaled / jnp.where(length > 0, length, 1.0)


def into_ball(delta: jax.Array, epsilon: jax.Array, norm: str) -> jax.Array:
    """The nearest δ with ‖δ‖ ≤ ε."""
    if norm == "linf":
        return jnp.clip(delta, -epsilon, epsilon)
    length = _length(delta)
    return delta * jnp.where(length > epsilon, epsilon / jnp.where(length > 0, length, 1.0), 1.0)


def random_start(key: jax.Array, x: jax.Array, size: jax.Array, norm: str) -> jax.Array:
    """δ uniform in the ball of this size."""
    if norm == "linf":
        return jax.random.uniform(key, x.shape, jnp.float32, -1.0, 1.0) * size
    key_way, key_length = jax.random.split(key)
    way = direction(jax.random.normal(key_way, x.shape, jnp.float32), norm)
    share = jax.random.uniform(key_length, x.shape[:1]) ** (1.0 / max(1, x[0].size))
    return way * size * _wide(share, x)


def _length(values: jax.Array) -> jax.Array:
    return jnp.sqrt((values**2).sum(tuple(range(1, values.ndim)), keepdims=True))


def _wide(values: jax.Array, x: jax.Array) -> jax.Array:
    """[n] as [n, 1, …], to go with x."""
    return values.reshape(-1, *[1] * (x.ndim - 1))
