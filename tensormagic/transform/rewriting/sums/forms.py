"""The functions whose differences are known: each function's difference, by the difference of its arguments.

Knows nothing of rules, nor of how the difference of two arguments is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.roundings import rounds
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    divide,
    exp,
    expm1,
    isfinite,
    less,
    log1p,
    logical_and,
    logical_or,
    multiply,
    rint,
    sigmoid,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    where,
)
from tensormagic.ops.scalars.special import erfc
from tensormagic.transform.rewriting.sums.fifty_digits import value_of
from tensormagic.transform.rewriting.sums.power_series import NoSeriesError
from tensormagic.transform.rewriting.sums.terms import (
    Apart,
    Sum,
    conjugates,
    difference,
    key_of,
    log_of_quotient,
    number_of,
    raised,
    squared,
    sum_of,
)

# what a node is a function of ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Image:
    """A function value: its node, its argument, and the argument as an exact sum."""

    node: Node
    name: str
    argument: Node | None
    meant: Sum
    more: object = None
    rest: Fraction = Fraction(0)
    """The exact value of the function minus the rounded number that the text has for it."""

    def at(self) -> Node | float:
        """Return the argument as a node; for a function such as log1p it is built."""
        return self.meant.node() if self.argument is None else self.argument


_ONE = Sum((), Fraction(1))
_AT_ZERO = {"exp2": 1, "exponential": 1, "sigmoid": Fraction(1, 2)}
"""Exact values of functions at 0."""


def image(node: Node) -> Image | None:
    """Return ``node`` as a function of one argument whose differences have forms, or None."""
    inner = raised(node)
    name = inner.op.name
    if name == "log1p":
        meant = sum_of(inner.args[0])
        return Image(node, "log", None, Sum(meant.terms, meant.number + 1))
    if name == "divide":
        top, below = inner.args
        return Image(node, "reciprocal", below, sum_of(below), _top(top))
    if name == "power":
        base = number_of(bare(inner.args[0]))
        if base is not None:
            return Image(node, "exponential", inner.args[1], sum_of(inner.args[1]), base) if base > 0 else None
        return Image(node, "power", inner.args[0], sum_of(inner.args[0]), bare(inner.args[1]))
    if _is_of_roots(inner):
        root = multiply(*(bare(a).args[0] for a in inner.args))
        return Image(node, "sqrt", root, conjugates(root) or sum_of(root))
    if name == "hypot":
        one, other = (squared(bare(a)) for a in inner.args)
        return Image(node, "sqrt", None, one.minus(other.times(-1)))  # of two equal squares, which are one term
    key = key_of(inner)
    if isinstance(key, tuple):
        return Image(node, "square", inner.args[0], sum_of(inner.args[0]))
    if name == "sqrt" and (squares := conjugates(inner.args[0])) is not None:
        return Image(node, "sqrt", inner.args[0], squares)
    return Image(node, name, inner.args[0], sum_of(inner.args[0])) if name in FORMS else None


def _top(node: Node) -> object:
    value = number_of(bare(node))
    return bare(node) if value is None else value


def inverse(node: Node, of: Image) -> Image | None:
    """Return a number as the exact value of the function ``of`` at another number (or as the root of its square), or None."""
    value = number_of(bare(node))
    if value is None:
        return None
    if of.name == "sqrt" and value > 0 and _exact(value * value):
        return Image(node, of.name, None, Sum((), value * value))
    if of.name in {"power", "square"} and value == 1:
        return Image(node, of.name, None, _ONE, of.more)
    if _AT_ZERO.get(of.name) == value:
        return Image(node, of.name, None, Sum((), Fraction(0)), of.more)
    if of.name == "reciprocal" and isinstance(of.more, Fraction) and value and _exact(of.more / value):
        return Image(node, of.name, None, Sum((), of.more / value), of.more)
    return _rounded(node, value, of)


def _rounded(node: Node, value: Fraction, of: Image) -> Image | None:
    """Return a number that is ``of`` at the constant in its argument, rounded, as ``sqrt(2)`` in ``sqrt(2 + x) - sqrt(2)``; else None."""
    at, own = of.meant.number, node.type.dtype.type
    if not of.meant.terms or Fraction(float(own(float(at)))) != at:
        return None
    try:
        true = value_of(of.name, at)
    except NoSeriesError:
        return None
    meant = Fraction(float(own(float(value))))
    rest = true - meant
    if abs(rest) > abs(meant) * Fraction(float(np.finfo(own).eps)) or not (rest or at):
        return None
    return Image(node, of.name, None, Sum((), at), of.more, rest)


def over_one(first: Image, second: Image) -> tuple[Image, Image]:
    """Return ``log(x / z)`` and ``log(y / z)`` as ``log(x)`` and ``log(y)``, which have the same difference; else both unchanged."""
    quotients = [bare(i.argument) for i in (first, second) if i.argument is not None]
    if len(quotients) != 2 or any(q.op is not divide for q in quotients):
        return first, second
    (x, z), (y, w) = (q.args for q in quotients)
    if bare(z) is not bare(w):
        return first, second
    return tuple(replace(i, argument=n, meant=sum_of(n)) for i, n in ((first, x), (second, y)))  # type: ignore[return-value]


def _exact(value: Fraction) -> bool:
    return Fraction(float(value)) == value


_KINDS = {
    "hypot": "sqrt",
    "log1p": "log",
    "square": "multiply",
    "multiply": "multiply",
    "xlogy": "multiply",
    "divide": "divide",
    "constant": "constant",
}


def _is_of_roots(node: Node) -> bool:
    return node.op is multiply and all(bare(a).op is sqrt for a in node.args)


def kind(node: Node) -> str:
    """Return the kind of a function, which both sides of a difference must share; empty if it has no form."""
    name = "sqrt" if _is_of_roots(node) else node.op.name
    return _KINDS.get(name) or (name if name in FORMS else "")


# by function ----------------------------------------------------------------------------------------------------------

Where = Node | bool
_Form = tuple[Node, Where | None]


_LARGE = 2.0**40
"""Larger angles are not rewritten: half the distance of two neighbouring ones is not representable."""


def within(d: Node | float, bound: Node | float) -> Where:
    """Return whether a difference is less than ``bound``; a bool if both are numbers."""
    if not isinstance(d, Node) and not isinstance(bound, Node):
        return abs(d) < bound
    return less(absolute(d) if isinstance(d, Node) else abs(d), bound)


def both(*conditions: Where | None) -> Where:
    """Return whether all hold; None holds everywhere."""
    found: Node | None = None
    for one in conditions:
        if isinstance(one, Node):
            found = one if found is None else logical_and(found, one)
        elif one is False:
            return False
    return True if found is None else found


def _of_sqrt(a: Image, b: Image, inner: Apart) -> _Form:
    value = inner.value / (a.node + b.node)
    return value, None if _fixed(inner.value) else within(inner.value, b.at() * 0.5)


def _fixed(d: Node | float) -> bool:
    """Return whether a difference is a nonzero number."""
    return not isinstance(d, Node) and bool(d)


def _of_cbrt(a: Image, b: Image, inner: Apart) -> _Form:
    whole = a.node * a.node + a.node * b.node + b.node * b.node
    return inner.value / whole, within(inner.value, absolute(b.at()) * 0.5)


def _of_square(a: Image, b: Image, inner: Apart) -> _Form:
    x, y = a.argument, b.argument
    total = a.meant.minus(b.meant.times(-1)).node() if x is None or y is None else difference(x, y, -1)
    return multiply(total, inner.value), None


def _of_reciprocal(a: Image, b: Image, inner: Apart) -> _Form:
    return -(b.node * (inner.value / a.at())), within(inner.value, absolute(b.at()) * 0.5)


def _of_log(scale: float = 1.0) -> Callable[[Image, Image, Apart], _Form]:
    def form(a: Image, b: Image, inner: Apart) -> _Form:
        value = log1p(inner.value / b.at())
        near = both(within(inner.value, b.at() * 0.5), _alike(a, b))
        return value if scale == 1 else value * scale, near

    return form


def _of_exp(a: Image, b: Image, inner: Apart) -> _Form:
    del a
    return b.node * expm1(inner.value), within(inner.value, 0.5)


def _of_expm1(a: Image, b: Image, inner: Apart) -> _Form:
    """Return the difference of exponentials where both values are near -1, elsewhere by ``expm1`` of the arguments' difference."""
    low = logical_and(less(a.node, -0.5), less(b.node, -0.5))
    value = where(low, exp(a.at()) - exp(b.at()), (1 + b.node) * expm1(inner.value))
    near = within(inner.value, 0.5)
    return value, logical_or(low, near) if isinstance(near, Node) else low


