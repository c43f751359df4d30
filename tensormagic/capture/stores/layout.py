"""Layouts: where the elements of NumPy's array for a value lie in memory, as far as that is known."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.capture import context
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.leaf import INPUT, PARAMETER
from tensormagic.ops.move import BROADCAST, RESHAPE, SLICE, TRANSPOSE, squeezes
from tensormagic.ops.opaque import ITEM, Store
from tensormagic.ops.regions.branches import COND
from tensormagic.ops.regions.loops import LOOP

Layout = np.ndarray[Any, Any]  # an array that is never read: it only has a layout
NOWHERE = np.zeros(1, np.int8)
_lies_as: WeakKeyDictionary[Node, list[Node]] = WeakKeyDictionary()


@dataclass(frozen=True)
class EveryOther:
    """The layout of real parts, or of imaginary ones, in complex numbers: every other number."""

    name: str

    def __call__(self, layout: Layout) -> Layout:
        """Return the layout of the parts, given that of the complex numbers."""
        return np.lib.stride_tricks.as_strided(layout, layout.shape, [2 * s for s in layout.strides])

    def of(self, array: np.ndarray[Any, Any], number: Callable[[Size], int]) -> np.ndarray[Any, Any]:
        """Return the parts of an array."""
        del number
        return getattr(array, self.name)


@dataclass(frozen=True)
class Shaped:
    """The layout of an array after a reshape; ``apply`` is NumPy's function of an array and a shape.

    ``writeable`` says that NumPy allows stores into it, with a warning, which captured code refuses.
    """

    apply: Callable[[Layout, tuple[int, ...]], Layout]
    sizes: tuple[Size, ...]
    writeable: bool = False

    def __call__(self, layout: Layout) -> Layout:
        """Return the layout, with the sizes that were seen."""
        return self.apply(layout, tuple([7 if (seen := hint(s)) is None else seen for s in self.sizes]))

    def of(self, array: np.ndarray[Any, Any], number: Callable[[Size], int]) -> np.ndarray[Any, Any]:
        """Return NumPy's view of an array; ``number`` evaluates sizes."""
        return self.apply(array, tuple(map(number, self.sizes)))


def reshaped(array: Layout, shape: tuple[int, ...]) -> Layout:
    """Return the same elements in another shape, without a copy."""
    return np.reshape(array, shape, copy=False)


def note_extents(part: Sequence[Size], whole: Sequence[Size]) -> None:
    """Guard which axes of a part are as long as those of the whole, or have one element: contiguity depends on these."""
    capture = context.current()
    if capture is None or product(tuple(part)) == product(tuple(whole)):  # all of it
        return
    if len(part) != len(whole):
        note_all((*part, *whole))
        return
    for own, all_of_it in zip(part, whole, strict=True):
        n, most = hint(own), hint(all_of_it)
        if n is None or most is None:
            continue
        more, less = (own, all_of_it) if n > most else (all_of_it, own)  # a view may be longer: reshaped, or broadcast
        capture.decides((own, "==", all_of_it) if n == most else (more, ">=", less + 1))
        capture.decides((own, "==", n) if n < 2 else (own, ">=", 2))


def note_all(extents: Sequence[Size]) -> None:
    """Guard extents, each as the number that it was."""
    capture = context.current()
    if capture is not None:
        for size in extents:
            capture.decides((size, "==", hint(size) or 0))


def given_for(leaf: Node) -> np.ndarray[Any, Any] | None:
    """Return the actual array of an argument at capture; a graph that depends on its layout is guarded by it."""
    capture = context.current()
    if capture is None or leaf.op is not INPUT:
        return None
    while leaf in capture.inputs.behind:
        leaf = capture.inputs.behind[leaf]
    value = capture.inputs.values.get(leaf) if leaf.op is INPUT else None
    if not isinstance(value, np.ndarray):
        return None
    capture.layouts.ordered = True
    return value


