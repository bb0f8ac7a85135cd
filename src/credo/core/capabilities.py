"""What a network, a prior, a likelihood or a posterior may offer beyond its contract, and how methods ask for it.

Each capability is a protocol: a part offers it by having its members, even a part of your own that derives from nothing
in credo. `capability(part, kind)` returns the part that offers `kind`, or None.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, Protocol, TypeVar

import jax

from credo.core.network import Variables
from credo.core.nodes import Nodes
from credo.core.typing import Blocks, Outputs, PyTree
from credo.errors import Refusal

T = TypeVar("T")


class Wrapper:
    """A part that wraps another part, and says what the two of them offer."""

    def offering(self, kind: type) -> Any:
        """The part that offers the capability: this one, the inner one, or None."""
        raise NotImplementedError

    @property
    def unchanged(self) -> Any:
        """The part that predicts as this one does, without what acts on its inputs in training alone."""
        return self


def lacks(part: Any, members: Iterable[str]) -> list[str]:
    """Those of the members that the part does not have."""
    return [name for name in members if not hasattr(part, name)]


def members(kind: type) -> list[str]:
    """The members of a capability's protocol."""
    return [name for name in {**vars(kind), **get_annotations(kind)} if not name.startswith("_")]


def offers(part: Any, kind: type) -> bool:
    """Has the part itself all members of the capability? `isinstance` would not see those of a `__getattr__`."""
    return not lacks(part, members(kind))


def capability(part: Any, kind: type[T]) -> T | None:
    """The part itself, or the part that it wraps, where it offers the capability; None where neither does.

    Example:
        >>> import credo
        >>> capability(credo.networks.mlp([4]), DenseNetwork).dense_layers()[0]
        ('hidden_0/kernel', 'hidden_0/bias', True)
        >>> capability(credo.networks.shallow(4), MaskedNetwork) is None
        True
    """
    if isinstance(part, Wrapper):
        return part.offering(kind)
    return part if offers(part, kind) else None


@cache
def _defaults(kind: Any) -> Any:
    return type(kind.__name__, (kind,), {})()


def ask(part: Any, kind: type[T]) -> T:
    """The part that offers the capability, or an object with the capability's defaults."""
    provider = capability(part, kind)
    return _defaults(kind) if provider is None else provider  # type: ignore[arg-type]


def require(part: Any, kind: type[T]) -> T:
    """The part that offers the capability; `Refusal` where none does."""
    provider = capability(part, kind)
    if provider is None:
        raise Refusal(f"This needs what a {type(part).__name__} does not offer: {', '.join(members(kind))}.")
    return provider


# ---------------------------------------------------------------------------------------------------------- networks
class PretrainedNetwork(Protocol):
    """`pretrained`: True where `init` gives weights that were trained before, which every member then starts from.

    Default: False. Used by `credo.fit`, which refuses methods whose members need different starts.
    """

    pretrained: bool = False


class DropoutNetwork(Protocol):
    """`dropout_rates`: the rate of each dropout layer; None or () where it has none or does not know.

    Default: (). Used by `mc_dropout` with masks="activations", which otherwise asks for `rate`.
    """

    dropout_rates: tuple[float, ...] | None = ()


class NetworkWrapper(Wrapper):
    """A network around another one, `network`: it offers what both of them do."""

    network: Any

    def offering(self, kind: type) -> Any:
        """This network where both offer the capability, else None."""
        return self if offers(self, kind) and capability(self.network, kind) is not None else None

    @property
    def pretrained(self) -> bool:
        """Whether the inner network starts at trained weights."""
        return ask(self.network, PretrainedNetwork).pretrained

    @property
    def dropout_rates(self) -> tuple[float, ...]:
        """Rates of the inner network's dropout layers."""
        return ask(self.network, DropoutNetwork).dropout_rates or ()


class MaskedNetwork(Protocol):
    """`apply_masked(variables, inputs, key)`: outputs under one draw of the dropout masks, the same for every row.

    Default: none; `mc_dropout` then masks rows of weights.
    """

    def apply_masked(self, variables: Variables, inputs: PyTree, key: jax.Array) -> Outputs: ...


