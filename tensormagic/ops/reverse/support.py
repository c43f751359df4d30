"""Where a derivative may be nonzero: elements left out by a slice, a mask, a store or a sort stay 0, also times an infinite slope.

So do the zeros of values through which no derivative goes: constants, ``np.eye(3)``, ``x > 1``. A zero that was
computed otherwise is a number like any other, and nothing is left out for it: ``sqrt(x)**2`` at 0 has the derivative
1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.type import hint
from tensormagic.ops.fold import ANY, CUMSUM, fold, row
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS, GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.indices.scatter import SCATTER_MAXIMUM, SCATTER_SET
from tensormagic.ops.leaf import CONSTANT, INPUT, PARAMETER, constant
from tensormagic.ops.move import BROADCAST, Slices, broadcast, concatenate, slice_
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import greater, logical_and, logical_or, not_equal, where
from tensormagic.ops.update import SET

Apply = Callable[[Node, Node], Node]
DEEPEST = 6  # how many operations are searched: more than derivatives have between a selection and a product
_REGIONS = frozenset(["item", "cond", "call", "checkpoint", "loop"])
MOST_STORES = 64  # how many consecutive stores are searched
MOST_PARTS = 16  # how many parts of one sum are distinguished


@dataclass(frozen=True)
class Search:
    """The limits of a search for where a tangent may be nonzero.

    Parameters
    ----------
    depth
        How many more operations may be looked through.
    steep
        Whether a slope may be infinite: then zeros of factors are worth a comparison, too.
    known
        Where given tangents may be nonzero.
    stores
        How many more stores may be looked through.
    """

    depth: int = DEEPEST
    steep: bool = False
    known: Mapping[Node, Node] = field(default_factory=dict[Node, Node])
    stores: int = MOST_STORES

    def below(self, node: Node) -> Search:
        """Return the limits one operation further down. Stores are counted separately, as unrolled code has long chains of them."""
        if node.op.name == "set" and self.stores:
            return Search(self.depth, self.steep, self.known, self.stores - 1)
        return Search(self.depth - 1, self.steep, self.known, self.stores)


def scaled(apply: Apply, partial: Node, tangent: Node, depth: int = DEEPEST) -> Node:
    """Return ``apply(partial, tangent)``, linear in the tangent, and 0 wherever the tangent is structurally zero.

    Parameters
    ----------
    apply
        The product, or the quotient, of nodes of one shape.
    partial, tangent
        The local derivative, and a tangent or cotangent of the same shape.
    depth
        How many operations may be looked through.
    """
    inside = _INSIDE.get(tangent.op.name) if depth else None
    found = inside(apply, partial, tangent, depth) if inside is not None else None
    if found is not None:
        return found
    result = apply(partial, tangent)
    if _finite(partial):
        return result
    kept = support(tangent, Search(depth, steep=result.op.steep or is_steep(partial)))
    return result if kept is None else _kept(kept, result)


def with_zeros_of(factor: Node, tangent: Node, result: Node) -> Node:
    """Return ``result``, set to 0 where a constant factor is 0, whatever the tangent (which may be infinite)."""
    return _kept(not_equal(factor, 0), result) if _may_be_zero(factor) and is_steep(tangent) else result


def is_steep(node: Node) -> bool:
    """Return whether a value depends, within a few operations, on a function whose slope may be infinite."""
    level, seen = [node], set[Node]()
    for _ in range(DEEPEST):
        seen.update(level)
        if any(n.op.steep for n in level):
            return True
        level = [a for n in level for a in n.args if a not in seen]
    return False


def _kept(condition: Node, value: Node) -> Node:
    return where(condition, value, _zeros(value, value.type.dtype))


def _zeros(like: Node, dtype: np.dtype) -> Node:
    return broadcast(constant(np.dtype(dtype).type(0)), like.type.shape)


def _unstretched(node: Node) -> Node:
    while node.op is BROADCAST:
        node = node.args[0]
    return node


def _is_zero(node: Node) -> bool:
    value = _unstretched(node)
    return value.op is CONSTANT and not value["bits"].array().any()


def _finite(node: Node) -> bool:
    """Return whether a local derivative is a finite constant."""
    value = _unstretched(node)
    return value.op is CONSTANT and bool(np.isfinite(value["bits"].array()).all())


# products that go inside --------------------------------------------------------------------------------------------------


def _inside_choice(apply: Apply, partial: Node, tangent: Node, depth: int) -> Node | None:
    condition, first, second = tangent.args
    if _is_zero(second):
        return _kept(condition, scaled(apply, partial, first, depth - 1))
    if _is_zero(first):
        value = scaled(apply, partial, second, depth - 1)
        return where(condition, _zeros(value, value.type.dtype), value)
    return None


def _inside_part(apply: Apply, partial: Node, tangent: Node, depth: int) -> Node | None:
    """Return for a tangent that is a slice added to zeros the product on the slice alone, or None for others."""
    base, part = tangent.args
    if not _is_zero(base):
        return None
    value = scaled(apply, slice_(partial, tangent["slices"]), part, depth - 1)
    return make(tangent.op, (_zeros(tangent, value.type.dtype), value), **tangent.params)


def _inside_scatter(apply: Apply, partial: Node, tangent: Node, depth: int) -> Node | None:
    """Return for a tangent scattered into zeros the product on the scattered values alone; None for others, or for repeated places."""
    base, indices, part = tangent.args
    if not _is_zero(base) or _repeats(part, tangent):
        return None
    taking = TAKE_ALONG_AXIS if tangent.op is ADD_ALONG_AXIS else GATHER
    value = scaled(apply, make(taking, (partial, indices), **tangent.params), part, depth - 1)
    return make(tangent.op, (_zeros(tangent, value.type.dtype), indices, value), **tangent.params)


def _repeats(part: Node, whole: Node) -> bool:
    sizes = hint(part.type.size), hint(whole.type.size)
    return None not in sizes and sizes[0] > sizes[1]  # type: ignore[operator]


def _inside_store(apply: Apply, partial: Node, tangent: Node, depth: int) -> Node | None:
    """Return for a tangent with zeros stored into it the product before the store, or None for others."""
    base, *rest = tangent.args
    if not _is_zero(rest[-1]):
        return None
    value = scaled(apply, partial, base, depth - 1)
    return make(tangent.op, (value, *rest[:-1], _zeros(rest[-1], value.type.dtype)), **tangent.params)


_INSIDE: dict[str, Callable[[Apply, Node, Node, int], Node | None]] = {
    "where": _inside_choice,
    "add_at": _inside_part,
    "scatter_add": _inside_scatter,
    "add_along_axis": _inside_scatter,
    "set": _inside_store,
    "scatter_set": _inside_store,
}

# where something is left out ----------------------------------------------------------------------------------------------


def support(node: Node, search: Search) -> Node | None:
    """Return a mask of where a tangent may be nonzero, or None for everywhere, or if it is not known."""
    if node in search.known:
        return search.known[node]
    if node.op.name in _REGIONS:
        from tensormagic.ops.reverse.support_regions import of_region

        return of_region(node, search.below(node)) if search.depth else None
    if _is_zero(node):
        return _all(node, False)
    find = _SUPPORT.get(node.op.name) if search.depth else None
    return find(node, search.below(node)) if find is not None else None


def _all(node: Node, value: bool) -> Node:
    return broadcast(constant(np.bool_(value)), node.type.shape)


def _or_all(kept: Node | None, node: Node) -> Node:
    return _all(node, True) if kept is None else kept


def _of_move(node: Node, search: Search) -> Node | None:
    kept = support(node.args[0], search)
    return None if kept is None else make(node.op, (kept, *node.args[1:]), **node.params)


def _of_same(node: Node, search: Search) -> Node | None:
    return support(node.args[0], search)


def _of_join(node: Node, search: Search) -> Node | None:
    found = [support(a, search) for a in node.args]
    if all(kept is None for kept in found):
        return None
    return concatenate([_or_all(kept, a) for kept, a in zip(found, node.args, strict=True)], node["axis"])


def _of_choice(node: Node, search: Search) -> Node | None:
    first, second = (support(a, search) for a in node.args[1:])
    if first is None and second is None:
        return None
    return where(node.args[0], _or_all(first, node), _or_all(second, node))


def _of_sum(node: Node, search: Search) -> Node | None:
    second = support(node.args[1], search)
    first = None if second is None else support(node.args[0], search)
    return None if first is None or second is None else logical_or(first, second)


def _of_product(node: Node, search: Search) -> Node | None:
    """Return where both factors may be nonzero; a factor that is constant for the derivative is compared with 0."""
    found: Node | None = None
    for factor, other in (node.args, node.args[::-1]):
        kept = support(other, search) if search.steep or _finite(factor) else None
        if kept is None and search.steep and _may_be_zero(factor):
            kept = not_equal(factor, 0)
        if kept is not None:
            found = kept if found is None else logical_and(found, kept)
    return found


def _of_contraction(node: Node, search: Search) -> Node | None:
    """Return where some product of the sum may be nonzero, or None if that depends on data."""
    if not search.steep:
        return None
    found = [support(a, search) for a in node.args]
    found = [not_equal(a, 0) if s is None and _may_be_zero(a) else s for s, a in zip(found, node.args, strict=True)]
    found = [s if s is not None and _is_fixed(s) else None for s in found]
    if all(s is None for s in found):
        return None
    parts = [astype(_or_all(s, a), np.float32) for s, a in zip(found, node.args, strict=True)]
    return greater(make(node.op, parts, **node.params), 0)


def _may_be_zero(factor: Node) -> bool:
    """Return whether a factor carries no derivative and is not known to be nonzero."""
    value = _unstretched(factor)
    if value.op is CONSTANT:
        return not value["bits"].array().all()
    return _is_unmoved(value, DEEPEST // 2)


def _is_unmoved(node: Node, depth: int) -> bool:
    if not node.types[0].inexact or node.op is CONSTANT or node.op.name == "stop_gradient":
        return True
    return depth > 0 and node.args != () and all(_is_unmoved(a, depth - 1) for a in node.args)


def _is_fixed(node: Node) -> bool:
    """Return whether a value depends on no data."""
    level, seen = {node}, set[Node]()
    for _ in range(2 * DEEPEST):
        seen |= level
        if any(n.op in {INPUT, PARAMETER} for n in level):
            return False
        level = {a for n in level for a in n.args if a not in seen}
    return not level


def _of_store(node: Node, search: Search) -> Node | None:
    base, *places, value = node.args
    before, stored = support(base, search), support(value, search)
    if before is None and stored is None:
        return None
    return make(node.op, (_or_all(before, base), *places, _or_all(stored, value)), **node.params)


def _of_added_parts(node: Node, search: Search) -> Node | None:
    """Return the union of slices that are added one after another, or None if it is not known."""
    base, links, sparse = node, list[Node](), list[Node]()
    while base.op is node.op and len(links) < MOST_PARTS:
        links.append(base)
        base = base.args[0]
    kept = support(base, search)
    if kept is None:
        return None
    boxes: list[Slices] = []
    for link in links:
        if support(link.args[1], search) is None:
            boxes = _joined(boxes, link["slices"])
        else:
            sparse.append(link)
    whole = tuple((0, extent, 1) for extent in node.type.shape)
    if whole in boxes:
        return None
    for box in boxes:
        part = broadcast(constant(np.bool_(True)), tuple(length for _, length, _ in box))
        kept = make(SET, (kept, part), slices=box)
    for link in sparse:
        part = support(link.args[1], search)
        if part is not None:
            kept = make(SET, (kept, logical_or(slice_(kept, link["slices"]), part)), slices=link["slices"])
    return kept


def _joined(boxes: list[Slices], box: Slices) -> list[Slices]:
    """Add a box to ``boxes``, merged with those that together form a box."""
    for k, other in enumerate(boxes):
        joined = _join(other, box)
        if joined is not None:
            return _joined([*boxes[:k], *boxes[k + 1 :]], joined)
    return [*boxes, box]


def _join(first: Slices, second: Slices) -> Slices | None:
    """Return one box for two that touch and differ along at most one axis, for the sizes seen at capture, or None.

    For other sizes it may contain more than the two: there an infinite slope is not masked.
    """
    axes = [k for k, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    if not axes:
        return first
    (axis, *others) = axes
    (start, length, step), (later, further, other_step) = first[axis], second[axis]
    seen = [hint(n) for n in (start, start + length, later, later + further)]
    if others or (step, other_step) != (1, 1) or None in seen:
        return None
    begin, end, low, high = (int(n or 0) for n in seen)
    if low > end or begin > high:
        return None
    least = start if begin <= low else later
    most = start + length if end >= high else later + further
    return (*first[:axis], (least, most - least, 1), *first[axis + 1 :])


def _of_scatter(node: Node, search: Search) -> Node | None:
    base, indices, part = node.args
    before = support(base, search)
    if before is None:
        return None
    added = support(part, search)
    operation = SCATTER_SET if added is None else SCATTER_MAXIMUM  # the maximum of truth values is their disjunction
    return make(operation, (before, indices, _or_all(added, part)), **node.params)


def _of_fold(node: Node, search: Search) -> Node | None:
    kept = support(node.args[0], search)
    return None if kept is None else fold(ANY, kept, node["axes"])


def _of_running_sum(node: Node, search: Search) -> Node | None:
    kept = support(node.args[0], search)
    if kept is None:
        return None
    return not_equal(row(CUMSUM, astype(kept, np.int64), node["axes"]), 0)


_SUPPORT: dict[str, Callable[[Node, Search], Node | None]] = {
    **dict.fromkeys(("broadcast", "reshape", "transpose", "slice", "gather", "take_along_axis"), _of_move),
    **dict.fromkeys(("negative", "positive", "astype", "conjugate", "divide"), _of_same),
    **dict.fromkeys(("add", "subtract"), _of_sum),
    **dict.fromkeys(("set", "scatter_set"), _of_store),
    "concatenate": _of_join,
    "where": _of_choice,
    "multiply": _of_product,
    "contract": _of_contraction,
    "add_at": _of_added_parts,
    "scatter_add": _of_scatter,
    "sum": _of_fold,
    "cumsum": _of_running_sum,
}
