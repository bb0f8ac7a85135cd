"""Find the dense layers of any network by reading its program, and run it with their outputs shifted.

Networks of other libraries do not say what goes into their layers. Their programs do: a dense layer is a `dot_general`
one of whose operands is a parameter matrix. Running the program equation by equation, each value carries a note: that
it is a parameter (transposed, reshaped, converted), or that it is W a (+ b) of a layer.
"""

import math
from collections import Counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal

INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr"}
ALIASES = (
    "transpose", "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "convert_element_type", "copy", "copy_p",
)  # fmt: skip
WORDS = {
    "conv_general_dilated": "a convolution", "gather": "an embedding", "scan": "a loop", "while": "a loop",
    "mul": "a product of elements, as scales of a norm are",
}  # fmt: skip


class Origin(NamedTuple):
    """The value is a parameter; `axes` says which axis of the parameter each axis of the value is (None: neither)."""

    path: str
    shape: tuple[int, ...]
    axes: tuple[int | None, ...]


class LayerOutput(NamedTuple):
    """The value is W a (+ b) of a layer, with the layer's outputs along `axis` (None where there is one output)."""

    kernel: str
    axis: int | None


class DenseLayer(NamedTuple):
    """A dense layer: its kernel, whether that lies as [out, in], and its bias."""

    kernel: str
    rows_out: bool
    bias: str | None


