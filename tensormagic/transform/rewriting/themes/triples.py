"""Rules of sums of three terms that cancel: second differences, the law of cosines, the sides of a triangle."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from itertools import permutations

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccos,
    arcsin,
    cos,
    cosh,
    divide,
    exp,
    isfinite,
    less,
    log1p,
    logical_and,
    multiply,
    negative,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.forms import Image, image
from tensormagic.transform.rewriting.sums.terms import Sum, behind, number_of, sum_of

_Term = tuple[object, Node, Fraction]


_MAY_BE_SUMS = frozenset(("add", "subtract", "where", "multiply", "divide", "negative"))


def _three(node: Node) -> tuple[_Term, ...]:
    """Return the three terms of a sum; empty if it has another number of terms."""
    if node.type.dtype.kind != "f" or not any(bare(a).op.name in _MAY_BE_SUMS for a in node.args):
        return ()
    total = sum_of(node, text=True)
    return total.terms if len(total.terms) == 3 and not total.number else ()


def _has_multiple(node: Node, depth: int) -> bool:
    """Return whether a number is a factor somewhere in a sum (a quick test)."""
    level = node.args
    for _ in range(depth + 1):
        below: list[Node] = []
        for inner in map(bare, level):
            op = inner.op
            if op in _ARITHMETIC:
                if op is multiply and any(bare(a).op.name == "constant" for a in inner.args):
                    return True
                below += inner.args
        if not below:
            break
        level = tuple(below)
    return False


def _sides(node: Node) -> tuple[Node, Node]:
    left, right = node.args
    return (left, right) if node.op is subtract else (left, -right)


def _between(node: Node, ends: Collection[Node]) -> list[Node]:
    """Return the sums and products between ``node`` and ``ends``."""
    found: dict[Node, None] = {}
    stack = [*node.args]
    while stack:
        inner = bare(stack.pop())
        if inner not in ends and inner.op in _ARITHMETIC and inner.args:
            found[inner] = None
            stack += inner.args
    return list(found)


_ARITHMETIC = frozenset((add, subtract, multiply, divide, negative))


# second differences ---------------------------------------------------------------------------------------------------


def _of_sqrt(a: Image, b: Image, c: Image, h: Node) -> Node:
    one, two, three = a.node + b.node, b.node + c.node, a.node + c.node
    return -2 * (h / one) * (h / two) / three


_SECOND: dict[str, Callable[[Image, Image, Image, Node], Node]] = {
    "sqrt": _of_sqrt,
    "log": lambda a, b, c, h: log1p(-square(h / b.at())),
    "exp": lambda a, b, c, h: 4 * exp(b.at()) * square(sinh(h * 0.5)),
    "sin": lambda a, b, c, h: -4 * sin(b.at()) * square(sin(h * 0.5)),
    "cos": lambda a, b, c, h: -4 * cos(b.at()) * square(sin(h * 0.5)),
    "sinh": lambda a, b, c, h: 4 * sinh(b.at()) * square(sinh(h * 0.5)),
    "cosh": lambda a, b, c, h: 4 * cosh(b.at()) * square(sinh(h * 0.5)),
}
"""``f(b + h) - 2 * f(b) + f(b - h)`` by ``h``."""
_BY_SIZE = frozenset(("sqrt", "log"))
"""Functions whose second difference cancels for ``h`` small relative to ``b``; the others' cancels for small ``h``."""


@stable(roots="subtract add", within="where sqrt log log1p exp sin cos sinh cosh", fuel=1, judged=True, cancels=True)
def second_differences(node: Node) -> Found | None:
    """``f(x + h) - 2 * f(x) + f(x - h) -> by h, where it is small, for roots, logarithms, exponentials, sines and hyperbolic sines``."""
    if not _has_multiple(node, 2):
        return None
    terms = _three(node)
    if not terms or any(bare(n).op.name not in _SECOND and bare(n).op is not log1p for _, n, _ in terms):
        return None
    for first, middle, last in permutations(terms):
        if first[2] != last[2] or middle[2] != -2 * first[2]:
            continue
        a, b, c = (image(n) for _, n, _ in (first, middle, last))
        if a is None or b is None or c is None or not a.name == b.name == c.name or a.name not in _SECOND:
            return None
        step = a.meant.minus(b.meant)
        h = step.node()
        if len(step.minus(b.meant.minus(c.meant))) or not len(step):
            return None
        h = h if isinstance(h, Node) else constant(h)
        value = _SECOND[a.name](a, b, c, h)
        near = less(absolute(h), absolute(b.at()) * 0.5 if a.name in _BY_SIZE else 0.5)
        near = logical_and(near, isfinite(b.node))
        own = [bare(i.node) for i in (a, b, c)]
        parts = (*_between(node, own), *own)
        return Found(behind(near, value if first[2] == 1 else value * float(first[2]), *_sides(node)), absorbs=parts)
    return None


# triangles ------------------------------------------------------------------------------------------------------------


