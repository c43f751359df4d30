"""Rules of squares that run over, or under, within roots, logarithms and quotients. They come last: other rules read the sums as they are.

``sqrt(1 + x * x)`` is ``abs(x)`` where the square is infinite: all else is nothing beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.comparison import isinf
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    hypot,
    less,
    log,
    log1p,
    logical_not,
    multiply,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.terms import Sum, conjugates, sum_of

_MOST = 3
_READ = {sqrt: 0, log: 0, log1p: 0, divide: 1}
"""What reads sums of squares, and as which operand."""


def _sides(terms: Sum) -> list[Node]:
    """The operands of a sum of squares and a number; none for other sums."""
    sides: list[Node] = []
    for key, _, times in terms.terms:
        if not isinstance(key, tuple) or times <= 0:
            return []
        sides.append(key[1] if times == 1 else key[1] * float(times) ** 0.5)
    return sides if len(sides) <= _MOST else []


def _length(total: Node, *, plus: int = 0) -> Node | None:
    """The length of which ``total`` is the square, but for a number; ``plus`` is added to it."""
    inner = bare(total)
    if inner.op not in {add, subtract, square, multiply} or inner.type.dtype.kind != "f":
        return None
    terms = conjugates(inner) or sum_of(inner)
    sides = _sides(terms)
    if not sides or not (terms.number + plus or len(sides) > 1):
        return None
    return absolute(sides[0]) if len(sides) == 1 else reduce(hypot, sides)


def _ordinary(total: Node) -> Node:
    """Where a sum has neither run over nor, without a number, lost digits at the other end."""
    ordinary = logical_not(isinf(total))
    if (conjugates(total) or sum_of(total)).number:
        return ordinary
    info = np.finfo(total.type.dtype.type)
    return where(less(total, float(info.tiny / info.eps)), False, ordinary)


@stable(roots="sqrt", fuel=1, judged=True, extends="a value where the squares are infinite or 0")
def roots_of_large_squares(node: Node) -> Found | None:
    """``sqrt(1 + x * x) -> abs(x) where the square is infinite, and lengths of three``."""
    total = node.args[0]
    size = _length(total)
    if size is None or (bare(size).op is hypot and not sum_of(total).number and bare(size).args[0].op is not hypot):
        return None  # two squares have a rule of their own
    ordinary = _ordinary(total)
    return Found(where(ordinary, sqrt(where(ordinary, total, 1)), size), absorbs=(bare(total),))


@stable(roots="log", fuel=1, judged=True, extends="a value where the squares are infinite or 0")
def logarithms_of_large_squares(node: Node) -> Found | None:
    """``log(c + x * x) -> 2 * log(abs(x)) where the square is infinite``."""
    total = node.args[0]
    size = _length(total)
    if size is None:
        return None
    ordinary = _ordinary(total)
    return Found(where(ordinary, log(where(ordinary, total, 1)), 2 * log(size)), absorbs=(bare(total),))


@stable(roots="log1p", fuel=1, judged=True, extends="a value where the square is infinite")
def logarithms_of_one_and_large_squares(node: Node) -> Found | None:
    """``log1p(x * x) -> 2 * log(abs(x)) where the square is infinite, and for sums of squares``."""
    total = node.args[0]
    size = _length(total, plus=1)
    if size is None:
        return None
    ordinary = logical_not(isinf(total))
    return Found(where(ordinary, log1p(where(ordinary, total, 1)), 2 * log(size)), absorbs=(bare(total),))


@stable(roots="divide", heads="add", fuel=1, judged=True, extends="a value where the squares are infinite or 0")
def quotients_by_large_squares(node: Node) -> Found | None:
    """``x / (x * x + y * y) -> c * x / ((c * x)**2 + (c * y)**2) * c for a power of two c, where the squares run over or under``."""
    top, total = node.args
    terms = sum_of(total)
    sides = _sides(terms) if node.type.dtype.kind == "f" else []
    if len(sides) < 2:
        return None
    number = node.type.dtype.type
    c = 2.0 ** (np.finfo(number).maxexp * 5 // 8)
    one, large, small = (constant(number(v)) for v in (1.0, c, 1 / c))
    scale = where(isinf(total), small, one)
    if not terms.number:
        info = np.finfo(number)
        scale = where(less(total, float(info.tiny / info.eps)), large, scale)
    below = reduce(add, [square(side * scale) for side in sides])
    below = below + float(terms.number) * scale * scale if terms.number else below
    return Found(top * scale / below * scale, absorbs=(bare(total),))


BEYOND = (
    *roots_of_large_squares,
    *logarithms_of_large_squares,
    *logarithms_of_one_and_large_squares,
    *quotients_by_large_squares,
)
"""These rules, which are used when all others have been."""


def applies(nodes: Iterable[Node]) -> bool:
    """A first look: whether a root, a logarithm or a quotient is of a sum of squares, in these nodes or in graphs within."""
    for node in nodes:
        at = _READ.get(node.op)  # type: ignore[call-overload]
        if at is not None:
            inner = bare(node.args[at])
            if inner.op.name in _SUMS and (_sides(sum_of(inner)) or conjugates(inner) is not None):
                return True
        elif node.op.kind == "region" and any(applies(g.nodes) for g in node.params.values() if isinstance(g, Graph)):
            return True
    return False


_SUMS = frozenset(("add", "subtract", "square", "multiply"))
