"""Values that sizes and constants determine are known during capture; the sizes involved are then recorded as fixed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.hooks import hooks
from tensormagic.capture.numbers import by_class
from tensormagic.capture.numbers.operands import as_python, compared, in_range
from tensormagic.ir.node import Node, topological
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Atom, apply, atom, evaluate, is_at_least
from tensormagic.ir.type import Size, hint
from tensormagic.ops.leaf import CONSTANT, SIZE, size_node, size_of
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    equal,
    floor_divide,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    multiply,
    negative,
    not_equal,
    power,
    remainder,
    subtract,
)


def static_value(node: Node) -> Any:
    """Return the value of a node that depends on sizes and constants alone, and record the sizes as fixed; else None."""
    if node.op in _OF_EQUALS and len(node.args) == 2 and node.args[0] is node.args[1] and _is_size(node.args[0]):
        return _OF_EQUALS[node.op]  # whatever the size is
    order, capture = _of_sizes(node), context.current()
    if order is not None and _is_rewritten(order):  # conditions are decided by the value that is shown
        return hooks.compute([node])[0] if capture else None
    return None if order is None else _evaluated(order, capture)


def _evaluated(order: Sequence[Node], capture: Any) -> Any:
    """Return the value of the last of some nodes, computed by NumPy's functions; None where a size was not seen."""
    values: dict[Node, Any] = {}

    def fixed(a: Atom) -> int:
        if isinstance(a, Node):
            return int(values[a])
        number = capture.specialise(atom(a)) if capture else hint(atom(a))
        if number is None:
            raise LookupError
        return number

    for n in order:
        if n.op is SIZE:
            number = capture.specialise(n["size"]) if capture else hint(n["size"])
            if number is None:
                return None
            values[n] = number
        else:
            try:
                values[n] = n.op.evaluate(n, [values[a] for a in n.args], lambda s: evaluate(s, fixed))
            except LookupError:  # a size that was not seen
                return None
    return values[order[-1]]


def _is_rewritten(order: Sequence[Node]) -> bool:
    """Return whether rules may change digits: several nodes compute floating-point numbers, and none of them depends on a size."""
    rounded = [n for n in order if n.op.kind != "leaf" and n.type.dtype.kind in "fc"]
    sized = (n.needs != n.args or not all(isinstance(s, int) for s in n.type.shape) for n in order)
    return len(rounded) > 1 and not any(sized)


def static_int(node: Node) -> int | None:
    """Return the int value of an integer node without axes that sizes and constants determine; else None."""
    if node.type.dtype.kind not in "iub" or node.type.shape:
        return None
    value = static_value(node)
    return None if value is None else int(value)


_LIMIT = 64


def _of_sizes(node: Node) -> list[Node] | None:
    """Return the nodes that ``node`` depends on, operands first; None if there are many, or others than sizes and constants."""
    found: set[Node] = set()
    pending = [node]
    while pending:
        n = pending.pop()
        if n in found:
            continue
        found.add(n)
        if len(found) > _LIMIT or (n.op.kind == "leaf" and n.op not in {SIZE, CONSTANT}):
            return None
        pending += n.needs
    return topological([node])


_OF_EQUALS: dict[Operation, bool] = {
    equal: True,
    less_equal: True,
    greater_equal: True,
    not_equal: False,
    less: False,
    greater: False,
}


def _is_size(node: Node) -> bool:
    return node.op is SIZE


_ON_SIZES: dict[Operation, Callable[[Any, Any], Size]] = {
    add: operator.add,
    subtract: operator.sub,
    multiply: operator.mul,
    floor_divide: operator.floordiv,
    remainder: operator.mod,
}


def arithmetic(op: Pointwise, nodes: Sequence[Node]) -> Node:
    """Return the node of a pointwise op; sums and products of sizes stay sizes."""
    capture = context.current()
    return by_class.computed(op, nodes, _one) if capture is not None and capture.classes.of else _one(op, nodes)


def _one(op: Pointwise, nodes: Sequence[Node]) -> Node:
    if op in _ON_SIZES and all(n.type.form == "python" for n in nodes):
        left, right = (size_of(n) for n in nodes)
        plain = isinstance(left, int) and (isinstance(right, int) or op in {floor_divide, remainder})
        if left is not None and right is not None and not plain:
            return size_node(_ON_SIZES[op](left, right))
    if any(n.type.form != "python" for n in nodes):
        return op(*nodes)
    if op in _TURNED and not isinstance(size := size_of(nodes[0]), int | None):
        return size_node(_TURNED[op](size))
    if op in _GROWING and (size := _of_size(op, *nodes)) is not None:
        return size_node(size)
    if (exact := compared(op, nodes)) is not None:
        return exact
    result = op(*as_python(op, nodes))
    return in_range(op, result, *nodes) if op in _GROWING else result


_TURNED: dict[Operation, Callable[[Any], Size]] = {  # of the smallest 64-bit integer, neither is one
    negative: operator.neg,
    absolute: lambda size: size if is_at_least(size, 0) else apply("max", size, -size),
}
_GROWING = {power, left_shift}
_MOST = 4  # the highest power of a size that is a size


def _of_size(op: Pointwise, base: Node, exponent: Node) -> Size | None:
    """Return a small power of a size, or a shifted size, as a size; else None."""
    size, count = size_of(base), size_of(exponent)
    if size is None or isinstance(size, int) or not isinstance(count, int):
        return None
    if op is left_shift:
        return size * 2**count if 0 <= count < _BITS else None
    return math.prod([size] * count) if 1 <= count <= _MOST else None


_BITS = 63