def as_given(leaf: Node, given: np.ndarray[Any, Any]) -> Layout | None:
    """Return the layout of an argument that is not in C order, and fix its sizes; None where it is not known."""
    capture = context.current()
    for size in leaf.type.shape if capture is not None else ():
        capture.specialise(size)  # type: ignore[union-attr]
    if any(s % given.itemsize for s in given.strides):
        return None
    return np.lib.stride_tricks.as_strided(NOWHERE, given.shape, [s // given.itemsize for s in given.strides])


def lies_as(node: Node, other: Node) -> None:
    """Record that a value was stored into an array made as ``other``, which decides the layout."""
    known = _lies_as.setdefault(node, [])
    if other is not node and other not in known:
        known.append(other)


def made_as(node: Node) -> list[Node]:
    """Return the nodes that the arrays were made as into which a value was stored."""
    return _lies_as.get(node, [])


def in_c_order(node: Node) -> bool:
    """Return whether NumPy's array for ``node`` surely has its elements in C order.

    Most operations keep the order of their operands.
    """
    pending, seen = [node], set[Node]()
    while pending:
        found = pending.pop()
        if found in seen or (len(found.types) == 1 and found.type.ndim < 2):
            continue
        seen.add(found)
        pending += _lies_as.get(found, ())
        if not _keeps_order(found):
            return False
        pending += _of_order(found)
        pending += [r for graph in found.params.values() if isinstance(graph, Graph) for r in graph.results]
    return True


def may_have_gaps(first: Node) -> bool:
    """Return whether the value of a branch or a loop may be a view with gaps between its elements."""
    pending: list[tuple[Node, Any]] = [(first, None)]
    seen: set[tuple[Node, Any]] = set()
    while pending:
        node, around = found = pending.pop()
        if found in seen or not node.types[0].shape:
            continue
        seen.add(found)
        if _may_have_gaps_itself(node):
            return True
        pending += _memory_of(node, around)
    return False


def _may_have_gaps_itself(node: Node) -> bool:
    """Return whether the array itself may not be contiguous."""
    if node.op is INPUT:
        given = given_for(node)
        return not (_has_no_gaps(node["source"]) if given is None else given.flags.c_contiguous)
    part = node.op in {SLICE, TRANSPOSE} or (node.op is BROADCAST and bool(node.args[0].type.shape))
    return part and not (node.op is SLICE and _is_run(node))


def _memory_of(node: Node, around: Any) -> Iterable[tuple[Node, Any]]:
    """Return the arrays whose memory an array has, and the regions around them."""
    if node.op is PARAMETER and around is not None:
        return _sources_of_parameter(node["index"], *around)
    if is_region(node):
        region, number = _result_of(node)
        graphs = [g for n, g in region.params.items() if isinstance(g, Graph) and n != "test"]
        return [(graph.results[number], (region, around)) for graph in graphs]
    within = node.op in {SLICE, RESHAPE, REQUIRE} or node.op.kind == "update"
    return [(node.args[0], around)] if within else []


def _is_run(part: Node) -> bool:
    """Return whether a slice of a contiguous array is contiguous: a row, or consecutive rows."""
    pairs = zip(part["slices"], part.args[0].type.shape, strict=True)
    parts = [k for k, (taken, extent) in enumerate(pairs) if taken != (0, extent, 1)]
    last = max(parts, default=0)
    single = all(length == 1 for _, length, _ in part["slices"][:last])
    return not parts or (single and (part["slices"][last][1] == 1 or part["slices"][last][2] == 1))


def _result_of(node: Node) -> tuple[Node, int]:
    return (node.args[0], node["index"]) if node.op is ITEM else (node, 0)


def is_region(node: Node) -> bool:
    """Return whether a node is the value of a branch or a loop."""
    return any(isinstance(p, Graph) for p in _result_of(node)[0].params.values())


def _sources_of_parameter(number: int, region: Node, around: Any) -> Generator[tuple[Node, Any]]:
    """Yield what parameter ``number`` of a region's graphs is: an operand; if it is carried, also an iteration's result."""
    yield region.args[number + (region.op is COND)], around
    body, first = region.params.get("body"), int(region.op is LOOP)
    if body is not None and first <= number < first + len(body.results):
        yield body.results[number - first], (region, around)


def _has_no_gaps(source: Any) -> bool:
    """Return whether the elements of an input are contiguous; an argument is taken to be, and checked at the call where it matters."""
    original = getattr(source, "original", None)
    value = original() if callable(original) else getattr(source, "value", None)  # the value may be a copy without gaps
    return bool(value.flags.c_contiguous) if isinstance(value, np.ndarray) else original is None


def _keeps_order(node: Node) -> bool:
    """Return whether a result lies in C order if the operands do."""
    if node.op in {INPUT, PARAMETER}:
        return _leaf_in_order(node)
    kind = node.op.kind
    if node.op is GATHER:  # if several axes remain, NumPy chooses their order
        return node.args[0].type.ndim == 1
    if node.op is TRANSPOSE or (kind == "opaque" and not isinstance(node.op, Store)):
        return False
    if kind == "contract":
        left, _, right = node["subscripts"].partition("->")
        return sorted(right, key=left.index) == list(right)
    return True


def _leaf_in_order(leaf: Node) -> bool:
    value = getattr(leaf.params.get("source"), "value", None)
    value = given_for(leaf) if value is None else value
    capture = context.current()
    if value is None and capture is not None:
        capture.layouts.ordered = True  # arguments are taken to be in C order: checked at the call, where it matters
    return value is None or in_memory_order(value)


def _of_order(node: Node) -> tuple[Node, ...]:
    """Return the operands whose order in memory decides that of the result."""
    kind = node.op.kind
    if kind == "update" or isinstance(node.op, Store):
        return node.args[:1]
    if node.op is GATHER:
        return node.args[1:]
    if kind in {"pointwise", "fold", "move", "region"} or node.op is ITEM:
        return node.args if node.op is not RESHAPE or squeezes(node) else ()
    return ()


def in_memory_order(value: Any) -> bool:
    """Return whether the axes of an array have decreasing strides, in order."""
    steps = (
        [abs(s) for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        if isinstance(value, np.ndarray)
        else []
    )
    return steps == sorted(steps, reverse=True)


def is_dense(layout: Layout) -> bool:
    """Return whether an array fills its memory, with its axes in any order and direction."""
    filled = 1
    for step, extent in sorted((abs(step), n) for step, n in zip(layout.strides, layout.shape, strict=True) if n > 1):
        if step != filled:
            return False
        filled *= extent
    return True
