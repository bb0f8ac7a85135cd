"""MC-dropout: dropout in training and in prediction, read as variational inference."""

from typing import Any

import jax
import jax.numpy as jnp

from credo.core.batch import Batch
from credo.core.capabilities import DropoutNetwork, GaussianDistribution, MaskedNetwork, ask, capability
from credo.core.method import Info, Method, Phase
from credo.core.model import Model
from credo.core.network import Variables, is_info
from credo.core.tree import Layout, leaf, path_string, struct
from credo.core.typing import PyTree
from credo.errors import InputError, Refusal
from credo.methods.ensembles.dataflow import Flow, flow, masks_reach
from credo.methods.points.optimise import averaged_step, optimiser
from credo.posteriors.dropout import ActivationDropout, Rows, WeightDropout, num_units, with_masks

RATE = 0.1
SMOOTHING = 0.1  # temperature of the relaxed masks (Gal, Hron and Kendall, 2017)


@struct
class DropoutState:
    """Weights and learned rates as one vector where small, and the optimiser's memory.

    way: "weights" or "activations"; rows: which kernels are masked; blind: no kernel says where its inputs lie;
    layout: of {"logits", "params"} in one vector.
    """

    step: jax.Array = leaf()
    values: PyTree = leaf()
    average: PyTree = leaf()
    averaged: jax.Array = leaf()
    memory: PyTree = leaf()
    network: PyTree = leaf()
    way: str = "weights"
    rows: Rows = ()
    blind: bool = False
    layout: Layout | None = None


