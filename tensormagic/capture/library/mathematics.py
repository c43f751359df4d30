"""Python's ``math`` on lazy numbers: the ops of the same meaning in float64, with Python's errors when the graph runs.

NumPy's functions compute the values: the last digits may differ from Python's own.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.errors.refusal import refuse_several_elements, values_are_there, zero_like
from tensormagic.capture.foreign.calls import call_library
from tensormagic.capture.names import unknown
from tensormagic.capture.numbers.known_values import static_int
from tensormagic.capture.python.words import said
from tensormagic.capture.staging.calls.foreign_functions import with_arrays
from tensormagic.capture.staging.numbers.conversions import whole_number
from tensormagic.capture.values.arguments import done
from tensormagic.capture.values.operands import has_lazy, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import require
from tensormagic.ops.form import to_form
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar

_NAMES = {"fabs": "absolute", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
          "acosh": "arccosh", "atanh": "arctanh", "lgamma": "gammaln", "pow": "power"}  # fmt: skip
_OF_FLOATS = {
    *_NAMES, "sqrt", "cbrt", "exp", "exp2", "expm1", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf",
    "erfc", "gamma", "degrees", "radians", "fmod", "copysign", "isnan", "isinf", "isfinite", "nextafter",
}  # fmt: skip
_NEVER_FAIL = {"fabs", "atan", "atan2", "asinh", "tanh", "erf", "erfc", "degrees", "radians", "copysign", "isnan", "isinf",
               "isfinite", "nextafter"}  # fmt: skip
_POLES = {
    "log",
    "log2",
    "log10",
    "log1p",
    "atanh",
    "lgamma",
    "pow",
    "gamma",
}  # functions that are infinite without any number being too large
_OF_INTEGERS = {"gcd", "lcm", "factorial", "comb", "perm", "isqrt"}


@functools.cache
def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``math`` as captured code calls it: Python's on numbers; on lazy ones, the graph's."""
    name = function.__name__

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not any(map(has_lazy, (*args, *options.values()))):
            return function(*args, **options)
        if not values_are_there() and name not in _CAPTURED:
            return _as_it_is(function, args)
        if name in _OF_INTEGERS:
            return _of_integers(function, args)
        own = _OWN.get(name)
        if own is not None:
            return own(*args, **options)
        if name not in _OF_FLOATS or options:
            return call_library(function, args, options, unknown(f"math.{name}"))
        return _computed(name, *(_as_float(a, name) for a in args))

    return call


def _as_float(value: Any, name: str) -> Node:
    """Return a real number as Python's float, as every function of ``math`` takes it first."""
    node = node_of(value)
    refuse_several_elements(float, node.type)
    if node.type.shape:
        raise unknown(f"math.{name}")
    if node.type.dtype.kind == "c":
        raise DTypeError(f"math.{name}: must be real number, not complex", "Take its .real, or use NumPy's function.")
    return to_form(astype(node, np.dtype(float)), "python")


def _computed(name: str, *args: Node) -> Tensor:
    """Return the result of one op, with the errors of Python's function where it has no value."""
    op: Any = registry.get(_NAMES.get(name, name))
    if op is None or op.kind != "pointwise":
        raise unknown(f"math.{name}")
    result = to_form(op(*args), "python")
    return done(result if name in _NEVER_FAIL else _checked(name, result, args))


def _checked(name: str, result: Node, args: tuple[Node, ...]) -> Node:
    """Return a result with checks: it may be nan only if an argument is, and infinite only if an argument is."""
    given_nan = functools.reduce(scalar.logical_or, map(scalar.isnan, args))
    defined = scalar.logical_or(scalar.logical_not(scalar.isnan(result)), given_nan)
    infinite = scalar.logical_and(
        scalar.isinf(result), functools.reduce(scalar.logical_and, map(scalar.isfinite, args))
    )
    if name not in _POLES:
        result = require(result, defined, _outside(name))
        return result if name == "sqrt" else _within(result, infinite)
    if name in {"pow", "gamma"}:
        is_pole = scalar.equal if name == "pow" else scalar.less_equal
        at_pole = scalar.logical_and(infinite, is_pole(args[0], 0.0))
        checked = require(result, scalar.logical_and(defined, scalar.logical_not(at_pole)), _outside(name))
        return _within(checked, infinite)
    return require(result, scalar.logical_and(defined, scalar.logical_not(infinite)), _outside(name))


@functools.cache
def _outside(name: str) -> str:
    """Return the error message of a function for numbers that it has no value for."""
    function: Callable[..., float] = getattr(math, name)
    for args in ((-2.0,), (2.0,), (math.inf,), (-2.0, 0.5), (1.0, 0.0)):
        with contextlib.suppress(OverflowError, TypeError):
            try:
                function(*args)
            except ValueError:
                return said(function, *args)
    return said(math.pow, -2.0, 0.5)


def _within(result: Node, infinite: Node) -> Node:
    return require(result, scalar.logical_not(infinite), "math range error", "overflow")


