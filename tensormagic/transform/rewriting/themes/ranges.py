"""Rules for intermediate results that overflow or underflow although the final result does not."""

# pyright: reportUnusedImport=false
# Rules of this theme that stand in a file of their own are imported here.

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare, extending
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    cosh,
    divide,
    exp,
    expm1,
    isfinite,
    isinf,
    less,
    less_equal,
    log,
    log1mexp,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    multiply,
    power,
    sigmoid,
    sinh,
    square,
    where,
)
from tensormagic.ops.scalars.special import xlogy
from tensormagic.transform.rewriting.notation import real, stable
from tensormagic.transform.rewriting.sums.terms import key_of, number_of, raised, sum_of
from tensormagic.transform.rewriting.themes.explog import split
from tensormagic.transform.rewriting.themes.overflows import (  # noqa: F401 (as above)
    logarithms_of_large_powers,
    logarithms_of_large_products,
    logarithms_of_large_squares,
    logarithms_of_one_and_large_squares,
    logarithms_of_products_of_many_exponentials,
    products_of_large_exponentials,
    quotients_by_large_squares,
    roots_of_large_squares,
)
from tensormagic.transform.rewriting.themes.overflows_of_folds import (  # noqa: F401 (as above)
    folds_along_axes_that_run_over,
    gradients_of_logarithms_of_lengths,
    gradients_of_logarithms_of_products,
    lengths_that_run_over,
    logarithms_that_run_over,
    powers_of_lengths_that_run_over,
)

Rewrites = Iterator[tuple[Any, ...]]


@stable(fuel=1)
def quotients_of_squares(x: Node, y: Node) -> Rewrites:
    """The square of a quotient in place of a quotient of squares, which underflow: ``(1 - cos(x)) / x**2`` has such."""
    wider = extending("a value where both squares are infinite or 0")
    for c in (2, -2, 4):  # factors that round nothing, and cannot bring an overflowed number back into range
        yield (c * square(x)) / square(y), c * square(x / y), wider
        yield (c * square(x)) / (y * y), c * square(x / y), wider


@stable(roots="divide", heads="where", fuel=1, judged=True, extends="a value where both squares are infinite or 0")
def forms_over_squares(node: Node) -> Found | None:
    """``(1 - cos(x)) / x**2 -> 2 * (sin(x / 2) / x)**2 where its form is used, and for other forms that are squares``."""
    top, below = bare(node.args[0]), key_of(bare(node.args[1]))
    form = bare(top.args[1]) if top.op is where else top
    if form.op is not multiply or not isinstance(below, tuple):
        return None
    times, squared = (form.args[0], bare(form.args[1]))
    if number_of(bare(times)) not in {2, -2, 4} or squared.op is not square:
        return None
    value = times * square(squared.args[0] / below[1])
    return Found(where(top.args[0], value, top.args[2] / node.args[1]), absorbs=(top,))


@stable(roots="divide", heads="add", fuel=1, judged=True, extends="a value where the squares are infinite")
def quotients_by_squares(node: Node) -> Found | None:
    """``x / (x * x + c) -> 1 / x where the square is infinite``."""
    top, total = node.args[0], sum_of(node.args[1])
    if node.type.dtype.kind != "f" or len(total.terms) != 1 or total.number <= 0 or number_of(bare(top)) is not None:
        return None
    ((key, _, times),) = total.terms
    if not isinstance(key, tuple) or times <= 0:
        return None
    far = _over_square(top, key[1])
    if times != 1:
        far = far * (1 / float(times))
    ordinary = logical_not(isinf(node.args[1]))
    value = where(ordinary, top / where(ordinary, node.args[1], 1), far)
    return Found(value, absorbs=(bare(node.args[1]),))


def _over_square(top: Node, x: Node) -> Node | float:
    """Return ``top / x**2``, with common factors cancelled."""
    inner = bare(top)
    if inner is x:
        return 1 / x
    if key_of(inner) == ("square", x):
        return 1.0
    for p, q in (inner.args, inner.args[::-1]) if inner.op is multiply else ():
        if bare(p) is x:
            return q / x
        if key_of(bare(p)) == ("square", x):
            return q
    return top / x / x


@stable(roots="divide", fuel=1, judged=True, extends="a value where an exponential is infinite")
def slopes_of_logistic_functions(node: Node) -> Found | None:
    """``y * exp(x) / (1 + exp(x))**2 -> y * sigmoid(x) * sigmoid(-x), and y * 0.25 / sinh(x / 2) / sinh(x / 2) for (exp(x) - 1)**2``."""
    key = key_of(bare(node.args[1])) if node.type.dtype.kind == "f" else None
    found = split(bare(node.args[0])) if isinstance(key, tuple) else None
    if found is None:
        return None
    factor, exponent = found
    base = key[1]  # type: ignore[index]
    other, plus = _with_one(base)
    if other is None or (rest := sum_of(exponent).minus(sum_of(other).times(1))).terms or rest.number:
        return None
    if all(t < 0 and not_negative(n) for _, n, t in sum_of(exponent).terms):
        return None  # nothing overflows
    parts = [n for n in (bare(node.args[0]), bare(node.args[1]), base) if n.args]
    return Found(_steep(factor, exponent, plus=plus), absorbs=tuple(dict.fromkeys(parts)))


def _steep(factor: Node, exponent: Node, *, plus: bool) -> Node:
    """Return ``factor`` times the slope for a sum (``plus``) by the logistic function, or for a difference by ``sinh``."""
    if not plus:
        half = sinh(exponent * 0.5)
        return factor * 0.25 / half / half  # one more division has one rounding less than the square of a quotient
    value = sigmoid(exponent) * sigmoid(-exponent)
    return value if number_of(factor) == 1 else factor * value