def _log_of(power_: Image, more: Node | float) -> Node:
    """Return the logarithm of the base ``1 + more``; for a quotient, ``more`` is accurate only near 1."""
    base = None if power_.argument is None else bare(power_.argument)
    return log1p(more) if base is None or base.op is not divide else log_of_quotient(*base.args)


def _of_power(a: Image, b: Image, inner: Apart) -> _Form:
    exponent = next(raised(i.node).args[1] for i in (a, b) if bare(i.node).args)
    if number_of(bare(b.node)) == 1:
        rise = exponent * _log_of(a, inner.value)
        return expm1(rise), within(rise, 0.5)
    if number_of(bare(a.node)) == 1:
        rise = exponent * _log_of(b, -inner.value)
        return -expm1(rise), within(rise, 0.5)
    rise = exponent * log1p(inner.value / b.at())
    return b.node * expm1(rise), both(within(inner.value, b.at() * 0.5), within(rise, 0.5))


def _middle(b: Image, inner: Apart) -> tuple[Node, Where]:
    """Return the midpoint of the arguments, and a condition under which its rounding does no more harm than the text's."""
    place = b.at()
    near = within(inner.value * (1 + absolute(place)), 1)
    if inner.known:
        near = both(within(inner.value, 1), within(place, _LARGE))
    return add(place, inner.value * 0.5), near


