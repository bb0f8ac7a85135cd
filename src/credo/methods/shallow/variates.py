"""The randomness of a sweep: all standard normals and uniforms in one draw of each, gammas made of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.gamma import TRIES, log_gamma_from


class VariateShapes(NamedTuple):
    """Names with shapes of normals and uniforms, and names with the parameters of gammas.

    One call for each kind: a program with a dozen small draws takes seconds to compile.
    """

    normals: Mapping[str, tuple[int, ...]] = {}
    uniforms: Mapping[str, tuple[int, ...]] = {}
    gammas: Mapping[str, jax.Array] = {}

    def __or__(self, other: "VariateShapes") -> "VariateShapes":
        return VariateShapes(
            {**self.normals, **other.normals}, {**self.uniforms, **other.uniforms}, {**self.gammas, **other.gammas}
        )


def draw_all(key: jax.Array, requested: VariateShapes) -> dict[str, jax.Array]:
    """Every variate by its name: N(0, 1), log U(0, 1), and Gamma(a, 1)."""
    key_normal, key_uniform = jax.random.split(key)
    shapes = {name: jnp.shape(a) for name, a in requested.gammas.items()}
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    normals = _cut(lambda n: jax.random.normal(key_normal, (n,)), {**requested.normals, " gammas": (TRIES, size)})
    tiny = jnp.finfo(jnp.result_type(float)).tiny
    uniforms = _cut(
        lambda n: jnp.log(jax.random.uniform(key_uniform, (n,), minval=tiny)),
        {**requested.uniforms, " gammas": (TRIES + 1, size)},
    )
    gamma_parts = (normals.pop(" gammas"), uniforms.pop(" gammas"))
    variates = normals | uniforms
    if shapes:
        flat = jnp.concatenate([jnp.ravel(jnp.asarray(a, float)) for a in requested.gammas.values()])
        variates |= _cut(lambda n: jnp.exp(log_gamma_from(*gamma_parts, flat)), shapes)
    return variates


def _cut(draw: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, jax.Array]:
    """One flat draw in pieces of these shapes."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    if not sum(sizes):
        return {name: jnp.zeros(shape) for name, shape in shapes.items()}
    parts = jnp.split(draw(sum(sizes)), np.cumsum(sizes)[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts)}
