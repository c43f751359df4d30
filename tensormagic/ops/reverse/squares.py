"""Values that are sums of squares: where such a sum is zero, so are all of its terms and its derivative."""

from __future__ import annotations

from tensormagic.ir.node import Node
from tensormagic.ops.leaf import constant_value, is_constant_zero

# Ops that move or add elements: an element of the result is zero only if all its operands are.
_SAME = frozenset({"form", "astype", "require", "sum", "cumsum", "max", "positive", "gather"})
_MOST = 64  # nodes that are searched


def is_sum_of_squares(node: Node) -> bool:
    """Return whether a real value is built from squares of real values by sums, moves and nonnegative factors.

    It may be divided by anything: the quotient is zero where the sum is.
    """
    while node.op.name in {"divide", "form", "astype", "require"} or node.op.kind == "move":
        node = node.args[0]
    pending, seen = [node], 0
    while pending:
        n = pending.pop()
        seen += 1
        if seen > _MOST or n.type.dtype.kind != "f":
            return False
        name = n.op.name
        if name in _SAME or n.op.kind == "move":
            pending.append(n.args[0])
        elif name == "add":
            pending += n.args
        elif name == "where":
            pending += n.args[1:]
        elif name in {"multiply", "divide"} and any(map(_is_weight, n.args[name == "divide" :])):
            pending.append(n.args[0] if name == "divide" or _is_weight(n.args[1]) else n.args[1])
        elif not _is_square(n) and not is_constant_zero(n):
            return False
    return True


def _is_square(node: Node) -> bool:
    if node.op.name == "real" and node.args[0].op.name == "multiply":  # a number times its conjugate
        first, second = node.args[0].args
        return any(b.op.name == "conjugate" and b.args[0] is a for a, b in ((first, second), (second, first)))
    if node.op.name in {"square", "multiply", "power", "contract"} and node.args[0].type.dtype.kind != "f":
        return False
    match node.op.name:
        case "square":
            return True
        case "multiply":
            return node.args[0] is node.args[1]
        case "power":
            exponent = constant_value(node.args[1])
            return exponent is not None and bool((exponent > 0).all() and (exponent % 2 == 0).all())
        case "contract":
            first, second = (*node["subscripts"].split("->")[0].split(","), "")[:2]
            return len(node.args) == 2 and node.args[0] is node.args[1] and first == second
        case _:
            return False


def _is_weight(node: Node) -> bool:
    """Return whether a factor is a known, nonnegative number."""
    while node.op.name in {"broadcast", "astype", "form"}:
        node = node.args[0]
    value = constant_value(node)
    return node.op.name == "size" if value is None else value.dtype.kind in "uif" and bool((value >= 0).all())
