"""Memory shared with plain code of the user's (``np.asarray``): what it stores there is seen, as long as anything refers to it.

NumPy's ``np.asarray(x)`` is ``x``. For a lazy array it is an array of the values, which the lazy one follows: it
checks that memory when it is read, and what captured code stores is written there. Code that only reads loses
nothing: the value, and derivatives through it, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.inputs.snapshots import COPY_LIMIT
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.python import usercode
from tensormagic.capture.stores.overlap import share
from tensormagic.capture.stores.place import Buffer, Place, serials
from tensormagic.capture.stores.state import State
from tensormagic.capture.values import live_values
from tensormagic.ir.counting import ONE, count
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint

Array = np.ndarray[Any, Any]


class Lent(Buffer):
    """Represents memory that plain code refers to, too: the value is read there where that has changed."""

    _own: Node  # the value when it was last seen
    _number: int
    _memory: Array
    _seen: bytes  # the content of the memory then
    _since: tuple[str, int]  # where plain code got it

    @classmethod
    def become(cls, buffer: Buffer, value: Array) -> None:
        """Change a buffer into one whose memory is shared with plain code, in place."""
        own, version = buffer.node, buffer.version
        for name in ("node", "version"):
            vars(buffer).pop(name, None)
        buffer.__class__ = cls
        memory = np.array(value, order="C" if buffer.ordered else "K", copy=True)
        frame = usercode.user_frame()
        since = ("a cell", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        vars(buffer).update(_own=own, _number=version, _memory=memory, _seen=memory.tobytes("A"), _since=since)
        numbers_taken.note(own, memory)

    @property
    def node(self) -> Node:
        """Return the current value; no derivative flows through stores from outside."""
        self._look()
        return self.__dict__["node"] if type(self) is Buffer else self._own

    @node.setter
    def node(self, node: Node) -> None:  # type: ignore[override]
        self._own = node
        self.show()

    @property
    def version(self) -> int:
        """Return a number that is different for each value that it is seen to have."""
        self._look()
        return self.__dict__["version"] if type(self) is Buffer else self._number

    @version.setter
    def version(self, version: int) -> None:  # type: ignore[override]
        self._number = version

    def array_of_all(self) -> Array:
        """Return the memory."""
        return self._memory

    def part(self, place: Place) -> Array | None:
        """Return the memory of a place in it; None if that is no view."""
        return place.within(self._memory, _seen_size)

    def _look(self) -> None:
        same = self._memory.tobytes("A") == self._seen
        if same and not self._is_shared:
            own, number, held = self._own, self._number, self.__dict__
            del held["_own"], held["_number"], held["_memory"], held["_seen"], held["_since"]
            self.__class__ = Buffer  # type: ignore[assignment]
            held["node"], held["version"] = own, number
            return
        if (capture := context.current()) is not None and capture.abstract:
            capture.outside.looked_at.append(self)
        for other in self._beside():
            if other.version:
                refuse(
                    f"reading {self._called}, which shares memory with {other.name}, after a store into that,",
                    "Copy it.",
                )
        if not same:
            memory = self._memory
            record_overwritten(self._own)
            numbers_taken.note_stored_outside(self._own, memory, self._called, self._since)
            self._own, self._number = snapshots.of_array(memory, self._called), next(serials)
            self._seen = memory.tobytes("A")

    def show(self) -> None:
        """Write the value into the shared memory, if values are available."""
        for name in (*(other.name for other in self._beside()), *self._given()):
            refuse(
                f"a store into {self._called}, which shares memory with {name}, which the same code reads, too,",
                "Copy it.",
            )
        if not _values_available():
            context.current().outside.unshown.append(self)  # type: ignore[union-attr]  (plain code has values)
            return
        shared, memory = self._is_shared, self._memory
        if shared:
            if (capture := context.current()) is not None:
                capture.outside.shown.append(State(memory))
            np.copyto(memory, hooks.compute([self._own])[0])
        self._seen = memory.tobytes("A")

    @property
    def _is_shared(self) -> bool:
        """Return whether anything else refers to the memory."""
        return count([self._memory]) > ONE + 1

    @property
    def _called(self) -> str:
        return self.name or "an array"

    def lies_in(self, array: Array) -> bool:
        """Return whether an array of the caller's lies in the memory."""
        return type(self) is Lent and share(array, self._memory)

    def _given(self) -> Iterator[str]:
        """Yield the names, in the function being captured, of arguments and read arrays that lie in the memory."""
        capture = context.current()
        for leaf, value in capture.inputs.values.items() if capture is not None and capture.abstract else ():
            if type(value) is np.ndarray and self.lies_in(value):
                yield str(leaf["source"])

    def _beside(self) -> Iterator[Buffer]:
        """Yield the notebook arrays that the running cell has read, and that lie in the memory."""
        capture = context.current()
        for value in () if capture is None else list(capture.names.lifted.values()):
            buffer = getattr(getattr(value, "place", None), "buffer", None)
            if isinstance(buffer, Buffer) and type(buffer.array) is np.ndarray and share(self._memory, buffer.array):
                yield buffer


