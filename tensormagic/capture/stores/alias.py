"""The memory an array may have: its own, one of several places, or unknown; and what a store into another array does to it.

One state for each buffer. An array that is one of several places is read from the one that it is, and stored through
into it. An array that may be a view of others, where it is not known which or where, is not stored into, and is lost
once one of these is stored into. This module knows no types of lazy arrays.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from tensormagic.capture import context
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.regions import below, fitting_branches, graph_of, of_type
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Size, hint
from tensormagic.ops.effects.checks import REQUIRE, require
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.move_kind import same
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar

if TYPE_CHECKING:
    from tensormagic.capture.stores.place import Buffer, Place

_BY_DATA = ", depending on the data"


@dataclass(frozen=True, eq=False)
class Alternative:
    """A place that an array is, and the condition under which it is; None if it always is."""

    holds: Node | None
    place: Place


@dataclass(frozen=True, eq=False)
class Alias:
    """Represents the aliasing state of an array that may be a view of one of several places, or have memory of its own.

    Parameters
    ----------
    beside
        Names of other owners of the memory, which would not see a store: stores are refused.
    of
        The buffers that it may be, or be a part of, depending on data.
    alternatives
        The places that it may be.
    from_region
        Whether it comes from a branch or a loop: then it may have the memory layout of a part of another array.
    """

    beside: tuple[str, ...] = ()
    of: tuple[Buffer, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    from_region: bool = False

    @property
    def alone(self) -> bool:
        """Return whether it surely has memory of its own that nothing else refers to."""
        return not (self.beside or self.of or self.from_region)

    @property
    def depends(self) -> bool:
        """Return whether it is data-dependent which buffers it shares memory with, whose stores then change it."""
        return bool(self.beside or self.of)

    @property
    def takes_stores(self) -> bool:
        """Return whether stores into it are carried over to its places."""
        return not self.beside

    def others(self, *, whole: bool) -> list[str]:
        """Return the names of other arrays that may share its memory; those it may be a view of count only if it is ``whole``."""
        told = [text.removesuffix(_BY_DATA) for text in self.beside]
        return told + [b.name or "another array" for b in self.of if whole and self.alternatives]

    def may_be(self, own: Buffer, place: Place) -> bool:
        """Return whether the whole array of the buffer ``own`` may be the array of a place, directly or through its places."""
        del own
        inner = (a.place.buffer for a in self.alternatives if a.place.parent is None)
        return any(a.place is place for a in self.alternatives) or any(b.alias.may_be(b, place) for b in inner)

    def taken(self, holds: Callable[[Node], bool]) -> Place | None:
        """Return the place that the array is, given which conditions hold; None if none does."""
        return next((a.place for a in self.alternatives if a.holds is None or holds(a.holds)), None)

    def older(self, is_older: Callable[[Buffer], bool], *, whole: bool) -> list[Alternative] | None:
        """Return the older places that the array may be, resolved through newer ones, with their combined conditions.

        Without a place if it has memory of its own; None if the places are not known, as for a part of the array.
        """
        found: list[Alternative] = []
        for one in self.alternatives:
            inner = places(one.place, is_older) if whole else None
            if inner is None:
                return None
            found += [Alternative(all_hold(one.holds, i.holds), i.place) for i in inner]
        return _once_each(found)

    def may_store(self, own: Buffer) -> None:
        """Raise for a store that cannot be carried over."""
        self.may_change(own)

    def may_change(self, own: Buffer) -> None:
        """Raise for a store that would also change arrays which cannot be updated."""
        if self.beside:
            copied = f"{own.name} = {own.name}.copy()" if own.name else "made with .copy()"
            raise CaptureError(
                f"{own.name or 'an array'} shares memory with {', '.join(self.beside)}, which this cell reads too: "
                "a store into it is not captured yet",
                f"Work on a copy, {copied}, or run the cell with --plain.",
            )

    def store(self, own: Buffer, node: Node) -> None:
        """Replace the value, and that of every buffer that shares the memory, whichever place it is."""
        if self.alternatives:
            _store_through(own, node)
            return
        own.put(node)
        own.stored = True
        for other, transfer in own.shared:
            other.put(transfer(other.node, node))
        for one in (own, *(other for other, _ in own.shared)):
            notify(one)

    def told(self, own: Buffer, source: Buffer) -> None:
        """Handle a store into one of the places: the new value is computed when it is read."""
        del source
        if own not in _storing:
            own.set_lazy(functools.partial(self._now, own.asked))
            notify(own)

    def _now(self, asked: Callable[[Node], Node], was: Node) -> Node:
        """Return the array's value after a store, given its value before."""
        node = was
        for one in self.alternatives:
            new = of_type(one.place.read(), was.type)
            node = _choose(one.holds, new, node, [one.place.buffer.node, node])
        return asked(number_classes.of_classes_of(was, node))


OWN = Alias()
GIVEN = Alias(from_region=True)
"""What a region has given, before it is known what it may be."""


