"""Results of a call that existed before it: the caller's own containers and arrays, and NumPy's views of them.

A function is captured over copies of the containers that it is given. If it returns one, the caller's is returned; if
it has changed one, the caller's is changed in the same way once everything has succeeded. An array that is a part of
an input, or of another result, is returned as NumPy's view of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture.numbers.classes import of_class
from tensormagic.capture.stores.place import Place
from tensormagic.capture.tree import Build, Rest, is_container
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls.python_results import codes_behind, is_frozen
from tensormagic.functions.calls.result_sources import Source, Way, sources_of, ways_of
from tensormagic.functions.reads.changed_containers import (
    Containers,
    Copies,
    Halfway,
    Path,
    Run,
    fill,
    parts_of,
    reached,
    refused,
    same_places,
)
from tensormagic.ir.errors import SharedResultError
from tensormagic.ir.graph import bare_symbol
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, evaluate, nodes_of
from tensormagic.ir.type import Type, hint
from tensormagic.ops.effects.outside import Changed


@dataclass(eq=False)
class Gives:
    """How the results of one program are returned, besides their values.

    Parameters
    ----------
    label
        The function, for messages.
    sources
        The arrays that results are parts of, by number.
    extents
        The input and the axis that a symbol of the trace is the size of.
    changed
        The containers of the arguments that are changed: their new contents follow the results.
    by_call
        Whether the caller's containers are needed.
    there
        The identities of objects that existed besides the arguments.
    own
        Results that are arrays among these.
    classes
        Results that are numbers of data-dependent class: the number of the result that holds the class, and the
        possible classes.
    ways
        Results that are, by a data-dependent choice, one of several inputs or other results.
    unknown
        The array that a result may be a part of, if the part, or the condition, is not known: then Python runs the
        calls.
    halfway
        Whether the code changes something before a data-dependent error.
    asked
        Conditions that decide which containers results are.
    numbers
        For these conditions, and for integers that decide which part of an array a result is: the number of the result
        that holds it.
    wholes
        Computed arrays of which several results are parts: they follow the results.
    frozen
        Results that NumPy returns as read-only arrays.
    ordered
        Results that are copies in C order, whatever the layout of the original.
    keeps
        Whether the trace has left values in objects, which may hold containers of the result, too.
    made
        The containers that one run has built, by the identity of those of the trace.
    identities
        Whether the code has compared containers of the arguments by ``is``: then the trace holds for one call.
    same
        For each place of a container in the arguments the first place with the same one, if the code has asked for
        identities.
    copies
        The trace's copies of the caller's containers, with their places: the code may have kept some.
    """

    label: str
    sources: dict[int, Source]
    extents: dict[Symbol, tuple[int, int]]
    changed: tuple[Path, ...]
    by_call: bool
    there: Mapping[int, Any]
    own: dict[int, Any] = field(default_factory=dict[int, Any])
    classes: dict[int, tuple[int, list[Type]]] = field(default_factory=dict[int, tuple[int, list[Type]]])
    ways: dict[int, list[Way]] = field(default_factory=dict[int, "list[Way]"])
    unknown: str | None = None
    halfway: bool = False
    asked: Sequence[Node] = ()
    numbers: dict[Node, int] = field(default_factory=dict[Node, int])
    wholes: list[Node] = field(default_factory=list[Node])
    frozen: tuple[int, ...] = ()
    ordered: tuple[int, ...] = ()
    keeps: bool = False
    made: dict[int, Any] = field(default_factory=dict[int, Any])
    identities: bool = False
    same: dict[Path, Path] = field(default_factory=dict[Path, Path])
    copies: dict[int, tuple[Any, Path]] = field(default_factory=dict[int, tuple[Any, Path]])

    def __bool__(self) -> bool:
        return (
            bool(self.sources or self.own or self.ways or self.classes or self.same or self.unknown)
            or bool(self.frozen or self.ordered)
            or self.by_call
        )

    def with_more(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes of results, followed by data-dependent classes of numbers and places of parts."""
        every = [*nodes, *self.wholes]
        self.classes.update(codes_behind(nodes, every))
        ways = [way for several in self.ways.values() for way in several]
        sources = [*self.sources.values(), *(way.source for way in ways)]
        asked = [node for s in sources for place, shape in s.places for node in _asked(place, shape)]
        for node in dict.fromkeys([*asked, *self.asked, *(way.holds for way in ways if way.holds is not None)]):
            self.numbers[node] = len(every)
            every.append(node)
        return every

    def know_constants(self, results: Sequence[Any]) -> None:
        """Record which constant results are the same array, or parts of one."""
        made = {k: v for k, v in enumerate(results) if type(v) is np.ndarray and k not in self.own}
        first: dict[int, int] = {}
        for k, array in made.items():
            if first.setdefault(id(array), k) != k:
                self.sources[k] = Source(first[id(array)], of_result=True)
        several = itertools.combinations(first.values(), 2)
        if any(np.may_share_memory(made[a], made[b]) for a, b in several):
            self.unknown = self.unknown or "another result"

    def is_single(self, count: int, build: Build) -> bool:
        """Return whether the only result is returned as it is."""
        marker = object()
        if count - len(self.classes) - len(self.numbers) - len(self.wholes) != 1 or self.by_call:
            return False
        try:
            return build(Rest([marker], Run(None, {}, bool))) is marker
        except (TypeError, ValueError):  # for a text, or for one of several values
            return False

    def fits(self, call: Any) -> bool:
        """Return whether the containers of a call are identical where they must be."""
        return not self.same or (call is not None and same_places(call, self.same) == self.same)

    def check(self, call: Any) -> None:
        """Raise for results of unknown identity, and for a change of a container that occurs as another object, too."""
        if self.unknown:
            raise SharedResultError(
                f"{self.label} returns what may be a part of {self.unknown}, depending on data",
                "Return a copy, made with .copy().",
            )
        if not self.fits(call):
            raise Changed("another two containers among the arguments are one than when the function was captured")
        for path in self.changed:
            own = reached(call, path)
            if _count(call, own) > 1:
                raise refused(self.label, ", in more than one place")
            if id(own) in self.there:
                raise refused(self.label, " and that it also reads by another name")

    def refuse_without_axes(self, results: Sequence[Any]) -> None:
        """Raise for a number that is an array without axes for these data, as another result may be that array, too."""
        for code, types in self.classes.values():
            if types[int(results[code])].form == "array":
                raise SharedResultError(
                    f"{self.label} returns a number or an array without axes, depending on data", "Return float(v)."
                )

    def arrays(self, results: list[Any], values: Sequence[Any]) -> list[Any]:
        """Return the results, with existing arrays, and views of these, where Python returns such."""
        views: dict[Place, Any] = {}
        for k in self.ordered:
            results[k] = np.ascontiguousarray(results[k])
        for k in self.frozen:
            results[k].flags.writeable = False
        for k, ways in self.ways.items():
            taken = next((w for w in ways if w.holds is None or results[self.numbers[w.holds]]), None)
            if taken is not None:
                results[k] = self._part(taken.source, results[k], values, results, views)
        for k, source in self.sources.items():
            results[k] = self._part(source, results[k], values, results, views)
        for k, array in self.own.items():
            results[k] = array
        for k, (code, types) in self.classes.items():
            results[k] = of_class(results[k], types[int(results[code])])
        return results

    def _part(
        self, source: Source, computed: Any, values: Sequence[Any], results: Sequence[Any], views: dict[Place, Any]
    ) -> Any:
        """Return the part of an existing array that a result is, or ``computed`` if it is none."""
        whole = (results if source.of_result else values)[source.number]
        try:
            for place, shape in source.places:
                if place not in views:
                    views[place] = place.taken_from(whole, lambda s: self._size(s, values, results), shape)
                whole = views[place]
                if whole is None:
                    return computed
        except LookupError:  # the choice is data-dependent
            return computed
        return whole

    def _size(self, size: Size, values: Sequence[Any], results: Sequence[Any]) -> int:
        def extent(a: Any) -> int:
            if a in self.numbers:
                return int(results[self.numbers[a]])
            if a in self.extents:
                number, axis = self.extents[a]
                return np.shape(values[number])[axis]
            if isinstance(a, Symbol) and a.hint is not None:
                return a.hint
            raise LookupError

        return evaluate(size, extent)

    def kept(self, call: Any) -> dict[int, tuple[Any, Any]]:
        """Return the trace's stand-ins for the caller's containers, by identity: each with the caller's container."""
        return {key: (copy, reached(call, path)) for key, (copy, path) in self.copies.items()}

    def together(self, build: Build, results: list[Any], call: Any) -> Any:
        """Return the function's return value; the caller's containers are updated."""
        run = Run(call, {}, lambda holds: bool(results[self.numbers[holds]]))
        found = build(Rest(results, run))
        self.made = run.made if self.keeps else {}
        if not self.changed:
            return found
        result, *contents = found
        own = [reached(call, path) for path in self.changed]  # determined before one of them is changed
        for container, now in zip(own, contents, strict=True):
            fill(container, now)
        return result


