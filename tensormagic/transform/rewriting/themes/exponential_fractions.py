"""Rules of sums of fractions in one exponential that cancel far out: ``1 / (exp(x) - 1) - exp(-x)`` is ``exp(-2 * x)`` and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ops.scalars.scalar import absolute, exp, less, logical_and, maximum, multiply, subtract, where
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.terms import behind, number_of, sum_of, written

_Polynomial = Mapping[int, Fraction]
_Fraction = tuple[_Polynomial, _Polynomial]
"""Numerator and denominator, by powers of ``exp(-x)``, which may be negative."""
_ONE = {0: Fraction(1)}
_DEEP = 5
_POWER = 4
_MOST = 7
"""How many powers there may be."""
_FAR = 1.0
_SMALL = 0.37
"""The largest value of ``exp(-x)`` where the form is used."""


class _NoFractionError(Exception):
    """Raised where a node is no fraction in one exponential."""


def _plus(p: _Polynomial, q: _Polynomial, times: int = 1) -> _Polynomial:
    found = {k: p.get(k, Fraction(0)) + times * q.get(k, Fraction(0)) for k in {*p, *q}}
    return _bounded({k: c for k, c in found.items() if c})


def _times(p: _Polynomial, q: _Polynomial) -> _Polynomial:
    found: dict[int, Fraction] = {}
    for k, c in p.items():
        for m, d in q.items():
            found[k + m] = found.get(k + m, Fraction(0)) + c * d
    return _bounded({k: c for k, c in found.items() if c})


def _bounded(p: _Polynomial) -> _Polynomial:
    if len(p) > _MOST:
        raise _NoFractionError
    return p


_FUNCTIONS: dict[str, Callable[[int], _Fraction]] = {
    "exp": lambda m: ({-m: Fraction(1)}, _ONE),
    "expm1": lambda m: (_plus({-m: Fraction(1)}, _ONE, -1), _ONE),
    "sigmoid": lambda m: (_ONE, _plus(_ONE, {m: Fraction(1)})),
    "sinh": lambda m: (_plus({-m: Fraction(1)}, {m: Fraction(1)}, -1), {0: Fraction(2)}),
    "cosh": lambda m: (_plus({-m: Fraction(1)}, {m: Fraction(1)}), {0: Fraction(2)}),
    "tanh": lambda m: (_plus(_ONE, {2 * m: Fraction(1)}, -1), _plus(_ONE, {2 * m: Fraction(1)})),
}
"""Functions of ``m * x``."""


@dataclass
class _Reading:
    """Reads nodes as fractions in one exponential; ``unit`` is its exponent, and ``times`` the coefficient of the exponent."""

    unit: Node | None = None
    times: Fraction = Fraction(1)
    through: dict[Node, None] = field(default_factory=dict[Node, None])

    def of(self, node: Node, depth: int = _DEEP) -> _Fraction:
        node = bare(node)
        value = number_of(node)
        if value is not None:
            return ({0: value} if value else {}), _ONE
        name = node.op.name
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](self._multiple(node.args[0]))
        sides = written(node) if name == "where" else None
        if not depth or (sides is None and name not in _ARITHMETIC):
            raise _NoFractionError
        self.through[node] = None
        (a, b), *rest = [self.of(n, depth - 1) for n in sides or node.args]
        if name == "negative":
            return _plus({}, a, -1), b
        if name == "reciprocal":
            return _quotient(_ONE, _ONE, a, b)
        c, d = rest[0] if rest else (a, b)
        if name in {"multiply", "square"}:
            return _times(a, c), _times(b, d)
        if name == "divide":
            return _quotient(a, b, c, d)
        return _plus(_times(a, d), _times(c, b), 1 if name == "add" else -1), _times(b, d)

    def _multiple(self, exponent: Node) -> int:
        """Return which multiple of the unit an exponent is; raise _NoFractionError if it is none."""
        total = sum_of(exponent)
        if len(total.terms) != 1 or total.number:
            raise _NoFractionError
        ((key, term, times),) = total.terms
        if self.unit is None:
            self.unit, self.times = term, abs(times)
        elif key is not sum_of(self.unit).terms[0][0]:
            raise _NoFractionError
        count = times / self.times
        if count.denominator != 1 or abs(count) > _POWER:
            raise _NoFractionError
        return int(count)


_ARITHMETIC = frozenset(("add", "subtract", "negative", "multiply", "divide", "square", "reciprocal"))


def _is_arithmetic(node: Node, depth: int) -> bool:
    """Return whether there are only numbers and functions of one exponential (a quick test)."""
    node = bare(node)
    name = node.op.name
    if name in _FUNCTIONS:
        return True
    parts = node.args if name in _ARITHMETIC else (written(node) or ()) if name == "where" else ()
    if not parts:
        return number_of(node) is not None
    return depth > 0 and all(_is_arithmetic(n, depth - 1) for n in parts)


def _quotient(a: _Polynomial, b: _Polynomial, c: _Polynomial, d: _Polynomial) -> _Fraction:
    if not c:
        raise _NoFractionError
    return _times(a, d), _times(b, c)


def _turned(of: _Fraction) -> _Fraction:
    """Return the fraction in ``exp(-x)`` as a fraction in ``exp(x)``."""
    top, below = of
    return {-k: c for k, c in top.items()}, {-k: c for k, c in below.items()}


def _order(of: _Fraction) -> int:
    return min(of[0]) - min(of[1])


def _led(p: _Polynomial) -> bool:
    """Return whether the first term is at least twice the sum of all others for large arguments."""
    first = min(p)
    return float(abs(p[first])) >= 2 * sum(float(abs(c)) * _SMALL ** (k - first) for k, c in p.items() if k != first)


def _value(p: _Polynomial, small: Node) -> Node | float:
    """Return a polynomial in ``small``, divided by the power of its first term."""
    first, last = min(p), max(p)
    value: Node | float = float(p[last])
    for k in range(last - 1, first - 1, -1):
        value = value * small + float(p[k]) if k in p else value * small
    return value


@stable(
    roots="subtract add",
    within=" ".join(_FUNCTIONS),
    fuel=1,
    judged=True,
    cancels=True,
    extends="a value where both sides are infinite",
)
def fractions_in_one_exponential(node: Node) -> Found | None:
    """``1 / (exp(x) - 1) - exp(-x) -> exp(-2 * x) / (1 - exp(-x)) far out, and for all sums of fractions in one exponential``."""
    if node.type.dtype.kind != "f" or not all(_is_arithmetic(n, _DEEP) for n in node.args):
        return None
    reading = _Reading()
    try:
        sides = [reading.of(n) for n in node.args]
        (a, b), (c, d) = sides
        total = _plus(_times(a, d), _times(c, b), -1 if node.op is subtract else 1), _times(b, d)
    except _NoFractionError:
        return None
    if reading.unit is None or len(total[1]) == 1 or not all(top for top, _ in (*sides, total)):
        return None  # other expressions have identities of their own
    for sign in (1, -1):
        if _order(total) > min(map(_order, sides)) and all(map(_led, total)) and 0 <= _order(total) <= _POWER:
            return _far_out(node, total, reading.unit * float(sign * reading.times), tuple(reading.through))
        total, sides = _turned(total), [_turned(s) for s in sides]
    return None


def _size(left: Node, right: Node) -> Node | float:
    """Return the bound below which a difference counts as small: half of the larger side, or of the side that is a number."""
    numbers = [number for side in (left, right) if (number := number_of(bare(side)))]
    return float(abs(numbers[0])) * 0.5 if numbers else maximum(absolute(left), absolute(right)) * 0.5


def _far_out(node: Node, total: _Fraction, x: Node, through: tuple[Node, ...]) -> Found | None:
    left, right = node.args
    far = less(_FAR, x)
    small = exp(-where(far, x, _FAR))
    value = _value(total[0], small) / _value(total[1], small)
    value = reduce(multiply, [small] * _order(total)) * value if _order(total) else value
    if not isinstance(value, Node):
        return None
    near = logical_and(far, less(absolute(value), _size(left, right)))
    right = right if node.op is subtract else -right
    return Found(behind(near, value, left, right), absorbs=through)