@struct
class MCDropout(Method):
    """Dropout as variational inference: masked weights are draws of q, in training and in prediction (C1).

    q: θ_l = W_l diag(z_l)/(1 − π_l), z_lj ~ Bernoulli(1 − π_l): input row j of kernel l is m_lj = w_lj/(1 − π_l) or 0,
    each blurred by N(0, τ²I) with τ → 0; all else is a point. Then E_q[log p(θ_lj)] = (1 − π_l) log p(m_lj) +
    π_l log p(0), and the entropy of q is H(π_l) for each row plus a constant. Under θ ~ N(0, s²) what is maximised is

        L = E_q[log p(D|θ)] − Σ_l (1 − π_l) ‖M_l‖²/2s² + Σ_l J_l H(π_l) + constant,   M_l = W_l/(1 − π_l),

    J_l the number of inputs of kernel l. N enters through `Batch.total` alone: divided by N, the weight of ‖M‖² is
    (1 − π)/2s²N, the weight decay that dropout users set by hand; s is the prior's scale (a length-scale is 1/s). Other
    Gaussian priors have closed forms too; under priors that are not Gaussian log p(θ) is taken at the draws. Where
    nothing is masked, as in a linear model, this is MAP. Noise and hyper-parameters are points.
    Gal and Ghahramani (2016), Dropout as a Bayesian approximation.

    Args:
        rate: π, the share that is masked; None: that of the network's own dropout layers, else 0.1.
        masks: "weights" masks the input rows of kernels, one mask for a batch (any network whose kernels say where
            their inputs lie); "activations" lets the network's own dropout layers mask, row by row; "auto" takes
            those where the network has some.
        inputs: also mask the rows that see the network's inputs (for "weights").
        concrete: learn a rate for every kernel, by relaxed masks (Gal, Hron and Kendall, 2017); `rate` is the start.
        learning_rate: size of the optimiser's steps; fades to a tenth over the second half of the fit, whose iterates
            are averaged.

    Example:
        >>> import credo
        >>> credo.methods.MCDropout(rate=0.2, concrete=True).masks
        'auto'
    """

    rate: Any = leaf(default=None)
    masks: str = "auto"
    inputs: bool = False
    concrete: bool = False
    learning_rate: float = leaf(default=0.005)
    optimiser: str = "adam"
    schedule: str = "cosine"

    default_steps = 10_000
    step_field = "learning_rate"
    several_starts = True

    def prepare(self, model: Model) -> tuple[Model, list[str]]:
        if self.masks not in ("auto", "weights", "activations"):
            raise InputError(f'masks must be "auto", "weights" or "activations", got {self.masks!r}.')
        if self.rate is not None and not 0 <= self.rate < 1:
            raise InputError(f"A dropout rate lies in [0, 1), got {self.rate}.")
        if self.concrete and self.rate == 0:
            raise InputError("A learned dropout rate cannot start at 0; give a positive rate.")
        if self.concrete and self.masks == "activations":
            raise Refusal('The rates of a network\'s own dropout layers cannot be learned; use masks="weights".')
        return model, []

    def phases(self, num_data: int, steps: int) -> tuple[Phase, ...]:
        return (Phase("optimise", steps, "random"),)

    # ------------------------------------------------------------------ what is masked
    def _way(self, model: Model, variables: Variables, inputs: PyTree, traced: Flow) -> str:
        able = traced.noisy and model.fixed is None and capability(model.network, MaskedNetwork) is not None
        if self.masks == "weights" or (self.masks == "auto" and (self.concrete or not able)):
            return "weights"
        if not able:
            why = "masks held layers, too" if traced.noisy else "has no dropout layers that act"
            raise Refusal(f'{type(model.network).__name__} {why}; use masks="weights".')
        if not masks_reach(model.network, variables, inputs):
            raise Refusal(
                "This network turns dropout on only together with its batch statistics, which must stay as they are "
                'in prediction; use masks="weights".'
            )
        return "activations"

    def _rows(self, model: Model, params: PyTree, way: str, traced: Flow) -> Rows:
        infos = jax.tree.leaves(model.network.info(model.complete(params)["network"]), is_leaf=is_info)
        free = {path_string(path) for path, _ in jax.tree_util.tree_flatten_with_path(params["network"])[0]}
        kernels = [i for i in infos if i.kind == "kernel" and i.input_axis is not None and i.path in free]
        if way == "activations":
            return tuple((i.path, i.input_axis) for i in kernels if i.path in traced.masked)
        return tuple((i.path, i.input_axis) for i in kernels if self.inputs or i.path not in traced.first)

    def _rate(self, network: Any, way: str) -> Any:
        if way == "weights":
            return RATE if self.rate is None else self.rate
        rates = {r for r in (ask(network, DropoutNetwork).dropout_rates or ()) if r > 0}
        if len(rates) > 1:
            raise Refusal(
                f"The network's dropout layers have the rates {sorted(rates)}, and which of them belongs to which "
                'kernel is not known; give them one rate, or use masks="weights".'
            )
        if bool(rates) == (self.rate is not None):
            advice = "leave rate=None" if rates else "give that rate, which its layers do not tell"
            raise InputError(f"The network masks its own activations, at a rate of its own: {advice}.")
        return rates.pop() if rates else self.rate

    def _rates(self, model: Model, state: DropoutState, logits: PyTree) -> dict[str, jax.Array]:
        """π by path of the masked kernels."""
        if self.concrete:
            return jax.tree.map(jax.nn.sigmoid, logits)
        return {name: jnp.asarray(self._rate(model.network, state.way), jnp.float32) for name, _ in state.rows}

    # ------------------------------------------------------------------ the fit
    def init(self, key: jax.Array, model: Model, variables: Variables, data: Batch) -> DropoutState:
        full = Variables(model.complete(variables.params)["network"], variables.state)
        traced = flow(model.network, full, data.inputs)
        way = self._way(model, full, data.inputs, traced)
        rows = self._rows(model, variables.params, way, traced)
        rate = jnp.asarray(self._rate(model.network, way), jnp.float32)
        logits = {name: jnp.log(rate / (1 - rate)) for name, _ in rows} if self.concrete else {}
        parts = {"logits": logits, "params": variables.params}
        layout = Layout.of(parts)
        values = layout.ravel(parts)
        zero = jnp.zeros((), jnp.int32)
        memory = optimiser(self.optimiser).init(values)
        infos = jax.tree.leaves(model.network.info(full.params), is_leaf=is_info)
        blind = all(i.kind != "kernel" or i.input_axis is None for i in infos)
        return DropoutState(zero, values, values, zero, memory, variables.state, way, rows, blind, layout)

    def noise(self, key: jax.Array, model: Model, phase: Phase, state: DropoutState) -> PyTree:
        """A uniform number for every row that may be masked, and a key for random layers."""
        key_rows, key_net = jax.random.split(key)
        weights = state.layout.unravel(state.values)["params"]["network"]  # type: ignore[union-attr]
        units = num_units(weights, state.rows)
        keys = jax.random.split(key_rows, max(1, len(units)))
        return {name: jax.random.uniform(k, (n,)) for k, (name, n) in zip(keys, units.items())}, key_net

    def step(
        self, noise: PyTree, model: Model, phase: Phase, state: DropoutState, batch: Batch
    ) -> tuple[DropoutState, Info]:
        def loss(values: PyTree) -> tuple[jax.Array, tuple[dict, PyTree]]:
            parts = state.layout.unravel(values)  # type: ignore[union-attr]
            likelihood, prior, entropy, network = self.terms(noise, model, state, parts, batch)
            bound = (likelihood + prior) / model.temperature + entropy
            rates = list(self._rates(model, state, parts["logits"]).values())
            metrics = {
                "loss": -bound / batch.num_data,
                "log_likelihood": likelihood / batch.num_data,
                "rate": sum(rates, jnp.zeros(())) / max(1, len(rates)),
            } | ({"blind": jnp.ones(())} if state.blind else {})
            return metrics["loss"], (metrics, network)

        (_, (metrics, network)), gradient = jax.value_and_grad(loss, has_aux=True)(state.values)
        return averaged_step(self, phase, state, gradient, network), Info(metrics)

    def terms(
        self, noise: PyTree, model: Model, state: DropoutState, parts: PyTree, batch: Batch
    ) -> tuple[jax.Array, jax.Array, jax.Array, PyTree]:
        """log p(D|θ) at a draw, E_q[log p(θ)], the entropy of q up to a constant, and the network's new state."""
        uniforms, key = noise
        params, rates = parts["params"], self._rates(model, state, parts["logits"])
        masks = {name: self._mask(uniforms[name], rate) for name, rate in rates.items()}
        if state.way == "activations":
            per_row, network = model.log_likelihood(Variables(params, state.network), batch, key=key, train=True)
        else:
            drawn = params | {"network": with_masks(params["network"], masks, state.rows)}
            per_row, network = model.log_likelihood(Variables(drawn, state.network), batch, train=True)
        prior = self._log_prior(model, params, rates, masks, state.rows)
        entropy = [uniforms[name].size * _entropy(rate) for name, rate in rates.items()] if self.concrete else []
        return batch.total(per_row), prior, sum(entropy, jnp.zeros(())), network

    def _mask(self, uniform: jax.Array, rate: jax.Array) -> jax.Array:
        if not self.concrete:
            return (uniform >= rate) / (1 - rate)
        tiny = jnp.finfo(uniform.dtype).eps
        logit = jnp.log(uniform + tiny) - jnp.log1p(tiny - uniform)
        return jax.nn.sigmoid((logit - jnp.log(rate / (1 - rate))) / SMOOTHING) / (1 - rate)

    def _log_prior(self, model: Model, params: PyTree, rates: dict, masks: dict, rows: Rows) -> jax.Array:
        """E_q[log p(θ)]: closed form where the prior of the weights is Gaussian, else at the drawn weights."""
        full = model.complete(params)
        bound = model.prior.bind(model.network.info(full["network"]), full["prior"])
        rest = model.prior.log_hyperprior(full["prior"]) + model.likelihood.log_prior(full["likelihood"])
        moments = ask(bound, GaussianDistribution).gaussian()
        if moments is None:
            return rest + bound.log_prob(with_masks(full["network"], masks, rows))

        def log_prior(path: Any, w: jax.Array, mean: jax.Array, std: jax.Array) -> jax.Array:
            rate = rates.get(path_string(path), 0.0)
            values = (w / (1 - rate), jnp.zeros_like(w))
            unmasked, masked = (jax.scipy.stats.norm.logpdf(x, mean, std).sum() for x in values)
            return (1 - rate) * unmasked + rate * masked

        terms = jax.tree_util.tree_map_with_path(log_prior, full["network"], *moments)
        return rest + sum(jax.tree.leaves(terms), jnp.zeros(()))

    def point(self, model: Model, state: DropoutState) -> Variables:
        return Variables(state.layout.unravel(state.average)["params"], state.network)  # type: ignore[union-attr]

    def posterior(self, model: Model, state: DropoutState, draws: PyTree) -> WeightDropout | ActivationDropout:
        def parts_of(state: DropoutState) -> tuple[PyTree, PyTree, PyTree]:
            parts = state.layout.unravel(state.average)  # type: ignore[union-attr]
            return parts["params"], self._rates(model, state, parts["logits"]), state.network

        params, rates, network = jax.vmap(parts_of)(state)
        if state.way == "activations":
            return ActivationDropout(params, network)
        return WeightDropout(params, rates, network, state.rows)

    def notes(self, trace: dict[str, Any]) -> list[str]:
        if "blind" not in trace:
            return []
        return [
            "Nothing was masked, so this is MAP: no kernel of this network says along which axis its inputs lie, which "
            "from_functions takes as the fourth entry of `info`."
        ]


def _entropy(rate: jax.Array) -> jax.Array:
    """H(π) = −π log π − (1 − π) log(1 − π)."""
    return -rate * jnp.log(rate) - (1 - rate) * jnp.log1p(-rate)
