"""Rules of differences: what is nearly equal is subtracted before a function of it is rounded, not after.

A difference ``f(a) - f(b)`` is that of the arguments times something that does not cancel. What ``a`` and ``b`` have in common is
taken away term by term, so ``sqrt(x + h) - sqrt(x)`` has all digits of ``h``. Where nothing cancels, the text is computed as written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tensormagic.ir.node import Node
from tensormagic.ir.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arctan,
    cos,
    cosh,
    divide,
    expm1,
    isfinite,
    less,
    log1p,
    logical_and,
    multiply,
    negative,
    sin,
    sinh,
    subtract,
    tan,
    tanh,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.series import less_beginning
from tensormagic.transform.rewriting.terms import Sum, key_of, number_of, sum_of

_DEEP = 3
"""How many functions of functions are looked through."""
_LARGE = 2.0**40
"""Angles above it are left alone: half an angle between two of them is no number any more."""

# differences ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Apart:
    """A difference without cancellation.

    Parameters
    ----------
    value
        The difference.
    near
        Where it is to be used: the operands are near each other, and nothing runs over. None for everywhere.
    parts
        Whose roundings it does not show.
    known
        Whether terms were taken away that both sides have.
    """

    value: Node | float
    near: Node | None = None
    parts: tuple[Node, ...] = ()
    known: bool = False


@dataclass(frozen=True)
class _Image:
    """A function of an argument: its node, the argument, and the argument as it is meant."""

    node: Node
    name: str
    argument: Node | None
    meant: Sum
    more: object = None

    def at(self) -> Node | float:
        """The argument as a node, which a function such as log1p has none of."""
        return self.meant.node() if self.argument is None else self.argument


_ONE = Sum((), Fraction(1))


def _image(node: Node) -> _Image | None:
    """``node`` as a function of one argument, where its differences are known."""
    inner = bare(node)
    name = inner.op.name
    if name == "log1p":
        meant = sum_of(inner.args[0])
        return _Image(node, "log", None, Sum(meant.terms, meant.number + 1))
    if name == "divide":
        top, below = inner.args
        return _Image(node, "reciprocal", below, sum_of(below), _top(top))
    if name == "power":
        return _Image(node, "power", inner.args[0], sum_of(inner.args[0]), bare(inner.args[1]))
    key = key_of(inner)
    if isinstance(key, tuple):
        return _Image(node, "square", inner.args[0], sum_of(inner.args[0]))
    return _Image(node, name, inner.args[0], sum_of(inner.args[0])) if name in FORMS else None


def _top(node: Node) -> object:
    value = number_of(bare(node))
    return bare(node) if value is None else value


def _inverse(node: Node, of: _Image) -> _Image | None:
    """A number as the function ``of`` at another number, both exact; and what stands beside its own root as the root of its square."""
    value = number_of(bare(node))
    if value is None:
        return None
    if of.name == "sqrt" and value > 0 and _exact(value * value):
        return _Image(node, of.name, None, Sum((), value * value))
    if of.name in {"power", "square"} and value == 1:
        return _Image(node, of.name, None, _ONE, of.more)
    if of.name == "reciprocal" and isinstance(of.more, Fraction) and value and _exact(of.more / value):
        return _Image(node, of.name, None, Sum((), of.more / value), of.more)
    return None


def _exact(value: Fraction) -> bool:
    return Fraction(float(value)) == value


def apart(a: Node, b: Node, depth: int = _DEEP) -> Apart | None:
    """``a - b`` without the cancellation of what both are rounded to; None where the difference is that of the text."""
    kinds = {_kind(bare(a)), _kind(bare(b))}
    if "sqrt" not in kinds and ("" in kinds or (len(kinds) == 2 and "constant" not in kinds)):
        return None
    first, second = _image(a), _image(b)
    found = _of_roots(a, first, b, second)
    if found is None and depth and bare(a).op in _FACTORS:
        found = _of_products(a, b, depth)
    if found is not None or (first is None and second is None):
        return found
    first = first or _inverse(a, second)  # type: ignore[arg-type]
    second = second or _inverse(b, first)  # type: ignore[arg-type]
    if first is None or second is None or (first.name, first.more) != (second.name, second.more):
        return None
    whole = number_of(bare(a)) is not None or number_of(bare(b)) is not None
    inner = _arguments(first, second, depth)
    if first.name == "exp" and not len(first.meant.minus(second.meant.times(-1))):
        return None  # a hyperbolic sine
    if inner is None or ((whole or first.name in _WRITTEN) and not inner.known):
        return None
    value, near = FORMS[first.name](first, second, inner)
    where_ = both(inner.near, near)
    parts = tuple(p for p in (bare(a), bare(b), *inner.parts) if p.args)
    if not isinstance(where_, Node):
        return Apart(value, None, parts, inner.known) if where_ else None
    return Apart(value, where_, parts, inner.known)


_FACTORS = (multiply, divide)
_KINDS = {"log1p": "log", "square": "multiply", "multiply": "multiply", "divide": "divide", "constant": "constant"}


def _kind(node: Node) -> str:
    """Of what kind the two sides of a difference have to be alike; empty for what has no form."""
    name = node.op.name
    return _KINDS.get(name) or (name if name in FORMS else "")


_WRITTEN = frozenset(("power", "square"))
"""Functions of which only those differences are taken whose arguments have terms in common."""


def _arguments(first: _Image, second: _Image, depth: int) -> Apart | None:
    """The difference of two arguments: of what they have not in common, or of functions of other arguments, or as it is rounded."""
    less_ = first.meant.minus(second.meant)
    own = tuple(i.argument for i in (first, second) if i.argument is not None and bare(i.argument).args)
    if len(less_) < max(len(first.meant) + len(second.meant), 1):
        rounded = tuple(bare(n) for n in own if bare(n).op.name in {"add", "subtract"})
        return Apart(less_.node(), None, rounded, known=True)
    if first.argument is None or second.argument is None:
        return None
    if depth and (found := apart(first.argument, second.argument, depth - 1)) is not None:
        return found
    series = less_beginning(less_, first.argument.type.dtype)
    if series is not None:
        return Apart(series.value, series.near, tuple(bare(n) for n in own), known=True)
    return Apart(first.argument - second.argument)


def _of_roots(a: Node, first: _Image | None, b: Node, second: _Image | None) -> Apart | None:
    """``sqrt(b * b + c) - b``, which is ``c / (sqrt(b * b + c) + b)`` for positive ``b``; and the other way round."""
    if first is not None and first.name == "sqrt" and number_of(bare(b)) is None:
        root, other, sign = first, b, 1
    elif second is not None and second.name == "sqrt" and number_of(bare(a)) is None:
        root, other, sign = second, a, -1
    else:
        return None
    inner = bare(other)
    own = bare(inner.args[0]) if inner.op.name == "negative" else inner
    squared = Sum(((("square", own), other, Fraction(1)),), Fraction(0))
    rest = root.meant.minus(squared)
    if len(rest) != len(root.meant) - 1:
        return None
    difference, square = rest.node(), other * other
    near = logical_and(less(absolute(difference), square * 0.5), less(0, other))
    value = difference / (root.node + other)
    parts = tuple(bare(n) for n in (root.node, root.argument) if n is not None)
    return Apart(value if sign > 0 else -value, logical_and(near, isfinite(square)), parts, known=True)


def _of_products(a: Node, b: Node, depth: int) -> Apart | None:
    """``u * v - r * s``: each factor's difference times the other, where both are small beside what is subtracted."""
    left, right = bare(a), bare(b)
    if left.op is not right.op:
        return None
    if left.op is divide:
        top = factors_apart(left.args[0], right.args[0], depth) if _same(left.args[1], right.args[1]) else None
        return top and Apart(top.value / left.args[1], top.near, (left, right, *top.parts), known=True)
    for u, v in (left.args, left.args[::-1]):
        for r, s in (right.args, right.args[::-1]):
            one, two = factors_apart(u, r, depth), factors_apart(v, s, depth)
            if one is not None and two is not None:
                found = _by_factors(a, (u, v, r, s), one, two)
                return Apart(found.value, found.near, (left, right, *one.parts, *two.parts), known=True)
    return None