@dataclass(frozen=True, eq=False)
class Ended(Alias):
    """Represents memory of the notebook's as seen by a ``cell`` that has ended: it can only be read."""

    cell: str = ""

    @property
    def takes_stores(self) -> bool:
        """Return whether stores into it are carried over: False."""
        return False

    def may_store(self, own: Buffer) -> NoReturn:
        """Raise CaptureError: a store would not reach the notebook's array."""
        raise CaptureError(
            f"this is a part of the notebook's {own.name} as it was in {self.cell}: it cannot be stored into",
            f"Store into {own.name} itself, or into a copy.",
        )


@dataclass(frozen=True, eq=False)
class Unknown(Alias):
    """The state of an array that may be a view of others, where it is not known of which, or of which part.

    Parameters
    ----------
    placed
        Whether it is known which of the arrays it is that were there before: not, what else it may be.
    """

    placed: bool = False

    def may_be(self, own: Buffer, place: Place) -> bool:
        """Return whether the array may be that of a place."""
        return place.buffer in self.of and same(own.node.type.size, place.read().type.size)

    def older(self, is_older: Callable[[Buffer], bool], *, whole: bool) -> None:
        """Return None: no places are known."""

    def told(self, own: Buffer, source: Buffer) -> None:
        """Mark the value as lost: a store into a possible owner has changed it in an unknown way."""
        if _is_lost(own.node):
            return
        frame = usercode.user_frame()
        where = f", in {usercode.span(frame)}" if frame is not None else ""
        stored = f"{source.name or 'another array'}, which has changed since{where}"
        message = f"this value may be a part of {stored}: what it is now is not known"
        own.put(own.asked(require(own.bare, constant(False), message, "capture")))
        notify(own)


# states that a buffer gets --------------------------------------------------------------------------------------------


def beside(own: Buffer, *texts: str) -> None:
    """Record another owner of a buffer's memory, which would not see a store."""
    if texts:
        own.alias = dataclasses.replace(own.alias, beside=(*own.alias.beside, *texts))


def end(own: Buffer, cell: str) -> None:
    """Record that the cell has ended that has read a buffer's array of the notebook."""
    own.alias = Ended(own.alias.beside, own.alias.of, cell=cell)


def part_of(own: Buffer, buffers: Iterable[Buffer]) -> bool:
    """Record that a buffer may be a view of others, depending on data; return whether that is new. It does not :func:`follow` them yet."""
    new = [b for b in dict.fromkeys(buffers) if b is not own and b not in own.alias.of]
    names = list(dict.fromkeys(b.name for b in new if b.name)) or ["another array"]
    if new:
        _unknown(own, new, f"{' or '.join(sorted(names))}{_BY_DATA}")
    return bool(new)


def apart_in_numpy(buffer: Buffer, copy: Buffer) -> None:
    """Record that NumPy may have made a view or a copy: it cannot be stored into, and a store into the array loses it."""
    _unknown(copy, [buffer], "the array that it was made from")
    follow(copy)


def _unknown(own: Buffer, of: Sequence[Buffer], why: str) -> None:
    was = own.alias
    own.alias = Unknown((*was.beside, why), (*was.of, *of), from_region=was.from_region)


def attach(own: Buffer, alternatives: Sequence[Alternative]) -> bool:
    """Make an array an alias of one of several places; return False if its shape differs from theirs."""
    shape = own.node.type.shape
    for one in alternatives:
        theirs = one.place.read().type.shape
        if len(theirs) != len(shape) or not all(map(_equal, theirs, shape)):
            return False
    buffers = tuple(dict.fromkeys(a.place.buffer for a in alternatives))
    own.alias = dataclasses.replace(own.alias, of=buffers, alternatives=tuple(alternatives))
    follow(own)
    return True


def knows(own: Buffer, alternatives: Sequence[Alternative]) -> None:
    """Record which of several places an array is, where it is not known what else it shares memory with: it cannot be stored into."""
    if isinstance(own.alias, Unknown):
        own.alias = dataclasses.replace(own.alias, alternatives=tuple(alternatives), placed=True)


def _equal(left: Size, right: Size) -> bool:
    return left == right or (hint(left) is not None and hint(left) == hint(right))


# what may share memory ------------------------------------------------------------------------------------------------


def reach(buffer: Buffer) -> set[Buffer]:
    """Return a buffer, and all buffers that may share memory with it, directly or through others."""
    found: set[Buffer] = set()
    pending = [buffer]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += one.alias.of
    return found


def may_share(first: Buffer, second: Buffer) -> bool:
    """Return whether two buffers share memory, surely or for some data."""
    one, other = ({m for b in reach(buffer) for m in (b, *(s for s, _ in b.shared))} for buffer in (first, second))
    return not one.isdisjoint(other)


def places(place: Place, is_older: Callable[[Buffer], bool]) -> list[Alternative] | None:
    """Return the older places that a place may be; none for new memory, None where that is not known."""
    buffer = place.buffer
    if is_older(buffer):
        known = place.parent is None or (place.writeable and buffer.alias.takes_stores)
        return [Alternative(None, place)] if known else None
    return buffer.alias.older(is_older, whole=place.parent is None)