def _alike(a: Image, b: Image) -> Node:
    """Return whether two values are within a factor of 2; otherwise nothing cancels, and the text has fewer roundings."""
    return less(absolute(b.node / a.node - 1.25), 0.75)


def nearer(a: Node, b: Node) -> Node:
    """Return whether two values are within a fifth of each other, for forms with many roundings."""
    return less(absolute(b / a - 1), 0.2)


_TURNS = 12
"""How many digits of a rounded angle must lie behind the full turns for forms to be used."""
_STEP = 0.25
"""Up to this step, rounding the midpoint of two angles does less harm than rounding the sum of angles."""


def _of_exponential(a: Image, b: Image, inner: Apart) -> _Form:
    base = a.more if isinstance(a.more, Fraction) else 2
    rise = inner.value * math.log(base)
    del a
    return b.node * expm1(rise), within(rise, 0.5)


def _of_sigmoid(a: Image, b: Image, inner: Apart) -> _Form:
    other = sigmoid(-b.argument) if b.argument is not None else 0.5
    return a.node * other * -expm1(-inner.value), within(inner.value, 0.5)


def _of_softplus(a: Image, b: Image, inner: Apart) -> _Form:
    del a
    return log1p(sigmoid(b.at()) * expm1(inner.value)), within(inner.value, 0.5)