def _by_factors(a: Node, factors: tuple[Node, Node, Node, Node], one: Apart, two: Apart) -> Apart:
    u, v, r, s = factors
    if _same(u, r):
        return Apart(u * two.value, two.near)
    if _same(v, s):
        return Apart(one.value * v, one.near)
    terms = one.value * v, r * two.value
    near = both(*(within(t, absolute(a) * 0.5) for t in terms), one.near, two.near)
    return Apart(terms[0] + terms[1], near if isinstance(near, Node) else None)


def _same(a: Node, b: Node) -> bool:
    return bare(a) is bare(b)


def factors_apart(a: Node, b: Node, depth: int) -> Apart | None:
    """The difference of two factors that have terms in common: of sums by their terms, of functions by their arguments."""
    if _same(a, b):
        return Apart(0.0, known=True)
    first, second = sum_of(a), sum_of(b)
    rest = first.minus(second)
    if len(rest) < len(first) + len(second):
        return Apart(rest.node(), None, tuple(n for n in (bare(a), bare(b)) if n.args), known=True)
    found = apart(a, b, depth - 1)
    return found if found is not None and found.known else None


# by function ----------------------------------------------------------------------------------------------------------

Where = Node | bool
_Form = tuple[Node, Where | None]


def within(d: Node | float, bound: Node | float) -> Where:
    """Whether a difference is less than ``bound``: known, where both are numbers."""
    if not isinstance(d, Node) and not isinstance(bound, Node):
        return abs(d) < bound
    return less(absolute(d) if isinstance(d, Node) else abs(d), bound)


