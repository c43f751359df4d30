"""Parts of which the examples of rules are put together, and values of rules as they are rewritten."""

from __future__ import annotations

from tensormagic.ir.node import Node
from tensormagic.ops import contract, fold, move, update
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant, iota
from tensormagic.ops.matrices import matrix
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.terms import behind


def one_less_cosine(x: Node) -> Node:
    """``1 - cos(x)``, as it is rewritten."""
    return behind(scalar.less(0.5, scalar.cos(x)), 2 * scalar.square(scalar.sin(x * 0.5)), 1, scalar.cos(x))


def one_and_tangent(x: Node) -> Node:
    """``1 + tanh(x)``, as it is rewritten."""
    return behind(scalar.less(x, -1.0), 2 * scalar.sigmoid(2 * x), 1, -scalar.tanh(x))


def sine_less_operand(x: Node) -> Node:
    """``sin(x) - x``, as it is rewritten."""
    found = less_beginning(scalar.sin(x) - x, x.type.dtype)
    return behind(found.near, found.value, scalar.sin(x), x)


def exponentials_apart(x: Node, y: Node) -> Node:
    """``exp(x) - exp(y)``, as it is rewritten."""
    near = scalar.less(scalar.absolute(x - y), 0.5)
    return behind(near, scalar.exp(y) * scalar.expm1(x - y), scalar.exp(x), scalar.exp(y))


def logarithm_apart(x: Node, y: Node) -> Node:
    """``log(exp(x) - exp(y))``, as it is rewritten at ``stable``."""
    far = scalar.logical_and(scalar.less(80.0, x), scalar.less(y, x))
    inner = scalar.where(far, 1, exponentials_apart(x, y))
    return scalar.where(far, x + scalar.log1mexp(scalar.where(far, y - x, -1)), scalar.log(inner))


def part(start: int, length: int, step: int = 1) -> tuple:
    return ((start, length, step),)


def triangle(a: Node, b: Node) -> Node:
    """The angle between two sides, in which the third one is longer than each and shorter than both."""
    c = scalar.cbrt(a * a * a + b * b * b)
    return scalar.arccos((a * a + b * b - c * c) / (2 * a * b))


def inverse_softplus(x: Node) -> Node:
    """``log(expm1(x))``, as it is rewritten."""
    far = scalar.less(2, x)
    return scalar.where(
        far, x + scalar.log1mexp(scalar.where(far, -x, -1)), scalar.log(scalar.where(far, 1, scalar.expm1(x)))
    )


def deviance(x: Node, y: Node) -> Node:
    return x * scalar.log(x / y) - x + y


def rows(x: Node, op: object = fold.SUM, axes: tuple[int, ...] = (1,)) -> Node:
    return fold.spread(fold.fold(op, x, axes), x, axes)


def shifted(v: Node) -> Node:
    return v - rows(v, fold.MAX)


def placed(x: Node) -> Node:
    """The derivative of a diagonal."""
    n = x.type.shape[0]
    flat = scatter_add(zeros(n * n, x), matrix.diagonal_places(n, n), x)
    return move.reshape(flat, (n, n))


def kept_log(product: Node, value: Node) -> Node:
    kept = scalar.isfinite(product)
    return scalar.where(kept, scalar.log(scalar.where(kept, product, 1)), value)


def zero(x: Node) -> Node:
    return constant(x.type.dtype.type(0))


def zeros(n: int, x: Node) -> Node:
    return move.broadcast(zero(x), (n,))


def diag(x: Node) -> Node:
    n = x.type.shape[0]
    return scalar.where(scalar.equal(iota((n, n), 1), iota((n, n), 0)), move.broadcast(x, (n, n)), 0)


def updated(x: Node) -> Node:
    """A diagonal matrix and an outer product."""
    n = x.type.shape[0]
    column = move.broadcast(move.reshape(x, (n, 1)), (n, n))
    return diag(scalar.exp(x)) + column * move.broadcast(x, (n, n))


def eye(like: Node, n: object) -> Node:
    return astype(scalar.equal(iota((n, n), 0), iota((n, n), 1)), like.type.dtype)


def blocks(a: Node, b: Node) -> Node:
    n, m = a.type.shape[0], b.type.shape[0]
    first = update.set_at(move.broadcast(zero(a), (n + m, n + m)), a, ((0, n, 1), (0, n, 1)))
    return update.set_at(first, b, ((n, m, 1), (n, m, 1)))


def kron(a: Node, b: Node) -> Node:
    (m, n), (p, q) = a.type.shape, b.type.shape
    left = move.broadcast(move.reshape(a, (m, 1, n, 1)), (m, p, n, q))
    return move.reshape(left * move.broadcast(move.reshape(b, (1, p, 1, q)), (m, p, n, q)), (m * p, n * q))


def gram(q: Node) -> Node:
    return contract.einsum("ab,ac->bc", q, q)


def square_of(a: Node) -> Node:
    return contract.einsum("ab,cb->ac", a, a)


def head(x: Node, rows: int) -> Node:
    return move.slice_(x, ((0, rows, 1), *((0, s, 1) for s in x.type.shape[1:])))


def cancelled(root: Node, x: Node) -> Node:
    """A root and ``x``, in the form that their sum has become."""
    near = scalar.less(x, 0)
    return scalar.where(near, 1 / (root - x), root - scalar.where(near, root, -x))


def guarded(a: Node, b: Node) -> Node:
    """A difference in its accurate form."""
    near = scalar.less(a, b)
    return scalar.where(near, a - b, a - scalar.where(near, a, b))