def _factors(node: Node) -> tuple[list[Node], Fraction]:
    """Return the factors of a product, and its number."""
    found, times, stack = [], Fraction(1), [node]
    while stack and len(found) < 5:
        inner = bare(stack.pop())
        value = number_of(inner)
        if value is not None:
            times *= value
        elif inner.op is multiply:
            stack += reversed(inner.args)
        else:
            found.append(inner)
    return found, times


@stable(roots="subtract add", within="where cos", fuel=1, judged=True, cancels=True)
def law_of_cosines(node: Node) -> Found | None:
    """``x**2 + y**2 - 2 * x * y * cos(z) -> (x - y)**2 + 4 * x * y * sin(z / 2)**2 where cos(z) is near 1``."""
    if not _has_multiple(node, 4):
        return None
    terms = _three(node)
    squares = [(key[1], t) for key, _, t in terms if isinstance(key, tuple)]
    others = [(n, t) for key, n, t in terms if not isinstance(key, tuple)]
    if len(squares) != 2 or squares[0][1] != squares[1][1]:
        return None
    (x, times), (y, _) = squares
    factors, number = _factors(others[0][0])
    angle = next((f for f in factors if f.op is cos), None)
    if angle is None or number * others[0][1] != -2 * times or {f for f in factors if f is not angle} != {x, y}:
        return None
    product = x * y
    value = square(x - y) + 4 * product * square(sin(angle.args[0] * 0.5))
    near = logical_and(logical_and(less(0.5, angle), less(0, product)), isfinite(value))
    value = value if times == 1 else value * float(times)
    return Found(behind(near, value, *_sides(node)), absorbs=(*_between(node, {x, y, angle}), angle))


def _directions(node: Node) -> tuple[Node, Node, Node, Node | None] | None:
    """Return ``x``, ``y``, the product of their cosines and ``z`` of ``sin(x) * sin(y) + cos(x) * cos(y) * cos(z)``, or None."""
    for first, second in permutations(map(bare, node.args)):
        (sines, one), (cosines, other) = _factors(first), _factors(second)
        if one != 1 or other != 1 or len(sines) != 2 or any(f.op is not sin for f in sines):
            continue
        x, y = (f.args[0] for f in sines)
        if any(f.op is not cos for f in cosines) or len(cosines) not in {2, 3}:
            return None
        angles = [bare(f.args[0]) for f in cosines]
        if bare(x) not in angles or bare(y) not in angles or bare(x) is bare(y):
            return None
        rest = [f.args[0] for f in cosines if bare(f.args[0]) not in {bare(x), bare(y)}]
        return (x, y, cos(x) * cos(y), rest[0] if rest else None) if len(rest) == len(cosines) - 2 else None
    return None


@stable(roots="arccos", heads="add", fuel=1, judged=True)
def angles_between_directions(node: Node) -> Found | None:
    """``arccos(sin(x) * sin(y) + cos(x) * cos(y) * cos(z)) -> by sines of half angles, where the directions are near``."""
    total = bare(node.args[0])
    found = _directions(total) if node.type.dtype.kind == "f" else None
    if found is None:
        return None
    x, y, cosines, z = found
    half = square(sin((x - y) * 0.5))
    near = logical_and(less(0.75, total), less(absolute(x - y), _TURN))
    if z is not None:
        half = half + cosines * square(sin(z * 0.5))
        near = logical_and(near, less(0, cosines))
    value = 2 * arcsin(sqrt(where(near, half, 0)))
    return Found(where(near, value, arccos(where(near, 1, total))), absorbs=(total, *map(bare, total.args)))


_TURN = 4.0
"""Up to here rounding a difference of angles does no more harm than rounding their sines."""


@stable(roots="subtract", fuel=1, judged=True)
def sides_of_triangles(node: Node) -> Found | None:
    """``(x + y + z) / 2 - x -> (y - x + z) / 2, the nearer ones subtracted first``."""
    first = bare(node.args[0])
    if first.op not in {multiply, divide} or not any(number_of(bare(a)) for a in first.args):
        return None
    total, other = sum_of(first), bare(node.args[1])
    if node.type.dtype.kind != "f" or len(total.terms) != 3 or total.number:
        return None
    own = [t for key, _, t in total.terms if key is other]
    terms = total.minus(Sum(((other, other, Fraction(1)),), Fraction(0))).terms
    if len(own) != 1 or len(terms) != 3 or {abs(t) for _, _, t in terms} != {own[0]} or own[0] != Fraction(1, 2):
        return None
    y, z = (n for key, n, _ in terms if key is not other)
    nearer = less(absolute(y - other), absolute(z - other))
    value = ((where(nearer, y, z) - other) + where(nearer, z, y)) * float(own[0])
    lengths = logical_and(less(0, y), logical_and(less(0, z), less(0, other)))
    return Found(behind(lengths, value, *node.args), absorbs=tuple(_between(node, {other, bare(y), bare(z)})))