class LocalNetwork(Protocol):
    """`apply_local(mean, std, inputs, key)`: outputs with every pre-activation drawn from its own Gaussian.

    Default: none. Used by `bayes_by_backprop` with estimator="local" (Kingma, Salimans and Welling, 2015).
    """

    def apply_local(self, mean: PyTree, std: PyTree, inputs: PyTree, key: jax.Array) -> Outputs: ...


class FlipoutNetwork(Protocol):
    """`apply_flipout(mean, moved, inputs, key)`: outputs with other signs of one perturbation for every row.

    Default: none. Used by `bayes_by_backprop` with estimator="flipout" (Wen et al., 2018).
    """

    def apply_flipout(self, mean: PyTree, moved: PyTree, inputs: PyTree, key: jax.Array) -> Outputs: ...


class DenseNetwork(Protocol):
    """`dense_layers()`: (path of kernel, path of bias or None, is the kernel [out, in]?) of every layer, in order.

    Default: layers are read from the network's program. Used by `laplace`, `last_layer` and all that needs curvature.
    """

    def dense_layers(self) -> Sequence[tuple[str, str | None, bool]]: ...


class TappedNetwork(Protocol):
    """`apply_tapped(params, inputs, shifts)`: outputs with `shifts` added before each activation, and each layer's
    inputs, both by the paths of kernels.

    Default: the network's program is run with taps in it. Used where `dense_layers` is.
    """

    def apply_tapped(self, params: PyTree, inputs: PyTree, shifts: PyTree) -> tuple[Outputs, PyTree]: ...


class NodeNetwork(Protocol):
    """`nodes()`: how the parameters make a sum of nodes (`credo.core.nodes.Nodes`), or None.

    Default: None. Needed by `gibbs` and `reversible_jump`; used by effects and reports for the inputs that are on.
    """

    def nodes(self) -> Nodes | None:
        return None


class FullyConnectedNetwork(Protocol):
    """`fully_connected()`: (name of the activation, names of the layers) of a perceptron without masks, or None.

    Default: None. Needed by `infinite_width`.
    """

    def fully_connected(self) -> tuple[str, list[str]] | None:
        return None


# ------------------------------------------------------------------------------------------------------------ priors
class GaussianDistribution(Protocol):
    """`gaussian()` of what a prior's `bind` gives: trees of means and standard deviations where all weights are normal
    and independent, else None.

    Default: None. Used for a KL in closed form (`bayes_by_backprop`, `mc_dropout`), by `laplace` to scale a prior by
    the evidence, by `infinite_width`, and by continual learning.
    """

    def gaussian(self) -> tuple[PyTree, PyTree] | None:
        return None


class PartialPrior(Protocol):
    """`bind_part(info, params)`: the distribution over only those weights that `info` names.

    Default: `bind`. Used by `by_path`, for priors whose `bind` checks that all weights of a network are there.
    """

    def bind_part(self, info: PyTree, params: PyTree) -> Any: ...


# ------------------------------------------------------------------------------------------------------- likelihoods
class CurvedLikelihood(Protocol):
    """`curvature(params, outputs)`: E_y[−∂² log p/∂f∂f'] [n, out, out], the expected Fisher information.

    Default: by autodiff, exactly for classes and at the row's own target otherwise. Used by `laplace`, `last_layer`,
    `infinite_width` and all that needs the generalised Gauss-Newton matrix.
    """

    def curvature(self, params: PyTree, outputs: Outputs) -> Blocks: ...


class FactoredLikelihood(Protocol):
    """`curvature_columns(params, outputs)`: columns [columns, n, out] whose outer products sum to the curvature.

    Default: a square root of the curvature. Used by `laplace` and `infinite_width`.
    """

    def curvature_columns(self, params: PyTree, outputs: Outputs) -> Annotated[jax.Array, "columns n out"]: ...


class NormalLikelihood(Protocol):
    """`normal`: True where y given f and ν is normal, entry by entry.

    Default: False. Used by scores, which then have closed forms.
    """

    normal: bool = False


class InferredLikelihood(Protocol):
    """`inferred`: True where ν has a prior, and so a posterior of its own.

    Default: False. Used by methods that take ν at its mode and say so, and by continual learning, which refuses
    it.
    """

    inferred: bool = False


