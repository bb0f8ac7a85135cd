"""IVON, the improved variational online Newton method: variational inference at the cost of Adam."""

import dataclasses
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
from credo.methods.points.optimise import descend, fade, optimiser, tail_average
from credo.methods.variational.state import gaussian_prior, normals, rest_of_prior, split_points
from credo.posteriors import MeanField


@struct
class IvonState:
    """Mean m, Hessian h and momentum g of the random parameters, flat where small; points beside them.

    prior: (μ, δ) of a Gaussian prior, laid out like m; None where the prior is part of the loss.
    """

    step: jax.Array = leaf()
    mean: PyTree = leaf()
    hessian: PyTree = leaf()
    momentum: PyTree = leaf()
    points: PyTree = leaf()
    memory: PyTree = leaf()  # Adam's, of the points
    average: PyTree = leaf()  # of (m, h, points)
    averaged: jax.Array = leaf()
    network: PyTree = leaf()
    prior: PyTree = leaf()
    num_data: jax.Array = leaf()
    random: Layout | None = None


@struct
class IVON(Method):
    """q(θ) = Π_i N(m_i, 1/(λ(h_i + δ_i))) by natural gradients of the bound of Bayes by Backprop (B6).

    With θ ~ q, ĝ = −∇ (1/N) log p(D|θ) and ĥ = (ĝ − ḡ)(θ − m) λ(h + δ), a step is
    g ← b₁g + (1 − b₁)ĝ,  h ← h + (1 − b₂)(ĥ − h) + ½(1 − b₂)²(ĥ − h)²/(h + δ),  m ← m − α(ḡ + δ(m − μ))/(h + δ),
    ḡ = g/(1 − b₁ᵗ). The last term of h keeps h + δ positive. Subtracting ḡ of the steps before keeps the mean of
    ĥ and lowers its noise where the prior holds m away from the best fit (the paper does not subtract). λ = N/(βT) and
    δ = β/(N s²) from a prior N(μ, s²) make the optimum that of the bound, whatever the batch size. Another prior, and
    the prior of noise that is "inferred", is part of the loss, with δ = 0. Noise that is "learned" is a point and moves
    by Adam. Shen et al. (2024), Variational learning is effective for large deep networks.

    Args:
        learning_rate: α, of a step that is Newton's at 1; fades to a tenth over the second half of the fit, whose
            iterates are averaged.
        num_samples: K, draws of θ for each step; 1 costs one gradient.
        initial_hessian: h at the start, the curvature of one row's loss.
        momentum: b₁.
        hessian_memory: b₂; None remembers a twentieth of the steps.
        clip: bound on every entry of (ḡ + δ(m − μ))/(h + δ), which far from the optimum are too bold; None: no bound.
        beta: weight of the KL; 1 is Bayes.
        point_rate: learning rate of Adam for noise that is learned as a point.

    Example:
        >>> import credo
        >>> credo.methods.IVON(learning_rate=0.1).num_samples
        1
    """

    learning_rate: float = leaf(default=0.05)
    num_samples: int = 1
    initial_hessian: float = leaf(default=1.0)
    momentum: float = leaf(default=0.9)
    hessian_memory: float | None = leaf(default=None)
    clip: float | None = leaf(default=0.1)
    beta: float = leaf(default=1.0)
    point_rate: float = leaf(default=0.005)
    schedule: str = "cosine"

    default_steps = 20_000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if not self.initial_hessian > 0:
            raise InputError(f"initial_hessian must be positive, got {self.initial_hessian}.")
        if not 0 <= self.momentum < 1 or not 0 <= (self.hessian_memory or 0.0) < 1:
            raise InputError("momentum and hessian_memory lie in [0, 1).")
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> IvonState:
        random, points = split_points(model, variables.params)
        layout = Layout.of(random)
        mean = layout.ravel(random)
        hessian = jax.tree.map(lambda m: jnp.full_like(m, self.initial_hessian), mean)
        zeros = jax.tree.map(jnp.zeros_like, mean)
        zero = jnp.zeros((), jnp.int32)
        prior = gaussian_prior(model, variables, random, layout)
        if prior is not None:
            centre, log_scale, where = prior
            prior = centre, jax.tree.map(lambda b, w: w * jnp.exp(-2 * b) * self.beta / data.num_data, log_scale, where)
        return IvonState(
            zero, mean, hessian, zeros, points, optimiser("adam").init(points), (mean, hessian, points), zero,
            variables.state, prior,
            jnp.asarray(data.num_data, jax.tree.leaves(mean)[0].dtype), layout,
        )  # fmt: skip

    def init_from(self, key: jax.Array, model: Model, posterior: Any, data: Batch) -> IvonState:
        state = super().init_from(key, model, posterior, data)
        if not isinstance(posterior, MeanField):
            raise InputError(f"IVON starts at a mean-field posterior, got {type(posterior).__name__}: give start=fit.")
        scale = self.beta * model.temperature / state.num_data
        std = state.random.ravel(posterior.std)
        # 1/(λσ²) = h + δ: where q equals its prior, h is 0.
        hessian = jax.tree.map(lambda s, d: jnp.maximum(scale / s**2 - d, 0.0), std, self._prior(state)[1])
        return dataclasses.replace(state, hessian=hessian, average=(state.mean, hessian, state.points))

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: IvonState) -> PyTree:
        """ε for K draws, and a key for random layers."""
        key_eps, key_net = jax.random.split(key)
        return normals(key_eps, state.mean, self.num_samples), key_net

    def _prior(self, state: IvonState) -> tuple[PyTree, PyTree]:
        """μ and δ = β/(N s²); 0 where the prior is not Gaussian."""
        zeros = jax.tree.map(jnp.zeros_like, state.mean)
        return (zeros, zeros) if state.prior is None else state.prior

    def _std(self, model: Model, state: IvonState, hessian: PyTree) -> PyTree:
        """1/√(λ(h + δ))."""
        scale = self.beta * model.temperature / state.num_data
        return jax.tree.map(lambda h, d: jnp.sqrt(scale / (h + d)), hessian, self._prior(state)[1])

    def step(self, noise: PyTree, model: Model, phase: Phase, state: IvonState, batch: Batch) -> tuple[IvonState, Info]:
        eps, key = noise
        std = self._std(model, state, state.hessian)
        value, network, gradient, slope = self._gradients(eps, key, model, state, std, batch)
        # ĥ = (ĝ − ḡ)(θ − m)/σ² with θ − m = σ ε and ḡ of the steps before, averaged over the draws.
        unbias = jnp.maximum(1 - self.momentum**state.step, 1e-6)
        curvature = jax.tree.map(
            lambda g, b, e, s: ((g - b / unbias) * e).mean(0) / s, gradient, state.momentum, eps, std
        )
        gradient = jax.tree.map(lambda g: g.mean(0), gradient)
        state = self._move(model, phase, state, gradient, curvature)
        points, memory = state.points, state.memory
        rate = fade(self.schedule, state.step, phase.steps, floor=0.1)
        if jax.tree.leaves(points):
            points, memory = descend("adam", self.point_rate * rate, slope, memory, points)
        average, count = tail_average(
            state.average, state.averaged, (state.mean, state.hessian, points), state.step, phase.steps
        )
        return dataclasses.replace(
            state, step=state.step + 1, points=points, memory=memory, average=average, averaged=count, network=network
        ), Info({"loss": value / model.temperature})

    def _gradients(
        self, eps: PyTree, key: jax.Array, model: Model, state: IvonState, std: PyTree, batch: Batch
    ) -> tuple[jax.Array, PyTree, PyTree, PyTree]:
        """The mean loss of a row, the network's new state, ∇ of each draw [K, …] and ∇ of the points."""
        random = state.random
        assert random is not None

        def loss(theta: PyTree, points: PyTree, key: jax.Array) -> tuple[jax.Array, PyTree]:
            params = random.unravel(theta) | points
            per_row, network = model.log_likelihood(Variables(params, state.network), batch, key=key, train=True)
            prior = model.log_prior(params) if state.prior is None else rest_of_prior(model, params)
            return -(batch.total(per_row) + self.beta * prior) / batch.num_data, network

        def draw_gradients(eps: PyTree, key: jax.Array) -> Any:
            theta = jax.tree.map(lambda m, s, e: m + s * e, state.mean, std, eps)
            return jax.value_and_grad(loss, (0, 1), has_aux=True)(theta, state.points, key)

        if self.num_samples == 1:
            (value, network), (gradient, slope) = draw_gradients(jax.tree.map(lambda e: e[0], eps), key)
            return value, network, jax.tree.map(lambda g: g[None], gradient), slope
        (values, networks), (gradient, slopes) = jax.vmap(draw_gradients)(eps, jax.random.split(key, self.num_samples))
        first = jax.tree.map(lambda x: x[0], networks)
        return values.mean(), first, gradient, jax.tree.map(lambda x: x.mean(0), slopes)

    def _move(self, model: Model, phase: Phase, state: IvonState, gradient: PyTree, curvature: PyTree) -> IvonState:
        """The new mean, Hessian and momentum."""
        share = 1 - self.hessian_memory if self.hessian_memory is not None else jnp.minimum(0.1, 20 / phase.steps)
        rate = self.learning_rate * fade(self.schedule, state.step, phase.steps, floor=0.1)
        unbias = 1 - self.momentum ** (state.step + 1)
        centre, delta = self._prior(state)

        def update(m: Any, h: Any, g: Any, new: Any, at: Any, d: Any, a: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
            g = self.momentum * g + (1 - self.momentum) * new
            change = share * (at - h)
            h = h + change + 0.5 * change**2 / (h + d)
            direction = (g / unbias + d * (m - a)) / (h + d)
            if self.clip is not None:
                direction = jnp.clip(direction, -self.clip, self.clip)
            return m - rate * direction, h, g

        trees = (state.mean, state.hessian, state.momentum, gradient, curvature, delta, centre)
        treedef = jax.tree.structure(state.mean)
        moved = [update(*leaves) for leaves in zip(*(jax.tree.leaves(t) for t in trees))]
        mean, hessian, momentum = (jax.tree.unflatten(treedef, [x[i] for x in moved]) for i in range(3))
        return dataclasses.replace(state, mean=mean, hessian=hessian, momentum=momentum)

    def point(self, model: Model, state: IvonState) -> Variables:
        mean, _, points = state.average
        return Variables(state.random.unravel(mean) | points, state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: IvonState, draws: PyTree) -> MeanField:
        def moments(state: IvonState) -> tuple[PyTree, PyTree, PyTree, PyTree]:
            mean, hessian, points = state.average
            unravel = state.random.unravel  # type: ignore[union-attr]
            return unravel(mean), unravel(self._std(model, state, hessian)), points, state.network

        return MeanField(*jax.vmap(moments)(state))
