"""Exact values of ops at real numbers, by mpmath, which the errors of float64 are measured against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ops.contract import Contract
from tensormagic.ops.pointwise import Pointwise

DIGITS = 700
"""Enough digits that sums of any float64 numbers are exact."""


class UnknownError(Exception):
    """Raised if something has no definition over real numbers; its text is the name of an op."""


@cache
def numbers() -> Any:
    """Return an mpmath context with enough digits; raise ImportError if mpmath is not installed."""
    import mpmath

    mp = mpmath.mp.clone()
    mp.dps = DIGITS
    return mp


@cache
def _functions() -> Mapping[str, Any]:
    """Return the functions that scalar texts of ops call, over mpmath numbers."""
    mp = numbers()

    def real(function: Callable[..., Any]) -> Callable[..., Any]:
        def at(*values: Any) -> Any:
            found = function(*values)
            return mp.nan if isinstance(found, mp.mpc) else found

        return at

    own = {name: real(getattr(mp, name)) for name in _SAME}
    own |= {name: real(getattr(mp, other)) for name, other in _OTHER.items()}
    own |= {
        "log2": real(lambda x: mp.log(x) / mp.log(2)),
        "log10": real(lambda x: mp.log(x) / mp.log(10)),
        "log1p": real(lambda x: mp.log(1 + x)),
        "exp2": lambda x: mp.power(2, x),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "max_propagate": max,
        "min_propagate": min,
        "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        "logaddexp2": lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y)) / mp.log(2),
        "softplus": lambda x: mp.log(1 + mp.exp(x)),
        "log1mexp": real(lambda x: mp.log(-mp.expm1(x))),
        "logit": real(lambda x: mp.log(x / (1 - x))),
        "log_hypot": real(lambda x, y: mp.log(x * x + y * y) / 2),
        "log_erfc": lambda x: mp.log(mp.erfc(x)),
        "gammaln": lambda x: mp.re(mp.loggamma(x)),  # the logarithm of the gamma function's absolute value
        "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
        "exprel": lambda x: mp.expm1(x) / x if x else mp.one,
        "xlogy": real(lambda x, y: x * mp.log(y) if x else mp.zero),
        "xlog1py": real(lambda x, y: x * mp.log(1 + y) if x else mp.zero),
        "abs": abs,
    }
    below = SimpleNamespace(sqrt=own["sqrt"], inf=mp.inf, floor=mp.floor, ceil=mp.ceil, rint=mp.nint, trunc=_trunc)
    return own | {"math": below, "np": below}


_SAME = (
    *("exp", "expm1", "log", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("erf", "erfc", "hypot", "power", "loggamma"),
)
_OTHER = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
}


def _trunc(x: Any) -> Any:
    mp = numbers()
    return mp.floor(x) if x >= 0 else mp.ceil(x)


def real_number(value: Any) -> Any:
    """Return a number as an exact mpmath number."""
    return numbers().mpf(float(value)) if not isinstance(value, bool | np.bool_) else bool(value)


def reals(values: Any) -> Any:
    """Return numbers as exact mpmath numbers, in an array of objects."""
    return np.frompyfunc(real_number, 1, 1)(values)


def real_values(node: Node, values: Sequence[Any], size: Callable[[Any], int]) -> Any:
    """Return the exact value of ``node`` for exact operands, given as arrays of objects; nan where it is undefined.

    Raises
    ------
    UnknownError
        For an op without a definition over real numbers.
    """
    if any(t.dtype.kind == "c" for t in node.types):
        raise UnknownError("complex numbers")
    if isinstance(node.op, Pointwise):
        return np.frompyfunc(_function(node), len(values), 1)(*values)
    if not node.args:
        return reals(node.op.evaluate(node, values, size))
    if isinstance(node.op, Contract):
        return np.einsum(node["subscripts"], *values)
    if node.op.kind not in {"move", "fold"}:
        raise UnknownError(node.op.name)
    try:
        found = node.op.evaluate(node, [np.asarray(v, object) for v in values], size)
    except (TypeError, ValueError, AttributeError):
        raise UnknownError(node.op.name) from None
    if np.asarray(found).dtype != object and not isinstance(found, numbers().mpf):
        raise UnknownError(node.op.name)
    return found


def _function(node: Node) -> Callable[..., Any]:
    kind = node.args[0].type.dtype.kind
    if (
        kind in "iu" and not node.op.keeps_sign and node.type.dtype.kind != "b"
    ):  # for integers these functions divide differently
        raise UnknownError(f"{node.op.name} of integers")
    return _of_op(node.op, kind, len(node.args))


@lru_cache(maxsize=512)
def _of_op(op: Pointwise, kind: str, arity: int) -> Callable[..., Any]:
    space = _functions()
    text = op.source if isinstance(op.source, str) else op.source.get(kind, "")
    names = [f"x{k}" for k in range(arity)]
    if op.name in space:
        text = f"{op.name}({', '.join(names)})"
    elif text:
        text = text.format(*names)
    else:
        raise UnknownError(op.name)
    function = eval(f"lambda {', '.join(names)}: {text}", dict(space))  # noqa: S307 (the texts of our own ops)
    nan = numbers().nan

    def at(*values: Any) -> Any:
        try:
            return function(*values)
        except (ZeroDivisionError, OverflowError, ValueError):
            return nan

    return at


def ulps(value: Any, true: Any, dtype: Any) -> float:
    """Return the error of ``value`` in units in the last place of the true value; 0 for a correct overflow."""
    mp, info = numbers(), np.finfo(dtype)
    if abs(true) >= mp.mpf(float(info.max)) * (1 + mp.mpf(float(info.eps)) / 4):
        return 0.0 if np.isinf(value) and (value > 0) == (true > 0) else np.inf
    if not np.isfinite(value):
        return np.inf
    exponent = mp.frexp(true)[1] if true else -100000
    place = mp.ldexp(1, max(int(exponent) - info.nmant - 1, int(np.log2(float(info.smallest_subnormal)))))
    return float(abs(mp.mpf(float(value)) - true) / place)