def _of_integers(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return Python's result for known integers; for others the op."""
    known = [static_int(a.node) if isinstance(a, Tensor) else a for a in args]
    if None not in known:
        return function(*known)
    op: Any = registry.get(function.__name__)
    nodes = [node_of(a) for a in args]
    if op is None or op.kind != "pointwise" or any(n.type.shape for n in nodes):
        return call_library(function, args, {}, unknown(f"math.{function.__name__}"))
    if any(n.type.dtype.kind not in "biu" for n in nodes):
        raise DTypeError(f"math.{function.__name__}: 'float' object cannot be interpreted as an integer")
    return done(functools.reduce(op, [to_form(astype(n, np.dtype(int)), "python") for n in nodes]))


def _as_it_is(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the result of a function without an op: Python's own, called with the numbers whenever the graph runs."""
    listed = [list(a) if isinstance(a, Tensor) and a.ndim else a for a in args]
    return with_arrays(function, "Python")(*listed)


def _modf(value: Any) -> Any:
    """Implement ``math.modf``: the fraction and the whole part, both with the sign of the number."""
    number = _as_float(value, "modf")
    whole = scalar.trunc(number)
    rest = scalar.copysign(scalar.subtract(number, whole), number)
    fraction = scalar.where(scalar.isinf(number), scalar.copysign(0.0, number), rest)
    return done(to_form(fraction, "python")), done(to_form(whole, "python"))


def _parts(value: Any) -> Any:
    """Implement ``math.frexp``."""
    mantissa, exponent = np.frexp(wrap(_as_float(value, "frexp")))
    return wrap(to_form(node_of(mantissa), "python")), wrap(to_form(astype(node_of(exponent), int), "python"))


def _ldexp(value: Any, exponent: Any) -> Any:
    """Implement ``math.ldexp``."""
    number, power = _as_float(value, "ldexp"), node_of(exponent)
    if power.type.shape or power.type.dtype.kind not in "biu":
        raise DTypeError("Expected an int as second argument to ldexp.")
    math.ldexp(0.0, zero_like(power.type))  # for which NumPy's integers count as none in some versions of Python
    found = to_form(node_of(np.ldexp(wrap(number), wrap(power))), "python")
    infinite = scalar.logical_and(scalar.isinf(found), scalar.isfinite(number))
    return done(_within(found, infinite))


def _dist(first: Any, second: Any, /) -> Any:
    """Implement ``math.dist``."""
    pairs = list(zip(first, second, strict=False))
    if len(first) != len(second):
        raise ValueError("both points must have the same number of dimensions")
    return _hypot(*[wrap(_as_float(a, "dist")) - wrap(_as_float(b, "dist")) for a, b in pairs])


def _log(value: Any, *base: Any) -> Any:
    """Implement ``math.log``."""
    found = _computed("log", _as_float(value, "log"))
    return found / _log(*base) if base else found


def _hypot(*coordinates: Any) -> Any:
    """Implement ``math.hypot``, of two after each other."""
    parts = [_as_float(c, "hypot") for c in coordinates]
    total = parts[0] if len(parts) > 1 else scalar.absolute(parts[0])
    for part in parts[1:]:
        total = _computed("hypot", total, part).node
    return done(total)


def _rounded(name: str) -> Callable[[Any], Any]:
    """Return ``math.floor``, ``ceil`` or ``trunc``, which give integers, for lazy numbers."""
    op: Any = registry[name]

    def call(value: Any) -> Any:
        if name == "trunc":
            given = node_of(value).type
            if given.form != "python" and (
                given.form == "array" or given.dtype != np.float64
            ):  # it has Python's methods
                if given.form == "scalar":
                    raise TypeError(said(math.trunc, given.dtype.type()))
                raise TypeError(said(math.trunc, np.float32()).replace("float32", "ndarray"))
        number = _as_float(value, name)
        return whole_number(wrap(op(number) if node_of(value).type.inexact else node_of(value)))

    return call


def _prod(values: Any, /, *, start: Any = 1) -> Any:
    """Implement ``math.prod``: of values that are there, or of a list or an array."""
    if not isinstance(values, list | tuple | Tensor) and not values_are_there():
        raise unknown("math.prod")
    return functools.reduce(lambda total, value: total * value, values, start)


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """Implement ``math.isclose``."""
    if not has_lazy(rel_tol) and not has_lazy(abs_tol) and (rel_tol < 0 or abs_tol < 0):
        raise ValueError("tolerances must be non-negative")
    left, right = _as_float(a, "isclose"), _as_float(b, "isclose")
    larger = scalar.maximum(scalar.absolute(left), scalar.absolute(right))
    allowed = scalar.maximum(scalar.multiply(larger, node_of(rel_tol)), node_of(abs_tol))
    near = scalar.less_equal(scalar.absolute(scalar.subtract(left, right)), allowed)
    near = scalar.logical_and(near, scalar.isfinite(larger))
    return done(to_form(scalar.logical_or(scalar.equal(left, right), near), "python"))


_OWN: dict[str, Callable[..., Any]] = {
    "log": _log,
    "hypot": _hypot,
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "trunc": _rounded("trunc"),
    "prod": _prod,
    "isclose": _isclose,
    "modf": _modf,
    "frexp": _parts,
    "ldexp": _ldexp,
    "dist": _dist,
}
_CAPTURED = {*_OF_FLOATS, *_OWN, "gcd", "lcm"}  # others run as Python's own, whenever the graph runs