def all_hold(first: Node | None, second: Node | None) -> Node | None:
    """Return the condition that both conditions hold, where None always holds."""
    return second if first is None else first if second is None else _both(first, second)


def _once_each(alternatives: Sequence[Alternative]) -> list[Alternative]:
    """Return each place once, where any of its conditions holds."""
    found: dict[object, Alternative] = {}
    for one in alternatives:
        key = one.place if one.place.parent is not None else one.place.buffer
        known = found.get(key)
        holds = (
            one.holds if known is None or known.holds is None or one.holds is None else _either(known.holds, one.holds)
        )
        found[key] = Alternative(None if known is not None and known.holds is None else holds, one.place)
    return list(found.values())


# notifications of stores ----------------------------------------------------------------------------------------------

_followers: weakref.WeakKeyDictionary[Buffer, list[weakref.ref[Buffer]]] = weakref.WeakKeyDictionary()
_storing: set[Buffer] = set()
"""Those through which a store is going: they hold what is stored."""


def follow(own: Buffer) -> None:
    """Register a buffer to be notified of stores into its possible owners; during a trial, until the trial ends."""
    capture, held = context.current(), weakref.ref(own)
    for source in reach(own) - {own} if isinstance(own.alias, Unknown) else own.alias.of:
        _followers.setdefault(source, []).append(held)
        if capture is not None and capture.heap.trials:
            capture.heap.followed.append((source, held))


def forget(followed: Iterable[tuple[Buffer, weakref.ref[Buffer]]]) -> None:
    """Undo what code on trial has registered by :func:`follow`."""
    for source, held in followed:
        _followers[source].remove(held)


def notify(source: Buffer) -> None:
    """Notify what may be a view of a buffer that something was stored there."""
    for held in list(_followers.get(source, ())):
        own = held()
        if own is not None:
            own.alias.told(own, source)


def _is_lost(node: Node) -> bool:
    while node.op is REQUIRE:
        if node["error"] == "capture":
            return True
        node = node.args[0]
    return False


# stores through what is one of several --------------------------------------------------------------------------------


def _store_through(own: Buffer, node: Node) -> None:
    """Store into the places that an array is, and on into the places that these are: into each once from each that may be it."""
    chosen = _downwards(own)
    reached: dict[Buffer, Node | None] = {own: None}  # on what condition; None for always
    _storing.update(chosen)
    try:
        own.put(node)
        for one in chosen:
            _put_on(one, reached)
        _storing.difference_update(chosen[1:])
        for one in chosen[1:]:
            one.alias.told(one, one)
    finally:
        _storing.difference_update(chosen)
    notify(own)


def _downwards(first: Buffer) -> list[Buffer]:
    """Return a buffer that is stored into and those that it may be, directly or through others: each before those that it may be."""
    order: dict[Buffer, None] = {}
    pending: list[tuple[Buffer, bool]] = [(first, False)]
    while pending:
        one, done = pending.pop()
        if done:
            order[one] = None
        elif one not in order:
            inner = [b for b in one.alias.of if b.alias.alternatives and b not in order]
            pending += [(one, True), *((b, False) for b in inner)]
    return list(reversed(order))


def _put_on(own: Buffer, stored: dict[Buffer, Node | None]) -> None:
    """Store the value of ``own`` into its places, where it was ``stored``."""
    node, reached = own.node, stored[own]
    for one in own.alias.alternatives:
        buffer = one.place.buffer
        holds = one.holds if reached is None else reached if one.holds is None else _both(reached, one.holds)
        value = _through(one.place, of_type(node, one.place.read().type))
        new = _choose(holds, value, buffer.node, [buffer.node, node])
        if not buffer.alias.alternatives:
            buffer.store(new)
        else:  # carried on to its places after everything that may be it
            buffer.may_store()
            buffer.put(new)
            before = stored.get(buffer, holds)
            stored[buffer] = None if before is None or holds is None else _either(before, holds)


def _through(place: Place, value: Node) -> Node:
    """Return the value of a place's buffer once ``value`` is stored at the place."""
    while place.parent is not None and place.backward is not None:
        value = place.backward(place.parent.read(), value)
        place = place.parent
    return value


def _both(first: Node, second: Node) -> Node:
    return to_form(scalar.logical_and(first, second), "python")


def _either(first: Node, second: Node) -> Node:
    return to_form(scalar.logical_or(first, second), "python")


def _choose(holds: Node | None, first: Node, second: Node, known: Sequence[Node]) -> Node:
    """Return the first value where a condition holds, else the second, as a branch that computes only the one selected."""
    if holds is None or first is second:
        return first
    sizes = [n for value in (first, second) for s in value.type.shape for n in nodes_of(s)]
    free = list(dict.fromkeys(n for side in ([first], [second]) for n in below(side, {holds, *known, *sizes})))
    graphs = graph_of([first], free), graph_of([second], free)
    return context.record(control.cond(holds, *graphs, fitting_branches(graphs, free, holds))[0])
