"""Arrays that are one of several places, which is data-dependent: read from the one that it is, and stored through into it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensormagic.capture import context
from tensormagic.capture.staging.regions import below, fitting_ways, graph_of, of_type
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, hint
from tensormagic.ops.form import to_form
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar


@dataclass(frozen=True, eq=False)
class Alternative:
    """A place that an array is, where a condition holds; None where it always does."""

    holds: Node | None
    place: Place


def alternatives_of(value: Tensor, is_older: Callable[[Buffer], bool]) -> list[Alternative] | None:
    """The places that a value may be, of those that others know: no place for an array of its own, None where that is not known."""
    return _older(value.place, is_older)


def _older(place: Place, is_older: Callable[[Buffer], bool]) -> list[Alternative] | None:
    """The older places that a place may be: through what is newer itself, with the conditions of all of it."""
    buffer = place.buffer
    if is_older(buffer):
        return [Alternative(None, place)] if _may_be_stored_into(place) else None
    if not buffer.origins:
        return []
    if place.parent is not None or not isinstance(buffer.choice, _Chosen):
        return None
    found: list[Alternative] = []
    for one in buffer.choice.alternatives:
        inner = _older(one.place, is_older)
        if inner is None:
            return None
        found += [Alternative(_all_hold(one.holds, i.holds), i.place) for i in inner]
    return _merged(found)


def _all_hold(first: Node | None, second: Node | None) -> Node | None:
    return second if first is None else first if second is None else _both(first, second)


def _merged(alternatives: Sequence[Alternative]) -> list[Alternative]:
    """Each place once, where any of its conditions holds."""
    found: dict[object, Alternative] = {}
    for one in alternatives:
        key = one.place if one.place.parent is not None else one.place.buffer
        known = found.get(key)
        holds = (
            one.holds if known is None or known.holds is None or one.holds is None else _either(known.holds, one.holds)
        )
        found[key] = Alternative(None if known is not None and known.holds is None else holds, one.place)
    return list(found.values())


def _may_be_stored_into(place: Place) -> bool:
    buffer = place.buffer
    return bool(place.writeable) and not buffer.overlaps and not buffer.away


def attach(value: Tensor, alternatives: Sequence[Alternative]) -> bool:
    """Have an array be one of several places; whether it can be: where its shape is theirs."""
    shape = value.type.shape
    for one in alternatives:
        theirs = one.place.read().type.shape
        if len(theirs) != len(shape) or not all(map(_equal, theirs, shape)):
            return False
    _Chosen(value.place.buffer, alternatives)
    return True


def _equal(left: Size, right: Size) -> bool:
    return left == right or (hint(left) is not None and hint(left) == hint(right))


class _Chosen:
    """The buffer of an array that is one of several places.

    Parameters
    ----------
    own
        The buffer: it holds what the array is now, and is the array itself where it is none of the places.
    alternatives
        The places, of which it is one at most.
    """

    def __init__(self, own: Buffer, alternatives: Sequence[Alternative]) -> None:
        self.own = weakref.ref(own)
        self.alternatives = alternatives
        self.storing = False
        own.choice = self
        capture = context.current()
        for source in self.between:
            own.origins.append(source)
            source.followers.append(self.refresh)
            if capture is not None and capture.trials:
                capture.listeners.append((source, self.refresh))

    @property
    def between(self) -> list[Buffer]:
        """The buffers of the places."""
        return list(dict.fromkeys(a.place.buffer for a in self.alternatives))

    def may_be(self, place: Place) -> bool:
        """Whether the array may be that of a place: it is one of those, or one of them may be it."""
        inner = (a.place.buffer.choice for a in self.alternatives if a.place.parent is None)
        return any(a.place is place for a in self.alternatives) or any(c is not None and c.may_be(place) for c in inner)

    def taken(self, holds: Callable[[Node], bool]) -> Place | None:
        """The place that the array is, by what says which conditions hold; None where it is none of them."""
        return next((a.place for a in self.alternatives if a.holds is None or holds(a.holds)), None)

    def refresh(self) -> None:
        """One of the places has changed: what it has become is read when it is asked for."""
        own = self.own()
        if own is None or self.storing:
            return
        own.set_lazy(self._now)
        _tell(own)

    def _now(self, was: Node) -> Node:
        """What the array is, after it ``was`` something."""
        node = was
        for one in self.alternatives:
            new = of_type(one.place.read(), was.type)
            node = _choose(one.holds, new, node, [one.place.buffer.node, node])
        return node

    def store(self, node: Node) -> None:
        """Store into whichever place it is, and from there into whichever that is: into each once from each that may be it."""
        chosen = _downwards(self)
        own = self.buffer
        stored: dict[Buffer, Node | None] = {own: None}  # on what condition; None for always
        for one in chosen:
            one.storing = True
        try:
            own.put(node)
            for one in chosen:
                one.put_on(stored)
            for one in chosen[1:]:
                one.storing = False
            for one in chosen[1:]:
                one.refresh()
        finally:
            for one in chosen:
                one.storing = False
        _tell(own)

    @property
    def buffer(self) -> Buffer:
        """The buffer, which is still there."""
        own = self.own()
        if own is None:
            raise AssertionError
        return own

    def put_on(self, stored: dict[Buffer, Node | None]) -> None:
        """Store what this holds into the place that it is, where it was ``stored``."""
        node, reached = self.buffer.node, stored[self.buffer]
        for one in self.alternatives:
            buffer = one.place.buffer
            holds = one.holds if reached is None else reached if one.holds is None else _both(reached, one.holds)
            value = _through(one.place, of_type(node, one.place.read().type))
            new = _choose(holds, value, buffer.node, [buffer.node, node])
            if buffer.choice is None:
                buffer.store(new)
            else:  # it is put on to its places after all that it may be
                buffer.may_store()
                buffer.put(new)
                before = stored.get(buffer, holds)
                stored[buffer] = None if before is None or holds is None else _either(before, holds)


def _both(first: Node, second: Node) -> Node:
    return to_form(scalar.logical_and(first, second), "python")


def _either(first: Node, second: Node) -> Node:
    return to_form(scalar.logical_or(first, second), "python")


def _downwards(first: _Chosen) -> list[_Chosen]:
    """One that is stored into and those that it may be, directly or by way of others: each before those that it may be."""
    order: dict[_Chosen, None] = {}
    pending: list[tuple[_Chosen, bool]] = [(first, False)]
    while pending:
        one, done = pending.pop()
        if done:
            order[one] = None
        elif one not in order:
            inner = [b.choice for b in one.between if isinstance(b.choice, _Chosen) and b.choice not in order]
            pending += [(one, True), *((b, False) for b in inner)]
    return list(reversed(order))


def _tell(buffer: Buffer) -> None:
    for tell in list(buffer.followers):
        tell()


def _through(place: Place, value: Node) -> Node:
    """What the buffer of a place holds once ``value`` is stored there."""
    while place.parent is not None and place.backward is not None:
        value = place.backward(place.parent.read(), value)
        place = place.parent
    return value


def _choose(holds: Node | None, first: Node, second: Node, known: Sequence[Node]) -> Node:
    """The first value where a condition holds, else the second: each is computed where it is wanted."""
    if holds is None or first is second:
        return first
    sizes = [n for value in (first, second) for s in value.type.shape for n in nodes_of(s)]
    free = list(dict.fromkeys(n for side in ([first], [second]) for n in below(side, {holds, *known, *sizes})))
    graphs = graph_of([first], free), graph_of([second], free)
    return context.record(control.cond(holds, *graphs, fitting_ways(graphs, free, holds))[0])