def both(*conditions: Where | None) -> Where:
    """Whether all hold; None holds everywhere."""
    found: Node | None = None
    for one in conditions:
        if isinstance(one, Node):
            found = one if found is None else logical_and(found, one)
        elif one is False:
            return False
    return True if found is None else found


def _of_sqrt(a: _Image, b: _Image, inner: Apart) -> _Form:
    value = inner.value / (a.node + b.node)
    return value, None if _fixed(inner.value) else within(inner.value, b.at() * 0.5)


def _fixed(d: Node | float) -> bool:
    """Whether a difference is a number, and none that divides nothing by nothing."""
    return not isinstance(d, Node) and bool(d)


def _of_cbrt(a: _Image, b: _Image, inner: Apart) -> _Form:
    whole = a.node * a.node + a.node * b.node + b.node * b.node
    return inner.value / whole, within(inner.value, absolute(b.at()) * 0.5)


def _of_square(a: _Image, b: _Image, inner: Apart) -> _Form:
    return multiply(a.at() + b.at(), inner.value), None


def _of_reciprocal(a: _Image, b: _Image, inner: Apart) -> _Form:
    return -(b.node * (inner.value / a.at())), within(inner.value, absolute(b.at()) * 0.5)


def _of_log(scale: float = 1.0) -> Callable[[_Image, _Image, Apart], _Form]:
    def form(a: _Image, b: _Image, inner: Apart) -> _Form:
        del a
        value = log1p(inner.value / b.at())
        return value if scale == 1 else value * scale, within(inner.value, b.at() * 0.5)

    return form


def _of_exp(a: _Image, b: _Image, inner: Apart) -> _Form:
    del a
    return b.node * expm1(inner.value), within(inner.value, 0.5)


def _of_power(a: _Image, b: _Image, inner: Apart) -> _Form:
    exponent = bare(a.node).args[1]
    rise = exponent * log1p(inner.value / b.at())
    near = both(within(inner.value, b.at() * 0.5), within(rise, 0.5))
    one = number_of(bare(b.node)) == 1
    return expm1(rise) if one else b.node * expm1(rise), near


def _middle(b: _Image, inner: Apart) -> tuple[Node, Where]:
    """The place between the arguments, and where its rounding does no more harm than that of the text."""
    place = b.at()
    near = within(inner.value * (1 + absolute(place)), 1)
    if inner.known:
        near = both(within(inner.value, 1), within(place, _LARGE))
    return add(place, inner.value * 0.5), near


