"""Turns nodes whose sizes depend on integers that differ within a batch into nodes that take these integers as operands."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Apply, Dim, Size, Symbol, nodes_of, product
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.position import merged
from tensormagic.ops.indices.scatter import scatter_add, scatter_set
from tensormagic.ops.leaf import SIZE, constant, iota, size_node
from tensormagic.ops.move import SLICE, Slices, broadcast, reshape, slice_, transpose
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import ADD_AT, SET, set_at

_FUNCTIONS = {
    "floordiv": scalar.floor_divide,
    "mod": scalar.remainder,
    "min": scalar.minimum,
    "max": scalar.maximum,
}


def uneven_checks(results: Sequence[Node], known: Container[Node]) -> list[Node]:
    """Return the checks whose messages have parts of different sizes within a batch of ``known`` nodes."""
    nodes = topological(results, stop=known.__contains__)
    checks = [n for n in nodes if n.op is CHECK and len(n.args) > 2 and not n.args[1].type.shape]
    if not checks:
        return []
    moving = {n for n in nodes if n in known}
    for node in nodes:
        if any(a in moving for a in node.needs):
            moving.add(node)

    def is_uneven(node: Node) -> bool:
        return any(n in moving for n in node.sized_by)

    return [c for c in checks if any(map(is_uneven, topological(c.args[2:], stop=known.__contains__)))]


def spelled(size: Size) -> Node:
    """Return a size as sums and products of the nodes it mentions."""
    if not nodes_of(size) or not isinstance(size, Dim):
        return size_node(size)
    total: Node | None = None
    for monomial, coefficient in size.terms:
        term = constant(coefficient)
        for a, power in monomial:
            factor = _spelled_atom(a)
            for _ in range(power):
                term = factor if term is constant(1) else term * factor
        total = term if total is None else total + term
    return size_node(0) if total is None else total


def _spelled_atom(a: Symbol | Apply | Node) -> Node:
    if isinstance(a, Apply):
        return _FUNCTIONS[a.function](spelled(a.left), spelled(a.right))
    return a if isinstance(a, Node) else size_node(Dim(((((a, 1),), 1),)))


def without_sizes(node: Node, moving: Container[Node]) -> Node:
    """Return the same value computed with no size that mentions a node of ``moving``; these become operands.

    Raises
    ------
    ShapeError
        If a shape depends on them.
    """
    if node.op is SIZE:
        return spelled(node["size"])
    slices: Slices = node.params.get("slices", ())
    if node.op not in {SLICE, SET, ADD_AT} or any(_mentions(length, moving) for _, length, _ in slices):
        raise ShapeError(
            f"a size that {node.op.name} needs differs within the batch",
            "Work on arrays of one size, with np.where to ignore the others.",
        )
    axes = [k for k, (start, _, _) in enumerate(slices) if _mentions(start, moving)]
    shape = node.args[0].type.shape
    others = tuple((0, shape[k], 1) if k in axes else part for k, part in enumerate(slices))
    view = slice_(node.args[0], others)
    if node.op is SLICE:
        for k in axes:
            view = gather(view, _places(slices[k]), k)
        return view
    stored = _stored(node, view, axes, slices)
    return stored if view is node.args[0] else set_at(node.args[0], stored, others)


def _mentions(size: Size, moving: Container[Node]) -> bool:
    return any(n in moving for n in nodes_of(size))


def _places(part: tuple[Size, Size, int]) -> Node:
    """Return the indices that a slice selects."""
    start, length, step = part
    ramp = iota((length,), 0)
    return (ramp * constant(step) if step != 1 else ramp) + spelled(start)


def _stored(node: Node, view: Node, axes: Sequence[int], slices: Slices) -> Node:
    """Return the store of ``node`` into ``view`` by indices into ``axes``."""
    others = [k for k in range(view.type.ndim) if k not in axes]
    order = (*axes, *others)
    extents = tuple(view.type.shape[k] for k in axes)
    rest = tuple(view.type.shape[k] for k in others)
    lengths = tuple(slices[k][1] for k in axes)
    indices = [
        broadcast(reshape(_places(slices[k]), tuple(s if j == n else 1 for j, s in enumerate(lengths))), lengths)
        for n, k in enumerate(axes)
    ]
    front = reshape(transpose(view, order), (product(extents), *rest))
    values = transpose(node.args[1], order)
    store = scatter_add if node.op is ADD_AT else scatter_set
    new = store(front, indices[0] if len(axes) == 1 else merged(extents, indices, axes), values)
    return transpose(reshape(new, (*extents, *rest)), tuple(order.index(k) for k in range(len(order))))
