"""Expand graphs into simple ops: composed functions by their definitions, and regions over the nodes around them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import count
from typing import Any

import numpy as np

from tensormagic.backend.planning.masked_folds import of_all_elements
from tensormagic.backend.planning.purpose import is_alone
from tensormagic.backend.planning.through_reshapes import before_reshape, without_round_trips
from tensormagic.backend.printing.complex_text import COMPLEX, source_of
from tensormagic.ir import site
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, as_size, make, rebuild, replaced, resized, topological
from tensormagic.ir.size import Atom, Size, nodes_of
from tensormagic.ir.substituting import substitute
from tensormagic.ir.type import Type
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.effects.checks import FIXED
from tensormagic.ops.fold import SUM, reduce_sum
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, INPUT, IOTA, Source
from tensormagic.ops.move import BROADCAST, CONCATENATE, broadcast, reshape, transpose
from tensormagic.ops.move_kind import Move
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.regions.branches import CALL, CHECKPOINT, GRAD
from tensormagic.ops.scalars.complex_parts import from_parts
from tensormagic.ops.scalars.scalar import add, imag, multiply, real, subtract
from tensormagic.ops.update import ADD_AT, SET

DTYPES = frozenset([*map(np.dtype, ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]), COMPLEX])

MARK = "written_in"


class Room(Source):
    """The source of a new, uninitialised array."""


class Growing(Room):
    """The source of a new array that grows as elements are stored into it."""


def is_growing(node: Node) -> bool:
    """Return whether a node is an array that grows."""
    return isinstance(node.params.get("source"), Growing)


def is_room(node: Node) -> bool:
    """Return whether a node is a new, uninitialised array."""
    return isinstance(node.params.get("source"), Room)


def room(t: Type, kind: type[Room] = Room) -> Node:
    """Return a new, uninitialised array; the integers in its shape must be computed before it."""
    return make(INPUT, type=t, source=kind("room"), extents=t.shape)


def expand_all(results: Sequence[Node], *, inside: bool = False) -> list[Node]:
    """Return the same results in ops that have no simpler form, without calls.

    ``inside`` a region that may become one function, sums and products of complex numbers are split into their parts.
    """
    memo: dict[Node, Node] = {}
    called: dict[Node, tuple[Node, ...]] = {}

    def simple(root: Node) -> Node:
        for node in topological([root], stop=lambda n: n in memo):
            if node in memo or node in called:
                continue
            if node.op is ITEM and node.args[0] in called:
                memo[node] = called[node.args[0]][node["index"]]
                continue
            rebuilt = replaced(node, memo)
            site.inherit(rebuilt, node)
            memo.update((a, a) for a in rebuilt.needs)
            found = _called(rebuilt)
            if found is not None:
                called[node] = tuple(map(simple, found))
                if len(found) == 1:
                    memo[node] = called[node][0]
                continue
            body = _simpler(rebuilt) or (by_parts(rebuilt) if inside else None)
            if body is not None:
                site.inherit(body, node)
            memo[node] = rebuilt if body is None else simple(body)
        return memo[root]

    return [simple(r) for r in without_round_trips(of_all_elements(results))]


_serial = count()


def _called(node: Node) -> list[Node] | None:
    """Return the results of a call over its operands, or None for any other node. Deliberate recomputation stays."""
    if node.op is GRAD:
        node = node.op.expand(node) or node
    if node.op not in {CALL, CHECKPOINT}:
        return None
    own = -1 - next(_serial) if node.op is CHECKPOINT else None
    return Instance(node["graph"], node.args, own).of(node["graph"].results)


def _simpler(node: Node) -> Node | None:
    """Return a node in simpler ops, or None if it is simple."""
    if node.op is FIXED:
        return node.args[0]
    if node.op in {SET, ADD_AT} and not node.type.shape:
        return _stored_number(node)
    if node.op is CONCATENATE and node.type.dtype in DTYPES:
        return joined(node)
    if node.op is CONTRACT and (_is_product(node) or (is_alone() and _is_stacked(node))):
        return _product(node)
    if isinstance(node.op, Pointwise) and source_of(node) is not None:
        return before_reshape(node)
    body: Node | None = node.op.expand(node)
    return body if body is not None and body.types == node.types else None


def _stored_number(node: Node) -> Node:
    """Return a store into a rank-0 array, as the number it holds afterwards."""
    x, value = node.args
    value = astype(value, x.type.dtype)
    return to_form(value if node.op is SET else add(x, value), node.type.form)


def _is_product(node: Node) -> bool:
    """Return whether a contraction sums nothing."""
    if node.type.dtype not in DTYPES or node.type.dtype.kind == "b":
        return False
    (a, b), out = split(node["subscripts"])
    return set(a) | set(b) == set(out)


def _is_stacked(node: Node) -> bool:
    """Return whether a contraction is neither a matrix-vector nor a matrix-matrix product, for which there are special loops."""
    (a, b), out = split(node["subscripts"])
    matrices = len(a) == len(b) == len(out) == 2
    return (
        node.type.dtype in DTYPES
        and node.type.dtype.kind not in "bc"
        and not matrices
        and set(a + b) not in (set(a), set(b))
    )


def _product(node: Node) -> Node:
    """Return a contraction as an element-wise product, summed over the summed axes."""
    (a, b), out = split(node["subscripts"])
    every = out + "".join(sorted(set(a + b) - set(out)))
    sizes = dict(zip(a + b, [*node.args[0].type.shape, *node.args[1].type.shape], strict=True))
    sizes |= dict(zip(out, node.type.shape, strict=True))

    def spread(letters: str, x: Node) -> Node:
        order = sorted(letters, key=every.index)
        x = transpose(x, tuple(letters.index(c) for c in order))
        extents = dict(zip(order, x.type.shape, strict=True))
        x = reshape(x, tuple(extents.get(c, 1) for c in every))
        return broadcast(x, tuple(sizes[c] for c in every))

    found = multiply(spread(a, node.args[0]), spread(b, node.args[1]))
    total = found if every == out else reduce_sum(found, tuple(range(len(out), len(every))))
    return astype(total, node.type.dtype)


def by_parts(node: Node) -> Node | None:
    """Return a sum, or a matrix product, of complex numbers by real and imaginary parts, or None for any other node."""
    if not (node.op is CONTRACT or node.op is SUM) or node.type.dtype != COMPLEX:
        return None

    def part(*args: Node) -> Node:
        return make(node.op, args, **node.params)

    (re, im), *others = [(real(a), imag(a)) for a in node.args]
    if not others:
        return from_parts(part(re), part(im))
    ((re_right, im_right),) = others
    return from_parts(
        subtract(part(re, re_right), part(im, im_right)),
        add(part(re, im_right), part(im, re_right)),
    )


def joined(node: Node, **more: Any) -> Node:
    """Return a concatenation as stores into a new array; the stores get the parameters ``more``."""
    found = room(node.type)
    offset: Size = 0
    for part in node.args:
        extents = enumerate(part.type.shape)
        slices = tuple((offset if k == node["axis"] else 0, s, 1) for k, s in extents)
        found = make(SET, (found, part), slices=slices, **more)
        offset = offset + part.type.shape[node["axis"]]
    return found


def rim(part: Sequence[tuple[Size, Size, int]], shape: Sequence[Size]) -> list[tuple[tuple[Size, Size, int], ...]]:
    """Return the boxes around a part of an array."""
    found: list[tuple[tuple[Size, Size, int], ...]] = []
    for axis, (first, extent, _) in enumerate(part):
        for begin, size in ((0, first), (first + extent, shape[axis] - first - extent)):
            if size != 0:
                found.append((*part[:axis], (begin, size, 1), *((0, s, 1) for s in shape[axis + 1 :])))
    return found


def is_box(part: Sequence[tuple[Size, Size, int]]) -> bool:
    """Return whether a slice has no gaps and is the same at every iteration."""
    return all(step == 1 and not nodes_of(first) and not nodes_of(extent) for first, extent, step in part)


def _begun(node: Node, own: int) -> Node:
    """Return a store into part of an array of equal constants, changed to fill only the rest of the array."""
    base = node.args[0] if node.op is SET and node.type.shape else node
    fills = base is not node and base.op is BROADCAST and base.args[0].op is CONSTANT
    if not fills or base.args[0].type.shape or not is_box(node["slices"]) or node.type.dtype != node.args[1].type.dtype:
        return node
    found = room(node.type)
    for box in rim(node["slices"], node.type.shape):
        piece = broadcast(base.args[0], tuple(extent for _, extent, _ in box))
        found = marked(make(SET, (found, piece), slices=box), own)
    return make(SET, (found, node.args[1]), slices=node["slices"])


class Instance:
    """A closed graph's nodes in terms of the nodes around it.

    Parameters
    ----------
    graph
        The graph.
    operands
        The nodes for its parameters.
    own
        A number that makes the nodes differ from those of other instances of the same graph.
    there
        What is stored outside: moves of these among the operands are built anew.
    """

    def __init__(
        self, graph: Graph, operands: Sequence[Node], own: int | None = None, there: Container[Node] = ()
    ) -> None:
        self.graph = graph
        self.own = own
        self.sizes: dict[Atom, Size] = {}
        self.memo: dict[Node, Node] = {}
        for p, operand in zip(graph.parameters, operands, strict=True):
            self._put(p, self._moved(operand, there) if operand.type.shape else self._formed(operand, p))
            for inner, outer in zip(p.type.shape, operand.type.shape, strict=True):
                symbol = bare_symbol(inner)
                if symbol is not None:
                    self.sizes.setdefault(symbol, outer)

    def _moved(self, operand: Node, there: Container[Node]) -> Node:
        if self.own is None or operand in there:
            return operand
        if isinstance(operand.op, Move) and operand.op.index is not None:
            operand = rebuild(operand, [self._moved(operand.args[0], there)])
            return marked(operand, self.own)
        return marked(operand, self.own) if operand.op is IOTA else operand

    def _formed(self, operand: Node, p: Node) -> Node:
        new = to_form(operand, p.type.form)
        return new if new is operand or self.own is None else marked(new, self.own)

    def _put(self, node: Node, new: Node) -> None:
        self.memo[node] = new
        size = as_size(new) if len(new.types) == 1 else None
        if size is not None:
            self.sizes[node] = size

    def of(self, results: Sequence[Node]) -> list[Node]:
        """Return ``results`` rebuilt over the operands."""
        for node in topological(results, stop=lambda n: n in self.memo):
            if node not in self.memo:
                new = resized(node, [self.memo[a] for a in node.args], self.sizes)
                if self.own is not None and is_room(node):
                    new = room(new.type, type(node["source"]))
                elif self.own is not None:
                    new = marked(_begun(new, self.own), self.own)
                self._put(node, new)
                site.inherit(new, node)
        return [self.memo[n] for n in results]

    def size(self, size: Size) -> Size:
        """Return a size over the operands."""
        return substitute(size, self.sizes)


def marked(node: Node, own: int) -> Node:
    """Return a node made distinct from those of other instances; constants and single results stay."""
    if node.op is ITEM or not (node.args or node.op is IOTA):
        return node
    return make(node.op, node.args, type=None if node.args else node.type, **{**node.params, MARK: own})


def is_marked(node: Node, own: int) -> bool:
    """Return whether a node, or the node it is a result of, carries this mark."""
    return (node.args[0] if node.op is ITEM else node).params.get(MARK) == own