class NamedLikelihood(Protocol):
    """`learns`: what ν is, in words.

    Default: "noise". Used by notes in `Fit.status`.
    """

    learns: str = "noise"


class StretchedLikelihood(Protocol):
    """`stretched(factor)`: the same likelihood with noise so many times as wide, in its own way.

    Default: none; targets are then stretched around the mean (`likelihoods.Stretched`), which would take positive
    numbers below 0. Used where rows outside of training correct the noise.
    """

    def stretched(self, factor: Any) -> Any: ...


class LogitLikelihood(Protocol):
    """`logits`: False where outputs of classes are no logits, and shrinking them averages nothing.

    Default: True. Used by `laplace` with mode="probit", which refuses such a likelihood.
    """

    logits: bool = True


class FlooredLikelihood(Protocol):
    """`floor`: the smallest σ that the outputs can ask for.

    Default: none. Used by diagnostics, which tell when the noise lies at it.
    """

    floor: Any = None


class PredictingLikelihood(Protocol):
    """`predicts`: False where it describes no targets, so that diagnostics look at θ and not at predictions.

    Default: True.
    """

    predicts: bool = True


class PartedLikelihood(Protocol):
    """`over_draws(function, params, outputs, *mapped)`: `function(part, ν, f, …)` [K, …] with the part that each draw
    belongs to; all arguments have a leading axis over draws.

    Default: none; `function` is then mapped over the draws of the one likelihood. Used by the mixture's functionals: a
    draw then costs what its part costs, not what all parts cost.
    """

    def over_draws(self, function: Any, params: PyTree, outputs: Outputs, *mapped: Any) -> Any: ...


# -------------------------------------------------------------------------------------------------------- posteriors
class StoredPosterior(Protocol):
    """`available`: stored draws of each member, None where draws are made afresh. `log_weights`: their log weights
    [member, draw], None where all weigh the same. `on_disk`: True where they are memory maps.

    Default: None, None and False. `WeightPosterior` has them.
    """

    available: int | None = None
    log_weights: jax.Array | None = None
    on_disk: bool = False


class CentredPosterior(Protocol):
    """`mean`: the centre of each member, as parameters with a leading axis. `points`, `state`: parameters without a
    spread, and the networks' states.

    Default: none. Used where a fit starts at a posterior, where a proposal is widened, and by attacks.
    """

    mean: PyTree = None
    points: PyTree = None
    state: PyTree = None


class MarginalPosterior(Protocol):
    """`marginal(select)`: the distribution of the weights that the globs match, alone.

    Default: none. Used by `as_prior` under `by_path`.
    """

    def marginal(self, select: Any) -> Any: ...


class IndependentSpread(Protocol):
    """`independent`: True where single weights are independent; `std`: their standard deviations, by path.

    Default: False. The spread of a `GaussianWeights` may offer it: it can then become a prior of any method.
    """

    independent: bool = False
    std: dict[str, Any]


class FactoredSpread(Protocol):
    """`precision(kernel)`: the Kronecker factors of the inverse covariance of a layer, by the path of its kernel.

    Default: none. The spread of a `GaussianWeights` may offer it: `laplace` then keeps the factors of a prior.
    """

    def precision(self, kernel: str) -> tuple[jax.Array, jax.Array, jax.Array]: ...


class RenewablePosterior(Protocol):
    """`renewed(mean, std)`: the same with the weights at these paths N(mean, std²), independent of all others.

    Default: none. Used by continual learning, for the arrays that a task brings.
    """

    def renewed(self, mean: Any, std: Any) -> Any: ...


class EvidencePosterior(Protocol):
    """`log_evidence`: an estimate of log p(D) [member], or None.

    Default: None. Used by `compare`.
    """

    log_evidence: Any = None


class ModalPosterior(Protocol):
    """`mode`: how it predicts: "sampled", "linearised" or "probit".

    Default: by draws of weights. Used by exports and effects.
    """

    mode: str = ""


class PhasedMethod(Protocol):
    """`phases(num_data, steps)`: a method among the settings of another, whose own settings are checked, too."""

    def phases(self, num_data: int, steps: int) -> Any: ...


class FitResult(Protocol):
    """`model` and `posterior`: the result of a fit, or what stands for one."""

    model: Any
    posterior: Any
