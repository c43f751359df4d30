"""Defines scalar functions under their NumPy names, with the dtypes of NumPy's or SciPy's loops."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply
from tensormagic.ops.leaf import constant
from tensormagic.ops.op import Value
from tensormagic.ops.pointwise import Pointwise, ufunc_dtypes

INF = np.inf
SPECIAL: tuple[float, ...] = (0.0, -0.0, 1.0, -1.0, 0.5, INF, -INF, np.nan, 1e-300, -1e-8, 700.0, -745.0)

_DTYPES = "give dtypes=float_loop (or real_loop, without complex numbers; float_loop2 for two operands)."
_UNKNOWN = "NumPy has no function {}: give one as the second argument,"
_OWN = f"its text in NumPy as in_numpy='np.log(np.cosh({{0}}))', and {_DTYPES}"


def scalar_op(name: str, numpy: Callable[..., Value] | None = None, **fields: Any) -> Pointwise:
    """Return a scalar function, defined under its NumPy name."""
    function = numpy or getattr(np, name, None)
    if function is None:
        raise ValueError(f"{_UNKNOWN.format(name)} {_OWN}")
    if fields.get("dtypes") is None and not hasattr(function, "resolve_dtypes"):
        raise ValueError(f"the function of {name} is no ufunc of NumPy's and does not say its dtypes: {_DTYPES}")
    fields.setdefault("edges", SPECIAL)
    return Pointwise(name=name, numpy=function, **fields)


def special(name: str) -> Callable[..., Value]:
    """Return a function of ``scipy.special``, imported when it is first called; its result has the operands' dtype."""

    def call(*values: Value) -> Value:
        function = getattr(import_module("scipy.special"), name)
        return np.asarray(function(*values)).astype(np.result_type(*values), copy=False)

    return call


def divided(function: str) -> Callable[[Size, Size], Size | None]:
    """Return a function for a quotient or remainder of sizes by a positive number, as a size, or None for other divisors."""
    return lambda left, right: apply(function, left, right) if isinstance(right, int) and right > 0 else None


float_loop = ufunc_dtypes(np.exp)
float_loop2 = ufunc_dtypes(np.arctan2)
real_loop = ufunc_dtypes(np.cbrt)


def typed(number: float, x: Node) -> Node:
    """Return a number in the dtype of ``x``, as a scalar."""
    return constant(x.type.dtype.type(number))


def one_like(x: Node) -> Node:
    """Return 1, in the dtype of ``x``, as a scalar."""
    return typed(1, x)
