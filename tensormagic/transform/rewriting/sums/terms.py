"""Exact sums: rational multiples of nodes, plus a number. Knows nothing of rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    arccos,
    arccosh,
    arcsin,
    cosh,
    divide,
    less,
    log,
    log1p,
    log2,
    log10,
    logical_and,
    logical_or,
    multiply,
    negative,
    power,
    square,
    subtract,
    where,
)
from tensormagic.ops.scalars.special import erfcx


@dataclass(frozen=True)
class Apart:
    """The form of a difference without cancellation.

    Parameters
    ----------
    value
        The difference.
    near
        Where to use it: operands are near each other, and nothing overflows. None for everywhere.
    parts
        The nodes whose rounding it does not show.
    known
        Whether common terms were removed.
    local
        Whether it is a series at one point.
    rough
        Whether it is a sum of two terms that may cancel again.
    """

    value: Node | float
    near: Node | None = None
    parts: tuple[Node, ...] = ()
    known: bool = False
    local: bool = False
    rough: bool = False


_LOG2 = Fraction(math.log(2))
_ROUNDED = Fraction(1, 2**20)
"""An upper bound of the relative rounding error of that number."""
_SORTED = 3
_TERMS = 8
"""How many terms of a sum are read."""


@dataclass(frozen=True)
class Sum:
    """An exact sum: multiples of nodes, and a number."""

    terms: tuple[tuple[object, Node, Fraction], ...]
    number: Fraction

    def __len__(self) -> int:
        return len(self.terms) + (self.number != 0)

    def minus(self, other: Sum) -> Sum:
        """Return the difference, with common terms cancelled."""
        found = {key: (node, times) for key, node, times in self.terms}
        for key, node, times in other.terms:
            found[key] = (node, found[key][1] - times if key in found else -times)
        terms = tuple((key, node, times) for key, (node, times) in found.items() if times)
        return Sum(terms, self.number - other.number if other.number else self.number)

    def times(self, factor: int | Fraction) -> Sum:
        """Return the sum multiplied by ``factor``."""
        return Sum(tuple((k, n, t * factor) for k, n, t in self.terms), self.number * factor)

    def node(self) -> Node | float:
        """Return the sum as nodes: positive terms first, multiples by 3 as two exact additions, two squares by their factors."""
        if (squares := self._squares_apart()) is not None:
            return squares
        total: Node | float | None = None
        number = float(self.number)
        signs = [times > 0 for _, _, times in self.terms]
        if signs and not any(signs) and number > 0:
            total, number = number, 0.0
        for _, node, times in sorted(self.terms, key=lambda t: t[2] < 0):
            size = abs(times)
            for factor in (size - 1, 1) if size == 3 and len(self) > 1 else (size,):
                part = node if factor == 1 else node * float(factor)
                first = part if times > 0 else -part
                total = first if total is None else total + part if times > 0 else total - part
        if total is None:
            return number
        return total if not number else total + number

    def rounds_more(self, *of: Sum) -> bool:
        """Return whether this sum, as a difference ``of`` two sums, contains a product with a larger rounding error than theirs."""
        if len(self) < 2:
            return False
        given: dict[object, Fraction] = {}
        for key, _, times in (term for one in of for term in one.terms):
            given[key] = given.get(key, Fraction(0)) + _rounding(times)
        return any(_rounding(times) > given.get(key, Fraction(0)) for key, _, times in self.terms)

    def largest_first(self) -> Node | float:
        """Return the sum as nodes; the smallest of three plain terms comes last, as the others may be near each other."""
        parts = [n if t > 0 else -n for _, n, t in self.terms if abs(t) == 1]
        parts += [constant(float(self.number))] if self.number else []
        signs = {t > 0 for _, _, t in self.terms} | ({self.number > 0} if self.number else set())
        if len(parts) != _SORTED or len(self) != _SORTED or len(signs) == 1 or self._squares_apart() is not None:
            return self.node()
        p, q, r = parts
        sizes = [absolute(n) for n in parts]
        third = logical_and(less(sizes[2], sizes[0]), less(sizes[2], sizes[1]))
        first = less(sizes[0], sizes[1])
        last = where(third, r, where(first, p, q))
        return (where(third, p, r) + where(logical_or(third, first), q, p)) + last

    def _squares_apart(self) -> Node | None:
        """Return ``c * x**2 - c * y**2`` by the sum and the difference of ``x`` and ``y``."""
        if len(self.terms) != 2 or self.number:
            return None
        (first, _, times), (second, _, other) = self.terms
        if times != -other or not isinstance(first, tuple) or not isinstance(second, tuple):
            return None
        x, y = (first[1], second[1]) if times > 0 else (second[1], first[1])
        value = difference(x, y) * difference(x, y, -1)
        return value if abs(times) == 1 else value * float(abs(times))


def _rounding(times: Fraction) -> Fraction:
    """Return the relative rounding error of a multiple; 0 for multiples by 3, which are two exact additions."""
    size = abs(times)
    exact = all(n & (n - 1) == 0 for n in (size.numerator, size.denominator))
    return Fraction(0) if exact or size == 3 else size


def sum_of(node: Node, *, text: bool = False) -> Sum:
    """Return the terms of ``node``; with ``text`` also those of differences that have become accurate forms, as they were written.

    The result is stored with the node, since a dozen rules read each sum, unless the node is its own only term.
    """
    kept = node.kept
    if kept is None:
        kept = node.kept = {}
    elif (known := kept.get(("sum", text))) is not None:
        return known
    found = _sum_of(node, text=text)
    if len(found.terms) != 1 or bare(found.terms[0][1]) is not bare(node):
        kept["sum", text] = found
    return found


def _sum_of(node: Node, *, text: bool) -> Sum:
    found: dict[object, tuple[Node, Fraction | int]] = {}
    number = Fraction(0)
    pool: list[tuple[Node, Fraction | int]] = [(node, 1)]  # integers, which take a tenth of the time of fractions
    while pool:
        part, times = pool.pop()
        inner = part if part.below is None else part.below
        name = inner.op.name
        if name == "constant" and (value := number_of(inner)) is not None:
            number += times * value
        elif text and name == "where" and (sides := written(inner)) is not None:
            pool += [(sides[1], -times), (sides[0], times)]
        elif (name == "add" or name == "subtract") and len(found) + len(pool) < _TERMS:  # noqa: PLR1714 (the fastest way)
            left, right = inner.args
            pool += [(right, times if name == "add" else -times), (left, times)]
        elif name == "negative":
            pool.append((inner.args[0], -times))
        elif name == "multiply" and (scaled := _scaled(*inner.args)) is not None:
            pool.append((scaled[1], times * scaled[0]))
        elif name == "divide" and (below := number_of(bare(inner.args[1]))):
            pool.append((inner.args[0], Fraction(times) / below))
        else:
            key = key_of(inner)
            found[key] = (part, (found[key][1] if key in found else 0) + times)
    return Sum(tuple((k, n, _exactly(t)) for k, (n, t) in found.items() if t), number)


def _scaled(left: Node, right: Node) -> tuple[Fraction, Node] | None:
    """Return the number that a product has as a factor (the first one if both are numbers), and the other factor; None without one."""
    value = number_of(bare(left))
    if value is not None:
        return value, right
    value = number_of(bare(right))
    return None if value is None else (value, left)


def _exactly(times: Fraction | int) -> Fraction:
    return _ONCE.get(times) or Fraction(times)


_ONCE: dict[Fraction | int, Fraction] = {k: Fraction(k) for k in (-2, -1, 1, 2)}


def key_of(node: Node) -> object:
    """Return the identity of a term: a square has the same one however it is written."""
    name = node.op.name
    if name == "square" or (name == "multiply" and bare(node.args[0]) is bare(node.args[1])):
        return "square", bare(node.args[0])
    if name == "divide" and number_of(bare(node.args[0])) == 1:
        key = key_of(bare(node.args[1]))
        if isinstance(key, tuple):
            return "square", bare(divide(node.args[0], key[1]))
    return node


def log_of_quotient(x: Node, y: Node) -> Node:
    """Return ``log(x / y)``, without the rounding of the quotient where both are near each other."""
    apart_ = sum_of(x).minus(sum_of(y)).node()
    near = (
        less(absolute(apart_), absolute(y) * 0.5) if isinstance(apart_, Node) else less(abs(apart_), absolute(y) * 0.5)
    )
    return where(near, log1p(apart_ / y), log(where(near, 1, x / y)))


def difference(x: Node, y: Node, sign: int = 1) -> Node:
    """Return ``x - y`` (for sign -1 their sum) without common terms, if one rounding is left; else as both are rounded."""
    first, second = sum_of(x), sum_of(y)
    rest = first.minus(second.times(sign))
    exact = all(n & (n - 1) == 0 for _, _, t in rest.terms for n in (abs(t.numerator), t.denominator))
    if exact and 0 < len(rest) <= 2 and len(rest) < len(first) + len(second):
        value = rest.node()
        return value if isinstance(value, Node) else constant(value)
    return x - y if sign > 0 else x + y


def conjugates(node: Node) -> Sum | None:
    """Return ``u**2 - v**2`` as an exact sum if ``node`` is written ``(u - v) * (u + v)``, else None."""
    node = bare(node)
    if node.op.name != "multiply":
        return None
    less_, more = sorted((bare(a) for a in node.args), key=lambda a: a.op.name == "add")
    if less_.op is not subtract or more.op.name != "add":
        return None
    (u, v), (p, q) = map(bare, less_.args), map(bare, more.args)
    if (u, v) not in {(p, q), (q, p)}:
        return None
    return squared(u).minus(squared(v))


def squared(node: Node) -> Sum:
    """Return the square of a node as a sum: a number, or one term."""
    value = number_of(node)
    if value is not None:
        return Sum((), value * value)
    inner = bare(node.args[0]) if node.op.name == "absolute" else node
    return Sum(((("square", inner), square(node), Fraction(1)),), Fraction(0))


def number_of(node: Node) -> Fraction | None:
    """Return the value of a finite constant number, or None for other nodes."""
    if node.op is not CONSTANT:
        return None
    kept = node.kept
    if kept is None:
        kept = node.kept = {"number": _fraction(node)}
    elif "number" not in kept:
        kept["number"] = _fraction(node)
    return kept["number"]


def _fraction(node: Node) -> Fraction | None:
    if node.type.shape or node.type.dtype.kind not in "iuf":
        return None
    value = node["bits"].array().item()
    if not math.isfinite(value):
        return None
    return Fraction(*value.as_integer_ratio()) if hasattr(value, "as_integer_ratio") else Fraction(int(value))


def behind(near: Node, form: Node, a: Node | float, b: Node | float) -> Node:
    """Return ``form`` where ``near``, else ``a - b``, written so that it does not match as a difference again."""
    return where(near, form, subtract(a, where(near, a, b)))


def written(node: Node) -> tuple[Node, Node] | None:
    """Return the two sides of the difference whose accurate form ``node`` is, or None."""
    node = bare(node)
    if node.op is not where or bare(node.args[2]).op is not subtract:
        return None
    a, rest = bare(node.args[2]).args
    inner = bare(rest)
    if inner.op is not where or bare(inner.args[0]) is not bare(node.args[0]) or not _hides(inner, bare(a)):
        return None
    return a, inner.args[2]


def _hides(second: Node, first: Node) -> bool:
    """Return whether ``second``, a choice, has ``first`` on one side, directly or by the same condition."""
    if bare(second.args[1]) is first:
        return True
    return first.op is where and all(bare(first.args[k]) is bare(second.args[k]) for k in (0, 1))


def is_within_form(total: Node) -> bool:
    """Return whether ``total`` is the fallback inside the form of a difference."""
    second = bare(total.args[1])
    return total.op is subtract and second.op is where and _hides(second, bare(total.args[0]))


def in_range(node: Node) -> Node:
    """Return the quotient as written if ``node`` is its form against overflow or cancellation, else ``node``."""
    inner = bare(node)
    if inner.op is where:
        for k in (2, 1):  # a series in the first branch may look like a text
            text = bare(inner.args[k])
            if text.op is not divide:
                continue
            if (below := _guarded(inner, text.args[1], k)) is not None:
                return divide(text.args[0], below)
            top = bare(text.args[0])
            if k == 2 and top.op is subtract and is_within_form(top):
                return divide(subtract(top.args[0], bare(top.args[1]).args[2]), text.args[1])
    return node


def _guarded(form: Node, operand: Node, k: int) -> Node | None:
    """Return what ``operand`` is where side ``k`` of ``form`` is used, if it is 1 elsewhere; else None."""
    guard = bare(operand)
    if guard.op is where and bare(guard.args[0]) is bare(form.args[0]) and number_of(bare(guard.args[3 - k])) == 1:
        return guard.args[k]
    return None


def _beside_one(form: Node) -> Node | None:
    """Return the logarithm as written if ``form`` is the accurate form of a logarithm near 1, else None."""
    function, small = bare(form.args[1]), bare(form.args[2])
    if small.op is multiply:
        small = bare(small.args[0])
    of = next((f for f in (log, log2, log10) if f is function.op), None)
    rest = bare(small.args[0]) if of is not None and small.op is log1p else form
    guard = bare(rest.args[0]) if rest.op is negative else form
    if of is None or guard.op is not where or bare(guard.args[0]) is not bare(form.args[0]):
        return None
    return of(1 - guard.args[2]) if number_of(bare(guard.args[1])) == 0 else None


_FUNCTIONS = (log, log2, log10, erfcx)
"""Functions whose accurate forms are read as they were written."""


def as_text(node: Node) -> Node:
    """Return the function as written if ``node`` is its form near some place or against overflow, else ``node``."""
    inner = raised(node)
    if inner is bare(node) and inner.op is where:
        if (beside := _beside_one(inner)) is not None:
            return beside
        for k in (1, 2):
            text = bare(inner.args[k])
            function = next((f for f in _FUNCTIONS if f is text.op), None)
            if function is not None and (of := _guarded(inner, text.args[0], k)) is not None:
                return function(of)
        return in_range(inner)
    return inner


def logarithm_of(node: Node) -> Node | None:
    """Return the argument of the logarithm that ``node`` is, also in accurate forms of quotients and hyperbolic cosines, or None."""
    inner = bare(node)
    if inner.op is where and bare(inner.args[1]).op.name == "log1p":
        text = bare(inner.args[2])
        if (inverse := _log_cosh_of(text)) is not None:
            return inverse
        guard = bare(text.args[0]) if text.op.name == "log" else text
        if guard.op is where and bare(guard.args[0]) is bare(inner.args[0]) and number_of(bare(guard.args[1])) == 1:
            return guard.args[2]
    return inner.args[0] if inner.op.name == "log" else None


def _log_cosh_of(far: Node) -> Node | None:
    """Return the hyperbolic cosine whose logarithm for large x is ``far``, ``abs(x) - log(2)``, or None."""
    size = bare(far.args[0]) if far.op is subtract else far
    number = number_of(bare(far.args[1])) if size.op is absolute and far.op is subtract else None
    return cosh(size.args[0]) if number is not None and abs(number - _LOG2) < _ROUNDED else None


def _angle_of(node: Node) -> Node | None:
    """Return the inverse function as written if ``node`` is its accurate form near the end of its domain, else None."""
    text = bare(node.args[2])
    if text.op is arcsin:  # where both branches have the same angle
        own = bare(text.args[0])
        return arcsin(own.args[2]) if own.op is where and bare(own.args[0]) is bare(node.args[0]) else None
    if text.op is not arccos and text.op is not arccosh:
        return None
    guard = bare(text.args[0])
    if guard.op is not where or bare(guard.args[0]) is not bare(node.args[0]) or number_of(bare(guard.args[1])) != 1:
        return None
    return (arccos if text.op is arccos else arccosh)(guard.args[2])


def raised(node: Node) -> Node:
    """Return the power, logarithm or angle as written if ``node`` is its accurate form, else ``node``."""
    node = bare(node)
    if node.op is where and (of := logarithm_of(node)) is not None:
        return log(of)
    if node.op is where and (angle := _angle_of(node)) is not None:
        return angle
    if node.op is not where or bare(node.args[1]).op.name != "exp" or bare(node.args[2]).op.name != "power":
        return node
    text = bare(node.args[2])
    base = bare(text.args[0])
    if base.op is not where or bare(base.args[0]) is not bare(node.args[0]):
        return node
    return power(base.args[2], text.args[1])
