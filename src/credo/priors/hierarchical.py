"""Normal priors whose scale is itself unknown."""

import jax
import jax.numpy as jnp

from credo.core.network import ParamInfo, is_info
from credo.core.tree import leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError
from credo.priors.elementwise import Elementwise
from credo.priors.normal import NormalDensity
from credo.priors.scales import HalfNormal, ScalePrior

GROUPS = ("global", "layer", "array")


@struct
class Hierarchical:
    """θ_i | s ~ N(0, s_g²) for the weights of group g, s_g ~ `hyper`, independent over groups.

    Hyper-parameters are `{"log_scale": {group: log s}}`.
    """

    hyper: ScalePrior = leaf()
    per: str = "layer"

    def _groups(self, info: PyTree) -> list[str]:
        if info is None:
            if self.per == "global":
                return ["all"]
            raise InputError(f"Scales per {self.per} are known once the network is: give `init` the network's info.")
        return list(dict.fromkeys(self._group(i) for i in jax.tree.leaves(info, is_leaf=is_info)))

    def _group(self, info: ParamInfo) -> str:
        if self.per == "global":
            return "all"
        return info.path if self.per == "array" else info.path.rpartition("/")[0] or info.path

    def init(self, info: PyTree = None) -> PyTree:
        """Every scale in the middle of its prior."""
        return {"log_scale": {g: jnp.asarray(self.hyper.start, jnp.float32) for g in self._groups(info)}}

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """Independent draws of log s."""
        groups = self._groups(info)
        return {"log_scale": {g: self.hyper.sample(k) for g, k in zip(groups, jax.random.split(key, len(groups)))}}

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """Σ_g log p(log s_g)."""
        return sum((self.hyper.log_prob(u) for u in params["log_scale"].values()), jnp.zeros(()))

    def bind(self, info: PyTree, params: PyTree) -> Elementwise:
        """Normals with the groups' scales."""
        infos, treedef = jax.tree.flatten(info, is_leaf=is_info)
        scales = params["log_scale"]
        densities = [NormalDensity(0.0, jnp.exp(scales[self._group(i)])) for i in infos]
        return Elementwise(jax.tree.unflatten(treedef, densities), tuple(i.shape for i in infos))


def hierarchical(hyper: ScalePrior | None = None, per: str = "layer") -> Hierarchical:
    """Normal prior N(0, s²) with s unknown: how large weights are is learned from the data, group by group.

    s joins the other parameters in its logarithm: samplers draw it, variational methods include it in q. Methods that
    optimise maximise it together with the weights, p(θ, log s) ∝ s^{−P} exp(−‖θ‖²/2s²) p(log s), and that grows without
    bound towards θ = 0, s = 0 unless p(s) vanishes fast there: for MAP take `inverse_gamma` or `log_normal`, which do.
    Reference: R. M. Neal, Bayesian Learning for Neural Networks, 1996.

    Args:
        hyper: the prior of s: `half_normal(1.0)` (where None), `half_cauchy`, `inverse_gamma` (of s²) or `log_normal`.
        per: one scale for "global" (all), each "layer" (a kernel and its bias) or each "array".

    Example:
        >>> import credo
        >>> credo.priors.hierarchical(credo.priors.inverse_gamma(2.0, 1.0), per="global").init()["log_scale"].keys()
        dict_keys(['all'])
    """
    if per not in GROUPS:
        raise InputError(f"per must be one of {', '.join(GROUPS)}, got {per!r}.")
    if hyper is not None and not isinstance(hyper, ScalePrior):
        raise InputError(f"hierarchical expects a prior of scales such as half_normal(1.0), got {hyper!r}.")
    return Hierarchical(HalfNormal(1.0) if hyper is None else hyper, per)