def _turned(a: Image, b: Image, inner: Apart) -> tuple[Node, Node, Where]:
    """Return cosine and sine of the mean of two angles, from those of one of them, as rounding a large mean would change the angle."""
    place = a.meant.minus(b.meant.times(-1)).times(Fraction(1, 2))
    if inner.known and len(place) == 1 and isinstance(middle := place.node(), Node):  # the midpoint of x + y and x - y
        return cos(middle), sin(middle), both(within(inner.value, 1), within(middle, _LARGE))
    half, at = inner.value * 0.5, b.at()
    if not isinstance(half, Node) or not isinstance(at, Node):
        middle, near = _middle(b, inner)
        return cos(middle), sin(middle), near
    c, s = cos(half), sin(half)
    near = within(inner.value, 1) if inner.known else within(inner.value * (1 + absolute(at)), 1)
    if rounds(bare(at)):  # rounding such a large angle has changed it, so neither the text nor the form means anything
        near = both(near, within(at, 2.0 ** (np.finfo(at.type.dtype.type).nmant - _TURNS)))
    return cos(at) * c - sin(at) * s, sin(at) * c + cos(at) * s, near


def _of_sin(a: Image, b: Image, inner: Apart) -> _Form:
    place, _, near = _turned(a, b, inner)
    return 2 * sin(inner.value * 0.5) * place, both(near, within(inner.value, _STEP), _alike(a, b))


def _of_cos(a: Image, b: Image, inner: Apart) -> _Form:
    _, place, near = _turned(a, b, inner)
    return -2 * sin(inner.value * 0.5) * place, both(near, within(inner.value, _STEP), _alike(a, b))


def _of_sinh(a: Image, b: Image, inner: Apart) -> _Form:
    middle, near = _middle(b, Apart(inner.value))
    return 2 * sinh(inner.value * 0.5) * cosh(middle), both(near, _alike(a, b))


def _of_cosh(a: Image, b: Image, inner: Apart) -> _Form:
    middle, near = _middle(b, Apart(inner.value))
    return 2 * sinh(inner.value * 0.5) * sinh(middle), both(near, _alike(a, b))


def _of_tan(a: Image, b: Image, inner: Apart) -> _Form:
    step = tan(inner.value)
    value = step * (1 + square(b.node)) / (1 - step * b.node)
    return value, both(within(inner.value, 0.5), _alike(a, b))


def _of_tanh(a: Image, b: Image, inner: Apart) -> _Form:
    return sinh(inner.value) / cosh(a.at()) / cosh(b.at()), both(within(inner.value, 0.5), nearer(a.node, b.node))


def _of_arctanh(a: Image, b: Image, inner: Apart) -> _Form:
    x, y = (absolute(n) if isinstance(n, Node) else abs(n) for n in (a.at(), b.at()))
    whole = (1 - x) + x * (
        1 - y
    )  # both have the same sign where they are close: 1 - x * y without the rounding of the product
    return arctanh(inner.value / whole), both(within(inner.value, whole * 0.5), _alike(a, b))


def _of_arctan(a: Image, b: Image, inner: Apart) -> _Form:
    whole = 1 + a.at() * b.at()
    return arctan(inner.value / whole), both(within(inner.value, whole * 0.5), isfinite(whole), _alike(a, b))


def _of_inverse(outer: Callable[[Node], Node], other: Callable[[Node], Node], sign: int = 1) -> Callable[..., _Form]:
    """Return the form of differences of inverse functions.

    It uses the ``other`` function of the same angle: ``a * a - b * b`` over the sum of both products.
    """

    def form(a: Image, b: Image, inner: Apart) -> _Form:
        x, y = a.at(), b.at()
        if not isinstance(x, Node) or not isinstance(y, Node):
            return inner.value * 1.0, False  # type: ignore[return-value]
        whole = x * other(y) + y * other(x)
        value = outer(inner.value * ((x + y) / whole))
        near = both(nearer(a.node, b.node), less(absolute(y / x - 1), 0.2), less(0, absolute(whole)), isfinite(whole))
        return value if sign > 0 else -value, near

    return form


