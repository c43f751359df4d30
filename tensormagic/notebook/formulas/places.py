"""Elements at places that arrays name, as mathematics: ``p[rows, t]`` and what a gradient adds there.

Places in several axes, which capture has laid end to end, are the indices again that the user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, product
from tensormagic.notebook.formulas.latex import Big, Cases, Expression, Number, Relation
from tensormagic.notebook.formulas.structure import seen
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_SET
from tensormagic.ops.leaf import IOTA, SIZE, constant_value
from tensormagic.ops.move import BROADCAST, RESHAPE
from tensormagic.ops.move_kind import Index
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars.scalar import add, multiply

_Indices = tuple[Index, ...] | None


class Places:
    """What a writer of formulas writes of places; the rest of the writer is its heir."""

    _bound: dict[str, Expression]

    def write(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return the expression of a node, or of one of its elements."""
        raise NotImplementedError

    def size(self, size: Size, depth: int = 0) -> Expression:
        """Return the expression of a size."""
        raise NotImplementedError

    def _call(self, node: Node, index: _Indices, depth: int) -> Expression:
        raise NotImplementedError

    def _fresh(self, count: int) -> tuple[str, ...]:
        raise NotImplementedError

    def _release(self, letters: Sequence[str]) -> None:
        raise NotImplementedError

    def _index(self, index: Index) -> Expression:
        raise NotImplementedError

    # reading ----------------------------------------------------------------------------------------------------------

    def gathered(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return an element at a place that an array names."""
        if index is None:
            return self._call(node, index, depth)
        x, places = node.args
        axis = node["axis"]
        whole = seen(x)
        parts = _apart(whole, places) if node.op is GATHER and not axis and whole.op is RESHAPE else None
        if parts is not None:
            own, behind = index[: places.type.ndim], index[places.type.ndim :]
            return self.write(whole.args[0], (*(self._place(part, own, depth) for part in parts), *behind), depth + 1)
        if node.op is GATHER:
            count = places.type.ndim
            own, before, behind = index[axis : axis + count], index[:axis], index[axis + count :]
        else:
            own, before, behind = index, index[:axis], index[axis + 1 :]
        return self.write(x, (*before, self._place(places, own, depth), *behind), depth + 1)

    def _place(self, places: Node, own: tuple[Index, ...], depth: int) -> Index:
        """Return an index that is computed."""
        key = f"[{len(self._bound)}]"
        self._bound[key] = self._named(places, own, depth)
        return Index(key)

    def _named(self, places: Node, own: tuple[Index, ...], depth: int) -> Expression:
        return self.write(places, own[len(own) - places.type.ndim :], depth + 1)

    # storing ----------------------------------------------------------------------------------------------------------

    def scattered(self, node: Node, index: _Indices, depth: int) -> Expression:
        """Return an element of an array that is added to at places, along its first axis."""
        made = None
        if index is not None and not node["axis"]:
            made = self._added(node, [node.args[1]], node.type.shape, index, depth)
        return made or self._call(node, index, depth)

    def stored_apart(self, node: Node, index: tuple[Index, ...], depth: int) -> Expression | None:
        """Return the element of an array scattered into flat and then reshaped along its first axes, or None for other reshapes."""
        inside = seen(node.args[0])
        if inside.op not in {SCATTER_ADD, SCATTER_SET} or inside["axis"]:
            return None
        parts = _divided(node.type.shape, inside.type.shape, inside.args[1])
        return None if parts is None else self._added(inside, parts, node.type.shape, index, depth)

    def _added(
        self, node: Node, parts: Sequence[Node], shape: tuple[Size, ...], index: tuple[Index, ...], depth: int
    ) -> Expression | None:
        """Return the element at an index of a scatter: a sum over the stored values whose position matches. An ``arange`` needs no sum."""
        base, places, values = node.args
        zero, one = constant_value(base), constant_value(values)
        marks = node.op is SCATTER_SET and zero is not None and not zero.any() and one is not None and one.all()
        if not (node.op is SCATTER_ADD and zero is not None and not zero.any()) and not marks:
            return None
        free = places.type.ndim
        counts = next((k for k, part in enumerate(parts) if free == 1 and seen(part).op is IOTA), None)
        letters = self._fresh(free if counts is None else 0)
        own = (index[counts],) if counts is not None else tuple(map(Index, letters))
        met: list[Expression] = []
        if counts is not None and places.type.shape[0] != shape[counts]:
            met.append(Relation("<", self._index(index[counts]), self.size(places.type.shape[0], depth)))
        for k, (part, here) in enumerate(zip(parts, index, strict=False)):
            if k != counts:
                met.append(Relation("==", self._named(part, own, depth), self._index(here)))
        condition = met[0] if met else None
        for further in met[1:]:
            condition = Relation("and", condition, further)  # type: ignore[arg-type] (there is one)
        if marks and (letters or condition is None):
            made = None
        elif marks:
            made = condition
        else:
            body = self.write(values, (*own, *index[len(parts) :]), depth + 1)
            made = body if condition is None else Cases(condition, body, Number(0))
        self._release(letters)
        bounds = tuple((i, "<", self.size(n, depth)) for i, n in zip(letters, places.type.shape, strict=False))
        return Big("sum", bounds, made) if bounds and made is not None else made


def _apart(x: Node, places: Node) -> list[Node] | None:
    """Return the indices of an array that ``x`` has with its first axes as one."""
    return _divided(x.args[0].type.shape, x.type.shape, places)


def _divided(shape: tuple[Size, ...], joined: tuple[Size, ...], places: Node) -> list[Node] | None:
    """Return the indices into the first axes of a shape, where places are in these as one.

    Nothing where the places are not what :func:`tensormagic.ops.indices.position.merged` makes of indices.
    """
    for count in range(2, len(shape) + 1):
        if joined == (product(shape[:count]), *shape[count:]):
            found = _indices(places, shape[1:count])
            if found is not None:
                return found
    return None


def _indices(flat: Node, extents: Sequence[Size]) -> list[Node] | None:
    """Return the indices that were merged: each but the first is added to those before it, times the extent of its axis."""
    found: list[Node] = []
    for extent in reversed(extents):
        flat = _spread(flat)
        if flat.op is not add or _spread(flat.args[0]).op is not multiply:
            return None
        flat, last = flat.args
        flat, times = _spread(flat).args
        if not _is(times, extent):
            return None
        found.append(_index(last))
    return [_index(flat), *reversed(found)]


def _is(node: Node, extent: Size) -> bool:
    """Return whether a node is the number that an extent is."""
    node = _spread(node)
    return node["size"] == extent if node.op is SIZE else constant_value(node) == extent


def _spread(node: Node) -> Node:
    while node.op in {BROADCAST, ASTYPE}:
        node = node.args[0]
    return node


def _index(position: Node) -> Node:
    """Return the index of a position: it counts from the end where it is negative."""
    position = _spread(position)
    return _spread(position.args[0]) if position.op is POSITION else position
