"""Rules for squares, products, powers and exponentials that overflow or underflow. They come last: other rules read the text as it is.

``sqrt(1 + x * x)`` is ``abs(x)`` where the square is infinite: all else is nothing beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.facts import not_negative
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare, is_constant
from tensormagic.ops.fold import PROD, SUM, fold
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.comparison import isinf
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    exp,
    hypot,
    less,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    multiply,
    power,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.terms import Sum, conjugates, sum_of
from tensormagic.transform.rewriting.themes.overflows_of_folds import applies_to

_MOST = 3
_READ = {sqrt: 0, log: 0, log1p: 0, divide: 1}
"""Ops that read sums of squares, with the number of that operand."""


def _sides(terms: Sum) -> list[Node]:
    """Return the square roots of the terms of a sum of squares and a number; empty for other sums."""
    sides: list[Node] = []
    for key, _, times in terms.terms:
        if not isinstance(key, tuple) or times <= 0:
            return []
        sides.append(key[1] if times == 1 else key[1] * float(times) ** 0.5)
    return sides if len(sides) <= _MOST else []


def _length(total: Node, *, plus: int = 0) -> Node | None:
    """Return the length whose square is ``total`` without its number, or None; ``plus`` is added to the number."""
    inner = bare(total)
    if inner.op not in {add, subtract, square, multiply} or inner.type.dtype.kind != "f":
        return None
    terms = conjugates(inner) or sum_of(inner)
    sides = _sides(terms)
    if not sides or not (terms.number + plus or len(sides) > 1):
        return None
    return absolute(sides[0]) if len(sides) == 1 else reduce(hypot, sides)


def _ordinary(total: Node) -> Node:
    """Return the condition that a sum has not overflowed or, without a number, underflowed."""
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
    if len(sides) < 2 or any(map(_is_scaled, sides)):
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


def _is_scaled(side: Node) -> bool:
    """Return whether a side is multiplied by a choice of numbers, as it is once the rule has fired."""
    inner = bare(side)
    return inner.op is multiply and any(bare(a).op is where and _is_choice_of_numbers(a) for a in inner.args)


def _is_choice_of_numbers(node: Node) -> bool:
    inner = bare(node)
    return all(map(_is_choice_of_numbers, inner.args[1:])) if inner.op is where else is_constant(inner)


@stable(roots="log", heads="multiply", fuel=1, judged=True, extends="a value where the product is infinite or 0")
def logarithms_of_large_products(node: Node) -> Found | None:
    """``log(x * y) -> log((c * x) * (c * y)) - 2 * log(c) for a power of two c, where the product runs over or under``."""
    product = bare(node.args[0])
    if not _of_two(product):
        return None
    x, y = product.args
    info, number = np.finfo(product.type.dtype), product.type.dtype.type
    down, up = info.maxexp // 2, info.maxexp // 2 + info.nmant
    over, under = isinf(product), less(absolute(product), float(info.tiny))
    scale = where(over, constant(number(2.0**-down)), constant(number(2.0**up)))
    off = where(over, constant(number(-2 * down * math.log(2))), constant(number(2 * up * math.log(2))))
    beyond = logical_or(over, under)
    value = log(where(beyond, (x * scale) * (y * scale), product)) - where(beyond, off, constant(number(0)))
    return Found(value, absorbs=(product,))


def _of_two(product: Node) -> bool:
    """Return whether a number is the product of two numbers that are not constants."""
    if product.op is not multiply or product.type.dtype not in {np.dtype(np.float64), np.dtype(np.float32)}:
        return False
    return not any(is_constant(a) for a in product.args) and bare(product.args[0]) is not bare(product.args[1])


@stable(roots="log", heads="power", fuel=1, judged=True, extends="a value where the power is infinite or 0")
def logarithms_of_large_powers(node: Node) -> Found | None:
    """``log(x ** y) -> y * log(abs(x)) where the power runs over or under``."""
    raised = bare(node.args[0])
    if raised.op is not power or raised.type.dtype.kind != "f":
        return None
    x, y = raised.args
    kept = _kept(node.args[0])
    return Found(where(kept, log(where(kept, node.args[0], 1)), y * log(absolute(x))), absorbs=(raised,))


def _kept(product: Node) -> Node:
    """Return the condition that a product has all its digits, or no logarithm."""
    tiny = float(np.finfo(product.type.dtype.type).tiny)
    size = product if not_negative(product) else absolute(product)
    return logical_and(less(tiny, size), less(product, math.inf))


@stable(roots="log", heads="prod", fuel=1, judged=True, extends="a value where the product is infinite or 0")
def logarithms_of_products_of_many_exponentials(node: Node) -> Found | None:
    """``log(prod(exp(v), axes)) -> sum(v, axes) where the product runs over or under``."""
    product = bare(node.args[0])
    if not _is_of_exponentials(product):
        return None
    kept = _kept(node.args[0])
    total = fold(SUM, bare(product.args[0]).args[0], product["axes"])
    return Found(where(kept, log(where(kept, node.args[0], 1)), total), absorbs=(product,))


def _is_of_exponentials(product: Node) -> bool:
    return product.op is PROD and product.type.dtype.kind == "f" and bare(product.args[0]).op is exp


@stable(
    roots="multiply divide", heads="exp", fuel=1, judged=True, extends="a value where an exponential is infinite or 0"
)
def products_of_large_exponentials(node: Node) -> Found | None:
    """``exp(x) * exp(y) -> exp(x + y) where an exponential is infinite or 0, and so for quotients``."""
    if not _of_exponentials(node):
        return None
    first, second = node.args
    x, y = (bare(n).args[0] for n in node.args)
    exponent = x + y if node.op is multiply else x - y
    info = np.finfo(node.type.dtype.type)
    over, under = (logical_or(one(first), one(second)) for one in (isinf, lambda n: less(n, _gone(info))))
    beyond = logical_or(
        over, logical_and(under, less(math.log(float(info.tiny)), exponent))
    )  # small results stay as they are
    other = exp(where(beyond, exponent, 0))
    whole = multiply if node.op is multiply else divide
    return Found(where(beyond, other, whole(where(beyond, 1, first), second)))


def _gone(info: np.finfo[Any]) -> float:
    """Return the bound below which a number has lost more digits than a sum of exponents would."""
    return float(info.smallest_subnormal) * 2.0**10


def _of_exponentials(node: Node) -> bool:
    """Return whether ``node`` combines two exponentials; the square of one overflows with its exponent doubled."""
    if node.type.dtype.kind != "f" or not all(bare(a).op is exp for a in node.args):
        return False
    return node.op is divide or bare(node.args[0]) is not bare(node.args[1])


BEYOND = (
    *roots_of_large_squares,
    *logarithms_of_large_squares,
    *logarithms_of_one_and_large_squares,
    *quotients_by_large_squares,
    *logarithms_of_large_products,
    *logarithms_of_large_powers,
    *logarithms_of_products_of_many_exponentials,
    *products_of_large_exponentials,
)
"""The rules of this file, which are used after all others."""


def applies(nodes: Iterable[Node], *, along: bool = False) -> bool:
    """Return whether a root, logarithm or quotient of a sum of squares or of a fold occurs, also inside regions (a quick test).

    With ``along``, folds along axes count, too.
    """
    for node in nodes:
        if runs_over(node) is not None or applies_to(node, along=along):
            return True
        if node.op.kind == "region" and any(
            applies(g.nodes, along=along) for g in node.params.values() if isinstance(g, Graph)
        ):
            return True
    return False


def runs_over(node: Node) -> Node | None:
    """Return the operand of a root, logarithm or quotient that may overflow, or a product of exponentials, or None for other nodes."""
    at = _READ.get(node.op)  # type: ignore[call-overload]
    if at is not None:
        inner = bare(node.args[at])
        if inner.op.name in _SUMS and (_sides(sum_of(inner)) or conjugates(inner) is not None):
            return node.args[at]
        if node.op is log and (inner.op is power or _of_two(inner) or _is_of_exponentials(inner)):
            return node.args[at]
    return node if (node.op is multiply or node.op is divide) and _of_exponentials(node) else None


_SUMS = frozenset(("add", "subtract", "square", "multiply"))
