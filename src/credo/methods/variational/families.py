"""The families of q: how a draw is made from noise, its entropy, its density and its marginal moments.

A family works on the random parameters as `Layout` lays them out (one vector where small), and on its own parameters, a
dict that always has "mean". Scales are logarithms and factors are relative to them, so that one learning rate fits all.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credo.core.model import Model
from credo.core.network import is_info
from credo.core.tree import Layout, by_paths, path_string, size
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.variational.state import normals
from credo.posteriors import LowRank, MatrixNormal, MeanField, Multivariate
from credo.posteriors.kronecker import matrix_draw, matrix_log_det, matrix_log_prob
from credo.posteriors.low_rank import gram, low_rank_draw, low_rank_log_prob
from credo.posteriors.multivariate import cholesky_log_prob

FAMILIES = ("mean_field", "low_rank", "full", "kronecker", "mixture")
MOST_FULL = 5000  # numbers of θ under a full covariance, and of the longer side of a kernel's factors
ENTROPY = 0.5 * float(np.log(2 * np.pi * np.e))  # of N(0, 1)


def _map(function: Any, *trees: PyTree) -> PyTree:
    return jax.tree.map(function, *trees)


def _total(tree: PyTree) -> jax.Array:
    return sum((x.sum() for x in jax.tree.leaves(tree)), jnp.zeros(()))


@dataclasses.dataclass(frozen=True)
class MeanFieldFamily:
    """q(θ) = Π_i N(m_i, s_i²)."""

    random: Layout

    components = 1

    def init(self, key: jax.Array, means: list[PyTree], std: Any) -> dict[str, Any]:
        """Parameters of q around the first of `means`, with standard deviation `std` for every number."""
        return {"log_std": _map(lambda m: jnp.full_like(m, jnp.log(std)), means[0]), "mean": means[0]}

    def centres(self, q: dict[str, Any]) -> PyTree:
        """The means of the components [component, …]."""
        return _map(lambda m: m[None], q["mean"])

    def noise(self, key: jax.Array, q: dict[str, Any], num: int) -> PyTree:
        """The noise of `num` draws, symmetric around 0; only shapes of q are used."""
        return normals(key, q["mean"], num)

    def draws(self, q: dict[str, Any], eps: PyTree) -> PyTree:
        """θ for every draw and component [draw × component, …]."""
        std = _map(jnp.exp, q["log_std"])
        return _map(lambda m, s, e: m + s * e, q["mean"], std, eps)

    def entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        """H[q]."""
        return sum(((x + ENTROPY).sum() for x in jax.tree.leaves(q["log_std"])), jnp.zeros(()))

    def path_entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        """The same bound of H[q] from its draws, −E[log q(θ)] with q fixed, so that the gradient is along θ alone."""
        fixed = jax.lax.stop_gradient(q)
        return -jax.vmap(lambda theta: self.log_prob(fixed, theta))(draws).mean()

    def moments(self, q: dict[str, Any]) -> tuple[PyTree, PyTree]:
        """Means and variances of the marginals."""
        return q["mean"], _map(lambda r: jnp.exp(2 * r), q["log_std"])

    def log_prob(self, q: dict[str, Any], theta: PyTree) -> jax.Array:
        """log q(θ)."""
        density = lambda x, m, r: jax.scipy.stats.norm.logpdf((x - m) * jnp.exp(-r)) - r  # noqa: E731
        return _total(_map(density, theta, q["mean"], q["log_std"]))

    def parts(self, posterior: Any) -> dict[str, Any]:
        """Parameters of q from a posterior of this family (without its member axis), the inverse of `posterior`."""
        self._check(posterior, MeanField)
        return {"log_std": self.random.ravel(_map(jnp.log, posterior.std)), "mean": self.random.ravel(posterior.mean)}

    def _check(self, posterior: Any, kind: type) -> None:
        if type(posterior) is not kind:
            raise InputError(
                f"A fit of this family starts at a {kind.__name__} posterior, got {type(posterior).__name__}: give "
                "start=fit, to start at its point alone."
            )

    def posterior(self, q: dict[str, Any], network: PyTree) -> Any:
        """The posterior; everything has the member axis in front."""
        unravel = jax.vmap(self.random.unravel)
        return MeanField(unravel(q["mean"]), unravel(_map(jnp.exp, q["log_std"])), q["points"], network)


@dataclasses.dataclass(frozen=True)
class LowRankFamily(MeanFieldFamily):
    """q(θ) = N(m, S(I + WW')S) with W of `rank` columns."""

    rank: int = 5

    def init(self, key: jax.Array, means: list[PyTree], std: Any) -> dict[str, Any]:
        # At W = 0 the gradient of W vanishes: start at a small random W.
        like = _map(lambda m: jnp.zeros((*m.shape, self.rank), m.dtype), means[0])
        factor = _map(lambda w: 0.1 / self.rank**0.5 * w[0], normals(key, like, 1))
        log_std = _map(lambda w: jnp.log(std) - 0.5 * jnp.log1p((w**2).sum(-1)), factor)
        return {"factor": factor, "log_std": log_std, "mean": means[0]}

    def noise(self, key: jax.Array, q: dict[str, Any], num: int) -> PyTree:
        key_each, key_common = jax.random.split(key)
        dtype = jax.tree.leaves(q["mean"])[0].dtype
        return normals(key_each, q["mean"], num), jax.random.normal(key_common, (num, self.rank), dtype)

    def draws(self, q: dict[str, Any], eps: PyTree) -> PyTree:
        std = _map(jnp.exp, q["log_std"])
        return jax.vmap(lambda e, c: low_rank_draw(q["mean"], std, q["factor"], e, c))(*eps)

    def entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        return super().entropy(q, draws) + 0.5 * jnp.linalg.slogdet(gram(q["factor"]))[1]

    def moments(self, q: dict[str, Any]) -> tuple[PyTree, PyTree]:
        wide = _map(lambda r, w: jnp.exp(2 * r) * (1 + (w**2).sum(-1)), q["log_std"], q["factor"])
        return q["mean"], wide

    def log_prob(self, q: dict[str, Any], theta: PyTree) -> jax.Array:
        return low_rank_log_prob(q["mean"], _map(jnp.exp, q["log_std"]), q["factor"], theta)

    def parts(self, posterior: Any) -> dict[str, Any]:
        self._check(posterior, LowRank)
        rank = jax.tree.leaves(posterior.factor)[0].shape[-1]
        if rank != self.rank:
            raise InputError(f"The posterior to start from has rank {rank}, the family {self.rank}; they must agree.")
        factor = jax.vmap(self.random.ravel, -1, -1)(posterior.factor) if self.random.flat else posterior.factor
        log_std = self.random.ravel(_map(jnp.log, posterior.std))
        return {"factor": factor, "log_std": log_std, "mean": self.random.ravel(posterior.mean)}

    def posterior(self, q: dict[str, Any], network: PyTree) -> Any:
        unravel = jax.vmap(self.random.unravel)
        factor = jax.vmap(jax.vmap(self.random.unravel, -1, -1))(q["factor"]) if self.random.flat else q["factor"]
        return LowRank(unravel(q["mean"]), unravel(_map(jnp.exp, q["log_std"])), factor, q["points"], network)


def triangular(log_scale: jax.Array, below: jax.Array) -> jax.Array:
    """diag(e^d)(I + strictly lower part): a Cholesky factor whose log determinant is Σ d."""
    unit = jnp.tril(below, -1) + jnp.eye(len(log_scale), dtype=below.dtype)
    return jnp.exp(log_scale)[:, None] * unit


def untriangular(factor: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The arguments of `triangular`, from its result."""
    scale = jnp.diagonal(factor)
    return jnp.log(scale), jnp.tril(factor / scale[:, None], -1)


@dataclasses.dataclass(frozen=True)
class FullFamily(MeanFieldFamily):
    """q(θ) = N(m, LL') with L lower triangular."""

    def init(self, key: jax.Array, means: list[PyTree], std: Any) -> dict[str, Any]:
        zeros = jnp.zeros((len(means[0]), len(means[0])), means[0].dtype)
        return {"below": zeros, **super().init(key, means, std)}

    def draws(self, q: dict[str, Any], eps: PyTree) -> PyTree:
        return q["mean"] + eps @ triangular(q["log_std"], q["below"]).T

    def moments(self, q: dict[str, Any]) -> tuple[PyTree, PyTree]:
        return q["mean"], (triangular(q["log_std"], q["below"]) ** 2).sum(1)

    def log_prob(self, q: dict[str, Any], theta: PyTree) -> jax.Array:
        return cholesky_log_prob(q["mean"], triangular(q["log_std"], q["below"]), theta)

    def parts(self, posterior: Any) -> dict[str, Any]:
        self._check(posterior, Multivariate)
        log_std, below = untriangular(posterior.factor)
        return {"below": below, "log_std": log_std, "mean": self.random.ravel(posterior.mean)}

    def posterior(self, q: dict[str, Any], network: PyTree) -> Any:
        factor = jax.vmap(triangular)(q["log_std"], q["below"])
        return Multivariate(jax.vmap(self.random.unravel)(q["mean"]), factor, q["points"], network)


@dataclasses.dataclass(frozen=True)
class KroneckerFamily(MeanFieldFamily):
    """Matrix normal for the arrays at `kernels` ((path, rows, columns)), mean field for all others."""

    kernels: tuple[tuple[str, int, int], ...] = ()

    def init(self, key: jax.Array, means: list[PyTree], std: Any) -> dict[str, Any]:
        dtype = jax.tree.leaves(means[0])[0].dtype
        half = 0.5 * jnp.log(jnp.asarray(std, dtype))  # each of the two factors brings √s

        def start(n: int) -> tuple[jax.Array, jax.Array]:
            return jnp.full(n, half, dtype), jnp.zeros((n, n), dtype)

        names = {name for name, *_ in self.kernels}
        rest = {path: x for path, x in by_paths(self.random.unravel(means[0])).items() if path not in names}
        return {
            "columns": {name: start(n) for name, _, n in self.kernels},
            "log_std": _map(lambda x: jnp.full_like(x, 2 * half), rest),
            "mean": means[0],
            "rows": {name: start(m) for name, m, _ in self.kernels},
        }

    def _parts(self, q: dict[str, Any]) -> tuple[PyTree, dict, dict, dict]:
        factors = ({name: triangular(*x) for name, x in q[side].items()} for side in ("rows", "columns"))
        return self.random.unravel(q["mean"]), *factors, _map(jnp.exp, q["log_std"])

    def draws(self, q: dict[str, Any], eps: PyTree) -> PyTree:
        parts = self._parts(q)
        return jax.vmap(lambda e: self.random.ravel(matrix_draw(*parts, self.random.unravel(e))))(eps)

    def entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        _, rows, columns, _ = self._parts(q)
        kernels = sum((matrix_log_det(rows[name], columns[name]) for name in rows), jnp.zeros(()))
        return kernels + _total(q["log_std"]) + ENTROPY * size(q["mean"])

    def moments(self, q: dict[str, Any]) -> tuple[PyTree, PyTree]:
        mean, rows, columns, std = self._parts(q)

        def variance(path: Any, m: jax.Array) -> jax.Array:
            name = path_string(path)
            if name not in rows:
                return std[name] ** 2
            return jnp.outer((rows[name] ** 2).sum(1), (columns[name] ** 2).sum(1)).reshape(m.shape)

        return q["mean"], self.random.ravel(jax.tree_util.tree_map_with_path(variance, mean))

    def log_prob(self, q: dict[str, Any], theta: PyTree) -> jax.Array:
        return matrix_log_prob(*self._parts(q), self.random.unravel(theta))

    def parts(self, posterior: Any) -> dict[str, Any]:
        self._check(posterior, MatrixNormal)
        return {
            "columns": {name: untriangular(x) for name, x in posterior.columns.items()},
            "log_std": _map(jnp.log, dict(posterior.std)),
            "mean": self.random.ravel(posterior.mean),
            "rows": {name: untriangular(x) for name, x in posterior.rows.items()},
        }

    def posterior(self, q: dict[str, Any], network: PyTree) -> Any:
        return MatrixNormal(*jax.vmap(self._parts)({k: v for k, v in q.items() if k != "points"}), q["points"], network)


@dataclasses.dataclass(frozen=True)
class MixtureFamily(MeanFieldFamily):
    """q(θ) = (1/S) Σ_s Π_i N(m_si, s_si²); parameters have a leading axis of S components.

    bound "averaged": H is the mean entropy of the components, a lower bound of H[q] by Jensen's inequality, under which
    they are independent. "joint": H[q] itself, −E_q[log q] estimated from the draws.
    """

    count: int = 3
    bound: str = "averaged"

    @property
    def components(self) -> int:  # type: ignore[override]
        """S."""
        return self.count

    def init(self, key: jax.Array, means: list[PyTree], std: Any) -> dict[str, Any]:
        return super().init(key, [_map(lambda *m: jnp.stack(m), *means)], std)

    def centres(self, q: dict[str, Any]) -> PyTree:
        return q["mean"]

    def draws(self, q: dict[str, Any], eps: PyTree) -> PyTree:
        return _map(lambda x: x.reshape(-1, *x.shape[2:]), super().draws(q, eps))

    def entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        if self.bound == "averaged":
            return super().entropy(q, draws) / self.count
        return -jax.vmap(lambda theta: self.log_prob(q, theta))(draws).mean()

    def path_entropy(self, q: dict[str, Any], draws: PyTree) -> jax.Array:
        if self.bound == "joint":
            return super().path_entropy(q, draws)
        fixed = jax.lax.stop_gradient({k: q[k] for k in ("mean", "log_std")})
        by_component = _map(lambda x: x.reshape(-1, self.count, *x.shape[1:]), draws)  # each draw under its component
        log_prob = jax.vmap(super().log_prob)
        return -jax.vmap(lambda thetas: log_prob(fixed, thetas))(by_component).mean()

    def log_prob(self, q: dict[str, Any], theta: PyTree) -> jax.Array:
        log_probs = jax.vmap(super().log_prob, (0, None))({k: q[k] for k in ("mean", "log_std")}, theta)
        return jax.scipy.special.logsumexp(log_probs) - jnp.log(self.count)

    def parts(self, posterior: Any) -> dict[str, Any]:
        raise Refusal('A mixture does not start at a posterior; take family="mean_field", or start=fit for its point.')

    def posterior(self, q: dict[str, Any], network: PyTree) -> Any:
        """Components join the member axis; points and statistics are those of their member."""
        flat = {k: _map(lambda x: x.reshape(-1, *x.shape[2:]), q[k]) for k in ("mean", "log_std")}
        points, network = _map(lambda x: jnp.repeat(x, self.count, 0), (q["points"], network))
        return super().posterior(flat | {"points": points}, network)


def build_family(
    name: str, random: PyTree, model: Model, params: PyTree, rank: int, components: int, bound: str
) -> MeanFieldFamily:
    """The family of this name over the random parameters; refuses where it cannot be."""
    layout = Layout.of(random)
    if name == "mean_field":
        return MeanFieldFamily(layout)
    if name == "low_rank":
        return LowRankFamily(layout, min(rank, size(random)))
    if name == "mixture":
        return MixtureFamily(layout, components, bound)
    if name == "kronecker":
        return KroneckerFamily(layout, _kernels(model, params, random))
    if size(random) > MOST_FULL:
        raise Refusal(
            f"A full covariance of {size(random):,} parameters is too large (at most {MOST_FULL:,}): use "
            'family="low_rank" or "kronecker", or credo.subset on the last layer.'
        )
    return FullFamily(layout)


def check_family(name: str, rank: int, components: int, bound: str) -> None:
    """Raise a sentence where options of a family make no sense."""
    if name not in FAMILIES:
        raise InputError(f"Unknown family {name!r}; choose one of {', '.join(FAMILIES)}.")
    if rank < 1 or components < 1:
        raise InputError(f"rank and components must be at least 1, got {rank} and {components}.")
    if bound not in ("averaged", "joint"):
        raise InputError(f'bound must be "averaged" or "joint", got {bound!r}.')


def _kernels(model: Model, params: PyTree, random: PyTree) -> tuple[tuple[str, int, int], ...]:
    """(path, rows, columns) of every random array that is a matrix of weights; convolutions are read as matrices."""
    infos = jax.tree.leaves(model.network.info(model.complete(params)["network"]), is_leaf=is_info)
    kinds = {f"network/{i.path}": i for i in infos if i.kind in ("kernel", "other")}
    matrices = []
    for path, x in by_paths(random).items():
        info = kinds.get(path)
        if info is None or x.ndim < 2:
            continue
        # Layers keep outputs first or last; the output side stays whole.
        rows = x.shape[0] if info.input_axis == 1 else x.size // x.shape[-1]
        sides = (rows, x.size // rows)
        matrices.append((path, *sides))
    large = [f"'{path.removeprefix('network/')}' is {a:,} × {b:,}" for path, a, b in matrices if max(a, b) > MOST_FULL]
    if large:
        raise Refusal(
            f'Kronecker factors have at most {MOST_FULL:,} rows, and {", ".join(large)}: use family="low_rank".'
        )
    return tuple(matrices)
