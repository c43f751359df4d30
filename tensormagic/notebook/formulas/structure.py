"""How nodes hang together, as far as formulas care: what is not written, what is a product of matrices. It writes nothing."""

from __future__ import annotations

from collections.abc import Container

from tensormagic.ir.node import Node
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Size
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.effects.checks import FIXED, REQUIRE
from tensormagic.ops.effects.raising import AFTER
from tensormagic.ops.fold import (
    ALL,
    ANY,
    CUMMAX,
    CUMMIN,
    CUMPROD,
    CUMSUM,
    LOG_SOFTMAX,
    LOGSUMEXP,
    MAX,
    MIN,
    PROD,
    SOFTMAX,
    SUM,
)
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.form import FORM
from tensormagic.ops.indices.gather import GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.leaf import IOTA, constant_value
from tensormagic.ops.move import BROADCAST, RESHAPE
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.regions.branches import CHECKPOINT
from tensormagic.ops.regions.control import CALL, COND, CUSTOM, GRAD, LOOP, WHILE
from tensormagic.ops.regions.recursion import RECURSIVE
from tensormagic.ops.scalars.comparison import isinf, maximum, minimum, where
from tensormagic.ops.scalars.scalar import (
    add,
    cos,
    cosh,
    log,
    log10,
    multiply,
    negative,
    positive,
    sigmoid,
    sign,
    sin,
    sinh,
    subtract,
    tan,
    tanh,
)

BLOCKS = {LOOP, WHILE, COND, CALL, GRAD, CUSTOM, RECURSIVE}
ANY_ORDER = {SUM, PROD, MAX, MIN, ANY, ALL, LOGSUMEXP}
LINEAR = {add, subtract, negative, multiply, positive}  # what whole arrays are written with, as numbers are
BY_ELEMENT = {log, sin, cos, tan, tanh, sinh, cosh, sigmoid, sign, maximum, minimum, log10}
INDEXED = {
    CUMSUM,
    CUMPROD,
    CUMMAX,
    CUMMIN,
    SOFTMAX,
    LOG_SOFTMAX,
    GATHER,
    TAKE_ALONG_AXIS,
    SCATTER_ADD,
    SCATTER_SET,
    IOTA,
}
_SEEN_THROUGH: dict[Operation, int] = {ASTYPE: 0, FORM: 0, POSITION: 0, REQUIRE: 0, FIXED: 0, AFTER: 1, CHECKPOINT: 0}


def takes_together(node: Node) -> bool:
    """Return whether a node takes the elements along axes together, which are then written with letters of their own."""
    return isinstance(node.op, Fold) and not isinstance(node.op, Row)


def seen(node: Node) -> Node:
    """Return a node behind casts and checks, which are not written."""
    while node.op in _SEEN_THROUGH and node.args:
        node = node.args[_SEEN_THROUGH[node.op]]
    return node


def narrow(node: Node) -> Node:
    """Return a node without the broadcasts that spread a number over an array."""
    node = seen(node)
    while node.op is BROADCAST and not node.args[0].type.shape:
        node = seen(node.args[0])
    return node


def is_column(node: Node) -> bool:
    """Return whether a node is a vector with a second axis."""
    return node.op is RESHAPE and node["shape"][1:] == (1,) and node.args[0].type.ndim == 1


def in_a_row(node: Node) -> tuple[Size, ...] | None:
    """Return the common shape of the arrays that a flat vector is made from, or None if there are others."""
    found: set[tuple[Size, ...]] = set()
    pending = [node]
    while pending:
        part = narrow(pending.pop())
        if part.op is RESHAPE:
            found.add(part.args[0].type.shape)
        elif part.type.shape and part.op.kind != "pointwise" and not is_scaled(part):
            return None
        elif part.type.shape:
            pending += part.args
    return found.pop() if len(found) == 1 else None


def is_scaled(node: Node) -> bool:
    """Return whether a node is an array times a number, as a contraction."""
    if node.op is not CONTRACT:
        return False
    (left, right), out = split(node["subscripts"])
    return out == left + right and not (left and right)


def matrix_factors(node: Node) -> list[tuple[Node, bool]] | None:
    """Return a contraction as a product of matrices and vectors: each factor, and whether it is transposed."""
    (left, right), out = split(node["subscripts"])
    if not left or not right:
        pair = node.args if not left else node.args[::-1]
        return [(x, False) for x in pair] if out == left + right else None
    shared = (set(left) & set(right)) - set(out)
    free = (set(left) | set(right)) - shared
    if (
        max(len(left), len(right)) > 2
        or len(shared) > 1
        or set(out) != free
        or len(set(left) & set(right)) > len(shared)
    ):
        return None
    x, y = node.args
    if not shared:  # an outer product
        pair = [(x, left), (y, right)] if out == left + right else [(y, right), (x, left)]
        return [(pair[0][0], False), (pair[1][0], True)] if len(left) == len(right) == 1 else None
    (k,) = shared
    pair = [(x, left), (y, right)]
    if len(left) == 1 or (len(right) == 2 and out and out[0] in right and len(left) == 2):
        pair.reverse()
    (a, first), (b, second) = pair
    if len(first) == 1:  # the product of two vectors
        return [(x, True), (y, False)]
    return [(a, first[0] == k), (b, len(second) == 2 and second[1] == k)]


def guards_infinity(node: Node, own: Container[Node]) -> bool:
    """Return whether a node is one of two cases, and the first is only for infinite numbers, which the user did not ask for."""
    if node.op is not where:
        return False
    condition = narrow(node.args[0])
    return condition.op is isinf and condition not in own


def guards_untouched(node: Node, own: Container[Node]) -> bool:
    """Return whether a ``where`` selects 0 at elements that a store did not touch, where the derivative is 0 for finite numbers anyway."""
    condition = narrow(node.args[0])
    marks = seen(condition.args[0]) if condition.op is RESHAPE else condition
    zero = constant_value(narrow(node.args[2]))
    return marks.op is SCATTER_SET and condition not in own and zero is not None and not zero.any()
