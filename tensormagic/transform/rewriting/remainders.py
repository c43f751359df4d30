"""Rules of remainders: a function less the beginning of its series, logarithms near 1, a variance from its moments."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.ir.node import Node
from tensormagic.ir.rules import Found, bare, is_constant
from tensormagic.ops.fold import SUM, fold, spread
from tensormagic.ops.move import reshape
from tensormagic.ops.scalars.scalar import (
    absolute,
    arccosh,
    arcsinh,
    divide,
    exp,
    less,
    log,
    log1mexp,
    log1p,
    negative,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.differences import factors_apart, written
from tensormagic.transform.rewriting.notation import real, stable
from tensormagic.transform.rewriting.series import SERIES, less_beginning
from tensormagic.transform.rewriting.terms import key_of, sum_of


@stable(roots="subtract add", fuel=1, judged=True)
def remainders(node: Node) -> Found | None:
    """``f(x) - x -> its series where x is near 0, for sin, tan, expm1, log1p and their kin``."""
    if node.type.dtype.kind != "f" or not any(n in SERIES for n in _names(node)):
        return None
    found = less_beginning(sum_of(node), node.type.dtype)
    if found is None:
        return None
    left, right = node.args
    kept = left - where(found.near, left, right) if node.op is subtract else left + where(found.near, 0, right)
    x = bare(bare(found.function).args[0])
    parts = tuple(n for a in node.args if (n := bare(a)).args and n is not x)
    return Found(where(found.near, found.value, kept), absorbs=parts)


def _names(node: Node) -> Iterator[str]:
    for arg in node.args:
        inner = bare(arg)
        yield inner.op.name
        for below in inner.args if inner.op.name in {"multiply", "divide", "negative", "add", "subtract"} else ():
            yield bare(below).op.name


# logarithms ------------------------------------------------------------------------------------------------------------


@stable(roots="log", heads="divide", fuel=1, judged=True)
def logarithms_of_quotients(node: Node) -> Found | None:
    """``log(x / y) -> log1p((x - y) / y) where x and y are near each other``."""
    quotient = bare(node.args[0])
    if quotient.op is not divide or node.type.dtype.kind != "f" or any(map(is_constant, quotient.args)):
        return None
    x, y = quotient.args
    if not len(sum_of(x).minus(sum_of(y).times(-1)).terms):  # odds, of which there are rules
        return None
    apart = factors_apart(x, y, 0)
    difference = x - y if apart is None else apart.value
    near = less(absolute(difference), absolute(y) * 0.5)
    ratio = node.args[0]
    far = log(where(near, 1, ratio))
    parts = (quotient, *(apart.parts if apart is not None else ()))
    return Found(where(near, log1p(difference / y), far), absorbs=parts)


@real(roots="log", heads="where", fuel=1, assumes=("x > y",))
def logarithms_of_differences(node: Node) -> Found | None:
    """``log(exp(x) - exp(y)) -> x + log1mexp(y - x)``."""
    sides = written(node.args[0])
    if sides is None or any(bare(s).op is not exp for s in sides):
        return None
    x, y = (bare(s).args[0] for s in sides)
    return Found(x + log1mexp(y - x), absorbs=(bare(node.args[0]),))


def _root_sum(node: Node, number: int) -> Found | None:
    """The ``x`` of ``log(x + sqrt(x**2 + number))``, and what is absorbed there."""
    sides = written(node.args[0])
    if sides is None or bare(sides[0]).op is not sqrt or node.type.dtype.kind != "f":
        return None
    root, other = bare(sides[0]), bare(sides[1])
    total = sum_of(root.args[0])
    if other.op is not negative or total.number != number or len(total.terms) != 1:
        return None
    if total.terms[0][0] != ("square", bare(other.args[0])) or total.terms[0][2] != 1:
        return None
    return Found(other.args[0], absorbs=(bare(node.args[0]), root, bare(root.args[0])))


@stable(roots="log", heads="where", fuel=1, extends="a value where x * x is infinite")
def inverse_sines(node: Node) -> Found | None:
    """``log(x + sqrt(x**2 + 1)) -> arcsinh(x)``."""
    found = _root_sum(node, 1)
    return found and Found(arcsinh(found.node), absorbs=found.absorbs)


@real(roots="log", heads="where", fuel=1, assumes=("x >= 1",))
def inverse_cosines(node: Node) -> Found | None:
    """``log(x + sqrt(x**2 - 1)) -> arccosh(x)``."""
    found = _root_sum(node, -1)
    return found and Found(arccosh(found.node), absorbs=found.absorbs)


# moments --------------------------------------------------------------------------------------------------------------


def _mean(node: Node) -> tuple[Node, tuple[int, ...], Node] | None:
    """What is summed, along which axes, and by what the sum is divided."""
    inner = bare(node)
    if inner.op is not divide:
        return None
    total, count_ = bare(inner.args[0]), bare(inner.args[1])
    while total.op.name == "reshape":
        total = bare(total.args[0])
    return (total.args[0], total["axes"], count_) if total.op is SUM and count_.op.name in {"astype", "size"} else None


@stable(roots="subtract", heads="divide square", fuel=1, judged=True, extends="a value where the squares are infinite")
def variances(node: Node) -> Found | None:
    """``mean(x**2) - mean(x)**2 -> mean((x - mean(x))**2)``."""
    first, second = (bare(a) for a in node.args)
    if second.op is not square or node.type.dtype.kind != "f":
        return None
    squares, mean = _mean(first), _mean(second.args[0])
    if squares is None or mean is None or squares[1:] != mean[1:]:
        return None
    x, axes, _ = mean
    if key_of(bare(squares[0])) != ("square", bare(x)) or not axes:
        return None
    centre = bare(second.args[0])
    moved = reshape(centre, bare(centre.args[0]).type.shape)
    total = fold(SUM, square(x - spread(moved, x, axes)), axes)
    value = divide(reshape(total, first.args[0].type.shape), first.args[1])
    return Found(value, absorbs=(first, second, bare(first.args[0]), bare(squares[0])))
