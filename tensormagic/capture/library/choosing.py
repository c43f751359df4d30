"""NumPy's elementwise functions that select, compare and round, on lazy arrays: where, clip, select, isclose, round and the like."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.hooks import hooks
from tensormagic.capture.library.selection import nonzero
from tensormagic.capture.names import implements
from tensormagic.capture.numbers.operands import is_huge
from tensormagic.capture.values.arguments import MISSING, by_mode, done, given, into_out, known, strong, tensor
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor, extent, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import apply, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops.effects.checks import fits, in_range
from tensormagic.ops.form import to_form
from tensormagic.ops.indices import sorting
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.move import broadcast
from tensormagic.ops.move_kind import broadcast_shapes, same
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import bessel, scalar, special
from tensormagic.ops.scalars.complex_parts import from_parts


@implements(np.where)
def where(condition: Any, /, *values: Any) -> Any:
    """Implement ``np.where``; with one argument the places where it is true."""
    if not values:
        return nonzero(condition)
    if len(values) != 2:
        raise ValueError("either both or neither of x and y should be given")
    result = choose_from(condition, *values)
    return wrap(to_form(result.node, "array"))


def choose_from(condition: Any, first: Any, second: Any) -> Tensor:
    """Return the first value where the condition is true, else the second: a number, if all are numbers."""
    return build(scalar.where, condition, _wrapped(first, second), _wrapped(second, first))


def _wrapped(value: Any, other: Any) -> Any:
    """Return a value of ``where``; a Python integer that the other's dtype does not hold wraps, or is an error from NumPy 2.5 on."""
    t = node_of(other).type
    if t.form == "python" or t.dtype.kind not in "iu" or is_huge(value):
        return value
    if type(value) is int:
        return np.asarray(value).astype(t.dtype)[()] if _wraps() else t.dtype.type(value)
    if isinstance(value, Tensor) and value.type == python(int):
        node = value.node if _wraps() else fits(value.node, t.dtype)
        return wrap(astype(to_form(node, "scalar"), t.dtype))
    return value


@cache
def _wraps() -> bool:
    """Return whether this NumPy's ``np.where`` wraps Python's integers."""
    try:
        np.where([True], np.int8(1), 300)
    except OverflowError:
        return False
    return True


@implements(np.clip)
def clip(
    a: Any,
    a_min: Any = MISSING,
    a_max: Any = MISSING,
    out: Any = None,
    *,
    min: Any = MISSING,
    max: Any = MISSING,
    **options: Any,
) -> Any:
    """Implement ``np.clip``."""
    missing = [name for name, bound in (("a_min", a_min), ("a_max", a_max)) if bound is MISSING]
    if len(missing) == 1:
        raise TypeError(f"clip() missing 1 required positional argument: {missing[0]!r}")
    if missing:
        return _clipped(a, None if min is MISSING else min, None if max is MISSING else max, out, **options)
    if min is not MISSING or max is not MISSING:
        raise ValueError("`min` and `max` are other names for `a_min` and `a_max`, which were given, too")
    return _clipped(a, a_min, a_max, out, **options)


