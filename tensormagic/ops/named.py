"""The identity of a value that the user has named, so that it stays distinct from equal values. Closed graphs do not contain it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensormagic.ir import site
from tensormagic.ir.node import Node, make, rebuild, topological
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import INPUT
from tensormagic.ops.move_kind import Move
from tensormagic.ops.op import Value, as_form
from tensormagic.ops.rows import common_axis

_serial = itertools.count()


@dataclass(frozen=True, eq=False, kw_only=True)
class Named(Move):
    """The identity, whose every node is distinct."""

    def infer(self, args: tuple[Node, ...], params: Mapping[str, object]) -> Type:
        del params
        return args[0].type

    def evaluate(self, node: Node, values: Sequence[Value], size: Callable[[Size], int]) -> Value:
        del size
        return values[0] if node.type.shape else as_form(values[0], node.type.form)


NAMED = Named(
    name="named",
    doc="A value of the user's own, which equals its operand and is told from all others that do.",
    shape=lambda args, _params: args[0].type.shape,
    stacked=lambda _node, x, _size: x,
    numpy=lambda _node, values, _size: values[0],
    back=lambda _node, cotangent: cotangent,
    index=lambda _node, index: index,
    split_rows=lambda _node, axes, _rows: common_axis(axes),
)


def named(x: Node) -> Node:
    """Return ``x`` as a distinct node."""
    return make(NAMED, (x,), serial=next(_serial))


def is_bare(node: Node) -> bool:
    """Return whether a value is made of constants alone, so that equal ones cannot be told apart."""
    pending, seen = [node], {node}
    while pending:
        one = pending.pop()
        if one.op is INPUT or one.op is NAMED:
            return False
        fresh = [n for n in one.needs if n not in seen]
        seen.update(fresh)
        pending += fresh
    return True


def unnamed(results: Sequence[Node]) -> list[Node]:
    """Return ``results`` with every ``named`` removed, since rules do not look through them."""
    order = topological(results)
    if all(n.op is not NAMED for n in order):
        return list(results)
    memo: dict[Node, Node] = {}
    for node in order:
        memo[node] = memo[node.args[0]] if node.op is NAMED else rebuild(node, [memo[a] for a in node.args], memo)
        if memo[node] is not node:
            for place in site.of(node):
                site.record(memo[node], place)
    return [memo[r] for r in results]
