"""Facts about symmetric, positive definite and low-rank matrices that follow from how a matrix was made."""

from __future__ import annotations

from tensormagic.ir.cost import elements_of
from tensormagic.ir.facts import above_zero, not_negative
from tensormagic.ir.node import Node, is_constant
from tensormagic.ir.rewriting.rules import plain
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.matrices.gram import GRAM
from tensormagic.ops.matrices.linalg import INV, swap
from tensormagic.ops.move import BROADCAST, TRANSPOSE, reshape
from tensormagic.ops.scalars.scalar import add, divide, exp, multiply, subtract
from tensormagic.transform.matrices import diagonal_of, gram_of

_THIN = 3
"""How many times larger the rows of a thin factor must be than its columns for the small system to be faster."""


def is_square(x: Node) -> bool:
    """Return whether ``x`` is one square matrix of floats."""
    shape = x.type.shape
    return x.type.dtype.kind == "f" and len(shape) == 2 and shape[0] == shape[1]


def symmetric(x: Node) -> bool:
    """Return whether a matrix is provably symmetric."""
    if not is_square(x):
        return False
    if gram_of(x) is not None or x.op is GRAM or diagonal_of(x) is not None:
        return True
    if x.op is TRANSPOSE or x.op is INV:
        return symmetric(x.args[0])
    if x.op is add and any(b.op is TRANSPOSE and b.args[0] is a for a, b in (x.args, x.args[::-1])):
        return True
    if x.op is add or x.op is subtract:
        return all(map(symmetric, x.args))
    return any(symmetric(a) for a, _ in _scaled(x))


def semidefinite(x: Node) -> bool:
    """Return whether a matrix is provably symmetric and positive semidefinite."""
    if not is_square(x):
        return False
    if gram_of(x) is not None or x.op is GRAM:
        return True
    values = diagonal_of(x)
    if values is not None:
        return not_negative(values)
    if x.op is add:
        return all(map(semidefinite, x.args))
    return any(not_negative(factor) and semidefinite(a) for a, factor in _scaled(x))


def definite(x: Node) -> bool:
    """Return whether a matrix is provably symmetric and positive definite, up to rounding."""
    if not is_square(x):
        return False
    if x.op is INV or x.op is TRANSPOSE:
        return definite(x.args[0])
    values = diagonal_of(x)
    if values is not None:
        return _positive(values)
    if x.op is add:
        return any(definite(a) and semidefinite(b) for a, b in (x.args, x.args[::-1]))
    return any(_positive(factor) and definite(a) for a, factor in _scaled(x))


def _scaled(x: Node) -> list[tuple[Node, Node]]:
    """Return the ways to read ``x`` as a matrix times, or divided by, a number."""
    if x.op is multiply:
        return [(a, plain(b)) for a, b in (x.args, x.args[::-1]) if not plain(b).type.shape]
    return [(x.args[0], plain(x.args[1]))] if x.op is divide and not plain(x.args[1]).type.shape else []


def _positive(values: Node) -> bool:
    """Return whether numbers are provably positive, up to rounding."""
    one = plain(values)
    if is_constant(one):
        return bool((one["bits"].array() > 0).all())
    if above_zero(one) or one.op is exp:
        return True
    if one.op is add:
        return any(_positive(a) and not_negative(plain(b)) for a, b in (one.args, one.args[::-1]))
    return one.op in {multiply, divide} and all(map(_positive, one.args))


def low_rank(x: Node) -> tuple[Node, Node, Node] | None:
    """Return the diagonal and the thin factors of ``diag(d) + u @ v``, or None for any other matrix."""
    if x.op is not add or not is_square(x):
        return None
    for a, b in (x.args, x.args[::-1]):
        values = diagonal_of(a)
        factors = None if values is None else _thin(b)
        if values is not None and factors is not None:
            return values, *factors
    return None


def _thin(x: Node) -> tuple[Node, Node] | None:
    """Return the factors of a product with a small inner dimension, by the known sizes, or None; an outer product has 1."""
    if x.op is multiply:
        return _outer(x)
    if x.op is not CONTRACT:
        return None
    (left, right), out = split(x["subscripts"])
    between = set(left) & set(right) - set(out)
    if len(left) != 2 or len(right) != 2 or len(out) != 2 or len(between) != 1:
        return None
    (letter,) = between
    first, second = x.args if out[0] in left else x.args[::-1]
    own, other = (left, right) if out[0] in left else (right, left)
    u, v = first if own[1] == letter else swap(first), second if other[0] == letter else swap(second)
    rows, columns = map(elements_of, u.type.shape)
    return (u, v) if rows >= _THIN * columns else None


def _outer(x: Node) -> tuple[Node, Node] | None:
    """Return the column and the row of an outer product, or None for any other product."""
    n, m = x.type.shape
    for a, b in (x.args, x.args[::-1]):
        column, row = _unstretched(a), _unstretched(b)
        if column.type.shape == (n, 1) and row.type.shape in {(m,), (1, m)}:
            return column, reshape(row, (1, m))
    return None


def _unstretched(x: Node) -> Node:
    return x.args[0] if x.op is BROADCAST else x