def _asked(place: Place, shape: tuple[Size, ...]) -> list[Node]:
    """Return the integers that decide where a place lies in the one that it is a part of."""
    found: list[Node] = []

    def number(size: Size) -> int:
        found.extend(nodes_of(size))
        return hint(size) or 0

    if place.parent is not None:
        whole = place.parent.read().type
        place.taken_from(np.broadcast_to(np.zeros((), whole.dtype), [*map(number, whole.shape)]), number, shape)
        _ = [*map(number, shape)]
    return found


def gives_of(
    label: str, results: Sequence[Any], tensors: Sequence[Tensor], containers: Containers, changed: Any, *, users: bool
) -> Gives:
    """Return how a trace returns its results; ``changed`` are containers it has changed, and ``users``: the results are the user's."""
    extents: dict[Symbol, tuple[int, int]] = {}
    for k, t in enumerate(tensors):
        for axis, size in enumerate(t.place.buffer.first.type.shape):
            symbol = bare_symbol(size)
            if symbol is not None:
                extents.setdefault(symbol, (k, axis))
    paths = tuple([path for path, _ in changed])
    by_call = bool(paths) or containers.returned
    sources, several = sources_of(results, tensors)
    ways, unknown = ways_of(results, tensors, several) if users else ({}, None)
    frozen = tuple([k for k, v in enumerate(results) if k not in sources and is_frozen(v)])
    ordered = tuple([k for k, v in enumerate(results) if users and k not in sources and _is_ordered(v)])
    return Gives(
        label,
        sources,
        extents,
        paths,
        by_call,
        (containers.there or {}) if paths else {},
        wholes=[buffer.node for buffer in several],
        frozen=frozen,
        ordered=ordered,
        ways=ways,
        unknown=unknown or containers.unknown,
        asked=containers.asked,
    )


def _is_ordered(result: Any) -> bool:
    """Return whether a result is an array of several axes that was copied to C order."""
    return (
        isinstance(result, Tensor) and result.ndim > 1 and result.place.parent is None and result.place.buffer.ordered
    )


def _count(tree: Any, own: Any) -> int:
    """Return the number of times a container occurs in the arguments."""
    if tree is own:
        return 1
    return sum(_count(part, own) for _, part in parts_of(tree)) if is_container(tree) else 0


__all__ = ["Containers", "Copies", "Gives", "Halfway", "gives_of", "refused"]