def _clipped(a: Any, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
    """Implement ``ndarray.clip``."""
    if options:
        refuse(f"np.clip with {', '.join(options)}", "Leave the option out.")
    x = strong(a)
    low, high = _bound(min, x, "min"), _bound(max, x, "max")
    if not given(min) and not given(max) and x.dtype.kind == "b":
        raise DTypeError("ufunc 'positive', which is np.clip without bounds, does not take truth values")
    result = x if low is None else build(scalar.maximum, x, low)
    result = result if high is None else build(scalar.minimum, result, high)
    return into_out(result.node, out, "clip") if result is not x or given(out) else x.copy()


hooks.methods["clip"] = _clipped


def _bound(value: Any, x: Tensor, which: str) -> Any:
    """Return a bound of ``clip``; None for a Python integer beyond the dtype's range, which bounds nothing, as in NumPy."""
    if not given(value):
        return None
    whole = type(value) is int or (isinstance(value, Tensor) and value.type == python(int))
    if not whole or x.dtype.kind not in "iu":
        return value
    limit = int(getattr(np.iinfo(x.dtype), which))
    if isinstance(value, Tensor):
        inner = scalar.maximum if which == "min" else scalar.minimum
        return value if is_huge(limit) else build(inner, value, limit)
    return None if (value <= limit if which == "min" else value >= limit) else value


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Implement ``np.nan_to_num``."""
    if not copy and isinstance(x, Tensor) and x.type.form == "array":
        x[...] = nan_to_num(x, True, nan, posinf, neginf)
        return x
    if not copy:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    value = strong(x)
    if not value.type.inexact:
        return strong(done(to_form(value.node, "scalar"))) if not value.ndim else value.copy()
    if value.dtype.kind == "c":
        parts = [nan_to_num(p.copy(), True, nan, posinf, neginf) for p in (value.real, value.imag)]
        return build(from_parts, *parts).astype(value.dtype)
    limits = np.finfo(value.dtype)
    value = choose_from(build(scalar.isnan, value), nan, value)
    value = choose_from(build(scalar.equal, value, np.inf), limits.max.item() if posinf is None else posinf, value)
    return choose_from(build(scalar.equal, value, -np.inf), limits.min.item() if neginf is None else neginf, value)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Implement ``np.select``: the choice of the first condition that is true."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    conditions = [node_of(c) for c in condlist]
    if any(c.type.dtype.kind != "b" for c in conditions):
        raise DTypeError("invalid entry in condlist: should be boolean ndarray")
    choices = [node_of(c) for c in (*choicelist, default)]
    dtype = np.result_type(*(_weak(c) for c in choices))
    *parts, result = [astype(c, dtype) for c in choices]
    shape = broadcast_shapes([n.type.shape for n in (*conditions, *parts)])
    result = broadcast(result, shape) if shape else to_form(result, "array")
    for condition, part in zip(conditions[::-1], parts[::-1], strict=True):
        result = scalar.where(condition, part, result)
    return done(to_form(result, "array"))


def _weak(node: Node) -> Any:
    """Return an operand of ``np.result_type``: Python numbers are weak."""
    if node.type.form == "python":
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[node.type.dtype.kind]
    return node.type.dtype


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any) -> Any:
    """Implement ``np.piecewise``: the functions are called on all elements, and their results selected by the conditions."""
    value = tensor(x)
    conditions = _conditions(condlist, value)
    functions = list(funclist)
    if len(functions) not in {len(conditions), len(conditions) + 1}:
        count = len(conditions)
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    results = [f(value, *args, **options) if callable(f) else f for f in functions]
    rest = results[len(conditions)] if len(results) > len(conditions) else 0
    result = astype(broadcast(node_of(rest), value.type.shape), value.dtype)
    for condition, found in zip(conditions, results, strict=False):  # the last one that is true wins
        result = scalar.where(condition, astype(node_of(found), value.dtype), result)
    return done(to_form(result, "array"))


def _conditions(condlist: Any, x: Tensor) -> list[Node]:
    """Return the conditions: one, or one for each row of an array that has one axis more than ``x``."""
    if isinstance(condlist, list | tuple) and len(condlist) and not all(isinstance(c, bool) for c in condlist):
        return [astype(node_of(c), bool) for c in condlist]
    node = astype(node_of(condlist), bool)
    if node.type.ndim <= x.ndim:
        return [node]
    whole = wrap(node)
    return [whole[k].node for k in range(int(whole.shape[0]))]


@implements(np.choose, method="choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Implement ``np.choose``; an index out of bounds is a ValueError, or with ``mode`` wraps around or is clipped."""
    index = node_of(a)
    if index.type.dtype.kind not in "biu":
        raise DTypeError(f"Cannot cast array data from {index.type.dtype!r} to dtype('int64')")
    parts = [node_of(c) for c in (tensor(choices) if isinstance(choices, Tensor | np.ndarray) else choices)]
    dtype = np.result_type(*(p.type.dtype.type(0).item() if p.type.form == "python" else p.type.dtype for p in parts))
    index = astype(index, np.int64)
    index = by_mode(index, len(parts), mode)
    if mode == "raise":
        index = in_range(index, 0, len(parts), "invalid entry in choice array")
    shape = broadcast_shapes([n.type.shape for n in (index, *parts)])
    result = constant(dtype.type(0))
    for k, part in enumerate(parts):
        result = scalar.where(scalar.equal(index, k), astype(part, dtype), result)
    return into_out(broadcast(result, shape) if shape else to_form(result, "scalar"), out, "choose")


# comparing ------------------------------------------------------------------------------------------------------------


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Implement ``np.isclose``."""
    x, y = strong(a), strong(b)
    if not y.type.inexact:
        y = y.astype(np.result_type(y.dtype, 1.0))
    near = build(scalar.less_equal, abs(x - y), atol + rtol * abs(y))
    result = build(scalar.logical_or, build(scalar.logical_and, near, build(scalar.isfinite, y)), x == y)
    if equal_nan:
        both = build(scalar.logical_and, build(scalar.isnan, x), build(scalar.isnan, y))
        result = build(scalar.logical_or, result, both)
    return result


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Implement ``np.allclose``."""
    return _python_bool(isclose(a, b, rtol, atol, equal_nan).all())


def _python_bool(value: Tensor) -> Tensor:
    return wrap(to_form(value.node, "python"))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Implement ``np.array_equal``."""
    x, y = tensor(a1), tensor(a2)
    shapes = x.type.shape, y.type.shape
    if len(shapes[0]) != len(shapes[1]) or not all(map(same, *shapes)):
        return False
    if not any(nodes_of(s) or nodes_of(t) for s, t in zip(*shapes, strict=True)):
        return _python_bool(_equal(x, y, equal_nan).all())
    common = tuple(slice(0, extent(apply("min", s, t))) for s, t in zip(*shapes, strict=True))
    alike = [scalar.equal(size_node(s), size_node(t)) for s, t in zip(*shapes, strict=True)]
    return _python_bool(wrap(reduce(scalar.logical_and, alike, _equal(x[common], y[common], equal_nan).all().node)))


def _equal(x: Tensor, y: Tensor, equal_nan: bool) -> Tensor:
    result = build(scalar.equal, x, y)
    if equal_nan and x.type.inexact and y.type.inexact:
        both = build(scalar.logical_and, build(scalar.isnan, x), build(scalar.isnan, y))
        result = build(scalar.logical_or, result, both)
    return result


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Implement ``np.array_equiv``."""
    x, y = tensor(a1), tensor(a2)
    if x.type.shape != y.type.shape and any(nodes_of(s) for v in (x, y) for s in v.type.shape):
        refuse("np.array_equiv of arrays whose sizes depend on data", "Use np.array_equal.")
    try:
        broadcast_shapes([x.type.shape, y.type.shape])
    except ShapeError:
        return False
    return _python_bool(_equal(x, y, equal_nan=False).all())


def _of_kind(name: str, found: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    def test(x: Any, out: Any = None) -> Any:
        value = strong(x)
        if value.dtype.kind == "c" and name in {"isposinf", "isneginf"}:
            raise DTypeError(f"This operation is not supported for {value.dtype} values because it would be ambiguous.")
        return into_out(found(value).node, out, name)

    return test


def _signed_inf(limit: float) -> Callable[[Tensor], Tensor]:
    return lambda x: build(scalar.equal, x if x.type.inexact else x.astype(np.float64), limit)


implements(np.isposinf)(_of_kind("isposinf", _signed_inf(np.inf)))
implements(np.isneginf)(_of_kind("isneginf", _signed_inf(-np.inf)))


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Implement ``np.isreal``; a Python number gives a Python bool."""
    value = tensor(x)
    found = build(scalar.equal, strong(value).imag, 0)
    return _python_bool(found) if value.type.form == "python" else found


implements(np.iscomplex)(_of_kind("iscomplex", lambda x: build(scalar.not_equal, x.imag, 0)))


@implements(getattr(np, "in1d", "numpy.in1d"))
def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None) -> Any:
    """Implement ``np.in1d``, which NumPy had until 2.3."""
    return isin(tensor(ar1).ravel(), ar2, assume_unique, invert, kind=kind)


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """Implement ``np.isin``: by sorting the test elements, and looking each element up."""
    del assume_unique
    x, wanted = tensor(element), tensor(test_elements).ravel()
    if kind not in {None, "sort", "table"}:
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    if kind == "table" and not {x.dtype.kind, wanted.dtype.kind} <= set("biu"):
        raise ValueError("The 'table' method is only for integers and truth values: select 'sort' or None for kind.")
    x, wanted = (v.astype(np.result_type(x.dtype, wanted.dtype)) for v in (x, wanted))
    if wanted.type.size == 0:
        return done(to_form(broadcast(constant(np.bool_(invert)), x.type.shape), "array"))
    if isinstance(wanted.type.size, int) and wanted.type.size <= 16:
        hits = [build(scalar.equal, x, wanted[k]) for k in range(wanted.type.size)]
        found = hits[0]
        for hit in hits[1:]:
            found = build(scalar.logical_or, found, hit)
    else:
        rows = sorting.sort(wanted.node)
        first, behind = (sorting.searchsorted(rows, x.node, side=side) for side in ("left", "right"))
        found = wrap(scalar.less(first, behind))
        if x.type.inexact:  # nan becomes nan, and equals nothing
            found = build(scalar.logical_and, found, build(scalar.equal, x, x))
    result = build(scalar.logical_not, found) if invert else found
    return done(to_form(result.node, "array"))


# rounding -------------------------------------------------------------------------------------------------------------


@cache
def _is_round() -> bool:
    """Return whether rounding integers returns the same array, and no copy, as before NumPy 2.4."""
    array = np.arange(2)
    return array.round() is array


@implements(np.round, np.around, method="round")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """Implement ``np.round``: halves are rounded to even; decimals are scaled by a power of ten, as in NumPy."""
    x, decimals = strong(a), int(known(decimals, "the decimals of np.round"))
    if decimals == 0 and x.type.inexact:  # complex ones too: a sum with 1j would make nan of an infinite part
        return into_out(scalar.rint(x.node), out, "round")
    if x.dtype.kind == "c":
        parts = [round_(p.copy(), decimals) for p in (x.real, x.imag)]
        return into_out(build(from_parts, *parts).astype(x.dtype).node, out, "round")
    if x.dtype.kind in "biu":
        itself = isinstance(a, Tensor) and a.ndim and not given(out) and _is_round()
        return a if x.dtype.kind != "b" and decimals >= 0 and itself else into_out(_whole(x, decimals), out, "round")
    power = 10.0 ** abs(decimals)
    scaled = x * power if decimals > 0 else x / power
    rounded = build(scalar.rint, scaled)
    return into_out((rounded / power if decimals > 0 else rounded * power).node, out, "round")


def _whole(x: Tensor, decimals: int) -> Node:
    """Return integers, or booleans, rounded."""
    if x.dtype.kind == "b" and decimals > 0:
        raise DTypeError("Cannot cast ufunc 'multiply' output from dtype('float64') to dtype('bool')")
    if decimals >= 0:
        whole = x.node if x.dtype.kind != "b" else scalar.rint(x.node)
        return whole if x.ndim else to_form(whole, "scalar")
    if x.dtype.kind == "b":
        refuse("np.round of truth values to negative decimals", "Convert them with astype(int).")
    power = 10.0**-decimals
    return astype((build(scalar.rint, x / power) * power).node, x.dtype)


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Implement ``np.fix``: rounded to zero."""
    return into_out(scalar.trunc(strong(x).node), out, "fix")


@implements(np.fabs)
def fabs(x: Any) -> Any:
    """Implement ``np.fabs``: the absolute value of a real number, as a float."""
    value = strong(x)
    if value.dtype.kind == "c":
        raise DTypeError("ufunc 'fabs' not supported for the input types: complex numbers", "Use np.abs.")
    return build(scalar.absolute, value if value.dtype.kind == "f" else build(scalar.rint, value))


@implements(np.float_power)
def float_power(x1: Any, x2: Any) -> Any:
    """Implement ``np.float_power``: a power in double precision."""
    values = [strong(v) for v in (x1, x2)]
    kind = np.complex128 if any(v.dtype.kind == "c" for v in values) else np.float64
    return build(scalar.power, *(v.astype(kind) for v in values))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Implement ``np.sinc``: sin(pi x)/(pi x), 1 at 0."""
    value = strong(x)
    return build(special.sinc, value if value.type.inexact else value.astype(np.float64))


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """Implement ``np.angle``."""
    x = strong(z)
    x = x if x.dtype.kind != "b" else x.astype(np.int64)
    result = build(scalar.arctan2, x.imag, x.real)
    return result * (180 / np.pi) if deg else result


@implements(np.modf)
def modf(x: Any) -> Any:
    """Implement ``np.modf``: the fractional and the integral part, each with the sign of ``x``."""
    value = strong(x)
    value = value if value.type.inexact else build(scalar.rint, value)
    whole = build(scalar.trunc, value)
    infinite = build(scalar.equal, abs(value), np.inf)
    rest = choose_from(infinite, 0.0, value - choose_from(infinite, 0.0, whole))
    return build(scalar.copysign, rest, value), whole


@implements(np.bitwise_count)
def bitwise_count(x: Any) -> Any:
    """Implement ``np.bitwise_count``: by sums of neighbouring bits, then of pairs, and so on."""
    value = strong(x)
    if value.dtype.kind not in "biu":
        raise DTypeError("ufunc 'bitwise_count' not supported for the input types")
    bits = (abs(value) if value.dtype.kind == "i" else value).astype(np.uint64).node
    for width, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        kept = constant(np.uint64(mask))
        above = scalar.right_shift(bits, constant(np.uint64(width)))
        bits = scalar.bitwise_and(bits, kept) + scalar.bitwise_and(above, kept)
    total = scalar.right_shift(bits * constant(np.uint64(0x0101010101010101)), constant(np.uint64(56)))
    return done(astype(total, np.uint8))


@implements(np.i0)
def i0(x: Any) -> Any:
    """Implement ``np.i0``."""
    value = strong(x)
    if value.dtype.kind == "c":
        raise DTypeError("i0 not supported for complex values")
    value = value if value.type.inexact else value.astype(np.float64)
    return done(to_form(astype(bessel.i0(value.node), value.dtype), "array"))