def _of_sin(a: _Image, b: _Image, inner: Apart) -> _Form:
    del a
    middle, near = _middle(b, inner)
    return 2 * sin(inner.value * 0.5) * cos(middle), near


def _of_cos(a: _Image, b: _Image, inner: Apart) -> _Form:
    del a
    middle, near = _middle(b, inner)
    return -2 * sin(inner.value * 0.5) * sin(middle), near


def _of_sinh(a: _Image, b: _Image, inner: Apart) -> _Form:
    del a
    middle, near = _middle(b, Apart(inner.value))
    return 2 * sinh(inner.value * 0.5) * cosh(middle), near


def _of_cosh(a: _Image, b: _Image, inner: Apart) -> _Form:
    del a
    middle, near = _middle(b, Apart(inner.value))
    return 2 * sinh(inner.value * 0.5) * sinh(middle), near


def _of_tan(a: _Image, b: _Image, inner: Apart) -> _Form:
    return tan(inner.value) * (1 + a.node * b.node), within(inner.value, 0.5)


def _of_tanh(a: _Image, b: _Image, inner: Apart) -> _Form:
    return tanh(inner.value) * (1 - a.node * b.node), within(inner.value, 0.5)


def _of_arctan(a: _Image, b: _Image, inner: Apart) -> _Form:
    whole = 1 + a.at() * b.at()
    return arctan(inner.value / whole), both(within(inner.value, whole * 0.5), isfinite(whole))


FORMS: dict[str, Callable[[_Image, _Image, Apart], _Form]] = {
    "sqrt": _of_sqrt,
    "cbrt": _of_cbrt,
    "square": _of_square,
    "reciprocal": _of_reciprocal,
    "log": _of_log(),
    "log2": _of_log(1 / math.log(2)),
    "log10": _of_log(1 / math.log(10)),
    "exp": _of_exp,
    "power": _of_power,
    "sin": _of_sin,
    "cos": _of_cos,
    "tan": _of_tan,
    "sinh": _of_sinh,
    "cosh": _of_cosh,
    "tanh": _of_tanh,
    "arctan": _of_arctan,
}
"""For each function ``f``: ``f(a) - f(b)`` by ``a - b``, and where that is near enough to 0."""

# the rule -------------------------------------------------------------------------------------------------------------


def _sides(node: Node) -> Iterator[tuple[Node, Node]]:
    """The difference that ``node`` is, as two sides: sums with a negative number, or with a root, too."""
    left, right = node.args
    if node.op is subtract:
        yield left, right
        return
    for u, v in ((left, right), (right, left)):
        value = number_of(bare(v))
        if value is not None and value < 0:
            yield u, constant(-float(value))
        elif value is None and bare(u).op.name == "sqrt":
            yield u, negative(v)


@stable(roots="subtract add", fuel=1, judged=True, extends="a value where both sides are infinite")
def differences(node: Node) -> Found | None:
    """``f(a) - f(b) -> by a - b where both are near, for roots, powers, quotients, exponentials, logarithms, angles``."""
    if node.type.dtype.kind != "f":
        return None
    for a, b in _sides(node):
        found = apart(a, b)
        if found is not None and isinstance(found.value, Node):
            value = found.value if found.near is None else where(found.near, found.value, _as_written(found.near, a, b))
            return Found(value, absorbs=found.parts)
    return None


def _as_written(near: Node, a: Node, b: Node) -> Node:
    """``a - b`` outside of ``near``, in a form that is no difference of two functions again."""
    return a - where(near, a, b)


def written(node: Node) -> tuple[Node, Node] | None:
    """The two sides of the difference that ``node`` has become the accurate form of."""
    node = bare(node)
    if node.op is not where or bare(node.args[2]).op is not subtract:
        return None
    a, rest = bare(node.args[2]).args
    inner = bare(rest)
    if inner.op is not where or bare(inner.args[0]) is not bare(node.args[0]) or bare(inner.args[1]) is not bare(a):
        return None
    return a, inner.args[2]
