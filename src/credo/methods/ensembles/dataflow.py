"""Which kernels of a network see its inputs, other kernels, or activations masked just before."""

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
    """How inputs and noise reach the kernels of a network.

    first: paths of kernels that see the inputs through no other kernel or embedding.
    masked: paths of kernels that see activations on which the network's own noise acts, with no kernel in between.
    noisy: the outputs depend on the network's own noise.
    """

    first: frozenset[str]
    masked: frozenset[str]
    noisy: bool


def flow(network: Network, variables: Variables, inputs: PyTree) -> Flow:
    """How the kernels of a network are connected, read from its program without running it.

    Tags (a parameter's path, the inputs, the noise) travel along the operations of the traced program. A contraction
    of parameters alone with something that depends on the inputs is a layer; its result carries no fresh noise. Where
    tracing ends (a loop of unknown length), kernels count as neither first nor masked: incomplete, never wrong.
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
    params = [frozenset({path}) for path in infos]
    tags = [*params, *_all(shapes.state, NOTHING), *_all(rows, frozenset({INPUTS})), frozenset({NOISE})]
    operands: dict[str, Tags] = {}
    out = _walk(program.jaxpr, tags, operands)
    kernels = {path: operands[path] for path, kind in infos.items() if kind == "kernel" and path in operands}
    layers = {path for path, kind in infos.items() if kind in ("kernel", "embedding")}
    first = frozenset(path for path, tags in kernels.items() if not tags & layers)
    masked = frozenset(path for path, tags in kernels.items() if NOISE in tags)
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


def _walk(jaxpr: Any, tags: list[Tags], operands: dict[str, Tags]) -> list[Tags]:
    """Tags of a program's results; `operands` collects what each parameter is contracted with."""
    env: dict[Any, Tags] = dict(zip(jaxpr.invars, tags))

    def read(x: Any) -> Tags:
        return NOTHING if isinstance(x, Literal) else env.get(x, NOTHING)

    for equation in jaxpr.eqns:
        arguments = [read(x) for x in equation.invars]
        results = _inside(equation, arguments, operands) if equation.primitive.name not in CONTRACTIONS else None
        if results is None:
            results = [_contract(arguments, operands) if equation.primitive.name in CONTRACTIONS else _union(arguments)]
            results *= len(equation.outvars)
        env |= dict(zip(equation.outvars, results))
    return [read(x) for x in jaxpr.outvars]


def _union(tags: list[Tags]) -> Tags:
    return frozenset().union(*tags)


def _contract(arguments: list[Tags], operands: dict[str, Tags]) -> Tags:
    left, right = arguments[:2]
    for weight, other in ((left, right), (right, left)):
        paths = weight - {INPUTS, NOISE}
        if paths and INPUTS not in weight and INPUTS in other:
            operands |= {path: operands.get(path, NOTHING) | other for path in paths}
            past = {"<past noise>"} if NOISE in left | right else set()
            return (left | right) - {NOISE} | past
    return left | right


def _inside(equation: Any, arguments: list[Tags], operands: dict[str, Tags]) -> list[Tags] | None:
    """Tags of the results of an operation that calls a program; None where it calls none or has other arguments."""
    inner: Any = None
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        inner = equation.params.get(name, inner)
    if inner is None:
        return None
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    if len(jaxpr.invars) != len(arguments):
        return None
    results = _walk(jaxpr, arguments, operands)
    if equation.primitive.name == "scan":
        # A step's carry is an argument of the next step: walk again with its tags.
        first, carried = equation.params["num_consts"], equation.params["num_carry"]
        for _ in range(2):
            for i in range(carried):
                arguments[first + i] |= results[i]
            results = _walk(jaxpr, arguments, operands)
    return results
