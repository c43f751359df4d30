"""The pointwise kind: scalar functions, applied element by element to operands of one shape and of the loop's own dtypes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Bounds, Guard
from tensormagic.ir.stored import SINGLE, dtype_of, is_stored, text_of
from tensormagic.ir.type import Size, Type, python_kind
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import broadcast, stretch
from tensormagic.ops.move_kind import broadcast_shapes
from tensormagic.ops.op import Op, Tangent, Value, as_form
from tensormagic.ops.rows import Axes, Found, Mixed, common_axis, shifted
from tensormagic.ops.tangents import multiply_by, total

Weak = Any  # a dtype, or a Python class for a weak operand
Signature = tuple[tuple[np.dtype[Any], ...], np.dtype[Any]]


def ufunc_dtypes(ufunc: np.ufunc) -> Callable[[Sequence[Weak]], Signature]:
    """Return a function for NumPy's own choice of loop for a ufunc with one result."""

    def resolve(operands: Sequence[Weak]) -> Signature:
        *loop, out = ufunc.resolve_dtypes((*operands, None))
        return tuple(loop), out

    return resolve


@dataclass(frozen=True, eq=False, kw_only=True)
class Pointwise(Op):
    """A scalar function.

    Parameters
    ----------
    numpy
        The NumPy (or SciPy) function, usually a ufunc.
    source
        The scalar expression that the code generator prints, ``{0}`` for the first operand: one text for floats, or
        one for each dtype kind (``"f"``, ``"i"``, ``"u"``, ``"b"``, ``"c"``) or dtype (``"f8"``). What has no text runs in NumPy.
    complex_source, complex_elements
        The scalar expression for complex numbers, empty where NumPy computes them; and that for elements of arrays, where it is another.
    partials
        ``partials(out, *operands)``: the partial derivatives as nodes, one an operand (a single node for one operand).
    step
        Whether the function is piecewise constant: its derivative is zero. A text names the dtype kinds for which it is.
    dtypes
        The loop's dtypes for given operands, where ``numpy`` is no ufunc.
    domain
        For which operands the derivative is tested.
    fixed
        Of the first operands, which have no derivative (orders, a condition): four values each, at which tests differentiate by the others.
    body
        The function in simpler ops, which the planner puts in its place.
    linearise, back
        The tangent, and the transpose, of a function that is linear or not holomorphic, in place of ``partials``.
    sizes
        The function of two sizes, where it is a size again; None where it is none.
    between
        For integers without axes, the sizes between which a node's value lies.
    numbers
        By dtype kind, Python's operator for numbers, where NumPy's scalars round otherwise than its arrays.
    """

    kind = "pointwise"
    numpy: Callable[..., Value] = field(repr=False)
    source: str | Mapping[str, str] = field(default_factory=dict, repr=False)
    complex_source: str = field(default="", repr=False)
    complex_elements: str = field(default="", repr=False)
    partials: Callable[..., Any] | None = field(default=None, repr=False)
    step: bool | str = False
    dtypes: Callable[[Sequence[Weak]], Signature] | None = field(default=None, repr=False)
    domain: tuple[float, float] = (-np.inf, np.inf)
    fixed: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    body: Callable[..., Node] | None = field(default=None, repr=False)
    linearise: Callable[[Node, Sequence[Tangent]], Tangent] | None = field(default=None, repr=False)
    back: Callable[[Node, Node, Sequence[bool]], Sequence[Tangent]] | None = field(default=None, repr=False)
    numbers: Mapping[str, Callable[..., Value]] = field(default_factory=dict, repr=False)
    sizes: Callable[[Size, Size], Size | None] | None = field(default=None, repr=False)
    between: Callable[[Node], Bounds] | None = field(default=None, repr=False)
    arity: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.numpy, np.ufunc):
            object.__setattr__(self, "arity", self.numpy.nin)

    def __call__(self, *operands: Any) -> Node:
        """Return the node of this function on nodes and Python numbers, promoted and broadcast as NumPy does."""
        nodes = [operand if isinstance(operand, Node) else constant(operand) for operand in operands]
        types = [n.type for n in nodes]
        first = types[0]
        if first.form == "array" and types.count(first) == len(types) and _of_one(self, first.dtype, len(types)):
            return make(self, nodes)
        loop, out = self.resolve(types)
        for k, dtype in enumerate(map(computed_in, loop)):
            if types[k].dtype != dtype:
                nodes[k] = astype(nodes[k], dtype)
        shape = types[0].shape
        if any(t.shape != shape for t in types):
            shape = broadcast_shapes([t.shape for t in types])
            nodes = [broadcast(n, shape) for n in nodes]
        return astype(make(self, nodes), out) if is_stored(out) else make(self, nodes)

    def resolve(self, types: Sequence[Type]) -> Signature:
        """Return the dtypes of the loop for operands of these types (NEP 50); raise DTypeError if there is none."""
        try:
            return _loop(self, tuple([(t.dtype, t.form == "python") for t in types]))
        except TypeError as error:
            shown, why = ", ".join(map(str, types)), f": {error}" if str(error) else ""
            raise DTypeError(f"{self.name} does not take operands of type {shown}{why}") from None

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        types = [a.type for a in args]
        first = types[0]
        if first.shape and first.form == "array" and types.count(first) == len(types):  # the case of nearly all calls
            out = _of_one(self, first.dtype, len(types))
            if out is not None:
                return first if out is first.dtype or out == first.dtype else Type(out, first.shape)
        shape = broadcast_shapes([t.shape for t in types])
        _, out = self.resolve([Type(t.dtype, t.shape) if t.form == "python" else t for t in types])
        weak = not shape and all(t.form == "python" for t in types) and out.kind in "bifc"
        return Type(out, shape, "python" if weak else "array" if shape else "scalar")

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        strong = [np.asarray(v)[()] if a.type.form == "python" else v for v, a in zip(values, node.args, strict=True)]
        operator = self.numbers.get(node.args[0].type.dtype.kind) if self.numbers and not node.type.shape else None
        if operator is not None and all(a.type.form != "array" for a in node.args):
            value = operator(*(np.asarray(v)[()] for v in strong))
        else:
            value = in_parts(self.numpy, strong)
        return as_form(value, node.type.form) if not node.type.shape else value

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        forms = {a.type.form for a in node.args if not a.type.shape}
        infix = self._infix(node, given)
        if node.type.shape:  # (a comparison with a number would take longer than the whole step)
            return self._of_arrays(node, given, None if len(given) == 1 else infix, scope)
        if node.type.form == "array" or "array" in forms:
            return None
        return self._of_numbers(node, given, infix, forms, scope)

    def _infix(self, node: Node, given: Sequence[str]) -> str | None:
        """Return a Python operator, if the scalar code is one and means the same as NumPy's on numbers and arrays, or None."""
        kind = node.args[0].type.dtype.kind
        source = self.source if isinstance(self.source, str) else self.source.get(kind, "")
        fits = kind in "fiub" and node.args[0].type.dtype != np.float16 and _OPERATOR.fullmatch(source)
        return f"({source.format(*given)})" if fits else None

    def _of_arrays(self, node: Node, given: Sequence[str], infix: str | None, scope: Any) -> str | None:
        whole = next((g for g, a in zip(given, node.args, strict=True) if takes_whole(a, node)), None)
        if whole is None or not broadcasts(self):
            return None
        function = scope.text.object(self.numpy)
        parts = f"{scope.text.object(in_parts)}({function}, ({', '.join(given)},))"
        value = infix or f"{function}({', '.join(given)})"
        held = scope.overwritten(node) if isinstance(self.numpy, np.ufunc) else None
        if held is not None:
            name, alone = held
            value = (
                f"{value} if {whole}.size < {LARGE} or not ({alone}) else {function}({', '.join(given)}, out={name})"
            )
        return f"{value} if {whole}.size < {PART} else {parts}"

    def _of_numbers(
        self, node: Node, given: Sequence[str], infix: str | None, forms: set[str], scope: Any
    ) -> str | None:
        if self.numpy is np.where:
            same = {a.type.form for a in node.args[1:]} == {node.type.form}
            return f"{given[1]} if {given[0]} else {given[2]}" if same else None
        weak, kind = forms == {"python"}, node.args[0].type.dtype.kind
        infix = infix or _shifted(node, given, weak=weak)
        if infix is None:
            operator = self.numbers.get(kind, self.numpy)
            if operator is self.numpy and not isinstance(self.numpy, np.ufunc):
                return None
            strong = [
                f"{scope.text.object(a.type.dtype.type)}({g})" if a.type.form == "python" else g
                for g, a in zip(given, node.args, strict=True)
            ]
            called = f"{scope.text.object(operator)}({', '.join(strong)})"
            return called if node.type.form == "scalar" else f"{called}.item()"
        if not weak:
            return None if node.type.form != "scalar" else infix
        if node.type.form != "python" or "/" in infix:
            return None
        wraps = node.type.dtype.kind == "i" and self.name not in _WITHIN
        return f"{scope.text.object(_wrapped)}({infix})" if wraps else infix

    def bounds(self, node: Node) -> Bounds:
        if self.between is None or node.type.shape or node.type.dtype.kind not in "iu":
            return None, None
        return self.between(node)

    def scalar_source(self, node: Node) -> str | None:
        """Return the scalar expression for the node's dtypes, or None if it runs in NumPy."""
        dtype = node.args[0].type.dtype
        if isinstance(self.source, str):
            return self.source if dtype.kind == "f" and dtype.itemsize in {4, 8} else None
        return None if dtype == np.float16 else self.source.get(dtype.kind, self.source.get(dtype.str[1:]))

    def guards(self, node: Node) -> list[Guard]:
        shape = node.type.shape
        return [(s, "==", t) for a in node.args for s, t in zip(a.type.shape, shape, strict=True) if s != t]

    def is_step(self, node: Node) -> bool:
        """Return whether the function is piecewise constant for the node's dtypes."""
        return node.args[0].type.dtype.kind in self.step if isinstance(self.step, str) else self.step

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        if self.is_step(node) or not node.type.inexact:
            return None
        if self.linearise is not None:
            return self.linearise(node, tangents) if any(t is not None for t in tangents) else None
        if self.partials is None:
            return super().jvp(node, tangents)  # type: ignore[return-value]
        found = self.partials(node, *node.args)
        partials = found if isinstance(found, tuple) else (found,)
        terms = [multiply_by(p, t) for p, t in zip(partials, tangents, strict=True) if t is not None and p is not None]
        return total(terms)

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        if self.back is None:
            return super().transpose(node, cotangent, linear)
        return self.back(node, cotangent, linear)

    def batch(self, node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
        stacks = [stretch(a, b, size, node.type.shape) for a, b in zip(args, batched, strict=True)]
        return make(self, stacks, **node.params)

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        rank = node.type.ndim
        own_axes = [shifted(a, rank - n.type.ndim) for n, a in zip(node.args, axes, strict=True) if a is not None]
        axis = common_axis(own_axes)
        for n, a in zip(node.args, axes, strict=True):
            own = axis - rank + n.type.ndim
            if a is None and own >= 0 and n.type.shape[own] != 1:
                raise Mixed("combines rows with an array of the same length that is not split")
        return axis

    def expand(self, node: Node) -> Node | None:
        return self.body(*node.args) if self.body else None


_WITHIN = {"bitwise_and", "bitwise_or", "bitwise_xor", "right_shift"}  # results for 64-bit operands have 64 bits


def whole_number(node: Node) -> int | None:
    """Return the value of an integer constant, in any form, or None for any other node."""
    while node.op.name == "form":
        node = node.args[0]
    whole = node.op is CONSTANT and not node.type.shape and node.type.dtype.kind in "iu"
    return int(node["bits"].array()) if whole else None


def _shifted(node: Node, given: Sequence[str], *, weak: bool) -> str | None:
    """Return Python's shift operator for a constant shift by less than the number of bits, as it then equals NumPy's, or None."""
    sign = {"left_shift": "<<", "right_shift": ">>"}.get(node.op.name)
    if sign is None or len({(a.type.dtype, a.type.form) for a in node.args}) != 1:
        return None
    number, bits = whole_number(node.args[1]), 8 * node.args[0].type.dtype.itemsize
    fits = number is not None and 0 <= number < bits and node.type.dtype == node.args[0].type.dtype
    return f"({given[0]} {sign} {given[1]})" if fits and (weak or node.type.form == "scalar") else None


_OPERATOR = re.compile(r"-?\{0\}( ([-+*/&|^]|[<>]=?|[=!]=) (\{[01]\}|0))?")


def _wrapped(number: int) -> int:
    """Return an integer in 64 bits."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def broadcasts(op: Op) -> bool:
    """Return whether NumPy's function of an op broadcasts its operands."""
    return isinstance(op, Pointwise) and (isinstance(op.numpy, np.ufunc) or op.numpy is np.where)


def takes_whole(operand: Node, node: Node) -> bool:
    """Return whether an operand has the shape of ``node``, and is not itself a broadcast."""
    return operand.type.shape == node.type.shape and operand.op.name != "broadcast"


def in_parts(function: Callable[..., Value], operands: Sequence[Value]) -> Value:
    """Return ``function(*operands)``; large arrays are computed in parts, so that an interrupt is noticed in between."""
    arrays = [v for v in operands if isinstance(v, np.ndarray) and v.ndim]
    whole = max(arrays, key=lambda v: v.size, default=None)
    if (
        whole is None
        or whole.size < 2 * PART
        or any(v.shape != whole.shape or not v.flags.c_contiguous for v in arrays)
    ):
        return function(*operands)
    rows = max(1, PART * len(whole) // whole.size)
    result: Any = None
    for start in range(0, len(whole), rows):
        part = slice(start, start + rows)
        given = [v[part] if isinstance(v, np.ndarray) and v.ndim else v for v in operands]
        if result is None:
            first = np.asarray(function(*given))
            result = np.empty(whole.shape, first.dtype)
            result[part] = first
        elif isinstance(function, np.ufunc):
            function(*given, out=result[part])
        else:
            result[part] = function(*given)
    return result


PART = 1 << 22  # elements of a part
LARGE = 1 << 12  # elements from which on reusing memory is faster than allocating


@functools.cache
def _of_one(op: Pointwise, dtype: np.dtype[Any], count: int) -> np.dtype[Any] | None:
    """Return the dtype of the result if all operands have one dtype that the loop takes as it is, or None."""
    if is_stored(dtype):
        return None
    try:
        loop, out = _loop(op, ((dtype, False),) * count)
    except TypeError:
        return None
    return out if all(d == dtype for d in loop) else None


@functools.cache
def _loop(op: Pointwise, operands: tuple[tuple[np.dtype[Any], bool], ...]) -> Signature:
    """Return the dtypes of an op's loop for operands given by dtype and weakness."""
    if any(dtype.kind not in "biufc" and not is_stored(dtype) for dtype, _ in operands):
        raise TypeError
    alone = all(weak for _, weak in operands)
    given: list[Weak] = [
        python_kind(Type(t, (), "python")) if weak and not alone and t.kind != "b" else t for t, weak in operands
    ]
    return (op.dtypes or ufunc_dtypes(op.numpy))(given)  # type: ignore[arg-type]


def computed_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which functions of ``dtype`` are computed: single precision for bfloat16."""
    return SINGLE if is_stored(dtype) else dtype


def in_single(op: Op, nodes: Sequence[Node], **params: Any) -> Node:
    """Return a node that accumulates into its first operand; bfloat16 is accumulated in single precision."""
    dtype = nodes[0].type.dtype
    if not is_stored(dtype):
        return make(op, nodes, **params)
    return astype(make(op, [astype(n, SINGLE) if is_stored(n.type.dtype) else n for n in nodes], **params), dtype)


# casts ----------------------------------------------------------------------------------------------------------------


def _to_kind(value: Value, dtype: np.dtype[Any]) -> Value:
    array: Any = np.asarray(value)
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array != 0 if dtype.kind == "b" else array.real
    return array.astype(dtype)


_PYTHON_DTYPES = {np.dtype(t) for t in (bool, np.int64, np.float64, np.complex128)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Cast(Pointwise):
    """The conversion to another dtype, which is linear between inexact ones."""

    any_dtype = True

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        x, dtype = args[0].type, dtype_of(params["dtype"])
        weak = (
            x.form == "python" and dtype in _PYTHON_DTYPES and not params.get("strong")
        )  # Python numbers among themselves keep their types
        return Type(dtype, x.shape, "python" if weak else "array" if x.shape else "scalar")

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        weak = node.args[0].type.form == "python" and node.type.dtype.kind in "iu" and isinstance(values[0], int)
        value = (
            node.type.dtype.type(values[0]) if weak else _to_kind(values[0], node.type.dtype)
        )  # raises if a weak number does not fit
        return as_form(value, node.type.form) if not node.type.shape else value

    def expression(self, node: Node, given: Sequence[str], scope: Any) -> str | None:
        before, after = node.args[0].type, node.type.dtype
        if before.form == "python" and not before.shape:
            weak = (
                {"f": "float", "i": "int"}.get(after.kind)
                if node.type.form == "python" and before.dtype.kind in "bi"
                else None
            )
            if weak is None and node.type.form == "scalar" and (before.dtype.kind == "i") == (after.kind in "iu"):
                weak = scope.text.object(after.type) if before.dtype.kind in "if" and after.kind in "iuf" else None
            return None if weak is None else f"{weak}({given[0]})"
        if (before.dtype.kind == "c" and after.kind != "c") or (
            not before.shape and "scalar" not in {before.form, node.type.form}
        ):
            return None
        if after.kind == "b" and before.form == node.type.form == "scalar":
            return f"{scope.text.object(np.bool_)}({given[0]})"
        return f"{given[0]}.astype({scope.text.object(after)})"

    def scalar_source(self, node: Node) -> str | None:
        before, after = node.args[0].type.dtype, node.type.dtype
        if np.float16 in {before, after} or "c" in before.kind + after.kind:
            return None
        if after.kind == "b":
            return "{0} != 0"
        if before.kind == "f" and after.kind == "u":
            return None  # NumPy converts values that do not fit in ways of its own
        return "{0}"

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        return astype(tangents[0], node.type.dtype) if node.type.inexact and tangents[0] is not None else None

    def transpose(self, node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
        from tensormagic.ops.scalars.scalar import real

        del linear
        before = node.args[0].type.dtype
        part = real(cotangent) if cotangent.type.dtype.kind == "c" and before.kind == "f" else cotangent
        return (astype(part, before),)


ASTYPE = Cast(name="astype", weight=2, keeps_sign=True, numpy=_to_kind, source="{0}", doc="Convert to another dtype.")


def astype(x: Node, dtype: Any) -> Node:
    """Return ``x.astype(dtype)``; a constant is converted at once, and a Python number that does not fit raises as in NumPy."""
    dtype = np.dtype(dtype)
    if x.type.dtype == dtype:
        return x
    if x.type.form == "python" and (number := _python_number(x)) is not None:
        return constant(dtype.type(number).item() if dtype in _PYTHON_DTYPES else dtype.type(number))
    if x.op is CONSTANT:
        return constant(
            _to_kind(x["bits"].array(), dtype)[()] if not x.type.shape else _to_kind(x["bits"].array(), dtype)
        )
    if x.type.form == "python" and x.type.dtype.kind == "i" and dtype.kind in "iu":
        from tensormagic.ops.effects.checks import fits

        x = fits(x, dtype)
    return make(ASTYPE, (x,), dtype=text_of(dtype))


def _python_number(x: Node) -> Any:
    return x["bits"].array().item() if x.op is CONSTANT else None