def _beside_sine(x: Node) -> Node:
    return sqrt((1 - x) * (1 + x))


def _beside_hyperbolic_sine(x: Node) -> Node:
    return sqrt(1 + square(x))


def _beside_hyperbolic_cosine(x: Node) -> Node:
    return sqrt((x - 1) * (x + 1))


_FINE = 64.0
"""Multiples of its reciprocal have exact squares."""
_AROUND = 2.0**-3
_WIDE = 2.0**-4
"""How large the product of midpoint and step, and the step, may be for five terms of the series."""


def _of_erfc(sign: int) -> Callable[[Image, Image, Apart], _Form]:
    """Return the form of differences of erf or erfc.

    It is the integral of ``exp(-t * t)`` by its derivatives at the midpoint, which are Hermite polynomials.
    """

    def form(a: Image, b: Image, inner: Apart) -> _Form:
        half = inner.value * 0.5
        place = b.at()
        del a
        even = rint(place * _FINE) * (1 / _FINE) if isinstance(place, Node) else round(place * _FINE) / _FINE
        rest = (place - even) + half
        middle = even + rest
        density = (
            exp(-square(even)) * exp(-(rest * (even + middle))) if isinstance(even, Node) else exp(-square(middle))
        )
        q, r = square(middle * inner.value), square(half)
        series = 1 + (q - 2 * r) * (1 / 6) + (q * (q - 12 * r) + 12 * r * r) * (1 / 120)
        series = series + (q * q * (q - 30 * r) + r * r * (180 * q - 120 * r)) * (1 / 5040)
        series = series + (q * q * (q * (q - 56 * r) + 840 * r * r) + r * r * r * (1680 * r - 3360 * q)) * (1 / 362880)
        near = both(within(inner.value * middle, _AROUND), within(inner.value, _WIDE))
        return inner.value * density * series * (sign * 2 / math.sqrt(math.pi)), near

    return form


def _of_erf(a: Image, b: Image, inner: Apart) -> _Form:
    """Return the difference of error functions: the integral for near arguments; by ``erfc`` where both values are near 1 or near -1."""
    value, near = _of_erfc(1)(a, b, inner)
    x, y = a.argument, b.argument
    if x is None or y is None or not isinstance(near, Node):
        return value, near
    right, left = logical_and(less(1, x), less(1, y)), logical_and(less(x, -1), less(y, -1))
    side = where(left, -1.0, 1.0)
    tails = (erfc(side * y) - erfc(side * x)) * side
    return where(near, value, tails), logical_or(near, logical_or(left, right))


FORMS: dict[str, Callable[[Image, Image, Apart], _Form]] = {
    "sqrt": _of_sqrt,
    "cbrt": _of_cbrt,
    "square": _of_square,
    "reciprocal": _of_reciprocal,
    "log": _of_log(),
    "log2": _of_log(1 / math.log(2)),
    "log10": _of_log(1 / math.log(10)),
    "exp": _of_exp,
    "expm1": _of_expm1,
    "exp2": _of_exponential,
    "exponential": _of_exponential,
    "sigmoid": _of_sigmoid,
    "softplus": _of_softplus,
    "power": _of_power,
    "sin": _of_sin,
    "cos": _of_cos,
    "tan": _of_tan,
    "sinh": _of_sinh,
    "cosh": _of_cosh,
    "tanh": _of_tanh,
    "arctan": _of_arctan,
    "erf": _of_erf,
    "erfc": _of_erfc(-1),
    "arctanh": _of_arctanh,
    "arcsin": _of_inverse(arcsin, _beside_sine),
    "arccos": _of_inverse(arcsin, _beside_sine, -1),
    "arcsinh": _of_inverse(arcsinh, _beside_hyperbolic_sine),
    "arccosh": _of_inverse(arcsinh, _beside_hyperbolic_cosine),
}
"""For each function ``f``: ``f(a) - f(b)`` by ``a - b``, and the condition under which this is accurate."""