def _seen_size(size: Size) -> int:
    """Return a size as it was seen; -1 where it is data-dependent: such a part is not lent."""
    seen = hint(size)
    return -1 if seen is None else seen


def look_at_all() -> None:
    """Read what plain code has stored into shared memory."""
    for value in live_values.held():
        buffer = getattr(getattr(value, "place", None), "buffer", None)
        if isinstance(buffer, Lent):
            buffer.version  # noqa: B018 (which looks)


def record_overwritten(node: Node) -> None:
    """Record for derivatives that a store from outside replaces a value, at the current line of the running cell."""
    capture, frame = context.current(), usercode.user_frame()
    if capture is not None and frame is not None:
        capture.outside.lost.setdefault(node, usercode.span(frame))


def lent(place: Place, value: Array) -> Array:
    """Return the array that plain code gets for a lazy one: its memory, if that can be shared; otherwise the value, read-only."""
    buffer = place.buffer
    if not isinstance(buffer, Lent):
        if not _may_be_lent(buffer):
            return value
        whole = value if place.parent is None else hooks.compute([buffer.node])[0]
        if type(whole) is not np.ndarray or whole.nbytes > COPY_LIMIT:
            return value
        Lent.become(buffer, whole)
        assert isinstance(buffer, Lent)  # noqa: S101 (it is one now)
    found = buffer.part(place)
    return value if found is None or not place.writeable else found


def show_all(buffers: Iterable[Buffer]) -> None:
    """Write values into lent memory that were not written when they were stored, now that the code has succeeded."""
    for buffer in dict.fromkeys(buffers):
        if isinstance(buffer, Lent):
            buffer.show()


def whole_of(buffer: Buffer, value: Array) -> Array:
    """Return the array for a buffer's memory in what a function has left; the lazy array follows it, if possible."""
    if not isinstance(buffer, Lent):
        if not _may_be_lent(buffer):
            own = np.array(value, order="C" if buffer.ordered else "K")
            own.flags.writeable = buffer.writeable is not False  # what NumPy gives as read-only
            return own
        Lent.become(buffer, value)
    assert isinstance(buffer, Lent)  # noqa: S101 (it is one now)
    memory = buffer.array_of_all()
    numbers_taken.note_array(buffer.node, memory)
    return memory


def _may_be_lent(buffer: Buffer) -> bool:
    """Return whether a buffer's memory is its own, and not an array of the notebook."""
    plain = type(buffer) is Buffer and buffer.array is None and buffer.writeable is True
    return plain and buffer.alias.alone and not (buffer.shared or buffer.argument) and _values_available()


def _values_available() -> bool:
    """Return whether values are available: in plain code, and in captured code outside traces and trials."""
    return context.current() is None or values_are_there()
