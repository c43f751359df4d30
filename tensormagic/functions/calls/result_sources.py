"""Which arrays the results of a captured function are parts of, as NumPy returns views and the same objects."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.capture.staging.loops.grown_lists import in_a_list
from tensormagic.capture.stores.alias import Unknown, all_hold, reach
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import is_container, items_of
from tensormagic.capture.values.list_elements import Outgrown
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ops.leaf import INPUT, PARAMETER


@dataclass(frozen=True, eq=False)
class Source:
    """An array that a result is, or is a part of.

    Parameters
    ----------
    number
        Of the input, or of the result before it.
    of_result
        Which of the two.
    places
        The views that lead from there to the result, with their shapes.
    """

    number: int
    of_result: bool
    places: tuple[tuple[Place, tuple[Size, ...]], ...] = ()


def sources_of(results: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[dict[int, Source], list[Buffer]]:
    """Return the sources of results that are inputs, other results, or parts of these.

    Also the computed arrays, not results themselves, of which several results are or may be parts: they follow the
    results.
    """
    inputs = {id(t.place.buffer): k for k, t in enumerate(tensors) if t.place.parent is None and t.type.form == "array"}
    arrays = {k: v for k, v in enumerate(results) if isinstance(v, Tensor) and v.type.form == "array"}
    wholes: dict[int, int] = {}
    for k, value in arrays.items():
        if value.place.parent is None:
            wholes.setdefault(id(value.place.buffer), k)
    parts = {id(v): v.place.buffer for v in arrays.values() if id(v.place.buffer) not in {*wholes, *inputs}}
    meant = Counter(parts.values()) + Counter(b for k in arrays for b in _chosen(arrays[k].place.buffer))
    several = [
        b
        for b, n in meant.items()
        if n > 1 and type(b) is Buffer and b.array is None and id(b) not in {*wholes, *inputs}
    ]
    wholes |= {id(buffer): len(results) + k for k, buffer in enumerate(several)}
    first: dict[int, int] = {}
    found: dict[int, Source] = {}
    for k, value in sorted(arrays.items(), key=lambda item: item[1].place.parent is not None):
        buffer, places = id(value.place.buffer), _shaped(value.place)
        if buffer in inputs:
            found[k] = Source(inputs[buffer], of_result=False, places=places)
        elif wholes.get(buffer, k) != k:
            found[k] = Source(wholes[buffer], of_result=True, places=places)
        elif first.setdefault(id(value), k) != k:  # the same part as another result
            found[k] = Source(first[id(value)], of_result=True)
    return found, several


def _chosen(own: Buffer) -> set[Buffer]:
    """Return the arrays one of which ``own`` is by a data-dependent choice, directly or indirectly."""
    places = [a.place.buffer for a in own.alias.alternatives]
    return {*places, *(b for place in places for b in _chosen(place))}


@dataclass(frozen=True, eq=False)
class Way:
    """A source that a result array has under a condition; the condition is None for always."""

    holds: Node | None
    source: Source


def ways_of(
    results: Sequence[Any], tensors: Sequence[Tensor], several: Sequence[Buffer]
) -> tuple[dict[int, list[Way]], str | None]:
    """Return for results that are data-dependent choices among inputs or other results: which one under which condition.

    They may also be one of ``several`` arrays that follow the results.

    The second value describes what a result may be a part of if the part, or the condition, is unknown; None if there
    is no such result.
    """
    inputs = {t.place.buffer: k for k, t in enumerate(tensors) if t.place.parent is None and t.type.form == "array"}
    arrays = {k: v for k, v in enumerate(results) if isinstance(v, Tensor) and v.type.form == "array"}
    whole = {v.place.buffer: k for k, v in reversed([*arrays.items()]) if v.place.parent is None}
    whole |= {buffer: len(results) + k for k, buffer in enumerate(several)}
    found: dict[int, list[Way]] = {}
    unknown = "another result" if _overlap([v.place for v in arrays.values()], {*inputs}, {*whole}) else None
    for k, value in arrays.items():
        if value.place.buffer in inputs:
            continue
        unknown = unknown or _not_known(value.place.buffer, inputs, whole)
        ways = [
            Way(holds, Source(number, of_result=of_result, places=(*places, *_shaped(value.place))))
            for holds, places, number, of_result in _ends(value.place.buffer, inputs, whole)
            if not of_result or number != k
        ]
        if ways:
            found[k] = ways
    return found, unknown


def shows_layout(results: Sequence[Any]) -> bool:
    """Return whether a result has the elements of an input or of another result.

    The layout of these in memory then decides whether it is a part or a copy.
    """
    arrays = [v for v in results if isinstance(v, Tensor) and v.type.form == "array" and v.type.shape]
    wholes = [_unmoved(v.node) for v in arrays]
    is_there = [v.place.parent is None and v.place.buffer.argument for v in arrays]
    return len({*wholes}) < len(wholes) or any(
        n.op in {INPUT, PARAMETER} and not there for n, there in zip(wholes, is_there, strict=True)
    )


def _unmoved(node: Node) -> Node:
    while node.op.kind == "move":
        node = node.args[0]
    return node


def twins_in(result: Any, results: Sequence[Any]) -> str | None:
    """Return what an array in a list of data-dependent length may be identical to, or None if it is known to be distinct.

    Parameters
    ----------
    result, results
        The result of the body, and the arrays and numbers in it.
    """
    every = _lists_in(result)
    lists = [one for one in every if one.has_arrays]
    elements = [v for v in results if isinstance(v, Tensor) and v.type.form == "array" and in_a_list(v.place.buffer)]
    if elements and len(elements) + len(lists) > 1:
        return "another result"
    several = [[one.twins.own for one in every], [one.twins.elements for one in lists]]
    if any(len({*known}) < len(known) for known in several):
        return "another result"
    return next((one.twins.said for one in lists if one.twins.said), None)


def _lists_in(result: Any) -> list[Outgrown]:
    if isinstance(result, Outgrown):
        return [result]
    return [one for part in items_of(result) for one in _lists_in(part)] if is_container(result) else []


_Views = tuple[tuple[Place, tuple[Size, ...]], ...]
_End = tuple[Node | None, _Views, int, bool]


def _overlap(places: Sequence[Place], inputs: set[Buffer], whole: set[Buffer]) -> bool:
    """Return whether two results may be parts of one computed array that is no result, where data decide the part."""
    several = dict[Buffer, bool]()  # by buffer, whether a result is a part of it; parts of one array have known places
    for place in places:
        if place.buffer not in inputs:
            several[place.buffer] = several.get(place.buffer, False) or place.parent is not None
    for buffer in several:
        aliases = [b.alias for b in reach(buffer)]
        parts = (a.place.parent is not None for alias in aliases for a in alias.alternatives)
        several[buffer] |= any(parts) or any(isinstance(alias, Unknown) for alias in aliases)
    parts_of = Counter(
        p.buffer for p in places if p.parent is not None and p.buffer in several and p.buffer not in whole
    )
    if any(
        count > 1 and buffer.alias.of for buffer, count in parts_of.items()
    ):  # data decide which of several arrays it is
        return True
    reached = {buffer: reach(buffer) - inputs - whole for buffer in several}
    pairs = itertools.combinations(several, 2)
    return any((several[a] or several[b]) and not reached[a].isdisjoint(reached[b]) for a, b in pairs)


def _not_known(own: Buffer, inputs: Mapping[Buffer, int], whole: Mapping[Buffer, int]) -> str | None:
    """Return what an array may be a part of if the part, or the condition, is unknown, or None."""
    for one in reach(own):
        if isinstance(one.alias, Unknown):
            others = (b for b in reach(one) if b is not own and (b in whole or (b in inputs and not one.alias.placed)))
            if (given := next(others, None)) is not None:
                return given.name or "another result"
    return None


def _ends(own: Buffer, inputs: Mapping[Buffer, int], whole: Mapping[Buffer, int]) -> list[_End]:
    """Return the views in inputs and in other results that an array may be, each with its condition."""
    found: list[_End] = []
    for one in own.alias.alternatives:
        buffer, views = one.place.buffer, _shaped(one.place)
        if buffer in inputs:
            found.append((one.holds, views, inputs[buffer], False))
            continue
        inner = _ends(buffer, inputs, whole)  # a part may itself be one of several
        found += [(all_hold(one.holds, holds), (*before, *views), *rest) for holds, before, *rest in inner]  # type: ignore[misc]
        if buffer in whole:
            found.append((one.holds, views, whole[buffer], True))
    return found


def _shaped(place: Place) -> _Views:
    return tuple([(p, p.read().type.shape) for p in _downwards(place)])


def _downwards(place: Place) -> list[Place]:
    """Return the views that lead from a buffer to a place."""
    found: list[Place] = []
    while place.parent is not None:
        found.insert(0, place)
        place = place.parent
    return found
