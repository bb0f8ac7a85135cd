"""What the samplers of shallow networks need of a prior: normal coefficients, and densities of single nodes."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.model import Model
from credo.core.nodes import Nodes
from credo.core.tree import path_string, paths
from credo.core.typing import PyTree
from credo.errors import Refusal
from credo.methods.shallow.marginal import Coefficients
from credo.priors.by_path import Pieces
from credo.priors.elementwise import ElementDensity, Elementwise
from credo.priors.node_hierarchy import BoundNodes


class PriorView:
    """The prior of one network given its hyper-parameters.

    Attributes:
        coefficients: mean and precision of the coefficients.
    """

    def __init__(self, model: Model, nodes: Nodes, gamma: jax.Array, coefs: jax.Array, hyper: PyTree) -> None:
        self._nodes, self._coefs = nodes, coefs
        params = nodes.join(gamma, coefs)
        self.bound: Any = model.prior.bind(model.network.info(params), hyper)
        moments = {path: self._normal(path) for path in paths(params)}
        bad = [p for p, m in moments.items() if m is None and not self._is_hidden(p)]
        if bad:
            raise Refusal(
                f"The coefficients of the nodes are integrated out, which has a closed form under a normal prior only; "
                f"that of '{bad[0]}' is not normal."
            )
        joined = [p for p in moments if not isinstance(self.bound, BoundNodes) and _density(self.bound, p) is None]
        if joined:
            raise Refusal(
                "Nodes move one at a time, and some moves propose a draw of their prior, so it must be a product over "
                f"weights; under the prior of '{joined[0]}' weights depend on each other."
            )
        mean, std = (self._tree(params, moments, i) for i in (0, 1))
        self.coefficients = Coefficients(nodes.split(mean)[1], nodes.split(std)[1] ** -2.0)
        gaussian = all(moments[p] is not None for p in moments if self._is_hidden(p))
        self._moments = (nodes.split(mean)[0], nodes.split(std)[0]) if gaussian and nodes.num else None

    def _is_hidden(self, path: str) -> bool:
        return path.partition("/")[0] == self._nodes.hidden

    def _normal(self, path: str) -> tuple[Any, Any] | None:
        if isinstance(self.bound, BoundNodes):
            return self.bound.normal(path)
        density = _density(self.bound, path)
        return None if density is None else density.gaussian

    def _tree(self, params: PyTree, moments: dict[str, Any], which: int) -> PyTree:
        def fill(path: Any, x: jax.Array) -> jax.Array:
            pair = moments[path_string(path)]
            return jnp.broadcast_to(jnp.asarray(1.0 if pair is None else pair[which], x.dtype), x.shape)

        return jax.tree_util.tree_map_with_path(fill, params)

    def log_node(self, gamma: jax.Array, j: jax.Array, node: jax.Array) -> jax.Array:
        """log p(γ_j) of node j, up to a constant."""
        if isinstance(self.bound, BoundNodes):
            return self.bound.log_nodes(node[None])[0]
        if self._moments is not None:
            mean, std = (x[j] for x in self._moments)
            return -0.5 * (((node - mean) / std) ** 2).sum()
        return self.bound.log_prob(self._nodes.join(gamma.at[j].set(node), self._coefs))

    def spare(self, key: jax.Array, num: int) -> jax.Array | None:
        """Draws of all nodes [num, nodes, 1 + inputs] where `fresh` cannot make them from normals.

        A candidate is for one move only: proposed again after a move that saw it, it would be no draw of the prior.
        """
        if isinstance(self.bound, BoundNodes) or self._moments is not None:
            return None
        key_spare = jax.random.fold_in(key, 0)  # other numbers give the keys of other draws
        return jax.vmap(lambda p: self._nodes.split(p)[0])(self.bound.sample(key_spare, num))

    def fresh_nodes(self, normals: jax.Array, key: jax.Array) -> jax.Array:
        """Draws of every node from its prior, from standard normals of their shape [num, nodes, 1 + inputs]."""
        index, spare = jnp.arange(normals.shape[1]), self.spare(key, normals.shape[0])
        if spare is not None:
            return spare
        return jax.vmap(lambda z: jax.vmap(lambda j, e: self.fresh(j, e, None))(index, z))(normals)

    def fresh(self, j: jax.Array, normals: jax.Array, spare: jax.Array | None) -> jax.Array:
        """A draw of γ_j from its prior, from standard normals [1 + inputs] or from one of `spare`."""
        if isinstance(self.bound, BoundNodes):
            return self.bound.draw_nodes(normals[None])[0]
        if self._moments is not None:
            mean, std = (x[j] for x in self._moments)
            return mean + std * normals
        assert spare is not None
        return spare[j]

    def given_others(self, gamma: jax.Array, k: jax.Array, normals: jax.Array) -> jax.Array:
        """Draws of the k-th weight of every node [nodes] given its other weights; as they are where the prior is not
        normal."""
        if isinstance(self.bound, BoundNodes):
            precision = self.bound.root @ self.bound.root.T
            diagonal = precision[k, k]
            pull = (gamma - self.bound.mean) @ precision[k] - diagonal * (gamma[:, k] - self.bound.mean[k])
            return self.bound.mean[k] - pull / diagonal + normals / jnp.sqrt(diagonal)
        if self._moments is None:
            return gamma[:, k]
        mean, std = self._moments
        return mean[:, k] + std[:, k] * normals

    def spread(self, j: jax.Array, normals: jax.Array) -> jax.Array:
        """S^½ z for the prior's covariance S of a node; z itself where the prior is not normal."""
        if self._moments is None and not isinstance(self.bound, BoundNodes):
            return normals
        return self.fresh(j, normals, None) - self.fresh(j, jnp.zeros_like(normals), None)


def _density(bound: Any, path: str) -> ElementDensity | None:
    """The density of the entries of one array, where the prior is a product of such."""
    if isinstance(bound, Pieces):
        return _density(bound.parts[bound.owners[bound.names.index(path)]], path)
    if not isinstance(bound, Elementwise):
        return None
    leaves = jax.tree_util.tree_flatten_with_path(bound.densities, is_leaf=lambda x: isinstance(x, ElementDensity))[0]
    return {path_string(at): density for at, density in leaves}.get(path)
