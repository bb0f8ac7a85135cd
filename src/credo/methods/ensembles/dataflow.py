"""What reaches the kernels of a network: its inputs, other kernels, or activations that were masked just before."""

from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr, Literal

from credo.core.capabilities import MaskedNetwork, Wrapper, require
from credo.core.network import Network, Variables, is_info
from credo.core.typing import PyTree

Tags = frozenset[str]

INPUTS, NOISE = "<inputs>", "<noise>"  # no path looks like these
CONTRACTIONS = ("dot_general", "conv_general_dilated")
NOTHING: Tags = frozenset()


class Flow(NamedTuple):
    """What was found.

    first: paths of kernels that see the inputs through no other kernel or embedding.
    masked: paths of kernels that see activations on which the network's own noise acts, with no kernel in between.
    noisy: the outputs depend on the network's own noise.
    """

    first: frozenset[str]
    masked: frozenset[str]
    noisy: bool


def flow(network: Network, variables: Variables, inputs: PyTree) -> Flow:
    """Read a network's program, without running it, for how its kernels hang together.

    Tags (a parameter's path, the inputs, the noise) travel along the operations of the traced program. A contraction
    of something that carries parameters alone with something that carries the inputs is a layer; what lies beyond it
    carries no fresh noise. A network without inputs to trace through (a loop with an unknown end) shows less, never
    something wrong: its kernels are then neither first nor masked.
    """
    if isinstance(network, Wrapper):
        network = network.unchanged  # random changes of its inputs are no masks
    rows = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape[1:]), x.dtype), inputs)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), variables)
    infos = {i.path: i.kind for i in jax.tree.leaves(network.info(variables.params), is_leaf=is_info)}

    def call(variables: Variables, inputs: PyTree, noise: jax.Array) -> jax.Array:
        return network.apply(variables, inputs, key=jax.random.wrap_key_data(noise), train=True)[0]

    words = jax.ShapeDtypeStruct((2,), "uint32")
    program = jax.make_jaxpr(call)(shapes, rows, words)
    own = [frozenset({path}) for path in infos]
    tags = [*own, *_all(shapes.state, NOTHING), *_all(rows, frozenset({INPUTS})), frozenset({NOISE})]
    seen: dict[str, Tags] = {}
    out = _walk(program.jaxpr, tags, seen)
    kernels = {path: seen[path] for path, kind in infos.items() if kind == "kernel" and path in seen}
    layers = {path for path, kind in infos.items() if kind in ("kernel", "embedding")}
    first = frozenset(path for path, met in kernels.items() if not met & layers)
    masked = frozenset(path for path, met in kernels.items() if NOISE in met)
    return Flow(first, masked, any(NOISE in t or "<past noise>" in t for t in out))


def masks_reach(network: Any, variables: Variables, inputs: PyTree) -> bool:
    """Do the network's masks reach its outputs when it predicts with them?"""
    rows = jax.tree.map(lambda x: jax.ShapeDtypeStruct((2, *x.shape[1:]), x.dtype), inputs)
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), variables)

    def call(noise: jax.Array, variables: Variables, inputs: PyTree) -> jax.Array:
        return require(network, MaskedNetwork).apply_masked(variables, inputs, jax.random.wrap_key_data(noise))

    program = jax.make_jaxpr(call)(jax.ShapeDtypeStruct((2,), "uint32"), shapes, rows)
    tags = [frozenset({NOISE}), *_all((shapes, rows), NOTHING)]
    return any(t for t in _walk(program.jaxpr, tags, {}))


def _all(tree: PyTree, tags: Tags) -> list[Tags]:
    return [tags] * len(jax.tree.leaves(tree))


def _walk(jaxpr: Any, tags: list[Tags], seen: dict[str, Tags]) -> list[Tags]:
    """Tags of a program's results; what meets each parameter in a contraction is added to `seen`."""
    known: dict[Any, Tags] = dict(zip(jaxpr.invars, tags))

    def of(x: Any) -> Tags:
        return NOTHING if isinstance(x, Literal) else known.get(x, NOTHING)

    for equation in jaxpr.eqns:
        given = [of(x) for x in equation.invars]
        results = _inside(equation, given, seen) if equation.primitive.name not in CONTRACTIONS else None
        if results is None:
            results = [_contract(given, seen) if equation.primitive.name in CONTRACTIONS else _union(given)]
            results *= len(equation.outvars)
        known |= dict(zip(equation.outvars, results))
    return [of(x) for x in jaxpr.outvars]


def _union(given: list[Tags]) -> Tags:
    return frozenset().union(*given)


def _contract(given: list[Tags], seen: dict[str, Tags]) -> Tags:
    left, right = given[:2]
    for weight, other in ((left, right), (right, left)):
        paths = weight - {INPUTS, NOISE}
        if paths and INPUTS not in weight and INPUTS in other:
            seen |= {path: seen.get(path, NOTHING) | other for path in paths}
            past = {"<past noise>"} if NOISE in left | right else set()
            return (left | right) - {NOISE} | past
    return left | right


def _inside(equation: Any, given: list[Tags], seen: dict[str, Tags]) -> list[Tags] | None:
    """Results of an operation that is a program itself, None where it is none or takes other arguments."""
    inner: Any = None
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = equation.params.get(name, inner)
    if inner is None:
        return None
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    if len(jaxpr.invars) != len(given):
        return None
    results = _walk(jaxpr, given, seen)
    if equation.primitive.name == "scan":
        # What a step carries to the next is an argument there: once more with it.
        first, carried = equation.params["num_consts"], equation.params["num_carry"]
        for _ in range(2):
            for i in range(carried):
                given[first + i] |= results[i]
            results = _walk(jaxpr, given, seen)
    return results
