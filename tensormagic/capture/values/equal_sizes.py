"""Data-dependent sizes that must be equal: whatever reads such a size depends on a check at run time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from weakref import WeakKeyDictionary

from tensormagic.ir.graph import NOT_STRETCHED, singles
from tensormagic.ir.node import Node
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, atom, atoms, is_at_least
from tensormagic.ops.effects.checks import require
from tensormagic.ops.leaf import size_node
from tensormagic.ops.scalars import scalar


def open_equations(node: Node) -> tuple[Guard, ...]:
    """Return the equations of sizes under which an array has its assumed shape, where a size that may be 1 was chosen.

    Only nodes that the values come from are visited, as long as they have such a size.
    """
    if len(node.types) != 1 or all(is_at_least(s, 2) or isinstance(s, int) for s in node.type.shape):
        return ()
    found = _known.get(node)
    if found is None:
        found = _known[node] = tuple(_found(node))
    return found


_known: WeakKeyDictionary[Node, tuple[Guard, ...]] = WeakKeyDictionary()


def _found(node: Node) -> dict[Guard, None]:
    found: dict[Guard, None] = {}
    wanted = {a for s in node.type.shape if not is_at_least(s, 2) for a in atoms(s)}
    pending, seen = [node], {node}
    while pending:
        one = pending.pop()
        for guard in one.op.guards(one):
            sides = {guard[0], guard[2]}
            of_size = not sides.isdisjoint(_sizes(one)) and _has(sides, wanted)
            if guard[1] == "==" and of_size and not all(is_at_least(s, 2) for s in sides):
                found[guard] = None
        new = [arg for arg in one.args if arg not in seen and _has(_sizes(arg), wanted)]
        seen.update(new)
        pending += dict.fromkeys(new)
    return found


def _sizes(node: Node) -> list[Size]:
    return [s for t in node.types for s in t.shape]


def _has(sizes: Iterable[Size], wanted: set[Node]) -> bool:
    """Return whether a size is computed from one that is ``wanted``."""
    return any(a in wanted for s in sizes for a in atoms(s))


def agreed(node: Node, equations: tuple[Guard, ...]) -> Node:
    """Return ``node`` with a check for these equations."""
    return reduce(lambda found, guard: related(found, guard, None), equations, node)


def agreed_size(size: Size, *nodes: Node) -> Size:
    """Return a size of arrays as the code sees it, with a check, as the code may not use the arrays' values."""
    if isinstance(size, int) or is_at_least(size, 2):
        return size
    own = set(atoms(size))
    equations = dict.fromkeys(g for n in nodes for g in open_equations(n) if own & {*atoms(g[0]), *atoms(g[2])})
    return atom(agreed(size_node(size), tuple(equations))) if equations else size


def related(node: Node, guard: Guard, runs: Node | None) -> Node:
    """Return ``node`` with a check for a relation of sizes: a data-dependent size is not broadcast if it happens to be 1.

    If ``runs`` is given, the relation must hold only when that is true.
    """
    left, right = size_node(guard[0]), size_node(guard[2])
    least = guard[1] == ">="
    fits = scalar.greater_equal(left, right) if least else scalar.equal(left, right)
    if runs is not None:
        fits = scalar.logical_or(fits, scalar.logical_not(runs))
    if least:
        said = "a size that depends on data is too small. Check it first, with an if around this code"
        return require(node, fits, said, "promotion")
    one = reduce(scalar.logical_or, (scalar.equal(size_node(s), 1) for s in singles(guard)))
    stretched = scalar.logical_or(fits, scalar.logical_not(one))
    node = require(node, stretched, f"sizes do not fit: 1 and another one. {NOT_STRETCHED}", "promotion")
    return require(node, scalar.logical_or(fits, one), "sizes that depend on data do not fit")
