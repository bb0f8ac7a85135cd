"""Different priors for different parameters, chosen by globs on their paths."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from credo.core.capabilities import GaussianDistribution, PartialPrior, ask, capability
from credo.core.distribution import ParamDistribution, Prior
from credo.core.network import is_info
from credo.core.tree import leaf, matches, struct
from credo.core.typing import PyTree
from credo.errors import InputError


def first_match(path: str, globs: tuple[str, ...], name: str) -> int:
    """Index of the first glob that matches the path."""
    for i, glob in enumerate(globs):
        if matches(path, glob):
            return i
    listed = ", ".join(f'"{glob}"' for glob in globs)
    raise InputError(f"No glob of {name} ({listed}) matches '{path}'; add one, for example \"*\" as the last.")


@struct
class ByPath:
    """p(θ) = Π_k p_k(θ_k), where θ_k are the parameters that `globs[k]` is the first to match."""

    globs: tuple[str, ...]
    priors: tuple[Prior, ...] = leaf()

    def init(self, info: PyTree = None) -> PyTree:
        """Hyper-parameters of the priors that have some, by the index of their glob."""
        if info is None:
            return _by_part([prior.init() for prior in self.priors])
        return _by_part([prior.init(infos) for prior, infos in zip(self.priors, self._infos_by_prior(info))])

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """Hyper-parameters of each part, drawn from its prior."""
        keys = jax.random.split(key, len(self.priors))
        return _by_part(
            [prior.sample_hyper(k, infos) for prior, k, infos in zip(self.priors, keys, self._infos_by_prior(info))]
        )

    def _infos_by_prior(self, info: PyTree) -> list[dict[str, Any]]:
        """For each prior, the parameters that its glob is the first to match, by path."""
        infos = jax.tree.leaves(info, is_leaf=is_info)
        owners = [first_match(i.path, self.globs, "by_path") for i in infos]
        return [{i.path: i for i, owner in zip(infos, owners) if owner == k} for k in range(len(self.priors))]

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """Sum over the parts."""
        log_densities = [p.log_hyperprior(params.get(f"part_{k}", {})) for k, p in enumerate(self.priors)]
        return sum(log_densities, jnp.zeros(()))

    def bind(self, info: PyTree, params: PyTree) -> "Pieces":
        """Each prior bound to its parameters."""
        infos, treedef = jax.tree.flatten(info, is_leaf=is_info)
        owners = tuple(first_match(i.path, self.globs, "by_path") for i in infos)
        names = tuple(i.path for i in infos)
        parts = []
        for k, (prior, part) in enumerate(zip(self.priors, self._infos_by_prior(info))):
            partial = capability(prior, PartialPrior)
            bind = prior.bind if partial is None else partial.bind_part
            parts.append(bind(part, params.get(f"part_{k}", {})))
        return Pieces(tuple(parts), treedef, names, owners)


def _by_part(trees: list[PyTree]) -> PyTree:
    return {f"part_{k}": params for k, params in enumerate(trees) if jax.tree.leaves(params)}


@struct
class Pieces:
    """Independent distributions over parts of one tree: `owners[i]` is the part that leaf i belongs to."""

    parts: tuple[ParamDistribution, ...] = leaf()
    treedef: Any = None
    names: tuple[str, ...] = ()
    owners: tuple[int, ...] = ()

    def _join(self, trees: list[dict[str, Any]]) -> PyTree:
        return jax.tree.unflatten(self.treedef, [trees[k][name] for name, k in zip(self.names, self.owners)])

    def log_prob(self, params: PyTree) -> jax.Array:
        """Σ_k log p_k(θ_k)."""
        trees: list[dict[str, Any]] = [{} for _ in self.parts]
        for name, k, x in zip(self.names, self.owners, self.treedef.flatten_up_to(params)):
            trees[k][name] = x
        return sum((part.log_prob(tree) for part, tree in zip(self.parts, trees)), jnp.zeros(()))

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """`num` independent draws of the whole tree."""
        keys = jax.random.split(key, len(self.parts))
        return self._join([part.sample(k, num) for part, k in zip(self.parts, keys)])

    def gaussian(self) -> tuple[PyTree, PyTree] | None:
        """Trees of means and standard deviations when every part is normal, else None."""
        gaussians = [ask(part, GaussianDistribution).gaussian() for part in self.parts]
        pairs = [pair for pair in gaussians if pair is not None]
        if len(pairs) < len(gaussians):
            return None
        return self._join([pair[0] for pair in pairs]), self._join([pair[1] for pair in pairs])


def by_path(priors: Mapping[str, Prior]) -> ByPath:
    """Give parameters different priors: the first glob that matches a path decides.

    Args:
        priors: globs on paths such as `hidden_0/kernel`, in order, each with its prior; "*" for the rest.

    Example:
        >>> import credo
        >>> credo.priors.by_path({"*/bias": credo.priors.normal(0.1), "*": credo.priors.laplace(1.0)}).globs
        ('*/bias', '*')
    """
    if not priors:
        raise InputError('by_path needs at least one glob, for example {"*": normal(1.0)}.')
    for glob, prior in priors.items():
        if not isinstance(prior, Prior):
            raise InputError(f'by_path expects a prior for "{glob}", such as normal(1.0), got {prior!r}.')
    return ByPath(tuple(priors), tuple(priors.values()))