def _with_one(base: Node) -> tuple[Node | None, bool]:
    """Return ``x`` and True for ``1 + exp(x)``, ``x`` and False for ``exp(x) - 1``; None in place of ``x`` for others."""
    if base.op is expm1:
        return base.args[0], False
    total = sum_of(base)
    if len(total.terms) != 1 or abs(total.terms[0][2]) != 1 or total.number not in {1, -1}:
        return None, False
    own = bare(total.terms[0][1])
    return (own.args[0] if own.op is exp else None), total.terms[0][2] * total.number > 0


# logarithms of products -----------------------------------------------------------------------------------------------


@dataclass
class _Factors:
    """The factors of products and quotients, with what is known of their logarithms."""

    number: float = 0.0
    large: list[Node] = field(default_factory=list[Node])
    bases: list[Node] = field(default_factory=list[Node])
    signed: list[Node] = field(default_factory=list[Node])
    """Factors that may overflow and have both signs."""
    known: list[tuple[Node, int]] = field(default_factory=list[tuple[Node, int]])
    """Logarithms of factors, and the sign with which each is added."""
    others: list[tuple[Node, int]] = field(default_factory=list[tuple[Node, int]])

    def take(self, node: Node, sign: int, depth: int = 5) -> bool:
        """Add a factor; False if its logarithm is not known."""
        inner = raised(node)
        name = inner.op
        value = number_of(inner)
        if value is not None:
            self.number += sign * math.log(value) if value > 0 else 0.0
            return value > 0
        if depth and (name is multiply or name is divide):
            left, right = inner.args
            return self.take(left, sign, depth - 1) and self.take(right, sign if name is multiply else -sign, depth - 1)
        if name is exp:
            own = inner.args[0]
        elif name is power:
            own = xlogy(inner.args[1], inner.args[0])
            self.bases.append(inner.args[0])
        elif name in _LOGARITHMS:
            own, number = _LOGARITHMS[name](inner.args[0])
            self.number += sign * number
        else:
            self.others.append((node, sign))
            return True
        self.known.append((own, sign))
        (self.signed if name in _SIGNED else self.large).append(node)
        return True

    def logarithm(self) -> Node:
        """Return the logarithm of the product, or of its absolute value if factors have both signs."""
        size = absolute if self.signed else lambda n: n
        terms = [*self.known, *((log(size(n)), sign) for n, sign in self.others)]
        value = reduce(add, (n if sign > 0 else -n for n, sign in terms))
        return value + self.number if self.number else value

    def kept(self, product: Node) -> Node:
        """Return the condition that the product is in range, or has no logarithm."""
        found = reduce(logical_and, map(_normal, dict.fromkeys((product, *self.large))))
        found = reduce(logical_and, map(isfinite, dict.fromkeys(self.signed)), found)
        if self.signed:  # an overflow or underflow has the sign of the product
            found = logical_or(found, logical_not(less(0, product + 1 / product)))
        for factor in dict.fromkeys((*self.bases, *(() if self.signed else (n for n, _ in self.others)))):
            found = logical_or(found, less_equal(factor, 0))
        return found


_LOG_2 = math.log(2)
_LOGARITHMS: dict[Any, Callable[[Node], tuple[Node, float]]] = {
    cosh: lambda x: (absolute(x) + log1p(exp(-2 * absolute(x))), -_LOG_2),
    sinh: lambda x: (absolute(x) + log1mexp(-2 * absolute(x)), -_LOG_2),
    expm1: lambda x: (maximum(x, 0) + log1mexp(-absolute(x)), 0.0),
}
"""Functions that may overflow, with the logarithm of their size, up to a constant."""
_SIGNED = frozenset((sinh, expm1))


def _factors(product: Node) -> _Factors | None:
    """Return the factors of a product with exponentials, or None if it has none, or is just two of them."""
    found = _Factors()
    if product.op not in {multiply, divide} or all(bare(a).op is exp for a in product.args):
        return None
    if not found.take(product, 1):
        return None
    return found if found.large or (found.signed and len(found.known) + len(found.others) > 1) else None


def _guarded(node: Node) -> Node:
    """Return ``x`` if ``node`` is ``where(c, 1, x)``, else ``node``."""
    inner = bare(node)
    return bare(inner.args[2]) if inner.op is where and number_of(bare(inner.args[1])) == 1 else inner


def _normal(node: Node) -> Node:
    """Return the condition that a number has neither overflowed nor underflowed."""
    return logical_and(less(float(np.finfo(node.type.dtype).tiny), node), isfinite(node))


@stable(roots="log", fuel=1, judged=True, extends="a value where a factor is infinite or 0")
def logarithms_of_products_of_exponentials(node: Node) -> Found | None:
    """``log(exp(x) * y) -> x + log(y), where the exponential or the product runs over or under; for powers and quotients, too``."""
    product = _guarded(node.args[0])
    found = _factors(product) if node.type.dtype.kind == "f" else None
    if found is None or (bool(found.signed) and product.op is divide) != (product is not bare(node.args[0])):
        return None  # quotients near 1 have precedence
    kept = found.kept(node.args[0])
    form = where(kept, log(where(kept, node.args[0], 1)), found.logarithm())
    return Found(form, absorbs=(product,))


@real(roots="where", heads="log", assumes=("the factors are positive",))
def logarithms_of_positive_products(node: Node) -> Node | None:
    """``log(exp(x) * y) -> x + log(y), everywhere``."""
    near = bare(node.args[1])
    inner = bare(near.args[0]) if near.op is log else None
    if inner is None or inner.op is not where or bare(inner.args[0]) is not bare(node.args[0]):
        return None
    if bare(node.args[2]).op is log1p:  # the logarithm of 1 minus something
        return None
    return None if _factors(bare(inner.args[1])) is None else node.args[2]
