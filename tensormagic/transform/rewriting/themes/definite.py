"""Rules of symmetric, positive definite and low-rank matrices: facts that follow from how a matrix was made."""

from __future__ import annotations

from functools import reduce

from tensormagic.ir.node import Node
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import PROD, SUM, fold
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.matrices.determinants import SLOGDET, det, slogdet
from tensormagic.ops.matrices.linalg import solve, swap
from tensormagic.ops.matrices.matrix import as_column, diagonal
from tensormagic.ops.move import broadcast, reshape
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import absolute, add, equal, log, multiply, power, sign
from tensormagic.transform.definite import is_square, low_rank, symmetric
from tensormagic.transform.matrices import blocks_of, diagonal_of, factors_of, triangle_of
from tensormagic.transform.rewriting.notation import real

# symmetric ------------------------------------------------------------------------------------------------------------


@real(roots="transpose", fuel=1)
def transposes_of_symmetric(node: Node) -> Node | None:
    """``a.T -> a where a is symmetric``."""
    return node.args[0] if node.type.ndim == 2 and symmetric(node.args[0]) else None


# of low rank ----------------------------------------------------------------------------------------------------------

_NO_ZERO = ("no element of the diagonal is 0",)


def _small(values: Node, u: Node, v: Node) -> tuple[Node, Node]:
    """Return ``u`` divided by the diagonal, and the small matrix ``1 + v @ (u / d)``."""
    scaled = u / broadcast(as_column(values), u.type.shape)
    k = u.type.shape[1]
    identity = astype(equal(iota((k, k), 0), iota((k, k), 1)), u.type.dtype)
    return scaled, identity + matmul(v, scaled)


@real(roots="solve", heads="add", assumes=_NO_ZERO, fuel=1, judged=True)
def systems_of_low_rank(node: Node) -> Node | None:
    """``solve(diag(d) + u @ v, b) -> b / d less a correction by a system of as many rows as u has columns``."""
    found = low_rank(node.args[0])
    if found is None or node.args[1].type.ndim != 2:
        return None
    values, u, v = found
    scaled, small = _small(values, u, v)
    start = node.args[1] / broadcast(as_column(values), node.args[1].type.shape)
    return start - matmul(scaled, solve(small, matmul(v, start)))


@real(roots="inv", heads="add", assumes=_NO_ZERO, fuel=1, judged=True)
def inverses_of_low_rank(node: Node) -> Node | None:
    """``inv(diag(d) + u @ v) -> diag(1 / d) less a product of thin matrices``."""
    found = low_rank(node.args[0])
    if found is None:
        return None
    values, u, v = found
    scaled, small = _small(values, u, v)
    n = node.type.shape[0]
    on = astype(equal(iota((n, n), 0), iota((n, n), 1)), node.type.dtype)
    right = solve(small, v / broadcast(values, v.type.shape))
    return on / broadcast(values, (n, n)) - matmul(scaled, right)


@real(roots="det", heads="add", assumes=_NO_ZERO, fuel=1, judged=True)
def determinants_of_low_rank(node: Node) -> Node | None:
    """``det(diag(d) + u @ v) -> prod(d) times a determinant of as many rows as u has columns``."""
    found = low_rank(node.args[0])
    return None if found is None else fold(PROD, found[0], (0,)) * det(_small(*found)[1])


# signs and logarithms of determinants ---------------------------------------------------------------------------------


@real(roots="item", heads="slogdet", assumes=_NO_ZERO, fuel=1, judged=True)
def logarithms_of_determinants(node: Node) -> Node | None:
    """``slogdet(diag(d)) -> (prod(sign(d)), sum(log(absolute(d)))), for triangular matrices, and with a correction of low rank``."""
    source = node.args[0]
    if source.op is not SLOGDET or not is_square(source.args[0]):
        return None
    a, index = source.args[0], node["index"]
    values = diagonal_of(a)
    values = diagonal(a, 0, 1) if values is None and triangle_of(a) else values
    rest: Node | None = None
    if values is None:
        found = low_rank(a)
        if found is None:
            return None
        values, rest = found[0], slogdet(_small(*found)[1])[index]
    if index == 0:
        value = fold(PROD, sign(values), (0,))
        return value if rest is None else value * rest
    value = fold(SUM, log(absolute(values)), (0,))
    return value if rest is None else value + rest


@real(roots="item", heads="slogdet", fuel=1, judged=True)
def logarithms_of_determinants_of_parts(node: Node) -> Node | None:
    """``slogdet(block_diag(a, b)) -> slogdet(a) and slogdet(b) together, and so for kron(a, b)``."""
    source = node.args[0]
    if source.op is not SLOGDET or not is_square(source.args[0]):
        return None
    a, index = source.args[0], node["index"]
    blocks = blocks_of(a)
    if blocks is not None:
        parts = [slogdet(b)[index] for b in blocks if is_square(b)]
        return reduce(add if index else multiply, parts) if len(parts) == len(blocks) else None
    factors = factors_of(a)
    if factors is None or not all(map(is_square, factors)):
        return None
    (first, second), (m, p) = (slogdet(f)[index] for f in factors), (_count(f, node) for f in factors)
    return first * p + second * m if index else power(first, p) * power(second, m)


def _count(matrix: Node, like: Node) -> Node:
    return astype(size_node(matrix.type.shape[0]), like.type.dtype)


@real(roots="solve", heads="reshape", fuel=1, judged=True)
def systems_of_kroneckers(node: Node) -> Node | None:
    """``solve(kron(a, b), x.ravel()) -> (inv(a) @ x @ inv(b).T).ravel(), by two systems``."""
    factors = factors_of(node.args[0]) if is_square(node.args[0]) else None
    if factors is None or not all(map(is_square, factors)) or node.type.shape[1:] != (1,):
        return None
    a, b = factors
    right = reshape(node.args[1], (a.type.shape[0], b.type.shape[0]))
    return reshape(swap(solve(b, swap(solve(a, right)))), node.type.shape)
