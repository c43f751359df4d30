"""Rules for norms and products of many elements that overflow or underflow: a second evaluation, only where the first has failed.

``sqrt(sum(x**2))`` is the text wherever the sum has all of its digits. Elsewhere it is the root of the sum of ``(c * x)**2``, over
``c``, for a power of two. Where that is not needed the second sum is of zeros, and no element is read:
:mod:`tensormagic.backend.planning.skipped_folds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node, make
from tensormagic.ir.rewriting.rules import Found, bare, is_constant
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fold import ALL, PROD, PROD_OTHERS, SUM, fold, spread
from tensormagic.ops.leaf import constant, constant_value
from tensormagic.ops.move import RESHAPE, TRANSPOSE, broadcast, squeezes
from tensormagic.ops.move_kind import Index, Move
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    less,
    less_equal,
    log,
    log2,
    log10,
    logical_and,
    multiply,
    power,
    sign,
    sqrt,
    square,
    where,
)
from tensormagic.transform.rewriting.notation import real, stable

_STEEPEST = 0.6
"""The largest exponent of a sum of squares for which the power of its power-of-two scale does not overflow."""


# what is reached ------------------------------------------------------------------------------------------------------


_DEEP = 3
"""How many products and quotients of a gradient are searched for a quotient by a sum of squares."""


@dataclass(frozen=True)
class Reached:
    """A fold, and the operations that lead from it to a number that is a multiple of it.

    Parameters
    ----------
    fold
        The fold, or the sum of several.
    steps
        The moves, products and quotients applied to it, outermost first.
    """

    fold: Node
    steps: tuple[Node, ...]

    def again(self, other: Node, *, moves: bool = False) -> Node:
        """Apply the same steps (with ``moves``, only the moves) to another number."""
        for step in reversed(self.steps):
            if step.op.kind == "move":
                other = make(step.op, (other,), **step.params)
            elif not moves:
                first = step.op is divide or is_constant(step.args[1])
                other = make(step.op, (other, step.args[1]) if first else (step.args[0], other))
        return other


def _reached(node: Node, *, moves: bool = False) -> Reached:
    """Return the node below moves and multiples, or below moves alone."""
    steps: list[Node] = []
    while True:
        if node.op.kind == "move" and len(node.args) == 1 and not node.op.may_raise(node):
            steps.append(node)
            node = node.args[0]
        elif not moves and (node.op is divide or (node.op is multiply and any(is_constant(a) for a in node.args))):
            steps.append(node)
            node = node.args[node.op is multiply and is_constant(node.args[0])]
        else:
            return Reached(node, tuple(steps))


Part = tuple[Node, tuple[int, ...]]


def _squares(total: Node) -> list[Part]:
    """Return the arrays (with axes) whose squares a sum adds up; empty for other sums."""
    if total.type.dtype not in {np.dtype(np.float64), np.dtype(np.float32)}:
        return []
    if total.op is add:
        first, second = map(_squares, total.args)
        return [*first, *second] if first and second else []
    if total.op is SUM:
        of = bare(total.args[0])
        twice = of.op is multiply and of.args[0] is of.args[1]
        return [(of.args[0], total["axes"])] if (of.op is square or twice) and _same(of, total.args[0]) else []
    if total.op is CONTRACT and total.args[0] is total.args[1]:
        (a, b), out = split(total["subscripts"])
        kept = [k for k, letter in enumerate(a) if letter in out]
        if a == b and len(set(a)) == len(a) and len(kept) < len(a) and "".join(a[k] for k in kept) == out:
            return [(total.args[0], tuple(k for k in range(len(a)) if k not in kept))]
    return []


def _same(node: Node, other: Node) -> bool:
    return node.type.shape == other.type.shape


# the second look ------------------------------------------------------------------------------------------------------


class Second:
    """A second evaluation of a fold for where ``kept`` does not hold.

    Parameters
    ----------
    kept
        Where the fold has all of its digits.
    parts
        The folded arrays, with their axes.
    """

    def __init__(self, kept: Node, parts: list[Part]) -> None:
        self._kept = kept
        each = not kept.type.shape or all(_are_last(x, axes) for x, axes in parts)
        self._whole = None if each else fold(ALL, kept, tuple(range(kept.type.ndim)))

    def over(self, x: Node, axes: tuple[int, ...], nothing: float, op: object = SUM) -> Node:
        """Return a fold of ``x``, with neutral elements where it is not needed."""
        kept = self.along(self._kept, x, axes) if self._whole is None else broadcast(self._whole, x.type.shape)
        return fold(op, where(kept, constant(x.type.dtype.type(nothing)), x), axes)  # type: ignore[arg-type]

    @staticmethod
    def along(number: Node, x: Node, axes: tuple[int, ...]) -> Node:
        """Return a number for each fold of ``x``, spread to its elements."""
        return spread(number, x, axes) if number.type.shape else broadcast(number, x.type.shape)


def _are_last(x: Node, axes: tuple[int, ...]) -> bool:
    """Return whether the folded elements are contiguous in memory."""
    if axes != tuple(range(x.type.ndim - len(axes), x.type.ndim)):
        return False
    while x.op.kind == "move":
        if x.op is TRANSPOSE:
            return False
        x = x.args[0]
    return True


@dataclass(frozen=True)
class Scaled:
    """A sum of squares with its second evaluation.

    Parameters
    ----------
    reached
        How the sum is used.
    kept
        Where the sum has all of its digits.
    large
        Where it has lost them by overflow.
    total
        The sum where it has all of its digits, and elsewhere that of the scaled squares.
    down, up
        The exponents of the powers of two for scaling large and small numbers.
    """

    reached: Reached
    kept: Node
    large: Node
    total: Node
    down: int
    up: int

    @property
    def used(self) -> Node:
        """The value that is computed from the sum."""
        return self.reached.again(self.total)

    def by(self, nothing: float, of_large: float, of_small: float) -> Node:
        """Return one number each for kept, large and small sums, in the shape in which the sum is used."""
        nothing_, large, small = (constant(self.total.type.dtype.type(v)) for v in (nothing, of_large, of_small))
        return self.reached.again(where(self.kept, nothing_, where(self.large, large, small)), moves=True)


def _scaled(node: Node, *, along: bool) -> Scaled | None:
    """Return the sum of squares of which ``node`` is a multiple, of all elements or ``along`` axes, or None if there is none."""
    reached = _reached(node)
    total = reached.fold
    parts = _squares(total)
    if not parts:
        return None
    info, number = np.finfo(total.type.dtype), total.type.dtype.type
    down, up = -(info.maxexp * 5 // 8), info.maxexp * 3 // 4
    kept = logical_and(less_equal(constant(number(info.tiny / info.eps)), total), less(total, math.inf))
    large = less(1, total)
    by = where(large, constant(number(2.0**down)), constant(number(2.0**up)))
    if bool(kept.type.shape) is not along:
        return None
    second = Second(kept, parts)
    sums = [second.over(square(x * second.along(by, x, axes)), axes, 0) for x, axes in parts]
    again = sums[0]
    for other in sums[1:]:
        again = again + other
    return Scaled(reached, kept, large, where(kept, total, again), down, up)


def _length(node: Node, *, along: bool) -> Found | None:
    scaled = _scaled(node.args[0], along=along)
    if scaled is None:
        return None
    length = sqrt(scaled.used) * scaled.by(1, 2.0**-scaled.down, 2.0**-scaled.up)
    tiny = float(
        np.finfo(node.type.dtype.type).tiny
    )  # its reciprocal, which occurs in the gradient, may be infinite below that
    return Found(where(less(length, tiny), 0, length))


def _power(node: Node, *, along: bool) -> Found | None:
    exponent = bare(node.args[1])
    a = float(constant_value(exponent)) if is_constant(exponent) and exponent.type.dtype.kind in "if" else math.inf  # type: ignore[arg-type]
    scaled = _scaled(node.args[0], along=along) if abs(a) <= _STEEPEST else None
    if scaled is None:
        return None
    return Found(scaled.used ** node.args[1] * scaled.by(1, 2.0 ** (-2 * a * scaled.down), 2.0 ** (-2 * a * scaled.up)))


def _logarithm(node: Node, *, along: bool) -> Found | None:
    scaled = _scaled(node.args[0], along=along)
    if scaled is None:
        return _of_product(node, along=along)
    unit = 2 * {log: math.log(2), log2: 1.0, log10: math.log10(2)}[node.op]  # type: ignore[index]
    return Found(make(node.op, (scaled.used,)) - scaled.by(0, scaled.down * unit, scaled.up * unit))


def _of_product(node: Node, *, along: bool) -> Found | None:
    reached = _reached(node.args[0], moves=True)
    product = reached.fold
    if product.op is not PROD or product.type.dtype not in {np.dtype(np.float64), np.dtype(np.float32)}:
        return None
    x, axes = product.args[0], product["axes"]
    tiny, positive = float(np.finfo(product.type.dtype.type).tiny), not_negative(x)
    size = product if positive else absolute(product)
    kept = logical_and(less(tiny, size), less(product, math.inf))
    if bool(kept.type.shape) is not along:
        return None
    second = Second(kept, [(x, axes)])
    total = where(kept, 0, second.over(make(node.op, (x if positive else absolute(x),)), axes, 0))
    if not positive:
        total = where(less(where(kept, 1, second.over(sign(x), axes, 1, PROD)), 0), math.nan, total)
    outer = reached.again(kept, moves=True)
    return Found(where(outer, make(node.op, (where(outer, node.args[0], 1),)), reached.again(total)))


def _gradient(node: Node, *, along: bool) -> Found | None:
    for x, quotient in (node.args, node.args[::-1]):
        moved = _reached(quotient, moves=True)
        found = _by_scaled(moved.fold, along=along)
        if found is not None:
            by, value = found
            return Found(x * moved.again(by) * moved.again(value))
    return None


def _by_scaled(node: Node, *, along: bool, depth: int = _DEEP) -> tuple[Node, Node] | None:
    """Return a scale factor, and ``node`` with a quotient by a sum of squares rewritten with the scaled sum, or None."""
    if node.op is divide and (scaled := _scaled(node.args[1], along=along)) is not None:
        by = scaled.by(1, 2.0**scaled.down, 2.0**scaled.up)
        return by, node.args[0] / scaled.used * by
    for k in range(len(node.args) if node.op is multiply else node.op is divide) if depth else ():
        found = _by_scaled(node.args[k], along=along, depth=depth - 1)
        if found is not None:
            by, value = found
            return by, value / node.args[1] if node.op is divide else value * node.args[1 - k]
    return None


# rules ----------------------------------------------------------------------------------------------------------------


@stable(roots="sqrt", fuel=1, judged=True, extends="a value where the sum is infinite or 0")
def lengths_that_run_over(node: Node) -> Found | None:
    """``sqrt(sum(x**2)) -> sqrt(sum((c * x)**2)) / c for a power of two c, where the sum runs over or under``."""
    return _length(node, along=False)


@stable(roots="power", fuel=1, judged=True, extends="a value where the sum is infinite or 0")
def powers_of_lengths_that_run_over(node: Node) -> Found | None:
    """``sum(x**2) ** a -> sum((c * x)**2) ** a / c ** (2 * a) for a power of two c, where the sum runs over or under``."""
    return _power(node, along=False)


@stable(roots="log log2 log10", fuel=1, judged=True, extends="a value where the sum or the product is infinite or 0")
def logarithms_that_run_over(node: Node) -> Found | None:
    """``log(sum(x**2)) -> log(sum((c * x)**2)) - 2 * log(c), and log(prod(x)) -> sum(log(abs(x))), where that runs over or under``."""
    return _logarithm(node, along=False)


@stable(roots="multiply", fuel=1, judged=True, extends="a value where the sum is infinite or 0")
def gradients_of_logarithms_of_lengths(node: Node) -> Found | None:
    """``x * (y / sum(x**2)) -> (c * x) * (y / sum((c * x)**2) * c) for a power of two c, where the sum runs over or under``."""
    return _gradient(node, along=False)


@real(
    roots="sqrt power log log2 log10 multiply",
    fuel=1,
    judged=True,
    extends="a value where a sum or a product is infinite or 0",
)
def folds_along_axes_that_run_over(node: Node) -> Found | None:
    """``sqrt(sum(x**2, axis)), and the same powers, logarithms and gradients along axes: short rows take a tenth more time``."""
    return _ALONG_AXES[node.op](node, along=True)


_ALONG_AXES: dict[Any, Callable[..., Found | None]] = {
    sqrt: _length,
    power: _power,
    log: _logarithm,
    log2: _logarithm,
    log10: _logarithm,
    multiply: _gradient,
}


@stable(
    roots="multiply", heads="prod_others", fuel=1, judged=True, extends="a value where the product is infinite or 0"
)
def gradients_of_logarithms_of_products(node: Node) -> Found | None:
    """``prod_others(x) * (y / prod(x)) -> y / x, the gradient of y * log(prod(x))``."""
    for others, quotient in (node.args, node.args[::-1]):
        if others.op is not PROD_OTHERS:
            continue
        x, axes = others.args[0], others["axes"]
        found = _spread(quotient, axes)
        if found is None or found[0].op is not divide:
            continue
        (y, product), above = found[0].args, found[1]
        product, below = _without_numbers(product)
        if product.op is PROD and product.args[0] is x and product["axes"] == axes:
            top = Second.along(y, x, axes)
            return Found(divide(top if above == 1 else top * above, x if below == 1 else x * below))
    return None


def _without_numbers(node: Node) -> tuple[Node, float]:
    """Return a product without its constant factors, and the product of these."""
    times = 1.0
    while node.op is multiply and any(map(is_constant, node.args)):
        number, node = node.args if is_constant(node.args[0]) else node.args[::-1]
        times *= float(constant_value(bare(number)))  # type: ignore[arg-type]
    return node, times


def _spread(node: Node, axes: tuple[int, ...]) -> tuple[Node, float] | None:
    """Return the node that is broadcast back along the ``axes`` of a fold, and its constant factor, or None."""
    own = tuple(Index(f"d{k}") for k in range(node.type.ndim))
    index, times = own, 1.0
    while True:
        node, more = _without_numbers(node)
        times *= more
        if not isinstance(node.op, Move) or node.op.index is None or (node.op is RESHAPE and not squeezes(node)):
            break
        node, index = node.args[0], node.op.index(node, index)
    return (node, times) if index == tuple(i for k, i in enumerate(own) if k not in axes) else None


BEYOND_FOLDS = (
    *lengths_that_run_over,
    *powers_of_lengths_that_run_over,
    *logarithms_that_run_over,
    *gradients_of_logarithms_of_lengths,
    *folds_along_axes_that_run_over,
)
"""The rules of this file, which are used after all others."""


def applies_to(node: Node, *, along: bool) -> bool:
    """Return whether a root, power or logarithm, or its gradient, has a sum of squares or a product of many (a quick test).

    With ``along``, folds along axes count, too.
    """
    if node.op is multiply:
        return any(_has_quotient(_reached(a, moves=True).fold, along=along) for a in node.args)
    return node.op in _READERS and _is_one(_reached(node.args[0]).fold, along=along)


def _has_quotient(node: Node, *, along: bool, depth: int = _DEEP) -> bool:
    """Return whether a factor of a product or quotient is a quotient by such a fold."""
    if node.op is divide and _is_one(_reached(node.args[1]).fold, along=along):
        return True
    factors = node.args if node.op is multiply else node.args[:1] if node.op is divide else ()
    return depth > 0 and any(_has_quotient(a, along=along, depth=depth - 1) for a in factors)


def _is_one(found: Node, *, along: bool) -> bool:
    if found.type.shape and not along:
        return False
    return found.op is PROD or (found.op in _FOLDED and bool(_squares(found)))


_READERS = frozenset((sqrt, power, log, log2, log10))
_FOLDED = frozenset((SUM, CONTRACT, add))
