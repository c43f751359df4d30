"""What is looked at while Python runs a function: that no operation loses digits that captured code would keep.

A rule for accuracy changes a result by more than rounding where an operation of the text cancels, leaves the range of its numbers, or is
a logarithm near 1. Where none has done that, the result is as good as the best form gives it. One that has is an error here, :class:`Lost`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tensormagic.capture.staging.cancelling import (
    DEEP,
    DENOMINATOR,
    DIFFERENCE,
    DIVISOR,
    EXPONENTIAL,
    LOGARITHM,
    POWER,
    QUOTIENT,
    ROOT,
)
from tensormagic.capture.staging.trees import children, cloned, placed_at

_MOST = {False: 2.0**18, True: 2.0**8}
"""How many times larger than a difference its sides may be; by whether any is of 32 bits."""
_DEEP = {False: 2.0**30, True: 2.0**11}
"""The same for a difference in a side of which there is one: times the largest such quotient before it."""
_RANGE = {False: (1e-290, 1e290), True: (1e-30, 1e30)}
_SHORT = {np.dtype(np.float32), np.dtype(np.complex64)}
_LONGEST = 1024  # exponent
_ENOUGH = 2.0**11  # times that a difference in another one may be smaller than its sides, whatever comes
_INTEGER = np.dtype(np.int64)


class Lost(Exception):  # noqa: N818 (it is no error of the user's)
    """Digits are lost: captured code may keep them."""


def _is_short(*values: Any) -> bool:
    return any(getattr(v, "dtype", None) in _SHORT for v in values)


class _Differences:
    """The differences of a run."""

    def __init__(self) -> None:
        self.worst = 1.0
        self.under = False

    def differs(self, does: Callable[[Any, Any], Any], deep: bool, left: Any, right: Any) -> Any:
        """A difference, or a sum, that has not cancelled."""
        result = does(left, right)
        if isinstance(result, float):  # NumPy's of 64 bits, too
            size, most = abs(result), abs(left)
            if size * self.worst < most or (deep and self.worst > _ENOUGH):
                self._lost(most / size if size else math.inf if most else 1.0, deep, _is_short(left, right))
            elif not size >= 0:
                raise Lost
            return result
        kind = getattr(result, "dtype", _INTEGER).kind
        if kind in "fc":
            size, most = np.abs(result), np.abs(left)
            if size.size:
                quotient = float((most / size).max())
                if math.isnan(quotient):  # 0 less 0 is 0
                    quotient = float((most / np.where((size == 0) & (most == 0), 1, size)).max())
                self._lost(quotient, deep, _is_short(left, right, result))
        elif kind not in "biu":
            raise Lost
        return result

    def beside(self, does: Callable[[Any, Any], Any], deep: bool, left: Any, right: Any) -> Any:
        """What is added to something, or taken away, in place, where that does not cancel."""
        self.differs(does, deep, left, right)
        return right

    def _lost(self, quotient: float, deep: bool, short: bool) -> None:
        """A difference is so many times smaller than a side; the other side is not much larger then."""
        if not quotient <= _MOST[short] or (deep and quotient * self.worst > _DEEP[short]):
            raise Lost
        self.worst = max(self.worst, quotient)

    def exponential(self, value: Any) -> Any:
        """Exponentials that are not beyond the largest number; below the smallest one they are no denominators."""
        size, (least, most) = np.abs(value), _RANGE[_is_short(value)]
        if not np.all(size < most):
            raise Lost
        self.under = self.under or not np.all(size > least)
        return value

    def denominator(self, value: Any) -> Any:
        """What is divided by, where exponentials are about: not made of such as are too small to have their digits."""
        return _ranged(value) if self.under else value


def _ranged(value: Any) -> Any:
    """Numbers that are far from the ends of their range."""
    if isinstance(value, float) and _RANGE[False][0] < abs(value) < _RANGE[False][1]:
        return value
    size, (least, most) = np.abs(value), _RANGE[_is_short(value)]
    if not (np.all(size > least) and np.all(size < most)):
        raise Lost
    return value


def finite(value: Any) -> Any:
    """A result without infinities, and without what is no number: where there are any, an intermediate one may have run over."""
    for part in value if isinstance(value, tuple | list) else (value,):
        if part is not None and not np.all(np.isfinite(part)):
            raise Lost
    return value


def _logarithmic(value: Any) -> Any:
    """Numbers whose logarithms have the digits that they have."""
    short = _is_short(_ranged(value))
    if not np.all(np.abs(value - 1) * _MOST[short] > 1):
        raise Lost
    return value


def _exponent(value: Any) -> Any:
    """Exponents that are not large."""
    if not np.all(np.abs(value) <= _LONGEST):
        raise Lost
    return value


def _name(kind: str, operation: type[ast.operator] | None = None, place: bool = False) -> str:
    return f"__tensor_{kind}_{operation.__name__ if operation else ''}{'_' * place}_"


_OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub}


def looks() -> dict[str, Any]:
    """What looks at a run, by the names that code has for it."""
    run = _Differences()
    return (
        _OTHERS
        | {
            _name(kind, op, place): partial(run.beside if place else run.differs, does, kind == DEEP)
            for kind in (DIFFERENCE, DEEP)
            for op, does in _OPERATIONS.items()
            for place in (False, True)
        }
        | {_name(EXPONENTIAL): run.exponential, _name(DENOMINATOR): run.denominator}
    )


_OTHERS: dict[str, Any] = {
    _name(ROOT): _ranged,
    _name(QUOTIENT): _ranged,
    _name(DIVISOR): _ranged,
    _name(LOGARITHM): _logarithmic,
    _name(POWER): _exponent,
}


def looking(node: ast.AST, checks: dict[ast.AST, str]) -> None:
    """Have code looked at as it runs: what ``checks`` says."""
    for part in children(node):
        looking(part, checks)
    for name, value in list(ast.iter_fields(node)):
        if isinstance(value, list):
            setattr(node, name, [_looked_at(v, checks) if isinstance(v, ast.AST) else v for v in value])
        elif isinstance(value, ast.AST):
            setattr(node, name, _looked_at(value, checks))


def _looked_at(node: Any, checks: dict[ast.AST, str]) -> Any:
    kind = checks.get(node)
    if kind is None:
        return node
    if kind == EXPONENTIAL:
        return _call(_name(kind), [node])
    if isinstance(node, ast.Call):
        at = 1 if kind == POWER else 0
        node.args[at] = _call(_name(kind), [node.args[at]])
        return node
    right = kind in {POWER, DENOMINATOR, QUOTIENT, DIVISOR}
    if isinstance(node, ast.AugAssign):
        whole = (_name(kind), [node.value])
        node.value = _call(*whole if right else (_name(kind, type(node.op), True), [_loaded(node.target), node.value]))
        return node
    if kind == QUOTIENT:
        node.left = _call(_name(kind), [node.left])
    if right:
        node.right = _call(_name(kind), [node.right])
        return node
    return _call(_name(kind, type(node.op)), [node.left, node.right])


def _loaded(target: ast.expr) -> ast.expr:
    made = cloned(target)
    if isinstance(made, ast.Name | ast.Subscript):
        made.ctx = ast.Load()
    return made


def _call(name: str, args: list[ast.expr]) -> ast.expr:
    return placed_at(ast.Call(ast.Name(name, ast.Load()), args, []), args[0])
