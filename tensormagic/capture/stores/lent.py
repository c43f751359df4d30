"""Memory that plain code of the user's has got as an array (``np.asarray``): what it stores there is seen, for as long as anybody has it.

NumPy's ``np.asarray(x)`` is ``x``. Of a lazy array it is an array of the values, which the lazy one follows: it looks at that memory when
it is read, and what captured code stores is put there. Who only reads loses nothing: the value, and derivatives through it, stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensormagic.capture import context, inputs, taken, usercode
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import COPY_LIMIT
from tensormagic.capture.refusal import refuse, values_are_there
from tensormagic.capture.stores.overlap import share
from tensormagic.capture.stores.place import Buffer, Place, serials
from tensormagic.capture.stores.state import State
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint

Array = np.ndarray[Any, Any]


class Lent(Buffer):
    """Memory that somebody outside has, too: the value is read there where that has changed."""

    _own: Node  # the value, as it was last seen
    _number: int
    _memory: Array
    _seen: bytes  # what the memory held then

    @classmethod
    def become(cls, buffer: Buffer, value: Array) -> None:
        """Have a buffer of this value be one of these, for all that have it."""
        own, version = buffer.node, buffer.version
        for name in ("node", "version"):
            vars(buffer).pop(name, None)
        buffer.__class__ = cls
        memory = np.array(value, order="K", copy=True)
        vars(buffer).update(_own=own, _number=version, _memory=memory, _seen=memory.tobytes("A"))
        taken.note(own, memory)

    @property
    def node(self) -> Node:
        """The current value: no derivative goes through what was stored outside."""
        self._look()
        return self.__dict__["node"] if type(self) is Buffer else self._own

    @node.setter
    def node(self, node: Node) -> None:  # type: ignore[override]
        self._own = node
        self._show()

    @property
    def version(self) -> int:
        """Another number for each value that it is seen to have."""
        self._look()
        return self.__dict__["version"] if type(self) is Buffer else self._number

    @version.setter
    def version(self, version: int) -> None:  # type: ignore[override]
        self._number = version

    def part(self, place: Place) -> Array | None:
        """The memory of a place in it; None where that is no view."""
        return place.within(self._memory, _seen_size)

    def _look(self) -> None:
        memory = self._memory
        same = memory.tobytes("A") == self._seen
        if same and sys.getrefcount(memory) <= _MINE:  # nobody else has it
            own, number, held = self._own, self._number, self.__dict__
            del held["_own"], held["_number"], held["_memory"], held["_seen"]
            self.__class__ = Buffer  # type: ignore[assignment]
            held["node"], held["version"] = own, number
            return
        for other in self._beside():
            if other.version:
                refuse(
                    f"reading {self._called}, which shares memory with {other.name}, after a store into that,",
                    "Copy it.",
                )
        if not same:
            lose(self._own)
            taken.note(self._own, memory)  # what was not stored into is of the value
            self._own, self._number = inputs.of_array(memory, self._called), next(serials)
            self._seen = memory.tobytes("A")

    def _show(self) -> None:
        """Put the value into the memory, where values are there."""
        for other in self._beside():
            refuse(
                f"a store into {self._called}, which shares memory with {other.name}, which the cell reads, too,",
                "Copy it.",
            )
        if not _there():
            context.current().unshown.append(self)  # type: ignore[union-attr]  (plain code has values)
            return
        memory = self._memory
        if sys.getrefcount(memory) > _MINE:
            if (capture := context.current()) is not None:
                capture.shown.append(State(memory))
            np.copyto(memory, hooks.compute([self._own])[0])
        self._seen = memory.tobytes("A")

    def show(self) -> None:
        """Put the value into the memory, when the cell has worked."""
        if type(self) is Lent:
            self._show()

    @property
    def _called(self) -> str:
        return self.name or "an array"

    def _beside(self) -> Iterator[Buffer]:
        """The arrays of the notebook that the running cell has, and that lie in the memory."""
        capture = context.current()
        for value in () if capture is None else list(capture.lifted.values()):
            buffer = getattr(getattr(value, "place", None), "buffer", None)
            if isinstance(buffer, Buffer) and type(buffer.array) is np.ndarray and share(self._memory, buffer.array):
                yield buffer


def _seen_size(size: Size) -> int:
    """A size as it was seen; -1 where it depends on data: such a part is not lent."""
    seen = hint(size)
    return -1 if seen is None else seen


_MINE = 3  # references to the memory where nobody else has it: of the buffer, of a local name, and of who counts


def lose(node: Node) -> None:
    """Note for derivatives that what others have stored takes the place of a value, at the line of the cell that runs."""
    capture, frame = context.current(), usercode.user_frame()
    if capture is not None and frame is not None:
        capture.lost.setdefault(node, usercode.span(frame))


def lent(place: Place, value: Array) -> Array:
    """The array that plain code gets for a lazy one of this value: its memory, where that can be; the value, read-only, elsewhere."""
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


def _may_be_lent(buffer: Buffer) -> bool:
    """Whether it is memory of its own, and no array of the notebook."""
    plain = type(buffer) is Buffer and buffer.array is None and buffer.writeable is True and not buffer.away
    alone = not (
        buffer.choice or buffer.overlaps or buffer.shared or buffer.origins or buffer.merged or buffer.argument
    )
    return plain and alone and _there()


def _there() -> bool:
    """Whether values are there: in plain code, and in captured code that is not traced or tried out."""
    return context.current() is None or values_are_there()


__all__ = ["Lent", "lent", "lose"]