class Reader:
    """One run of a program. `layers`, `inputs` (a [n, in] by kernel path) and `problems` (why a parameter has no rule)
    are filled on the way; `shifts` [n, out] by kernel path are added to the outputs of layers."""

    def __init__(self, rows: int, shifts: dict[str, jax.Array], shapes: dict[str, tuple[int, ...]]):
        self.rows, self.shifts, self.shapes = rows, shifts, shapes
        self.layers: dict[str, DenseLayer] = {}
        self.inputs: dict[str, jax.Array] = {}
        self.problems: dict[str, str] = {}

    def run(self, jaxpr: Any, consts: Any, args: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Values and notes of the program's outputs."""
        env: dict[Any, tuple[Any, Any]] = dict(zip(jaxpr.constvars, [(c, None) for c in consts]))
        env.update(zip(jaxpr.invars, args))

        def read(v: Any) -> tuple[Any, Any]:
            return (v.val, None) if isinstance(v, Literal) else env[v]

        uses = Counter(v for e in jaxpr.eqns for v in e.invars if not isinstance(v, Literal))
        for eqn in jaxpr.eqns:
            # A layer's output that is used elsewhere, too, is not only the argument of its bias.
            once = [isinstance(v, Literal) or uses[v] == 1 for v in eqn.invars]
            pairs = [read(v) for v in eqn.invars]
            pairs = [(x, n if o or not isinstance(n, LayerOutput) else None) for (x, n), o in zip(pairs, once)]
            env.update(zip(eqn.outvars, self._equation(eqn, pairs)))
        return [read(v) for v in jaxpr.outvars]

    def _equation(self, eqn: Any, pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        values, notes = [p[0] for p in pairs], [p[1] for p in pairs]
        name = eqn.primitive.name
        origins = [n for n in notes if isinstance(n, Origin)]
        if origins and name in INLINED:
            inner = eqn.params[INLINED[name]]
            jaxpr, consts = (inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else (inner, ())
            return self.run(jaxpr, consts, pairs)
        results = _evaluate(eqn, values)
        if name in ALIASES and isinstance(notes[0], Origin | LayerOutput):
            note = _alias(name, eqn.params, notes[0], values[0].shape, results[0].shape)
            if note is None and origins:
                self._problem(origins[0].path, name)
            return [(results[0], note)]
        if name == "dot_general" and len(origins) == 1:
            return [self._product(eqn.params["dimension_numbers"], values, notes, results[0])]
        if name in ("add", "add_any") and len(origins) == 1:
            return [(results[0], self._bias(notes))]
        for origin in origins:
            self._problem(origin.path, name)
        return [(x, None) for x in results]

    def _problem(self, path: str, name: str) -> None:
        self.problems.setdefault(path, f"it is used in {WORDS.get(name, name)}")

    def _product(self, numbers: Any, values: list[Any], notes: list[Any], result: Any) -> tuple[Any, Any]:
        """The layer W a, recorded and shifted, where W is a parameter matrix and a is one row for each example."""
        side = 0 if isinstance(notes[0], Origin) else 1
        origin: Origin = notes[side]
        contracted, batched = numbers
        summed = list(contracted[side])
        other = values[1 - side]
        axis_in = origin.axes[summed[0]] if len(summed) == 1 else None
        full = len(origin.shape) == 2 and math.prod(values[side].shape) == math.prod(origin.shape)
        if axis_in is None or not full or batched[0] or other.size != self.rows * origin.shape[axis_in]:
            self.problems.setdefault(origin.path, "it is not a matrix that multiplies one vector for each row")
            return result, None
        if origin.path in self.layers:
            self.problems[origin.path] = "it is used twice"
            return result, None
        self.layers[origin.path] = DenseLayer(origin.path, axis_in == 1, None)
        size_out = origin.shape[1 - axis_in]
        rows = jnp.moveaxis(other, contracted[1 - side][0], -1).reshape(self.rows, -1)
        self.inputs[origin.path] = rows
        shift = self.shifts.get(origin.path)
        if shift is not None:
            shift = shift.T if side == 0 else shift
            result = result + shift.reshape(result.shape).astype(result.dtype)
        return result, LayerOutput(origin.path, self._axis_out(origin, summed[0], axis_in, side, values, size_out))

    def _axis_out(
        self, origin: Origin, summed: int, axis_in: int, side: int, values: list[Any], size_out: int
    ) -> int | None:
        """Where the layer's outputs lie in the product: free axes of the left operand come first."""
        free = [axis for axis in range(values[side].ndim) if axis != summed]
        index = next((i for i, axis in enumerate(free) if origin.axes[axis] == 1 - axis_in), None)
        if index is None or size_out == 1:
            return None
        return index if side == 0 else values[0].ndim - 1 + index

    def _bias(self, notes: list[Any]) -> LayerOutput | None:
        """W a + b: the bias belongs to the layer where it runs along the layer's outputs."""
        origin = next(n for n in notes if isinstance(n, Origin))
        output = next((n for n in notes if isinstance(n, LayerOutput)), None)
        layer = None if output is None else self.layers.get(output.kernel)
        size_out = 0 if layer is None else self._size_out(layer)
        along = output is not None and (size_out == 1 or (0 in origin.axes and origin.axes.index(0) == output.axis))
        if layer is None or layer.bias is not None or origin.shape != (size_out,) or not along:
            self.problems.setdefault(origin.path, "it is added to something else than a dense layer's output")
            return None
        if any(origin.path == other.bias for other in self.layers.values()):
            self.problems[origin.path] = "it is used twice"
            return None
        self.layers[layer.kernel] = layer._replace(bias=origin.path)
        return output

    def _size_out(self, layer: DenseLayer) -> int:
        return self.shapes[layer.kernel][0 if layer.rows_out else 1]


def read_program(
    closed: Any, params: dict[str, Any], rest: list[Any], rows: int, shifts: dict[str, jax.Array]
) -> tuple[jax.Array, Reader, str | None]:
    """Outputs, the reader, and the kernel of the layer whose output is the network's.

    Args:
        closed: the program of f(params, *rest), as `jax.make_jaxpr` gives it.
        params: arrays by path, in the order of the program's first arguments.
        rest: the program's other arguments.
        rows: n.
        shifts: [n, out] by kernel path.
    """
    reader = Reader(rows, shifts, {path: tuple(x.shape) for path, x in params.items()})
    marked = [(x, Origin(path, tuple(x.shape), tuple(range(x.ndim)))) for path, x in params.items()]
    (outputs, note), *_ = reader.run(closed.jaxpr, closed.consts, [*marked, *((x, None) for x in rest)])
    return outputs, reader, note.kernel if isinstance(note, LayerOutput) else None


def _evaluate(eqn: Any, values: list[Any]) -> list[Any]:
    params = eqn.primitive.get_bind_params(eqn.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # older versions of JAX give both
    with eqn.ctx.manager:
        result = eqn.primitive.bind(*functions, *values, **params)
    return list(result) if eqn.primitive.multiple_results else [result]


def _alias(name: str, params: dict[str, Any], note: Any, before: Any, after: Any) -> Any:
    """The note of a value whose axes moved; None where they cannot be traced."""
    axes: list[int | None]
    if isinstance(note, LayerOutput):
        axes = [0 if i == note.axis else None for i in range(len(before))]
    else:
        axes = list(note.axes)
    moved: list[int | None] = [None] * len(after)
    if name == "transpose":
        moved = [axes[i] for i in params["permutation"]]
    elif name == "broadcast_in_dim":
        for i, j in enumerate(params["broadcast_dimensions"]):
            moved[j] = axes[i] if before[i] == after[j] else None
    elif name in ("reshape", "squeeze", "expand_dims"):
        old_axes = [(i, n) for i, n in enumerate(before) if n != 1]
        new_axes = [(i, n) for i, n in enumerate(after) if n != 1]
        if [n for _, n in old_axes] != [n for _, n in new_axes]:
            return None
        for (i, _), (j, _) in zip(old_axes, new_axes):
            moved[j] = axes[i]
    else:
        moved = axes
    if isinstance(note, Origin):
        return note._replace(axes=tuple(moved))
    if note.axis is None:
        return note
    return note._replace(axis=moved.index(0)) if 0 in moved else None
