"""The conjugate hierarchy over the nodes of a one-hidden-layer network."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from credo.core.gamma import log_gamma
from credo.core.network import is_info
from credo.core.tree import by_paths, leaf, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.priors.checks import positive
from credo.priors.scales import InverseGamma

LOG_2, LOG_2PI, LOG_PI = np.log(2.0), np.log(2 * np.pi), np.log(np.pi)


@struct
class NodeHierarchy:
    """β_j ~ N(μ_β, σ_β²), γ_j ~ N(μ_γ, S_γ), a ~ N(0, s_a² I), with conjugate hyper-priors; see `node_hierarchy`.

        μ_β ~ N(0, m_β²),   σ_β² ~ IG(shape, rate),   μ_γ ~ N(0, m_γ² I),   S_γ⁻¹ ~ Wishart(ν, V),  E S_γ = s_γ² I.

    Hyper-parameters are `{"output": {"mean": μ_β, "log_scale": log σ_β}, "hidden": {"mean": μ_γ, "root": …}}`, where
    the root is the lower triangle L of S_γ⁻¹ = LL', row by row, with the logarithms of its diagonal.
    """

    output_mean: Any = leaf(default=1.0)  # m_β
    output_scale: InverseGamma = leaf(default=None)
    hidden_mean: Any = leaf(default=1.0)  # m_γ
    hidden_scale: Any = leaf(default=3.0)  # s_γ
    freedom: Any = leaf(default=4.0)  # ν − (1 + inputs): beyond what a proper Wishart needs
    linear_scale: Any = leaf(default=1.0)  # s_a

    def degrees(self, dims: int) -> Any:
        """ν of the Wishart over matrices of this size."""
        return dims + self.freedom

    def inverse_scale(self, dims: int) -> jax.Array:
        """V⁻¹ = (ν − dims − 1) s_γ² I, so that S_γ has the mean s_γ² I."""
        return (self.freedom - 1.0) * self.hidden_scale**2 * jnp.eye(dims)

    def init(self, info: PyTree = None) -> PyTree:
        """Means 0, scales in the middle of their priors."""
        dims = self._dims(info)
        diagonal = np.cumsum(np.arange(1, dims + 1)) - 1
        root = jnp.zeros(dims * (dims + 1) // 2).at[diagonal].set(-jnp.log(self.hidden_scale))
        return {
            "output": {"mean": jnp.zeros(()), "log_scale": jnp.asarray(self.output_scale.start, jnp.float32)},
            "hidden": {"mean": jnp.zeros(dims), "root": root},
        }

    def sample_hyper(self, key: jax.Array, info: PyTree) -> PyTree:
        """Independent draws of (μ_β, σ_β) and (μ_γ, S_γ)."""
        dims = self._dims(info)
        keys = jax.random.split(key, 5)
        normals = jax.random.normal(keys[0], (dims, dims))
        halves = 0.5 * (self.degrees(dims) - jnp.arange(dims))
        squares = 2 * jnp.exp(log_gamma(keys[1], halves))
        root = wishart_root(self.inverse_scale(dims), normals, squares)
        return {
            "output": {
                "mean": self.output_mean * jax.random.normal(keys[2]),
                "log_scale": self.output_scale.sample(keys[3]),
            },
            "hidden": {"mean": self.hidden_mean * jax.random.normal(keys[4], (dims,)), "root": pack(root)},
        }

    def log_hyperprior(self, params: PyTree) -> jax.Array:
        """Log density of the hyper-parameters; that of L is Wishart's at LL' times ∂(LL')/∂L = 2^d Π_i L_ii^{d−i+1}."""
        output, hidden = params["output"], params["hidden"]
        dims = hidden["mean"].shape[0]
        normal = jax.scipy.stats.norm.logpdf
        total = normal(output["mean"], 0.0, self.output_mean) + self.output_scale.log_prob(output["log_scale"])
        total = total + normal(hidden["mean"], 0.0, self.hidden_mean).sum()
        root = unpack(hidden["root"], dims)
        nu, inverse = self.degrees(dims), self.inverse_scale(dims)
        log_diagonal = jnp.log(jnp.diagonal(root))
        # |V⁻¹| = c^d for the multiple of the identity that it is.
        log_scale = dims * jnp.log(inverse[0, 0])
        density = (
            (nu - dims - 1) * log_diagonal.sum() - 0.5 * inverse[0, 0] * (root**2).sum()
            + 0.5 * nu * log_scale - 0.5 * nu * dims * LOG_2 - _log_multigamma(0.5 * nu, dims)
        )  # fmt: skip
        powers = dims - jnp.arange(dims) + 1.0  # one more than above: the diagonal's logarithm is the parameter
        return total + density + dims * LOG_2 + (powers * log_diagonal).sum()

    def bind(self, info: PyTree, params: PyTree) -> "BoundNodes":
        """Normals over nodes, coefficients and the linear part."""
        dims = self._dims(info)
        shapes = tuple((i.path, i.shape) for i in jax.tree.leaves(info, is_leaf=is_info))
        hidden, output = params["hidden"], params["output"]
        return BoundNodes(
            hidden["mean"], unpack(hidden["root"], dims), output["mean"], jnp.exp(output["log_scale"]),
            jnp.asarray(self.linear_scale), shapes,
        )  # fmt: skip

    def bind_part(self, info: PyTree, params: PyTree) -> "BoundNodes":
        """The same for weights by path, beside others that have a prior of their own (under `by_path`)."""
        return dataclasses.replace(self.bind(info, params), by_path=True)

    def _dims(self, info: PyTree) -> int:
        if info is None:
            raise InputError("This prior knows its size once the network is known: give `init` the network's info.")
        shapes = {i.path: i.shape for i in jax.tree.leaves(info, is_leaf=is_info)}
        if "hidden/kernel" not in shapes or not set(shapes) <= PATHS:
            raise Refusal(
                "node_hierarchy is a prior over the nodes of one hidden layer: its network is "
                "credo.networks.shallow(nodes)."
            )
        return 1 + shapes["hidden/kernel"][1]


PATHS = {"hidden/kernel", "hidden/bias", "output/kernel", "linear/kernel", "linear/bias"}


@struct
class BoundNodes:
    """The hierarchy over one network's weights, given its hyper-parameters."""

    mean: jax.Array = leaf()  # μ_γ [1 + inputs]
    root: jax.Array = leaf()  # L, S_γ⁻¹ = LL'
    output_mean: jax.Array = leaf()
    output_scale: jax.Array = leaf()
    linear_scale: jax.Array = leaf()
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    by_path: bool = False  # draws are {path: array} in place of layers

    def log_nodes(self, gamma: jax.Array) -> jax.Array:
        """log N(γ_j; μ_γ, S_γ) of every node [nodes]."""
        z = (gamma - self.mean) @ self.root
        return jnp.log(jnp.diagonal(self.root)).sum() - 0.5 * (z**2).sum(-1) - 0.5 * z.shape[-1] * LOG_2PI

    def draw_nodes(self, normals: jax.Array) -> jax.Array:
        """Draws of γ_j from standard normals [nodes, 1 + inputs]."""
        return self.mean + jax.scipy.linalg.solve_triangular(self.root.T, normals.T, lower=False).T

    def normal(self, path: str) -> tuple[jax.Array, jax.Array] | None:
        """Mean and standard deviation of the entries of an array of coefficients."""
        if path.startswith("hidden/"):
            return None
        is_output = path == "output/kernel"
        zero = jnp.zeros(())
        return (self.output_mean, self.output_scale) if is_output else (zero, self.linear_scale)

    def log_prob(self, params: PyTree) -> jax.Array:
        """Sum over nodes, their coefficients, and the linear part."""
        arrays = by_paths(params)
        gamma = jnp.concatenate([arrays["hidden/bias"][:, None], arrays["hidden/kernel"]], axis=1)
        total = self.log_nodes(gamma).sum()
        for path, _ in self.shapes:
            moments = self.normal(path)
            if moments is not None:
                total = total + jax.scipy.stats.norm.logpdf(arrays[path], *moments).sum()
        return total

    def sample(self, key: jax.Array, num: int) -> PyTree:
        """`num` independent draws of the whole tree."""
        shapes = dict(self.shapes)
        nodes, inputs = shapes["hidden/kernel"]
        keys = jax.random.split(key, 1 + len(shapes))
        flat = self.draw_nodes(jax.random.normal(keys[0], (num * nodes, 1 + inputs)))
        gamma = flat.reshape(num, nodes, 1 + inputs)
        drawn = {"hidden/kernel": gamma[..., 1:], "hidden/bias": gamma[..., 0]}
        for k, (path, shape) in zip(keys[1:], self.shapes):
            moments = self.normal(path)
            if moments is not None:
                drawn[path] = moments[0] + moments[1] * jax.random.normal(k, (num, *shape))
        if self.by_path:
            return drawn
        layers: dict[str, dict[str, jax.Array]] = {}
        for path, x in drawn.items():
            layer, _, kind = path.partition("/")
            layers.setdefault(layer, {})[kind] = x
        return layers


def node_hierarchy(
    *,
    output_mean: float = 1.0,
    output_scale: tuple[float, float] = (2.0, 2.0),
    hidden_mean: float = 1.0,
    hidden_scale: float = 3.0,
    freedom: float = 4.0,
    linear_scale: float = 1.0,
) -> NodeHierarchy:
    """The prior of a shallow network whose means and covariances are learned, for standardised data.

    Müller and Ríos Insua (1998), Issues in Bayesian analysis of neural network models. All hyper-priors are conjugate,
    which `gibbs` and `reversible_jump` use; any other method can sample them too.

    Args:
        output_mean: standard deviation of μ_β, the mean of the nodes' coefficients.
        output_scale: shape and rate of the inverse-gamma prior of σ_β².
        hidden_mean: standard deviation of the entries of μ_γ.
        hidden_scale: S_γ, the covariance of the nodes' weights, has the mean hidden_scale² I: steps of the logistic
            function that are about 1/3 of a standard deviation of the inputs wide.
        freedom: degrees of freedom of the Wishart prior of S_γ⁻¹, beyond its dimension; above 1.
        linear_scale: standard deviation of the constant and of the linear coefficients.

    Example:
        >>> import credo
        >>> credo.priors.node_hierarchy(hidden_scale=2.0).hidden_scale
        2.0
    """
    if not freedom > 1:
        raise InputError(f"freedom must be above 1, or S_γ has no mean, got {freedom}.")
    shape, rate = output_scale
    return NodeHierarchy(
        positive(output_mean, "output_mean"),
        InverseGamma(positive(shape, "the shape of output_scale"), positive(rate, "the rate of output_scale")),
        positive(hidden_mean, "hidden_mean"), positive(hidden_scale, "hidden_scale"), float(freedom),
        positive(linear_scale, "linear_scale"),
    )  # fmt: skip


def wishart_root(inverse_scale: jax.Array, normals: jax.Array, squares: jax.Array) -> jax.Array:
    """L, the lower triangle with LL' ~ Wishart(ν, V), by Bartlett's decomposition: LL' = U A (U A)' with V = UU'.

    Args:
        inverse_scale: V⁻¹ [d, d].
        normals: standard normals [d, d], of which those below the diagonal are used.
        squares: χ² variates with ν, ν − 1, …, ν − d + 1 degrees of freedom [d].
    """
    below = jnp.tril(normals, -1) + jnp.diag(jnp.sqrt(squares))
    # V = (CC')⁻¹ for the Cholesky factor C of V⁻¹, so U = C⁻ᵀ, which is upper: LL' is factorised once more.
    chol = jnp.linalg.cholesky(inverse_scale)
    half = jax.scipy.linalg.solve_triangular(chol.T, below, lower=False)
    return jnp.linalg.cholesky(half @ half.T)


def pack(root: jax.Array) -> jax.Array:
    """A lower triangle row by row, with the logarithms of its diagonal."""
    dims = root.shape[0]
    log_diagonal = jnp.log(jnp.diagonal(root))
    return (root - jnp.diag(jnp.diagonal(root)) + jnp.diag(log_diagonal))[np.tril_indices(dims)]


def unpack(values: jax.Array, dims: int) -> jax.Array:
    """The inverse of `pack`."""
    lower = jnp.zeros((dims, dims), values.dtype).at[np.tril_indices(dims)].set(values)
    return jnp.tril(lower, -1) + jnp.diag(jnp.exp(jnp.diagonal(lower)))


def _log_multigamma(a: Any, dims: int) -> jax.Array:
    """log Γ_d(a)."""
    return 0.25 * dims * (dims - 1) * LOG_PI + gammaln(a - 0.5 * jnp.arange(dims)).sum()
